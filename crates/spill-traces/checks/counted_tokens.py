#!/usr/bin/env python3
"""Holds the tokens that a replay counts against those that providers recorded, call by call in sum, for mini-swe-agent files.

usage: counted_tokens.py FOLDER SPILLGATE

The recorded ones are those of the provider's own tokenizer (DeepSeek's in the public files), the counted ones o200k_base over
the recorded messages alone: no chat template, no tool schemas. So they agree within a band, not within 2 %; what must hold is
that the ratio is the same for all files of one model, for then the difference is the tokenizer's and not the importer's. Exit
code 1 when a file leaves the band.
"""
import csv
import glob
import statistics
import subprocess
import sys
import tempfile

SPREAD = 0.05


def main():
    folder, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [program, "replay", folder, "--out", out, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if done.returncode != 0:
            print("replay ended with", done.returncode)
            sys.exit(1)
        (path,) = glob.glob(f"{out}/*/sessions.csv")
        with open(path, newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["counted_input_tokens"]]
    by_model = {}
    for row in rows:
        ratio = int(row["counted_input_tokens"]) / int(row["recorded_input_tokens"])
        by_model.setdefault(row["models"], []).append((ratio, row["file"]))
    failed = not by_model
    for model, ratios in sorted(by_model.items()):
        middle = statistics.median(ratio for ratio, _ in ratios)
        print(f"{model or 'no model'}: counted over recorded input tokens, median of {len(ratios)} files {middle:.3f}")
        for ratio, file in ratios:
            if abs(ratio - middle) > SPREAD * middle:
                failed = True
                print("DIFFERS", file, f"{ratio:.3f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
