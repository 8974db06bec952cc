"""A small agent that nobody else wrote for these tests: Chat completions and MCP over HTTP.

Usage: agent.py LLM_URL MCP_URL MODEL KEY PROMPT HOW
HOW says where the answer goes, and what else goes wrong: words with commas between.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

LLM, MCP, MODEL, KEY, PROMPT, HOW = sys.argv[1:7]
HOW = HOW.split(",")
HOME = os.environ["HOME"]


def post(url, body):
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {KEY}",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        text = response.read().decode()
    if text.startswith(("event:", "data:")):
        text = next(line[5:] for line in text.splitlines() if line.startswith("data:"))
    return json.loads(text) if text.strip() else None


def rpc(method, params, number=1):
    return post(MCP, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})["result"]


def keep(path, text):
    path = os.path.join(HOME, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def step():
    rpc("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}})
    tools = [
        {"type": "function", "function": {"name": one["name"], "description": one.get("description", ""), "parameters": one["inputSchema"]}}
        for one in rpc("tools/list", {})["tools"]
    ]
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        body = {"model": MODEL, "messages": messages, "tools": tools}
        message = post(f"{LLM}/chat/completions", body)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            result = rpc("tools/call", {"name": name, "arguments": arguments})
            text = "".join(part.get("text", "") for part in result["content"])
            if "keeps" in HOW:
                keep(".agent/results/last", text)
            if "leaks" in HOW:
                keep("notes/last", text)
            if "logs" in HOW:
                print(text, file=sys.stderr)
            if "dies" in HOW:
                os.kill(os.getpid(), 9)
            if "hangs" in HOW:
                # One that leaves the group, and is to be killed all the same.
                subprocess.Popen(["sleep", "397"], start_new_session=True)
                time.sleep(600)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


with open(os.path.join(HOME, ".agent/settings.json")) as file:
    settings = json.load(file)
assert settings == {"mcp": MCP, "prompt": PROMPT, "limit": int(os.environ["LIMIT"])}, settings

answer = step()
if "stdout" in HOW:
    print(answer)
elif "json" in HOW:
    print(json.dumps({"result": {"text": answer}}, indent=1))
elif "lines" in HOW:
    print("a log line")
    print(json.dumps({"item": {"text": "an earlier message"}}))
    print(json.dumps({"item": {"text": answer}}))
    print(json.dumps({"done": True}))
elif "file" in HOW:
    with open(os.path.join(os.environ["OUTPUT"], "answer.md"), "w") as file:
        file.write(answer)
if "fails" in HOW:
    sys.exit(2)
