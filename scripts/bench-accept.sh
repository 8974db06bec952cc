#!/usr/bin/env bash
# What the whole acceptance (60 runs) costs: processor time of all its processes, user and system,
# and wall time. Five times, or as often as the first argument says; the last line is the median.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:-5}
cargo build --locked --release --quiet
spillgate="${CARGO_TARGET_DIR:-target}/release/spillgate"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

TIMEFORMAT='%U %S %R'
for _ in $(seq "$times"); do
    code=0
    { time "$spillgate" accept --quiet --out "$out" >"$out/said" 2>&1; } 2>"$out/time" || code=$?
    # Every verdict is a whole acceptance: accepted, rejected, not proven.
    case $code in
        0 | 3 | 4) ;;
        *)
            cat "$out/said"
            echo "accept ended with exit code $code: nothing was measured" >&2
            exit 1
            ;;
    esac
    cat "$out/time"
done | awk '
    { printf "cpu %.2f s (user %.2f, sys %.2f), wall %.2f s\n", $1 + $2, $1, $2, $3; cpu[NR] = $1 + $2; wall[NR] = $3 }
    function median(of, n,    i, j, held) {
        for (i = 2; i <= n; i++) {
            held = of[i]
            for (j = i - 1; j > 0 && of[j] > held; j--) of[j + 1] = of[j]
            of[j + 1] = held
        }
        return (of[int((n + 1) / 2)] + of[int((n + 2) / 2)]) / 2
    }
    END { printf "median of %d: cpu %.2f s, wall %.2f s\n", NR, median(cpu, NR), median(wall, NR) }'
