#!/usr/bin/env bash
# Recorded transcripts of the folder in SPILLGATE_TRACES, one folder per format: what the importers read agrees with independent
# readers, what a replacement saves agrees with an independent computation to the byte, the verb replays all of them, and each
# becomes a scenario that runs.
# What is not there is said, not skipped in silence.
set -uo pipefail
cd "$(dirname "$0")/.."

traces=${SPILLGATE_TRACES:-}
if [ -z "$traces" ] || [ ! -d "$traces" ]; then
    echo "NOT RUN: recorded transcripts (SPILLGATE_TRACES names no folder: '$traces')"
    exit 0
fi
failed=0
# The development profile: the tests have built them, and the vocabulary is optimised in it too.
cargo build --locked --workspace --example import --example replay || exit 1
examples=target/debug/examples

if command -v python3 >/dev/null && command -v zstd >/dev/null; then
    python3 crates/spill-traces/checks/corpus.py "$traces" "$examples/import" || failed=1
    if [ -d "$traces/swe-agent" ]; then
        python3 crates/spill-traces/checks/swe_agent_savings.py "$traces/swe-agent" "$examples/replay" || failed=1
    else
        echo "NOT RUN: savings on SWE-agent trajectories ($traces/swe-agent is not there)"
    fi
    if [ -d "$traces/mini-swe-agent" ]; then
        python3 crates/spill-traces/checks/counted_tokens.py "$traces/mini-swe-agent" ./target/release/spillgate || failed=1
    else
        echo "NOT RUN: counted against recorded tokens ($traces/mini-swe-agent is not there)"
    fi
else
    echo "NOT RUN: comparisons with independent readers (they need python3 and zstd)"
fi

# Every file that is no description of the others gives a transcript or says why not; 5 would be a file lost.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
./target/release/spillgate replay "$traces" --out "$out"
code=$?
echo "replay of $traces: exit code $code"
[ "$code" = 0 ] || failed=1

# Every transcript becomes a scenario that runs, or says why not.
bash crates/spill-traces/checks/scenarios.sh "$traces" ./target/release/spillgate || failed=1
exit $failed
