#!/usr/bin/env bash
# A real Prometheus scrapes `spillgate serve` and answers every query of deploy/; what did not run is
# said loudly. Needs a built program (SPILLGATE, or target/release/spillgate), prometheus and promtool; with SETUP_ONLY
# set, it installs what it needs and ends.
set -uo pipefail
cd "$(dirname "$0")/.."

not_run() { echo "NOT RUN: $*" >&2; }
if ! command -v python3 >/dev/null; then
    not_run "Prometheus (there is no python3)"
    exit 0
fi
if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
    if ! { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        timeout 180 apt-get install -y -o DPkg::Lock::Timeout=120 --no-install-recommends prometheus >/dev/null 2>&1; }; then
        not_run "Prometheus (it is not installed, and the Debian package prometheus cannot be)"
        exit 0
    fi
fi
[ -z "${SETUP_ONLY:-}" ] || exit 0
program=$(realpath "${SPILLGATE:-target/release/spillgate}") || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" accept --quiet --stage quick --out "$work/reports" >/dev/null
echo "accept ended with exit code $?"
python3 scripts/prometheus.py "$program" "$work/reports"
