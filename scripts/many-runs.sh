#!/usr/bin/env bash
# Many runs of the small input: what one more costs, whether the runner's memory stays flat, and whether records, reports
# and the dashboard stay usable.
#
# Needs a built program (SPILLGATE, or target/release/spillgate) and python3. RUNS (10,000) and LIMIT_MS (8), the most
# processor time of a further run, can be set.
set -uo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${SPILLGATE:-target/release/spillgate}") || exit 1

if ! command -v python3 >/dev/null; then
    echo "NOT RUN: many runs (there is no python3)" >&2
    exit 0
fi
exec python3 scripts/many-runs.py "$program" "${RUNS:-10000}" "${LIMIT_MS:-8}"
