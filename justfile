# Every recipe keeps spillgate's own exit code: see README.md, "Exit codes".

# Runs the whole acceptance (60 runs) and judges it.
accept *ARGS:
    cargo run --release -- accept {{ARGS}}

# Runs the short acceptance (24 runs).
accept-quick *ARGS:
    cargo run --release -- accept --stage quick {{ARGS}}

# Runs the full acceptance only after the quick one is accepted.
gate *ARGS:
    cargo run --release -- accept --stage quick {{ARGS}}
    cargo run --release -- accept --stage full {{ARGS}}

# Sets up and passes all tests.
test:
    bash scripts/test.sh

# Formatting, lints and documentation links, warnings denied.
lint:
    bash scripts/lint.sh

# Installs other agents from npm and runs them side by side; names of subjects, or all of them.
agents *NAMES:
    bash scripts/agents.sh {{NAMES}}

# Criterion benches; those of the engine print the machine's own limits beside our figures.
bench *ARGS:
    cargo bench --workspace {{ARGS}}

# Renders the newest run folder again.
report DIR="reports/latest":
    cargo run --release -- report {{DIR}}

# What CI runs.
ci:
    bash .ci/run

# Long checks that are not part of every CI run.
deep:
    bash scripts/deep.sh
