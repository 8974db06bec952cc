#!/usr/bin/env bash
# The dashboard under load: what 50 open pages and 1,000 scrapes do to an acceptance, whether a server killed
# and started again shows the same, and how long 100 run folders take to open.
#
# Needs a built program (SPILLGATE, or target/release/spillgate) and python3. ROUNDS (3), REPS (40) and LIMIT
# (1.05) can be set.
set -uo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${SPILLGATE:-target/release/spillgate}") || exit 1

if ! command -v python3 >/dev/null; then
    echo "NOT RUN: the load test (there is no python3)" >&2
    exit 0
fi
exec python3 scripts/load.py "$program" "${ROUNDS:-3}" "${REPS:-40}" "${LIMIT:-1.05}"
