"""For agents.sh. Usage: agents.py inputs DIR | agents.py table DIR NAME…

inputs writes the scenario of the medium code review, and a text of 300 KiB. table prints what the
agents did with them.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def only(name, keep):
    """A built-in scenario with one of its inputs."""
    text = (ROOT / f"scenarios/{name}.toml").read_text().replace("../fixtures", str(ROOT / "fixtures"))
    head, *inputs = text.split("[[inputs]]")
    at = inputs[-1].index("[model]")
    inputs[-1], rest = inputs[-1][:at], inputs[-1][at:]
    return head, [one for one in inputs if f'name = "{keep}"' in one], rest


def inputs(folder):
    head, found, rest = only("review", "medium")
    # One reader for all: the one that reads everything back, so that every agent shows how that is done with it.
    rest, replaced = re.subn(r"(?m)^population = .*$", "population = { diligent = 1.0 }", rest)
    assert replaced == 1, "the scenario names its population on one line"
    (folder / "medium.toml").write_text(f"{head}[[inputs]]{found[0]}\n{rest}")
    lines, size, number = [], 0, 0
    while size < 300 * 1024:
        number += 1
        heading = number % 40 == 1
        line = f"## Part {number // 40 + 1}\n" if heading else f"Line {number} of the text says that item {number * 7919 % 100003} must be kept.\n"
        lines.append(line)
        size += len(line)
    (folder / "text.md").write_text("".join(lines)[: 300 * 1024])


def records(folder, file):
    path = folder / "latest" / file
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def shown(value, form="{:,}"):
    return "–" if value is None else form.format(value)


def treatment(calls, served):
    """What became of the largest result of a run: how much of it stood in the prompt, and in which form."""
    results = [result for call in calls for result in call["new_results"]]
    # Small ones are notes of the tools themselves.
    large = [one for one in results if one["form"] in ("preview", "cut") or one["prompt_bytes"] > 65_536]
    slices = [one for one in results if one["form"] == "slice"]
    words = {"inline": "whole", "preview": "stored, a part shown", "cut": "cut, the rest out of reach"}
    stored = large[0].get("stored_bytes") if large else None
    said = [f"{words.get(one['form'], one['form'])}: {one['prompt_bytes']:,} bytes of {shown(stored or served)}" for one in large[:1]]
    if slices:
        said.append(f"read back in {len(slices)}: {sum(one['prompt_bytes'] for one in slices):,} bytes")
    return ", ".join(said) or "never asked for it"


def kept(run):
    """Where else its content stands when the run is over."""
    leaks = len(run["leak_findings"])
    own = run.get("kept_files")
    said = "nothing kept" if not own else f"content in {own} file{'s' if own > 1 else ''} of its own folders"
    return said + (f", {leaks} leaks" if leaks else "")


def table(folder, names):
    print("medium code review")
    row = "{:<12} {:<8} {:<10} {:>10} {:>12} {:>9} {:>8} {:>8} {:>6} {:>6}"
    print(row.format("subject", "limits", "outcome", "iterations", "input tokens", "memory", "quality", "seconds", "kept", "leaks"))
    for name in names:
        for run in records(folder / name / "medium", "runs.jsonl"):
            peak, sampled = run["peak_rss_bytes"], run.get("sampled_memory_bytes")
            memory = shown(peak and peak / 2**20, "{:.1f} MiB") if peak else shown(sampled and sampled / 2**20, "≥ {:.0f} MiB")
            print(
                row.format(
                    name,
                    run["configuration"],
                    run["outcome"] if run["outcome"] == "succeeded" else run["end_reason"],
                    shown(run["iterations"]),
                    shown(run["input_tokens"]),
                    memory,
                    shown(run["quality"], "{:.2f}"),
                    shown(run["process_ms"] and run["process_ms"] / 1000, "{:.1f}"),
                    shown(run.get("kept_files")),
                    len(run["leak_findings"]) + (run["files_written"] or 0),
                )
            )
    print("\none result of 300 KiB")
    for name in names:
        place = folder / name / "one-result"
        calls = records(place, "calls.jsonl")
        for run in records(place, "runs.jsonl"):
            own = [call for call in calls if call["run_id"] == run["run_id"]]
            print(f"{name:<12} {run['configuration']:<8} {shown(run['input_tokens']):>10} tokens, quality {shown(run['quality'], '{:.2f}')}: {treatment(own, run['largest_result_bytes'])}; {kept(run)}")


if __name__ == "__main__":
    if sys.argv[1] == "inputs":
        inputs(pathlib.Path(sys.argv[2]))
    else:
        table(pathlib.Path(sys.argv[2]), sys.argv[3:])
