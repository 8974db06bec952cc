#!/usr/bin/env bash
# Long checks that are not part of every CI run. What needs a tool that is not there says so.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

# Laws with many more cases than a plain test run takes.
PROPTEST_CASES=${PROPTEST_CASES:-4096} cargo test --locked --workspace --exclude spillgate --release || failed=1

# Ten acceptances with ten seeds: each must end in a verdict.
cargo build --locked --release || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for seed in $(seq 1 10); do
    ./target/release/spillgate accept --quiet --seed "$seed" --out "$out" >/dev/null
    case $? in 0 | 3 | 4) ;; *) echo "seed $seed ended without a verdict"; failed=1 ;; esac
done

if command -v cargo-mutants >/dev/null; then
    cargo mutants -p spill-verdict || failed=1
else
    echo "NOT RUN: cargo mutants (cargo install cargo-mutants)"
fi
exit $failed
