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

first=$(git rev-list --max-parents=0 HEAD 2>/dev/null | tail -n 1)
if [ -n "$first" ] && [ "$first" != "$(git rev-parse HEAD)" ]; then
    ./target/release/spillgate accept --quiet --stage quick --repo . --range "$first..HEAD"
    check "this repository, $first..HEAD" $?
else
    echo "NOT RUN: a review of this repository's history (the checkout has fewer than two commits)"
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
