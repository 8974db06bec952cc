#!/usr/bin/env bash
# Sets up what the tests need and passes them all. Needs a Rust toolchain and the package registry.
#
# The tests of the pages need Chromium and ChromeDriver. Where they are missing, they are installed from
# Debian's packages if that may be done; else it is said which tests did not run.
set -euo pipefail
cd "$(dirname "$0")/.."

has_browser() { command -v chromedriver >/dev/null && { command -v chromium || command -v google-chrome; } >/dev/null; }
install_browser() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        timeout 300 apt-get update -qq &&
        timeout 600 apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends chromium chromium-driver
}
if ! has_browser; then
    echo "installing Chromium and ChromeDriver for the tests of the pages"
    install_browser >/dev/null 2>&1 || true
fi

# One call: building the program first would compile most crates twice, once without the tests' features.
if has_browser; then
    cargo test --locked --workspace --features spillgate/browser-tests
else
    cargo test --locked --workspace
    {
        echo
        echo "NOT RUN: every test of crates/spillgate/tests/browser (the report and the dashboard in a browser):"
        sed -n 's/^async fn \(.*\)() {$/NOT RUN:   \1/p' crates/spillgate/tests/browser/{first_screen,report,dashboard}.rs
        echo "NOT RUN: they need chromium and chromedriver (Debian: apt-get install chromium chromium-driver, as root)"
    } >&2
fi
