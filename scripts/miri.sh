#!/usr/bin/env bash
# The engine's unit tests and those of its locks and references, interpreted by Miri. Few cases: it is some hundred times slower.
set -euo pipefail
cd "$(dirname "$0")/.."

# Miri has no `openat`, so nothing of the file store's runs.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}" PROPTEST_CASES=${PROPTEST_CASES:-2}
cargo +nightly miri test --locked -p spill-engine --lib -- --skip stores::file::tests
cargo +nightly miri test --locked -p spill-engine --test engine -- concurrency::a_read_that_races references:: results::
