#!/usr/bin/env bash
# Clients that no one here wrote, against `spillgate mock`: the SDKs of OpenAI, Anthropic (Python and npm) and
# Google, litellm, Inspect AI and the MCP Python client. They read answers, usage, cached tokens and typed errors,
# whole and streamed; what the vendors' SDKs send and get is checked against the vendors' own API descriptions.
#
# Usage: foreign-clients.sh [PROGRAM]; with SETUP_ONLY set, it installs what it needs and ends.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

if ! command -v python3 >/dev/null; then
    echo "NOT RUN: foreign clients (there is no python3)"
    exit 0
fi
venv=target/foreign-clients
if ! { [ -x "$venv/bin/python" ] || python3 -m venv "$venv"; } ||
    ! "$venv/bin/pip" install --quiet --no-compile --disable-pip-version-check -r scripts/foreign-clients.txt; then
    echo "NOT RUN: foreign clients (the packages of scripts/foreign-clients.txt cannot be installed)"
    exit 0
fi
npm=target/foreign-clients-npm
mkdir -p "$npm"
cp scripts/foreign-clients.package.json "$npm/package.json"
cp scripts/foreign_clients.mjs "$npm/"
has_npm() { command -v node >/dev/null && (cd "$npm" && npm install --silent --no-audit --no-fund >/dev/null); }
if [ -n "${SETUP_ONLY:-}" ]; then
    has_npm
    exit
fi
program=$(realpath "${1:-./target/release/spillgate}") || exit 1
"$venv/bin/python" -W ignore scripts/foreign_clients.py "$program" || failed=1
if ! has_npm; then
    echo "NOT RUN: foreign npm clients (the packages of scripts/foreign-clients.package.json cannot be installed)"
    exit $failed
fi
PYTHONPATH=scripts "$venv/bin/python" -c 'import foreign_mock; print(foreign_mock.faulty_scenario())' >"$npm/faults.toml"
(cd "$npm" && node foreign_clients.mjs "$program" faults.toml) || failed=1
exit $failed
