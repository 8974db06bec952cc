"""Libraries that speak to many providers: litellm and Inspect AI read usage and errors of our dialects."""

import asyncio
import importlib.metadata
import os

from foreign_mock import Mock, expect, faulty

# A text long enough to be cached, where a provider caches by itself.
LONG = "Review the change. " + "word " * 2000


def litellm_run(program):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True

    def providers(mock):
        return {
            "openai/simulated": dict(api_base=mock.llm),
            "anthropic/simulated": dict(api_base=mock.root),
            "gemini/simulated": dict(api_base=f"{mock.root}/v1beta/models/simulated"),
        }

    for name in ("openai/simulated", "anthropic/simulated"):
        with Mock(program, "--input", "small") as mock:
            block = {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}
            content = [block] if name.startswith("anthropic") else LONG
            ask = dict(model=name, api_key="dummy", num_retries=0, messages=[{"role": "user", "content": content}], **providers(mock)[name])
            first = litellm.completion(**ask).usage
            second = litellm.completion(**ask).usage
            assert first.prompt_tokens == second.prompt_tokens > 2000, (name, first, second)
            assert second.prompt_tokens_details.cached_tokens > 1900, (name, second)
            pieces = list(litellm.completion(stream=True, stream_options={"include_usage": True}, **ask))
            assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices).strip()
        with faulty(program) as mock:
            ask = dict(model=name, api_key="dummy", num_retries=0, max_retries=0, messages=[{"role": "user", "content": "Review."}], **providers(mock)[name])
            expect(litellm.RateLimitError, lambda: litellm.completion(**ask))
            expect(litellm.AuthenticationError, lambda: litellm.completion(**ask))
            expect((litellm.ServiceUnavailableError, litellm.InternalServerError), lambda: litellm.completion(**ask))
            expect(litellm.ContextWindowExceededError, lambda: litellm.completion(**ask))
    return f"litellm {importlib.metadata.version('litellm')}"


def inspect_run(program):
    from inspect_ai.model import GenerateConfig, get_model

    async def ask(name, **arguments):
        model = get_model(name, api_key="dummy", config=GenerateConfig(max_retries=0), memoize=False, **arguments)
        return [(await model.generate(LONG)).usage for _ in range(2)]

    with Mock(program, "--input", "small") as mock:
        chat, second = asyncio.run(ask("openai/simulated", base_url=mock.llm, responses_api=False))
        assert second.input_tokens_cache_read > 1900, second
        assert chat.input_tokens > 2000 and chat.output_tokens > 0, chat
    with Mock(program, "--input", "small") as mock:
        first, second = asyncio.run(ask("openai/simulated", base_url=mock.llm, responses_api=True))
        assert second.input_tokens_cache_read > 1900, second
    with Mock(program, "--input", "small") as mock:
        first, second = asyncio.run(ask("anthropic/simulated", base_url=mock.root))
        assert first.input_tokens + (first.input_tokens_cache_write or 0) > 2000, first
        assert first.output_tokens > 0, first
    return f"Inspect AI {importlib.metadata.version('inspect_ai')}"


def run(program):
    return f"{litellm_run(program)}, {inspect_run(program)}"
