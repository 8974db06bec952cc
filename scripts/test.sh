#!/usr/bin/env bash
# Sets up what the tests need and passes them all. Needs a Rust toolchain and the package registry.
set -euo pipefail
cd "$(dirname "$0")/.."

# The built program is what the end-to-end tests start.
cargo build --locked -p spillgate
cargo test --locked --workspace
