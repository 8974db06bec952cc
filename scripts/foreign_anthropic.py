"""The Anthropic SDK: messages, whole and streamed, with marks for the prompt cache, and its typed errors."""

import anthropic
import httpx2

from foreign_mock import Mock, expect, faulty

MODEL = "simulated"


def sdk(mock):
    return anthropic.Anthropic(base_url=mock.root, api_key="dummy", max_retries=0, http_client=mock.http(httpx2))


def messages(mock, stream):
    client = sdk(mock)
    tools = [{"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in mock.offered]
    said, tokens = [{"role": "user", "content": "Review the change."}], []
    for _ in range(12):
        ask = dict(model=MODEL, max_tokens=8192, system="You review.", messages=marked(said), tools=tools)
        if stream:
            with client.messages.stream(**ask) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(**ask)
        usage = reply.usage
        tokens.append((usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens))
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            assert reply.stop_reason == "end_turn"
            return reply.content[0].text, tokens
        assert reply.stop_reason == "tool_use"
        said.append({"role": "assistant", "content": [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.input} for one in calls]})
        results = [{"type": "tool_result", "tool_use_id": one.id, "content": mock.call(one.name, one.input)} for one in calls]
        said.append({"role": "user", "content": results})
    raise AssertionError("no answer after 12 calls")


def marked(said):
    """The same messages, the last one marked as the end of what is to be cached."""
    last = said[-1]
    blocks = last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
    blocks = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
    return [*said[:-1], {**last, "content": blocks}]


def errors(mock):
    client = sdk(mock)

    def ask(stream=False):
        return client.messages.create(model=MODEL, max_tokens=64, messages=[{"role": "user", "content": "Review."}], stream=stream)

    assert expect(anthropic.RateLimitError, ask).body["error"]["type"] == "rate_limit_error"
    assert expect(anthropic.AuthenticationError, ask).body["error"]["type"] == "authentication_error"
    overloaded = expect(anthropic.InternalServerError, ask)
    assert (overloaded.status_code, overloaded.body["error"]["type"]) == (529, "overloaded_error"), overloaded
    long = expect(anthropic.BadRequestError, ask)
    assert "prompt is too long" in long.body["error"]["message"], long
    assert expect(anthropic.InternalServerError, ask).status_code == 500
    assert "Overloaded" in str(expect(anthropic.APIError, lambda: list(ask(True))))
    assert ask(), "the fault is over"


def run(program):
    ended = {}
    for stream in (False, True):
        with Mock(program, "--input", "small") as mock:
            ended[stream] = messages(mock, stream)
            assert mock.recorder.requests > 2, "nothing was validated"
    assert ended[False] == ended[True], "streamed and whole differ"
    _, tokens = ended[False]
    assert sum(read for _, read, _, _ in tokens) > 0, tokens
    assert sum(written for _, _, written, _ in tokens) > 0, tokens
    with faulty(program) as mock:
        errors(mock)
        assert mock.recorder.errors >= 4, "no error was validated"
    with Mock(program, "--input", "small") as mock:
        client = sdk(mock)
        question = [{"role": "user", "content": "Review."}]
        assert client.messages.count_tokens(model=MODEL, messages=question).input_tokens > 0
        assert [model.id for model in client.models.list()], "no models are listed"
    return f"Anthropic SDK {anthropic.__version__} (messages)"
