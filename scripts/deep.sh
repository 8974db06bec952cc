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

# The measured tables of docs/statistics.md.
cargo run --locked --release --quiet -p spill-verdict --example coverage >"$out/coverage.md" &&
    sed '1,/<!-- coverage -->/d; /<!-- \/coverage -->/,$d' docs/statistics.md | diff - "$out/coverage.md" ||
    { echo "docs/statistics.md does not hold what the example coverage prints"; failed=1; }
# Readers that no one here wrote, and the dashboard under load.
for check in foreign-validators prometheus pages load; do
    bash "scripts/$check.sh" || failed=1
done
RUNS=10000 bash scripts/many-runs.sh || failed=1
# Every family of planned faults, and a thousand seeded fault runs.
bash scripts/faults.sh || failed=1

# Features alone, crates alone: some minutes of clippy.
bash scripts/features.sh || failed=1

# Known faults, each of which a named test must catch.
python3 scripts/mutations.py || failed=1

# What a fuzz target finds is kept in fuzz/artifacts of its crate. The tree's corpora are read, new inputs are not kept.
# There is no unsafe code for a sanitizer to watch.
fuzz() {
    local crate=$1 target=$2
    shift 2
    mkdir -p "$out/corpus/$target"
    (cd "crates/$crate" && cargo +nightly fuzz run --sanitizer none "$target" "$out/corpus/$target" "$@" -- \
        -max_total_time="${FUZZ_SECONDS:-60}" -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0) || failed=1
}
if cargo fuzz --version >/dev/null 2>&1 && cargo +nightly --version >/dev/null 2>&1; then
    for target in previews ranges pointers references names; do
        fuzz spill-engine "$target" "fuzz/corpus/$target"
    done
    traces=../../fixtures/traces
    for target in anthropic api_capture atif claude_code codex deepseek gemini_cli inspect mini_swe_agent openai_chat otel swe_agent; do
        fuzz spill-traces "$target" "fuzz/corpus/$target" "$traces/${target//_/-}"
    done
    fuzz spill-traces any fuzz/corpus/any "$traces"
else
    echo "NOT RUN: cargo fuzz (cargo install cargo-fuzz, rustup toolchain install nightly)"
fi

if cargo +nightly miri --version >/dev/null 2>&1; then
    bash scripts/miri.sh || failed=1
else
    echo "NOT RUN: miri (rustup +nightly component add miri rust-src)"
fi

if cargo mutants --version >/dev/null 2>&1; then
    cargo mutants -p spill-verdict || failed=1
    # Policies and read tools of the engine; the rest of it has the laws above.
    src=crates/spill-engine/src
    PROPTEST_CASES=8 cargo mutants -p spill-engine -f "$src/{policy,step,read,preview,hint,measure}.rs" \
        -f "$src/{inline_cap,envelope,reading}/*.rs" --timeout 120 || failed=1
else
    echo "NOT RUN: cargo mutants (cargo install cargo-mutants)"
fi
exit $failed
