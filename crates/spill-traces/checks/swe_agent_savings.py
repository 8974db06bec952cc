#!/usr/bin/env python3
"""Recomputes what a replacement of 2 KiB saves on SWE-agent trajectories, with a reader of its own.

usage: swe_agent_savings.py FOLDER REPLAY

FOLDER holds `.traj` and `.traj.zst` files; REPLAY is the program of `examples/replay.rs`. The observation of step i of n is sent
with the n - 1 - i calls after it. Exit code 1 and one line for each difference.
"""
import glob
import json
import os
import subprocess
import sys

REPLACEMENT = 2048
THRESHOLDS = (8192, 32768, 131072)


def observations(path):
    if path.endswith(".zst"):
        raw = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    else:
        with open(path, "rb") as file:
            raw = file.read()
    steps = json.loads(raw)["trajectory"]
    return [len((step["observation"] or "").encode("utf-8")) for step in steps]


def main():
    folder, program = sys.argv[1:3]
    paths = sorted(glob.glob(os.path.join(folder, "*.traj*")))
    arguments = [program, str(REPLACEMENT), ",".join(map(str, THRESHOLDS)), *paths]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    replayed = {}
    for line in lines:
        place, threshold, sent, saved = line.split("\t")
        replayed[place, int(threshold)] = (int(sent), int(saved))
    differences = 0
    for threshold in THRESHOLDS:
        all_sent = all_saved = 0
        for path in paths:
            sizes = observations(path)
            times = [len(sizes) - 1 - index for index in range(len(sizes))]
            sent = sum(size * count for size, count in zip(sizes, times))
            saved = sum((size - REPLACEMENT) * count for size, count in zip(sizes, times) if size >= threshold)
            all_sent += sent
            all_saved += saved
            found = replayed.get((path, threshold))
            if found is None:
                found = next((v for (place, t), v in replayed.items() if place.startswith(path) and t == threshold), None)
            if found != (sent, saved):
                differences += 1
                print("DIFFERS", path, threshold, "expected", (sent, saved), "replayed", found)
        share = 100 * all_saved / all_sent if all_sent else 0.0
        print(f"{threshold}: {all_saved} of {all_sent} bytes saved ({share:.3f} %)")
    print(f"{len(paths)} files, {differences} differences")
    sys.exit(1 if differences or not paths else 0)


if __name__ == "__main__":
    main()
