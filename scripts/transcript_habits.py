"""Counts two habits of recorded agents: tool calls per turn, and lines per ranged file read.

Usage: transcript_habits.py DIR...

Reads, below DIR, chat-completions transcripts (tau-bench, tau2-bench, mini-swe-agent, request and
response captures), Claude Code sessions and Gemini CLI sessions, plain or zstd-compressed (needs
the PyPI package zstandard). What is none of these is counted as skipped.
"""

import collections
import json
import pathlib
import re
import statistics
import sys

RANGE = re.compile(r"sed -n ['\"]?(\d+),(\d+)p")


def text_of(path):
    data = path.read_bytes()
    if path.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data.decode("utf-8", "replace")


def records(path):
    text = text_of(path)
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def turns(record):
    """The tool calls of each turn: lists of (key, arguments); turns of one key are one turn."""
    if not isinstance(record, dict):
        return [turn for item in record for turn in turns(item)] if isinstance(record, list) else []
    if record.get("type") == "response":
        messages = [choice["message"] for choice in record["response"].get("choices", [])]
    else:
        messages = record.get("messages") or record.get("traj") or []
        if "simulations" in record:
            messages = [message for run in record["simulations"] for message in run["messages"]]
    found = []
    for number, message in enumerate(messages):
        if message.get("toolCalls"):
            found.append((None, [call.get("args") for call in message["toolCalls"]]))
        elif message.get("role") == "assistant" and message.get("tool_calls"):
            calls = message["tool_calls"]
            found.append((None, [call.get("function", call)["arguments"] for call in calls]))
    content = (record.get("message") or {}).get("content") if record.get("type") == "assistant" else None
    if isinstance(content, list):
        calls = [block["input"] for block in content if isinstance(block, dict) and block.get("type") == "tool_use"]
        if calls:
            found.append((record["message"].get("id"), calls))
    return found


def main():
    calls_per_turn, spans, skipped = collections.Counter(), [], 0
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).rglob("*.json*")):
            try:
                parsed = records(path)
            except (json.JSONDecodeError, UnicodeDecodeError):
                skipped += 1
                continue
            keyed = collections.Counter()
            for key, calls in (turn for record in parsed for turn in turns(record)):
                if key is None:
                    calls_per_turn[len(calls)] += 1
                else:
                    keyed[key] += len(calls)
                for arguments in calls:
                    ranges = RANGE.findall(arguments if isinstance(arguments, str) else json.dumps(arguments))
                    spans += [int(end) - int(start) + 1 for start, end in ranges if len(ranges) == 1]
                    if isinstance(arguments, dict) and arguments.get("limit") and arguments.get("file_path"):
                        spans.append(arguments["limit"])
            calls_per_turn.update(keyed.values())
    print("turns by number of tool calls:", dict(sorted(calls_per_turn.items())), "files skipped:", skipped)
    if spans:
        ninth = statistics.quantiles(spans, n=10)[8]
        print(f"ranged reads: {len(spans)}, median {statistics.median(spans):g} lines, ninth decile {ninth:g}")


if __name__ == "__main__":
    main()
