"""Opens every page of the report and the dashboard and has axe-core and the Nu HTML checker read it.

pages.py PROGRAM AXE_JS NU_JAR; an empty path leaves that reader out. Standard library alone.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
]
SCREENS = {"desk": (1280, 720, False), "hand": (390, 844, True)}
TOKEN = "a token for the login page"
# Neither reader can be one that finds nothing anywhere.
BAD = "<!DOCTYPE html><html><head></head><body><img src='data:,'><p><div></p></body></html>"


class Browser:
    """Chromium through ChromeDriver's HTTP interface."""

    def __init__(self, profile):
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{found[1]}"
                break
        else:
            sys.exit("chromedriver does not start")
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        # A busy machine takes its time over a large page.
        times = {"script": 240_000, "pageLoad": 240_000}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "timeouts": times}
        made = self.call("/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{made['sessionId']}"

    def call(self, path, body, method="POST"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"chromedriver refuses {path}: {error.read().decode(errors='replace')[:400]}")

    def command(self, name, **parameters):
        return self.call("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def show(self, url, screen, scheme):
        width, height, mobile = SCREENS[screen]
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("/url", {"url": url})

    def axe(self, source):
        """The violations of the page, as lines."""
        self.call("/execute/sync", {"script": source, "args": []})
        run = """
            const done = arguments[0];
            for (const one of document.querySelectorAll('details')) one.open = true;
            axe.run(document, {resultTypes: ['violations']}).then(
                (found) => done(found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) =>
                    node.target.join(' ') + ': ' + (node.any.concat(node.all, node.none)[0] || {}).message)])),
                (error) => done([['axe', [String(error)]]]));
        """
        found = self.call("/execute/async", {"script": run, "args": []})
        return [f"{rule}: {'; '.join(nodes)}" for rule, nodes in found]

    def end(self):
        try:
            self.call("", None, "DELETE")
        finally:
            self.driver.kill()
            self.driver.wait()


def start(program, *arguments, **more):
    """A process that says where its dashboard is, and that address."""
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True, **more)
    return process, process.stdout.readline().split(": ", 1)[1].strip()


def until(what, holds):
    deadline = time.monotonic() + 120
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain until {what}")
        time.sleep(0.05)


def text_of(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def pages_of(program, work, processes):
    """Every kind of page by name."""
    reports = work / "reports"
    for seed in ("1", "2"):
        accept = [program, "accept", "--quiet", "--stage", "quick", "--seed", seed, "--out", reports]
        code = subprocess.run(accept, stdout=subprocess.DEVNULL).returncode
        if code not in (0, 3, 4):
            sys.exit(f"accept ended with exit code {code}")
    first, second = sorted(path for path in reports.iterdir() if not path.is_symlink())
    run = json.loads((second / "runs.jsonl").read_text().splitlines()[0])["run_id"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([program, "report", second, "--run", run], **quiet)
    subprocess.run([program, "compare", first, second, "--out", work / "compare.html"], **quiet)
    # The built-in subject under another name.
    (work / "other-agent").write_text(f'#!/bin/sh\nexec "{program}" step "$@"\n')
    (work / "other-agent").chmod(0o755)
    accept = [program, "accept", "--quiet", "--stage", "quick", "--seed", "2", "--out", work / "other"]
    subprocess.run([*accept, "--subject", work / "other-agent"], stdout=subprocess.DEVNULL)
    side_by_side = [program, "compare", second, work / "other/latest", "--out", work / "subjects.html"]
    subprocess.run(side_by_side, **quiet)

    # One acceptance in progress, one that was killed, and a folder that cannot be read.
    (reports / "20200101T000000.000Z-broken").mkdir()
    (reports / "20200101T000000.000Z-broken/manifest.json").write_text("{")
    serve, url = start(program, "serve", "--reports", reports, "--listen", "127.0.0.1:0")
    processes.append(serve)
    long = [program, "accept", "--quiet", "--reps", "80", "--jobs", "1", "--out", reports]
    killed = subprocess.Popen(long, stdout=subprocess.DEVNULL)
    until("an acceptance is in progress", lambda: '"running"' in text_of(url + "api/board"))
    killed.kill()
    killed.wait()
    processes.append(subprocess.Popen(long, stdout=subprocess.DEVNULL))
    until("a rule stands so far", lambda: " so far</span>" in text_of(url))
    closed, closed_url = start(
        program, "serve", "--reports", reports, "--listen", "127.0.0.1:0", env=os.environ | {"SPILLGATE_TOKEN": TOKEN}
    )
    processes.append(closed)
    return {
        "report": f"file://{second}/report.html",
        "run": f"file://{second}/run-{run}.html",
        "compare": f"file://{work}/compare.html",
        "subjects": f"file://{work}/subjects.html",
        "dashboard": url,
        "dashboard, runs": f"{url}runs/{second.name}/runs",
        "dashboard, report": f"{url}runs/{second.name}/",
        "dashboard, run": f"{url}runs/{second.name}/run/{run}",
        "dashboard, login": closed_url + "login",
    }


def check_axe(axe, pages, work):
    source = pathlib.Path(axe).read_text()
    browser = Browser(work / "profile")
    failed = False
    try:
        browser.show("data:text/html," + BAD, "desk", "light")
        if not any(line.startswith("image-alt") for line in browser.axe(source)):
            sys.exit("axe-core does not find a picture without a text")
        for name, url in pages.items():
            for screen in SCREENS:
                for scheme in ("light", "dark"):
                    browser.show(url, screen, scheme)
                    found = browser.axe(source)
                    for line in found:
                        print(f"FAILED: axe-core, {name}, {screen}, {scheme}: {line}", file=sys.stderr)
                    failed = failed or bool(found)
            print(f"axe-core has read: {name}")
    finally:
        browser.end()
    return failed


def check_nu(nu, pages, work):
    folder = work / "nu"
    folder.mkdir()
    (work / "bad.html").write_text(BAD)
    for name, url in pages.items():
        (folder / f"{name.replace(', ', '-')}.html").write_text(text_of(url))
    nu_reads = ["java", "-jar", nu, "--errors-only"]
    if subprocess.run([*nu_reads, work / "bad.html"], stderr=subprocess.DEVNULL).returncode == 0:
        sys.exit("the Nu HTML checker finds nothing in a page without a title")
    read = subprocess.run([*nu_reads, *sorted(folder.iterdir())], stderr=subprocess.PIPE, text=True)
    for line in read.stderr.splitlines():
        print(f"FAILED: Nu: {line}", file=sys.stderr)
    print(f"the Nu HTML checker has read {len(pages)} pages")
    return read.returncode != 0


def main():
    program, axe, nu = sys.argv[1:4]
    processes = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        work = pathlib.Path(work)
        try:
            pages = pages_of(program, work, processes)
            failed = bool(axe) and check_axe(axe, pages, work)
            failed = (bool(nu) and check_nu(nu, pages, work)) or failed
        finally:
            for process in processes:
                process.kill()
                process.wait()
    sys.exit(1 if failed else 0)


main()
