#!/usr/bin/env bash
# Every file of a folder of transcripts becomes a scenario that runs under off, 128 KiB and 32 KiB and gives a report, or is
# refused with one line and exit code 2.
#   scenarios.sh TRACES SPILLGATE
set -uo pipefail
traces=$1
spillgate=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=0 refused=0 failed=0 facts=0
while IFS= read -r -d '' file; do
    case ${file##*/} in MANIFEST.json | README.md) continue ;; esac
    rm -rf "$work/made" "$work/reports"
    "$spillgate" scenario from-trace "$file" --session 1 --out "$work/made" >"$work/said" 2>"$work/errors"
    code=$?
    if [ "$code" = 2 ] && [ "$(wc -l <"$work/errors")" = 1 ] && [ ! -e "$work/made" ]; then
        refused=$((refused + 1))
        echo "refused: $(cat "$work/errors")"
        continue
    fi
    if [ "$code" != 0 ]; then
        failed=$((failed + 1))
        echo "FAILED: $file: from-trace ends with $code: $(tail -1 "$work/errors")"
        continue
    fi
    "$spillgate" accept --quiet --reps 1 --scenario "$work/made/scenario.toml" --out "$work/reports" >"$work/said" 2>&1
    code=$?
    case $code in
    0 | 3 | 4) ;;
    *)
        failed=$((failed + 1))
        echo "FAILED: $file: accept ends with $code: $(tail -3 "$work/said")"
        continue
        ;;
    esac
    if [ ! -s "$work/reports/latest/report.html" ]; then
        failed=$((failed + 1))
        echo "FAILED: $file: no report"
        continue
    fi
    made=$((made + 1))
    facts=$((facts + $(grep -c '^\[\[inputs.facts\]\]' "$work/made/scenario.toml")))
done < <(find "$traces" -type f -print0 | sort -z)
echo "scenarios from $traces: $made run, with $facts facts; $refused refused; $failed failed"
[ "$failed" = 0 ] && [ "$made" -gt 0 ]
