#!/usr/bin/env python3
"""Compares what the importers read with what an independent reader finds in the same files.

usage: corpus.py FOLDER IMPORT

FOLDER is a folder of recorded transcripts in one folder per format; IMPORT is the program of `examples/import.rs`. API captures:
every reconstructed context equals the recorded request, message for message. All: calls, results, result bytes and recorded
tokens agree. Exit code 1 and one line for each difference.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys

FIGURES = re.compile(
    r"^(?P<place>\S+?): (?P<format>[a-z-]+) .*: calls (?P<calls>\d+) \(\+\d+ copied\), tool calls \d+, "
    r"results (?P<results>\d+) of (?P<bytes>\d+) bytes.*input (?P<input>\S+) = uncached (?P<uncached>\S+) "
    r"\+ read (?P<read>\S+) \+ written (?P<written>\S+), output (?P<output>\S+)$"
)
FIELDS = ("calls", "results", "bytes", "input", "read", "output")
differences = 0


def differ(*what):
    global differences
    differences += 1
    print("DIFFERS", *what)


def text_of(path):
    if path.endswith(".zst"):
        raw = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
    else:
        with open(path, "rb") as file:
            raw = file.read()
    return raw.decode("utf-8")


def size(text):
    return len(text.encode("utf-8", "surrogatepass"))


def flat(content):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def tokens(found, usage):
    found["input"] += usage.get("prompt_tokens") or 0
    found["output"] += usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    found["read"] += cached or usage.get("prompt_cache_hit_tokens") or 0


def chat_messages(found, messages):
    for message in messages:
        if message["role"] == "assistant":
            found["calls"] += 1
            tokens(found, message.get("usage") or {})
        elif message["role"] == "tool":
            found["results"] += 1
            found["bytes"] += size(flat(message["content"]))


def openai_chat(path):
    found = collections.Counter()
    for task in json.loads(text_of(path)):
        chat_messages(found, task["traj"])
    return found


def tau2(path):
    found = collections.Counter()
    for simulation in json.loads(text_of(path))["simulations"]:
        messages = simulation["messages"][1:]
        chat_messages(
            found,
            [m for m in messages if m["role"] != "user" and m.get("requestor", "assistant") == "assistant"],
        )
    return found


def swe_agent(path):
    found = collections.Counter()
    for step in json.loads(text_of(path))["trajectory"]:
        found["calls"] += 1
        found["results"] += 1
        found["bytes"] += size(step["observation"] or "")
    return found


def mini_swe_agent(path):
    found = collections.Counter()
    log = json.loads(text_of(path))
    if isinstance(log, list):
        for message in log:
            found["calls"] += message["role"] == "assistant"
            if message["content"].startswith("<returncode>"):
                found["results"] += 1
                found["bytes"] += size(message["content"])
        return found
    chat_messages(found, log["messages"])
    for message in log["messages"]:
        if message["role"] == "assistant":
            tokens(found, message["extra"]["response"]["usage"])
    return found


def claude_code(path):
    found = collections.Counter()
    responses = {}
    seen = set()
    for line in text_of(path).splitlines():
        line = json.loads(line)
        message = line.get("message")
        if not message or line["uuid"] in seen:
            continue
        seen.add(line["uuid"])
        if line["type"] == "assistant":
            responses[message["id"]] = message["usage"]
        elif isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    found["results"] += 1
                    found["bytes"] += size(flat(block.get("content")))
    for usage in responses.values():
        found["calls"] += 1
        read = usage.get("cache_read_input_tokens", 0)
        written = usage.get("cache_creation_input_tokens", 0)
        found["input"] += usage["input_tokens"] + read + written
        found["read"] += read
        found["output"] += usage["output_tokens"]
    return found


def deepseek_harness(path):
    found = collections.Counter()
    seed = False
    for line in text_of(path).splitlines():
        event = json.loads(line)
        if event["type"] == "session":
            seed = event.get("seedLength", 0) > 0
        elif event["type"] == "session/end-seed":
            seed = False
        data = event.get("data") or {}
        if event["type"] == "assistant/message" and not seed:
            found["calls"] += 1
            usage = data.get("usage") or {}
            found["input"] += usage.get("inputTokens", 0) + usage.get("cacheReadTokens", 0)
            found["read"] += usage.get("cacheReadTokens", 0)
            found["output"] += usage.get("outputTokens", 0)
        elif event["type"] == "tool/result":
            found["results"] += 1
            blocks = data["message"]["content"] if "message" in data else data["content"]
            for block in blocks:
                found["bytes"] += size(flat(block["content"] if "content" in block else [block]))
    return found


def gemini_cli(path):
    found = collections.Counter()
    for message in json.loads(text_of(path))["messages"]:
        if message["type"] != "gemini":
            continue
        found["calls"] += 1
        used = message["tokens"]
        found["input"] += used["input"] + used["tool"]
        found["read"] += used["cached"]
        found["output"] += used["output"] + used["thoughts"]
        for call in message.get("toolCalls", []):
            found["results"] += 1
            for part in call["result"]:
                found["bytes"] += size(part["functionResponse"]["response"]["output"])
    return found


def codex_rollout(path):
    found = collections.Counter()
    last = {}
    for line in text_of(path).splitlines():
        line = json.loads(line)
        payload = line["payload"]
        if payload["type"] == "token_count" if line["type"] == "event_msg" else False:
            total = (payload["info"] or {}).get("total_token_usage", last)
            found["calls"] += total != last
            last = total
        elif line["type"] == "response_item" and payload["type"].endswith("_output"):
            found["results"] += 1
            found["bytes"] += size(payload["output"])
    found["input"] = last["input_tokens"]
    found["read"] = last["cached_input_tokens"]
    found["output"] = last["output_tokens"]
    return found


def normal_request(params):
    """The messages of a request as (role, text, tool calls, call id)."""
    messages = []
    for message in params["messages"]:
        calls = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or []
        ]
        messages.append((message["role"], flat(message["content"]), calls, message.get("tool_call_id")))
    return messages


def normal_context(messages):
    found = []
    for message in messages:
        text, calls, answers = "", [], None
        for piece in message["pieces"]:
            if piece["origin"] == "tool_call":
                calls.append((piece["call_id"], piece["name"], piece["text"]))
            else:
                text += piece["text"]
                answers = piece["call_id"]
        if all(piece["origin"] == "tool_schemas" for piece in message["pieces"]) and message["pieces"]:
            continue
        found.append((message["role"], text, calls, answers))
    return found


def api_capture(path, program):
    """Calls and tokens; and every context against its request, in the order of the file."""
    found = collections.Counter()
    requests = {}
    for line in text_of(path).splitlines():
        record = json.loads(line)
        if record["type"] == "request":
            request = record["request_params"]
        else:
            requests[record["response"]["id"]] = normal_request(request)
            found["calls"] += 1
            tokens(found, record["response"]["usage"])
    lines = subprocess.run([program, "--contexts", path], check=True, capture_output=True, text=True).stdout
    contexts = [json.loads(line) for line in lines.splitlines()]
    if sorted(requests) != sorted(context["id"] for context in contexts):
        differ(path, "other calls than recorded")
    for context in contexts:
        expected, read = requests.get(context["id"]), normal_context(context["messages"])
        # A tool message without text has no piece that could carry its call's id.
        expected = [(r, t, c, i if t else None) for r, t, c, i in expected]
        if expected != read:
            differ(path, context["id"], "context differs from the request")
    print(f"{os.path.basename(path)}: {len(contexts)} contexts compared with their requests")
    return found


READERS = {
    "openai-chat": openai_chat,
    "tau2": tau2,
    "swe-agent": swe_agent,
    "mini-swe-agent": mini_swe_agent,
    "claude-code": claude_code,
    "claude-code-edge": claude_code,
    "deepseek-harness": deepseek_harness,
    "gemini-cli": gemini_cli,
    "codex-rollout": codex_rollout,
}


def main():
    folder, program = sys.argv[1:3]
    compared = 0
    for path in sorted(glob.glob(os.path.join(folder, "*", "*"))):
        kind = os.path.basename(os.path.dirname(path))
        if kind == "openai-api-capture":
            expected, fields = api_capture(path, program), ("calls", "input", "output")
        elif kind in READERS:
            expected, fields = READERS[kind](path), FIELDS
        else:
            continue
        lines = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        read = collections.Counter()
        for line in lines.splitlines():
            match = FIGURES.match(line)
            if match:
                for field in FIELDS:
                    read[field] += 0 if match[field] == "-" else int(match[field])
        for field in fields:
            if expected[field] != read[field]:
                differ(path, field, "expected", expected[field], "read", read[field])
        compared += 1
    print(f"{compared} files compared, {differences} differences")
    sys.exit(1 if differences or not compared else 0)


if __name__ == "__main__":
    main()
