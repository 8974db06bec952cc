#!/usr/bin/env bash
# Clients that no one here wrote, against `spillgate mock`: the OpenAI Python SDK (JSON, streaming
# with usage, tool calls) and the MCP Python client (list and call the tools).
set -uo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
    echo "NOT RUN: foreign clients (there is no python3)"
    exit 0
fi
venv=target/foreign-clients
if ! { [ -x "$venv/bin/python" ] || python3 -m venv "$venv"; } ||
    ! "$venv/bin/pip" install --quiet --disable-pip-version-check -r scripts/foreign-clients.txt; then
    echo "NOT RUN: foreign clients (the packages of scripts/foreign-clients.txt cannot be installed)"
    exit 0
fi
"$venv/bin/python" scripts/foreign_clients.py ./target/release/spillgate
