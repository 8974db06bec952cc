#!/usr/bin/env bash
# The step of action.yml: runs spillgate with SPILLGATE_ARGUMENTS (one argument a line) and ends with
# its exit code. SPILLGATE_BINARY names a built one; without it, this checkout is built.
set -euo pipefail

arguments=()
while IFS= read -r line; do
    [ -z "$line" ] || arguments+=("$line")
done <<<"${SPILLGATE_ARGUMENTS:-accept}"

binary=${SPILLGATE_BINARY:-}
if [ -z "$binary" ]; then
    source=$(cd "$(dirname "$0")/.." && pwd)
    # A build that fails is no verdict: 1 is an internal error.
    cargo build --release --locked --manifest-path "$source/Cargo.toml" --target-dir "$source/target" >&2 || exit 1
    binary=$source/target/release/spillgate
fi
exec "$binary" "${arguments[@]}"
