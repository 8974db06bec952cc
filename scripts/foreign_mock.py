"""What every foreign client needs: a mock of its own, the tools' schemas, and recorded exchanges."""

import asyncio
import contextlib
import functools
import json
import pathlib
import subprocess
import tempfile

import httpx
from mcp import Client

from foreign_specs import Recorder

# One refusal after the other, by the number of the call.
FAULTS = ["rate_limit", "unauthorized", "unavailable", "context_window", "server_error", "stream_error"]

SCENARIO = """
name = "clients"
recipe = "review"
system = "You review."
prompt = "Review the change."

[[inputs]]
name = "small"
class = "small"
source = "generated"
generator = "review-small"
seed = 3

[[configurations]]
name = "off"
role = "control"
enabled = false
env = { CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED = "false" }

[[configurations]]
name = "128KiB"
role = "candidate"
shipped = true
threshold_bytes = "128KiB"
"""


class Mock:
    """`spillgate mock` in a process of its own, and what its clients sent and got."""

    def __init__(self, program, *arguments):
        command = [program, "mock", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        urls = dict(self.process.stdout.readline().split() for _ in range(3))
        self.llm, self.tools, self.root = urls["llm"], urls["tools"], urls["root"]
        self.recorder = Recorder()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=10)

    def http(self, library=httpx):
        """An HTTP client of `library` that has each exchange checked against the vendor's description."""

        def record(response):
            request = response.request
            body = response.read().decode()
            kind = response.headers.get("content-type", "")
            self.recorder.exchange(request.url.path, request.content, response.status_code, kind, body)

        return library.Client(event_hooks={"response": [record]}, timeout=60)

    @functools.cached_property
    def offered(self):
        return asyncio.run(self._offered())

    async def _offered(self):
        async with Client(self.tools) as client:
            return (await client.list_tools()).tools

    def call(self, name, arguments):
        return asyncio.run(self._call(name, arguments))

    async def _call(self, name, arguments):
        async with Client(self.tools) as client:
            return (await client.call_tool(name, arguments)).content[0].text


def faulty_scenario():
    faults = (f'\n[[fault]]\nserver = "llm"\nkind = "{kind}"\ncall = {call}\n' for call, kind in enumerate(FAULTS, 1))
    return SCENARIO + "".join(faults)


@contextlib.contextmanager
def faulty(program):
    """A mock that refuses its first calls, each in another way."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "clients.toml"
        path.write_text(faulty_scenario())
        with Mock(program, "--scenario", str(path)) as mock:
            yield mock


def expect(errors, ask):
    """The error that `ask` raises, which must be one of `errors`."""
    try:
        reply = ask()
    except errors as error:
        return error
    raise AssertionError(f"no error: {reply}")


def parsed(arguments):
    return json.loads(arguments) if isinstance(arguments, str) else arguments
