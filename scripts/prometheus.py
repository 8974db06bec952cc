"""Has a real Prometheus scrape `spillgate serve`, and asks it every query of deploy/.

Usage: prometheus.py SPILLGATE REPORTS
REPORTS holds the run folder of a finished acceptance. Exit code 1 names what failed.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
WAIT_S = 90


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def ask(base, query):
    text = get(f"{base}/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    return json.loads(text)["data"]["result"]


def wait_for(what, ready):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"{what} was not ready within {WAIT_S} s")


def queries():
    """Every query of the dashboard, and the selectors of every alert."""
    board = json.loads((ROOT / "deploy/grafana/spillgate.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    rules = (ROOT / "deploy/prometheus/alerts.yml").read_text()
    for expression in re.findall(r"^\s+expr: (.*)$", rules, re.M):
        for metric in re.findall(r"\b(?:spillgate|gen_ai|clerum)_\w+", expression):
            yield f"alert on {metric}", metric


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    spillgate, reports = sys.argv[1:3]
    processes = []
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            serve = subprocess.Popen(
                [spillgate, "serve", "--reports", reports, "--listen", "127.0.0.1:0"],
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(serve)
            dashboard = serve.stdout.readline().split()[-1]
            check = subprocess.run(
                ["promtool", "check", "metrics"],
                input=get(dashboard + "metrics"),
                text=True,
                capture_output=True,
            )
            if check.returncode or check.stderr.strip():
                failures.append(f"promtool check metrics: {check.stdout}{check.stderr}")
            port = free_port()
            config = pathlib.Path(folder, "prometheus.yml")
            target = dashboard.removeprefix("http://").rstrip("/")
            config.write_text(
                "global: {scrape_interval: 1s}\n"
                f"rule_files: ['{ROOT}/deploy/prometheus/alerts.yml']\n"
                "scrape_configs:\n"
                f"  - {{job_name: spillgate, static_configs: [{{targets: ['{target}']}}]}}\n"
            )
            prometheus = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--log.level=error",
                ]
            )
            processes.append(prometheus)
            base = f"http://127.0.0.1:{port}"
            wait_for("Prometheus", lambda: ask(base, 'up{job="spillgate"} == 1'))
            count = 0
            for title, query in queries():
                count += 1
                if not ask(base, query):
                    failures.append(f"{title}: no data for {query}")
            print(f"prometheus: {count} queries answered with data, {len(failures)} failures")
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    for rules in ["alerts.yml"]:
        path = ROOT / "deploy/prometheus" / rules
        subprocess.run(["promtool", "check", "rules", path], check=True)
    subprocess.run(
        ["promtool", "check", "config", ROOT / "deploy/prometheus/prometheus.yml"], check=True
    )
    if failures:
        sys.exit("\n".join(failures))


main()
