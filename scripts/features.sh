#!/usr/bin/env bash
# Every feature alone and none at all, and every crate by itself: features that the workspace adds up hide what one of them
# lacks. Any warning fails.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
check() {
    cargo clippy --locked --quiet "$@" -- -D warnings || { echo "does not build without warnings: $*"; failed=1; }
}
for features in "" s3 tls; do
    check -p spillgate --no-default-features --features "$features"
done
for crate in crates/*/; do
    check -p "$(basename "$crate")" --no-default-features
done
exit $failed
