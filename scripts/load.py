"""Loads the dashboard while acceptances run: load.py PROGRAM ROUNDS REPS LIMIT. Standard library alone.

Each round runs the same acceptance three times: alone, with a server of its own beside it, and with
`--serve`; the latter two under 50 open pages and 1,000 scrapes. Compared is the processor time of the
acceptance and of all processes that it started, within the round; the median over the rounds decides.
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


def accept(program, reports, reps, beside):
    """Processor time of an acceptance, and its verdict. `beside` is None, "serve" or "--serve"."""
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
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if load:
        load.end()
    if server:
        server.kill()
        server.wait()
    if process.returncode not in (0, 3, 4):
        fail(f"accept ended with exit code {process.returncode}")
    verdict = json.loads((reports / "latest" / "verdict.json").read_text())
    return usage.ru_utime + usage.ru_stime, verdict


def check_acceptance(program, work, rounds, reps, limit):
    ratios = {"serve": [], "--serve": []}
    alone = []
    for number in range(rounds):
        seconds, verdict = accept(program, work / f"{number}-alone", reps, None)
        alone.append(seconds)
        # Every other round the other way round.
        for beside in sorted(ratios, reverse=number % 2 == 1):
            under_load, same = accept(program, work / f"{number}{beside}", reps, beside)
            if same != verdict:
                fail(f"the verdict is another one under load ({beside})")
            ratios[beside].append(under_load / seconds)
        shutil.rmtree(work / f"{number}-alone")
    print(f"acceptance alone: median {statistics.median(alone):.2f} s of processor time in {rounds} rounds")
    for beside, values in ratios.items():
        median = statistics.median(values)
        shown = ", ".join(f"{value:.3f}" for value in values)
        print(f"under {PAGES} pages and {SCRAPES} scrapes, {beside}: median ratio {median:.3f} ({shown})")
    print("the verdicts are the same")
    too_much = [beside for beside, values in ratios.items() if statistics.median(values) >= limit]
    if too_much:
        fail(f"more than {limit} times the processor time: {', '.join(too_much)}")


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
        accept(program, work / "one", "5", None)
        folder = (work / "one" / "latest").resolve()
        check_folders(program, folder, work)
        check_restart(program, work / "one")
        check_acceptance(program, work, rounds, reps, limit)


main()
