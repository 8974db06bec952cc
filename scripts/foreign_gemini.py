"""Google's SDK: generateContent, whole and streamed, and its errors."""

import google.genai
from google.genai import errors, types

from foreign_mock import Mock, expect, faulty

MODEL = "simulated"


def sdk(mock):
    options = types.HttpOptions(base_url=mock.root, httpx_client=mock.http(), retry_options=types.HttpRetryOptions(attempts=1))
    return google.genai.Client(api_key="dummy", http_options=options)


def generate(mock, stream):
    client = sdk(mock)
    declared = [
        types.FunctionDeclaration(name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema)
        for tool in mock.offered
    ]
    config = types.GenerateContentConfig(
        system_instruction="You review.",
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    said, tokens = [types.Content(role="user", parts=[types.Part(text="Review the change.")])], []
    for _ in range(12):
        ask = dict(model=MODEL, contents=said, config=config)
        replies = list(client.models.generate_content_stream(**ask)) if stream else [client.models.generate_content(**ask)]
        usage = replies[-1].usage_metadata
        tokens.append((usage.prompt_token_count, usage.cached_content_token_count or 0, usage.candidates_token_count))
        parts = [part for reply in replies for part in reply.candidates[0].content.parts]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text for part in parts), tokens
        said.append(types.Content(role="model", parts=parts))
        results = [
            types.Part(function_response=types.FunctionResponse(id=one.id, name=one.name, response={"output": mock.call(one.name, one.args)}))
            for one in calls
        ]
        said.append(types.Content(role="user", parts=results))
    raise AssertionError("no answer after 12 calls")


def run(program):
    ended = {}
    for stream in (False, True):
        with Mock(program, "--input", "small") as mock:
            ended[stream] = generate(mock, stream)
            checked = mock.recorder.events if stream else mock.recorder.replies
            assert checked > 2, "nothing was validated"
    assert ended[False] == ended[True], "streamed and whole differ"
    assert sum(cached for _, cached, _ in ended[False][1]) > 0, ended[False][1]
    with faulty(program) as mock:
        client = sdk(mock)

        def ask():
            return client.models.generate_content(model=MODEL, contents="Review.")

        for code, word in ((429, "RESOURCE_EXHAUSTED"), (401, "UNAUTHENTICATED"), (503, "UNAVAILABLE"), (400, "INVALID_ARGUMENT")):
            error = expect(errors.APIError, ask)
            assert (error.code, error.status) == (code, word), error
    with Mock(program, "--input", "small") as mock:
        client = sdk(mock)
        assert client.models.count_tokens(model=MODEL, contents="Review.").total_tokens > 0
    return f"google-genai {google.genai.__version__}"
