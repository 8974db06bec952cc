"""Clients that no one here wrote, against `spillgate mock`. Exits 1 at the first difference.

Every exchange of the vendors' own SDKs is checked against the vendor's description of its API.

Usage: foreign_clients.py PATH_OF_SPILLGATE
"""

import asyncio
import sys

import mcp
from mcp.client.stdio import StdioServerParameters

import foreign_anthropic
import foreign_gemini
import foreign_openai
import foreign_others
from foreign_mock import Mock

REVIEW_TOOLS = {"list_changed_files", "read_diff", "read_file", "search"}


async def mcp_tools(server, mode):
    async with mcp.Client(server, mode=mode) as client:
        listed = (await client.list_tools()).tools
        names = {tool.name for tool in listed}
        assert names == REVIEW_TOOLS, names
        changed = await client.call_tool("list_changed_files", {})
        assert not changed.is_error and "path" in changed.content[0].text
        unknown = await client.call_tool("read_file", {"path": "no/such/file"})
        assert unknown.is_error, unknown
        return client.protocol_version


def mcp_run(program):
    """Both eras over HTTP, and standard input and output."""
    eras = set()
    for mode in ("legacy", "auto"):
        with Mock(program, "--input", "small") as mock:
            eras.add(asyncio.run(mcp_tools(mock.tools, mode)))
    assert eras == {"2025-11-25", "2026-07-28"}, eras
    stdio = StdioServerParameters(command=program, args=["mock", "--stdio", "--input", "small"])
    for mode in ("legacy", "auto"):
        asyncio.run(mcp_tools(mcp.client.stdio.stdio_client(stdio), mode))
    return "the MCP client (both eras, HTTP and stdio)"


def main():
    program = sys.argv[1]
    said = [
        run(program)
        for run in (mcp_run, foreign_openai.run, foreign_anthropic.run, foreign_gemini.run, foreign_others.run)
    ]
    print("foreign clients agree with the mock servers:", "; ".join(said))


if __name__ == "__main__":
    main()
