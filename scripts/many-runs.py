"""What many runs cost, and whether their folder stays usable; called by many-runs.sh.

Arguments: the program, how many runs, and the most milliseconds of processor time that a further run may cost.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM, RUNS, LIMIT_MS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
CONFIGURATIONS = 3
MOST_HTML_BYTES = 2_000_000
# The runner may hold this much more at the end than after a tenth of the runs: ids of the plan, no results.
MOST_GROWTH_KIB = 16 * 1024
failed = []


def check(what, holds):
    print(f"{'ok    ' if holds else 'FAILED'}  {what}", flush=True)
    if not holds:
        failed.append(what)


def small_review(folder):
    """The built-in review of the small change alone."""
    text = (ROOT / "scenarios/review.toml").read_text()
    first, *blocks = text.split("[[inputs]]")
    at = blocks[-1].index("[model]")
    rest = blocks[-1][at:]
    blocks[-1] = blocks[-1][:at]
    small = next(block for block in blocks if 'name = "small"' in block)
    path = folder / "small.toml"
    text = f"{first}[[inputs]]{small}\n{rest}".replace("../fixtures", str(ROOT / "fixtures"))
    path.write_text(re.sub(r"^max_runs = \d+", f"max_runs = {RUNS * 2}", text, flags=re.M))
    return path


def rss_kib(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    return int(found[1]) if found else None


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lines_of(path, known):
    """Lines of a growing file: the ones known, and those behind `known` bytes."""
    count, offset = known
    with open(path, "rb") as file:
        file.seek(offset)
        bytes_read = file.read()
    return count + bytes_read.count(b"\n"), offset + len(bytes_read)


def accept(scenario, out, repetitions):
    """Runs it; returns its folder, processor time, wall time and memory after parts of the runs."""
    before, began = cpu_of_children(), time.monotonic()
    command = [PROGRAM, "accept", "--quiet", "--scenario", scenario, "--reps", str(repetitions), "--out", out]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    planned, known, seen, peak = repetitions * CONFIGURATIONS, (0, 0), {}, 0
    marks = [planned // 10, planned // 2, planned]
    while process.poll() is None:
        folder = next(iter(p for p in out.glob("2*") if p.is_dir()), None)
        if folder is not None and (folder / "runs.jsonl").exists():
            known = lines_of(folder / "runs.jsonl", known)
            memory = rss_kib(process.pid)
            if memory is not None:
                peak = max(peak, memory)
                for mark in marks:
                    if known[0] >= mark and mark not in seen:
                        seen[mark] = memory
        time.sleep(0.05)
    said = process.stdout.read().decode()
    if process.returncode not in (0, 3, 4):
        sys.exit(f"accept ended with exit code {process.returncode}: nothing was measured\n{said}")
    seen.setdefault(planned, peak)
    return (out / "latest").resolve(), cpu_of_children() - before, time.monotonic() - began, seen


def timed(verb, folder):
    """Processor time and peak memory of a verb on a folder."""
    pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.execv(PROGRAM, [PROGRAM, verb, str(folder)])
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code, used.ru_utime + used.ru_stime, used.ru_maxrss


def dashboard(reports, name):
    """Milliseconds until the page and the report stand, and the page's bytes."""
    process = subprocess.Popen([PROGRAM, "serve", "--reports", reports, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
    try:
        url = process.stdout.readline().decode().split()[-1]
        began = time.monotonic()
        page = urllib.request.urlopen(url).read()
        shown = time.monotonic()
        report = urllib.request.urlopen(f"{url}runs/{name}/").read()
        opened = time.monotonic()
        listed = urllib.request.urlopen(f"{url}runs/{name}/runs").read()
        memory = rss_kib(process.pid)
    finally:
        process.terminate()
        process.wait()
    return name.encode() in page, (shown - began) * 1000, (opened - shown) * 1000, len(report), len(listed), memory


def main():
    with tempfile.TemporaryDirectory() as temp:
        temp = Path(temp)
        scenario = small_review(temp)
        many = -(-RUNS // CONFIGURATIONS)
        few = max(many // 10, 1)
        _, few_cpu, _, _ = accept(scenario, temp / "few", few)
        folder, cpu, wall, seen = accept(scenario, temp / "many", many)
        runs = many * CONFIGURATIONS
        each = (cpu - few_cpu) / (runs - few * CONFIGURATIONS) * 1000
        print(f"        {runs} runs: {cpu:.1f} s of processor time, {wall:.1f} s of wall time")
        check(f"{each:.2f} ms of processor time a further run, of all processes (at most {LIMIT_MS:g})", each <= LIMIT_MS)
        memory = ", ".join(f"{kib / 1024:.1f} MiB after {mark}" for mark, kib in sorted(seen.items()))
        growth = max(seen.values()) - seen[min(seen)]
        check(f"the runner's memory: {memory}", growth <= MOST_GROWTH_KIB)

        verdict = json.loads((folder / "verdict.json").read_text())
        held = verdict["denominators"]
        accounted = held["finished"] + held["infrastructure"] + held["missing"]
        check(f"every run is accounted for: {held}", held["planned"] == runs == accounted and held["finished"] == runs)
        rows = (folder / "runs.csv").read_text().count("\n") - 1
        check(f"runs.csv has {rows} rows", rows == runs)
        size = (folder / "report.html").stat().st_size
        check(f"report.html has {size} bytes (at most {MOST_HTML_BYTES})", size <= MOST_HTML_BYTES)
        records = sum((folder / name).stat().st_size for name in ("runs.jsonl", "calls.jsonl"))
        print(f"        records have {records / 1e6:.0f} MB")
        for verb in ("judge", "report"):
            code, used, peak = timed(verb, folder)
            check(f"{verb}: {used:.2f} s, {peak / 1024:.0f} MiB at its peak", code in (0, 3, 4))
        shown, page_ms, report_ms, report_bytes, list_bytes, memory = dashboard(temp / "many", folder.name)
        check(
            f"the dashboard: page after {page_ms:.0f} ms, report of {report_bytes} bytes after {report_ms:.0f} ms, "
            f"list of runs {list_bytes} bytes, {memory / 1024:.0f} MiB",
            shown and report_bytes <= MOST_HTML_BYTES,
        )
    if failed:
        sys.exit(1)


main()
