#!/usr/bin/env bash
# The gate's test of itself, then the main job: the built-in acceptance. Passes when the verdict is a decision: the shipped default
# is accepted (0), or it must change (3).
set -uo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --release || exit 1
./target/release/spillgate self-test || exit 1
./target/release/spillgate accept --quiet
code=$?
echo "accept ended with exit code $code"
[ "$code" -eq 0 ] || [ "$code" -eq 3 ]
