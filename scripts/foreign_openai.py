"""The OpenAI SDK: chat completions and responses, whole and streamed, and its typed errors."""

import json

import openai

from foreign_mock import Mock, expect, faulty

MODEL = "simulated"
QUESTION = {"role": "user", "content": "Review the change."}


def sdk(mock):
    return openai.OpenAI(base_url=mock.llm, api_key="dummy", max_retries=0, http_client=mock.http())


def chat_tools(mock):
    return [
        {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}}
        for tool in mock.offered
    ]


def chat(mock, stream):
    """The whole loop: model, tool calls, results, answer. The answer and the tokens of each call."""
    client, tools = sdk(mock), chat_tools(mock)
    messages, tokens = [QUESTION], []
    for _ in range(12):
        message, usage = (chat_streamed if stream else chat_whole)(client, messages, tools)
        cached = usage.prompt_tokens_details.cached_tokens
        assert usage.completion_tokens > 0 and 0 <= cached <= usage.prompt_tokens
        tokens.append((usage.prompt_tokens, cached))
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"], tokens
        for wanted in message["tool_calls"]:
            arguments = json.loads(wanted["function"]["arguments"])
            text = mock.call(wanted["function"]["name"], arguments)
            messages.append({"role": "tool", "tool_call_id": wanted["id"], "content": text})
    raise AssertionError("no answer after 12 calls")


def chat_whole(client, messages, tools):
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    message = reply.choices[0].message
    return message.model_dump(exclude_none=True, exclude={"annotations"}), reply.usage


def chat_streamed(client, messages, tools):
    stream = client.chat.completions.create(
        model=MODEL, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
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


def responses(mock, stream):
    client = sdk(mock)
    tools = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.input_schema, "strict": False}
        for tool in mock.offered
    ]
    items, tokens = [QUESTION], []
    for _ in range(12):
        ask = dict(model=MODEL, input=items, tools=tools, instructions="You review.", store=False)
        if stream:
            with client.responses.stream(**ask) as events:
                reply = events.get_final_response()
        else:
            reply = client.responses.create(**ask)
        cached = reply.usage.input_tokens_details.cached_tokens
        assert reply.usage.output_tokens > 0 and 0 <= cached <= reply.usage.input_tokens
        tokens.append((reply.usage.input_tokens, cached))
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text, tokens
        for call in calls:
            items.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
            text = mock.call(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
    raise AssertionError("no answer after 12 calls")


def errors(mock, ask):
    error = expect(openai.RateLimitError, lambda: ask(False))
    assert (error.status_code, error.code) == (429, "rate_limit_exceeded"), error
    assert expect(openai.AuthenticationError, lambda: ask(False)).code == "invalid_api_key"
    assert expect(openai.InternalServerError, lambda: ask(False)).status_code == 503
    assert expect(openai.BadRequestError, lambda: ask(False)).code == "context_length_exceeded"
    assert expect(openai.InternalServerError, lambda: ask(False)).status_code == 500
    # Of the two streams, the SDK raises in that of chat completions and hands on the other's event.
    try:
        last = list(ask(True))[-1]
        assert last.type == "error" and last.message, last
    except openai.APIError as error:
        assert error.message, error
    assert ask(False), "the fault is over"


def run(program):
    for loop in (chat, responses):
        ended = {}
        for stream in (False, True):
            with Mock(program, "--input", "small") as mock:
                ended[stream] = loop(mock, stream)
                assert mock.recorder.requests > 2, "nothing was validated"
        assert ended[False] == ended[True], f"{loop.__name__}: streamed and whole differ"
        answer, tokens = ended[False]
        assert "- " in answer, answer
        assert sum(cached for _, cached in tokens) > 0, tokens
    for ask in (
        lambda client: lambda stream: client.chat.completions.create(model=MODEL, messages=[QUESTION], stream=stream),
        lambda client: lambda stream: client.responses.create(model=MODEL, input="Review.", stream=stream),
    ):
        with faulty(program) as mock:
            errors(mock, ask(sdk(mock)))
            assert mock.recorder.errors >= 4, "no error was validated"
    with Mock(program, "--input", "small") as mock:
        client = sdk(mock)
        assert [model.id for model in client.models.list()], "no models are listed"
        long = [{"role": "user", "content": "word " * 900_000}]
        error = expect(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=long))
        assert error.code == "context_length_exceeded", error
    return f"OpenAI SDK {openai.__version__} (chat, responses)"
