"""Loads the dashboard while acceptances run: load.py PROGRAM ROUNDS REPS LIMIT. Standard library alone.

Each round runs the same acceptance four times: alone, alone again, with a server of its own beside it, and
with `--serve`; the latter two under 50 open pages and 1,000 scrapes. Two measures of what the load costs:

- the processor time of the server itself, as a share of the acceptance's: of the process beside it, and of
  the threads named `dashboard` with `--serve`. A busy machine hardly changes it: above the limit, the test
  fails;
- the processor time of the acceptance and of all processes that it started, as a ratio to that of the same
  round alone; the median over the rounds. On a busy machine two equal acceptances differ as well: the test
  fails when the ratio is over the limit by more than the second one alone is off.
"""

import http.client
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PAGES = 50
# Of them, pages of browsers that hang: they ask and never read.
DEAD = 5
SCRAPES = 1_000
FOLDERS = 100
OPEN_SECONDS = 1.0


def fail(words):
    sys.exit(f"FAILED: {words}")


def port_of(line):
    return int(re.search(r"dashboard: http://127\.0\.0\.1:(\d+)/", line)[1])


def serve(program, reports, port=0):
    process = subprocess.Popen(
        [program, "serve", "--reports", reports, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    )
    return process, port_of(process.stdout.readline())


def get(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        fail(f"{path} answers {answer.status}")
    return body.decode()


class Load:
    """Open pages and scrapes, until it is ended."""

    def __init__(self, port):
        self.port = port
        self.over = threading.Event()
        self.scrapes = 0
        self.events = [0] * (PAGES - DEAD)
        self.threads = [threading.Thread(target=self.read_pages), threading.Thread(target=self.scrape)]
        for thread in self.threads:
            thread.start()

    def open_page(self):
        page = socket.create_connection(("127.0.0.1", self.port))
        page.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        return page

    def read_pages(self):
        dead = [self.open_page() for _ in range(DEAD)]
        with selectors.DefaultSelector() as pages:
            for number in range(PAGES - DEAD):
                pages.register(self.open_page(), selectors.EVENT_READ, number)
            while not self.over.is_set():
                for key, _ in pages.select(timeout=0.1):
                    piece = key.fileobj.recv(1 << 20)
                    if not piece:
                        pages.unregister(key.fileobj)
                    self.events[key.data] += piece.count(b"event: board")
            for key in list(pages.get_map().values()):
                key.fileobj.close()
        for page in dead:
            page.close()

    def scrape(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while self.scrapes < SCRAPES and not self.over.is_set():
            try:
                get(connection, "/metrics")
            except (OSError, http.client.HTTPException):
                return  # with --serve, the server ends with the acceptance
            self.scrapes += 1
            time.sleep(0.001)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.scrapes < SCRAPES:
            fail(f"the acceptance ended after {self.scrapes} of {SCRAPES} scrapes (set REPS higher)")
        if min(self.events) < 2:
            fail(f"an open page was told nothing: {self.events}")


def seconds(usage):
    return usage.ru_utime + usage.ru_stime


def ended(process):
    """What a process and all that it waited for have used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return seconds(usage)


class Threads:
    """The processor time of the threads of a process that are named `dashboard`, as long as it lives."""

    def __init__(self, process):
        self.tasks = pathlib.Path(f"/proc/{process.pid}/task")
        self.used = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.over.wait(0.05):
            for task in self.tasks.glob("*"):
                try:
                    if (task / "comm").read_text().strip() == "dashboard":
                        self.used[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
                except OSError:
                    pass  # it has ended

    def end(self):
        self.over.set()
        self.thread.join()
        if not self.used:
            fail("no thread of the acceptance is named dashboard")
        return sum(self.used.values())


def accept(program, reports, reps, beside=None):
    """Processor times of an acceptance and of the server in it or beside it, and the verdict."""
    command = [program, "accept", "--quiet", "--reps", reps, "--out", reports]
    server = load = None
    if beside == "serve":
        server, port = serve(program, reports)
        load = Load(port)
    if beside == "--serve":
        command += ["--serve", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if beside == "--serve":
        load = Load(port_of(process.stderr.readline()))
    threading.Thread(target=process.stderr.read, daemon=True).start()
    threads = Threads(process) if beside == "--serve" else None
    used = ended(process)
    served = threads.end() if threads else 0.0
    if load:
        load.end()
    if server:
        server.kill()
        served = ended(server)
    if process.returncode not in (0, 3, 4):
        fail(f"accept ended with exit code {process.returncode}")
    verdict = json.loads((reports / "latest" / "verdict.json").read_text())
    return used, served, verdict


def check_acceptance(program, work, rounds, reps, limit):
    ratios = {"alone again": [], "serve beside it": [], "--serve": []}
    alone, shares = [], {"serve beside it": [], "--serve": []}
    for number in range(rounds):
        used, _, verdict = accept(program, work / f"{number}", reps)
        alone.append(used)
        # Every other round the other way round.
        for kind in sorted(ratios, reverse=number % 2 == 1):
            beside = {"alone again": None, "serve beside it": "serve", "--serve": "--serve"}[kind]
            again, served, same = accept(program, work / f"{number}-{kind}", reps, beside)
            if same != verdict:
                fail(f"the verdict is another one: {kind}")
            ratios[kind].append(again / used)
            if kind in shares:
                shares[kind].append(served / used)
    print(f"acceptance alone: median {statistics.median(alone):.2f} s of processor time in {rounds} rounds")
    shares = {kind: statistics.median(values) for kind, values in shares.items()}
    for kind, share in shares.items():
        print(f"the server itself under {PAGES} pages and {SCRAPES} scrapes, {kind}: {share:.3f} of that")
    medians = {kind: statistics.median(values) for kind, values in ratios.items()}
    for kind, values in ratios.items():
        shown = ", ".join(f"{value:.3f}" for value in values)
        print(f"ratio to the acceptance alone, {kind}: median {medians[kind]:.3f} ({shown})")
    print("the verdicts are the same")
    noise = max(abs(value - 1) for value in ratios.pop("alone again"))
    too_much = [kind for kind in ratios if medians[kind] >= limit + noise]
    too_much += [f"the server itself, {kind}" for kind, share in shares.items() if 1 + share >= limit]
    if too_much:
        fail(f"more than {limit} times the processor time, two equal ones being {noise:.3f} apart: {', '.join(too_much)}")


def check_restart(program, reports):
    server, port = serve(program, reports)
    pages = ["/", "/api/board", "/metrics"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    before = [get(connection, page) for page in pages]
    server.send_signal(signal.SIGKILL)
    server.wait()
    server, port = serve(program, reports, port)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    after = [get(connection, page) for page in pages]
    server.kill()
    server.wait()
    for page, one, other in zip(pages, before, after):
        if one != other:
            fail(f"{page} is another one after the server was killed and started again")
    print("a server killed and started again shows the same")


def check_folders(program, folder, work):
    reports = work / "many"
    reports.mkdir()
    for number in range(FOLDERS):
        shutil.copytree(folder, reports / f"20200101T000000.{number:03}Z-{folder.name[-16:]}")
    began = time.monotonic()
    server, port = serve(program, reports)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    page = get(connection, "/")
    wall = time.monotonic() - began
    fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    server.kill()
    server.wait()
    shown = page.count('data-state="finished"')
    if shown != FOLDERS:
        fail(f"{shown} of {FOLDERS} folders are shown as finished")
    print(f"{FOLDERS} run folders are open after {wall:.2f} s, {used:.2f} s of processor time")
    if used >= OPEN_SECONDS:
        fail(f"opening {FOLDERS} run folders takes {used:.2f} s of processor time")


def main():
    program, rounds, reps, limit = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        # A whole acceptance as anyone runs it.
        accept(program, work / "one", "5")
        folder = (work / "one" / "latest").resolve()
        check_folders(program, folder, work)
        check_restart(program, work / "one")
        check_acceptance(program, work, rounds, reps, limit)


main()
