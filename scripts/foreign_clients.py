"""Clients that no one here wrote, against `spillgate mock`. Exits 1 at the first difference.

Usage: foreign_clients.py PATH_OF_SPILLGATE
"""

import asyncio
import json
import subprocess
import sys

import openai
from mcp import Client

REVIEW_TOOLS = {"list_changed_files", "read_diff", "read_file", "search"}


def start(program):
    mock = subprocess.Popen([program, "mock", "--input", "small"], stdout=subprocess.PIPE, text=True)
    urls = dict(mock.stdout.readline().split() for _ in range(2))
    return mock, urls["llm"], urls["tools"]


def schema(tool):
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
    }


async def mcp_tools(url):
    async with Client(url) as client:
        listed = (await client.list_tools()).tools
        names = {tool.name for tool in listed}
        assert names == REVIEW_TOOLS, names
        changed = await client.call_tool("list_changed_files", {})
        assert not changed.is_error and "path" in changed.content[0].text
        unknown = await client.call_tool("read_file", {"path": "no/such/file"})
        assert unknown.is_error, unknown
        return [schema(tool) for tool in listed]


async def call(url, name, arguments):
    async with Client(url) as client:
        return (await client.call_tool(name, arguments)).content[0].text


def converse(client, tools_url, tools, stream):
    """The whole loop with the SDK: model, tool calls, results, answer."""
    messages = [{"role": "user", "content": "Review the change."}]
    for _ in range(12):
        message, usage = (streamed if stream else whole)(client, messages, tools)
        assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
        assert 0 <= usage.prompt_tokens_details.cached_tokens <= usage.prompt_tokens
        messages.append(message)
        if not message.get("tool_calls"):
            assert message["content"].strip()
            return message["content"]
        for wanted in message["tool_calls"]:
            arguments = json.loads(wanted["function"]["arguments"])
            text = asyncio.run(call(tools_url, wanted["function"]["name"], arguments))
            messages.append({"role": "tool", "tool_call_id": wanted["id"], "content": text})
    raise AssertionError("no answer after 12 calls")


def whole(client, messages, tools):
    reply = client.chat.completions.create(model="simulated", messages=messages, tools=tools)
    message = reply.choices[0].message
    return message.model_dump(exclude_none=True, exclude={"annotations"}), reply.usage


def streamed(client, messages, tools):
    chunks = list(
        client.chat.completions.create(
            model="simulated",
            messages=messages,
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].choices == [] and chunks[-1].usage is not None, chunks[-1]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    content, calls = "", {}
    for chunk in chunks[:-1]:
        delta = chunk.choices[0].delta
        content += delta.content or ""
        for piece in delta.tool_calls or []:
            call = calls.setdefault(piece.index, {"type": "function", "function": {"name": "", "arguments": ""}})
            if piece.id:
                call["id"] = piece.id
            call["function"]["name"] += piece.function.name or ""
            call["function"]["arguments"] += piece.function.arguments or ""
    message = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message, chunks[-1].usage


def main():
    mock, llm, tools_url = start(sys.argv[1])
    try:
        tools = asyncio.run(mcp_tools(tools_url))
        client = openai.OpenAI(base_url=llm, api_key="dummy", max_retries=0)
        answers = {stream: converse(client, tools_url, tools, stream) for stream in (False, True)}
        assert answers[False] == answers[True], "streamed and whole answers differ"
        assert [model.id for model in client.models.list()], "no models are listed"
        try:
            client.chat.completions.create(model="simulated", messages=[{"role": "user", "content": "word " * 900_000}])
            raise AssertionError("a prompt larger than the context window was answered")
        except openai.BadRequestError as error:
            assert error.code == "context_length_exceeded", error
    finally:
        mock.terminate()
        mock.wait(timeout=10)
    print("foreign clients: OpenAI SDK", openai.__version__, "and the MCP client agree with the mock servers")


if __name__ == "__main__":
    main()
