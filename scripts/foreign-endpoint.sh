#!/usr/bin/env bash
# `accept --llm` against a server that no one here wrote: aimock, from npm. It checks the key, answers chat
# completions to the built-in subject and streamed messages to a subject of this script's, and breaks
# connections when it is told to.
#
# Usage: foreign-endpoint.sh [PROGRAM]; with SETUP_ONLY set, it installs what it needs and ends.
set -uo pipefail
cd "$(dirname "$0")/.."
place=target/foreign-endpoint
mkdir -p "$place"
cp scripts/foreign-endpoint.package.json "$place/package.json"
cp scripts/foreign_endpoint.mjs "$place/"
if ! command -v node >/dev/null; then
    echo "NOT RUN: foreign endpoint (there is no node)"
    exit 0
fi
if ! (cd "$place" && npm install --silent --no-audit --no-fund >/dev/null); then
    echo "NOT RUN: foreign endpoint (the packages of scripts/foreign-endpoint.package.json cannot be installed)"
    exit 0
fi
[ -z "${SETUP_ONLY:-}" ] || exit 0
program=$(realpath "${1:-./target/release/spillgate}") || exit 1
cd "$place" && exec node foreign_endpoint.mjs "$program"
