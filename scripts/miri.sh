#!/usr/bin/env bash
# The engine's unit tests and those of its locks and references, interpreted by Miri. Few cases: it is some hundred times slower.
set -euo pipefail
cd "$(dirname "$0")/.."

# Isolation is off since file stores ask the system for a directory.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}" PROPTEST_CASES=${PROPTEST_CASES:-2}
cargo +nightly miri test --locked -p spill-engine --lib
cargo +nightly miri test --locked -p spill-engine --test engine -- concurrency references results
