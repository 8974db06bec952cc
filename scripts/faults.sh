#!/usr/bin/env bash
# Every family of planned faults, and RUNS seeded fault runs (default 1000): each run ends as its scenario
# says, and none leaves a process behind, hangs, or is unaccounted for.
#
# Usage: faults.sh [PROGRAM]; the environment variable RUNS sets the number of seeded runs.
set -uo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:-./target/release/spillgate}")
runs=${RUNS:-1000}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

# Every process of a run has folders below $TMPDIR in its environment.
mkdir "$out/tmp"
orphans() { grep -laFs "$out/tmp" /proc/[0-9]*/environ; }

check() { # FILE PLANNED-RUNS ARGUMENT…
    local file=$1 planned=$2 code
    shift 2
    TMPDIR="$out/tmp" timeout 600 "$program" accept --quiet --scenario "$file" --out "$out/reports" "$@" >"$out/log" 2>&1
    code=$?
    case $code in
    0 | 3 | 4) ;;
    124)
        echo "$file: did not end within 600 s"
        failed=1
        ;;
    *)
        echo "$file: exit code $code"
        tail -n 5 "$out/log"
        failed=1
        ;;
    esac
    python3 - "$out/reports/latest/runs.jsonl" "$planned" "$file" <<'PYTHON' || failed=1
import collections, json, sys

path, planned, name = sys.argv[1:]
runs = [json.loads(line) for line in open(path)]
lost = [run for run in runs if run["outcome"] == "infrastructure"]
if planned != "-" and len(runs) != int(planned):
    sys.exit(f"{name}: {len(runs)} runs of {planned} planned")
for run in lost[:5]:
    print(f"{name}: run {run['run_id']}: {run['error']}")
hit = collections.Counter(fault.split(" ", 2)[0] + " " + fault.split(" ", 2)[2] for run in runs for fault in run.get("faults", []))
ends = collections.Counter(run["end_reason"] for run in runs)
print(f"{name}: {len(runs)} runs, {sum(hit.values())} faults of {len(hit)} kinds, ends {dict(ends)}")
sys.exit(1 if lost else 0)
PYTHON
    local left
    left=$(orphans)
    if [ -n "$left" ]; then
        echo "$file: left processes behind: $left"
        failed=1
    fi
}

for file in scenarios/faults/*.toml; do
    check "$file" -
done
check scenarios/faults/seeded.toml "$runs" --reps "$((runs / 2))" --seed 7
exit $failed
