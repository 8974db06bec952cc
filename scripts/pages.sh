#!/usr/bin/env bash
# Every page of the report and the dashboard, read by axe-core in Chromium (light and dark, on a desk and at
# hand) and by the Nu HTML checker; what did not run is said loudly.
#
# Needs a built program (SPILLGATE, or target/release/spillgate), python3, npm, Chromium with ChromeDriver, and
# for the Nu checker Java; with SETUP_ONLY set, it installs what it needs and ends.
set -uo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${TOOLS:-target/pages}")
axe=$tools/node_modules/axe-core/axe.min.js
nu=$tools/node_modules/vnu-jar/build/dist/vnu.jar

not_run() { echo "NOT RUN: $*" >&2; }
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        timeout 600 apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "$@" >/dev/null 2>&1
}
package() {
    [ -f "$2" ] || npm install --silent --no-audit --no-fund --prefix "$tools" "$1" >/dev/null 2>&1
    [ -f "$2" ]
}

if ! command -v python3 >/dev/null; then
    not_run "axe-core and the Nu HTML checker (there is no python3)"
    exit 0
fi
if ! command -v chromedriver >/dev/null && ! install chromium chromium-driver; then
    not_run "axe-core and the Nu HTML checker (there is no chromedriver, and the Debian package chromium-driver cannot be installed)"
    exit 0
fi
if ! package axe-core@4.14.1 "$axe"; then
    not_run "axe-core (npm cannot install it)"
    axe=
fi
if ! command -v java >/dev/null && ! install default-jre-headless; then
    not_run "the Nu HTML checker (there is no java, and the Debian package default-jre-headless cannot be installed)"
    nu=
elif ! package vnu-jar@26.9.27 "$nu"; then
    not_run "the Nu HTML checker (npm cannot install vnu-jar)"
    nu=
fi
[ -z "${SETUP_ONLY:-}" ] || exit 0
program=$(realpath "${SPILLGATE:-target/release/spillgate}") || exit 1
exec python3 scripts/pages.py "$program" "$axe" "$nu"
