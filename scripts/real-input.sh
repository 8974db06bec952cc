#!/usr/bin/env bash
# Acceptances on real text: this project's own history and the *.md files of the folder in
# SPILLGATE_DOCUMENTS. What is not there is said, not skipped in silence.
set -uo pipefail
cd "$(dirname "$0")/.."

documents=${SPILLGATE_DOCUMENTS:-}
failed=0

# check WHAT: the exit code is that of a verdict, not of an error.
check() {
    local what=$1 code=$2
    echo "$what: exit code $code"
    case $code in 0 | 3 | 4) ;; *) failed=1 ;; esac
}

# The longest of these ranges that the checkout holds and that a review takes: at most 1,000 files.
range=
for back in 200 100 50 20 10 5 2 1; do
    changed=$(git diff --name-only "HEAD~$back" HEAD 2>/dev/null) || continue
    if [ "$(wc -l <<<"$changed")" -le 1000 ]; then
        range=HEAD~$back..HEAD
        break
    fi
done
if [ -n "$range" ]; then
    ./target/release/spillgate accept --quiet --stage quick --repo . --range "$range"
    check "this repository, $range" $?
else
    echo "NOT RUN: a review of this repository's history (the checkout has fewer than two commits, or none below 1,000 files)"
fi

if [ -n "$documents" ] && [ -d "$documents" ]; then
    for document in "$documents"/*.md; do
        [ "$(basename "$document")" = README.md ] && continue
        ./target/release/spillgate accept --quiet --stage quick --document "$document"
        code=$?
        check "$(basename "$document")" "$code"
    done
else
    echo "NOT RUN: acceptances on real documents (SPILLGATE_DOCUMENTS names no folder: '$documents')"
fi
exit $failed
