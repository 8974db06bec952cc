#!/usr/bin/env python3
"""Plants known faults into a copy of the tree, one at a time: the test that each names must fail.

    scripts/mutations.py [WORD ...]      all of them, or those whose name holds one of the words
    scripts/mutations.py "known fault"   the fixes of faults that others reported, taken out
    scripts/mutations.py --list

The tree is copied to a directory of its own, with a target directory of its own (MUTATIONS_TARGET_DIR keeps that one for the
next time). Exit code 0: every named test passes without the fault and fails with it. 1: one does not, or a fault no longer
fits the source.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import mutations_known_faults

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = "crates/spill-engine/src/"
AGENT = "crates/spill-agent/src/"


class Mutation:
    """`changes` are (file, text, replacement); each text stands exactly once in its file."""

    def __init__(self, name, tests, changes):
        self.name, self.tests, self.changes = name, tests, changes


def engine(*names):
    return [("spill-engine", "engine", name) for name in names]


def agent(*names):
    return [("spill-agent", "agent", name) for name in names]


MUTATIONS = [
    Mutation(
        "never store",
        engine("boundaries::the_threshold_at_its_bounds"),
        [(ENGINE + "policy.rs", "Switch::On => Decision::Store,", "Switch::On => Decision::Inline,")],
    ),
    Mutation(
        "not dropped",
        engine("results::release_and_drop_let_the_text_go"),
        [(ENGINE + "step.rs", "let store = self.lock().store.take();", "let store = self.lock().store.is_some();")],
    ),
    Mutation(
        "release not called",
        agent("lifetime::every_ending_releases_the_store"),
        [
            (AGENT + "step.rs", "    step.session.release_in_time().await;\n", ""),
            (AGENT + "step.rs", "        self.0.release();\n", "        let _ = &self.0;\n"),
        ],
    ),
    Mutation(
        "released only when not aborted",
        agent("lifetime::every_ending_releases_the_store"),
        [
            (
                AGENT + "step.rs",
                "    step.session.release_in_time().await;\n    drop(store);\n",
                "    if end.abort_reason.is_none() {\n        step.session.release_in_time().await;\n        drop(store);\n"
                "    } else {\n        std::mem::forget(store);\n    }\n",
            ),
        ],
    ),
    Mutation(
        "written to disk",
        engine("disk::a_step_writes_nothing_to_disk"),
        [
            (
                ENGINE + "store.rs",
                "        place.insert(Stored {",
                "        let _ = std::fs::write(std::env::temp_dir().join(call.to_string()), text.as_bytes());\n"
                "        place.insert(Stored {",
            ),
        ],
    ),
    Mutation(
        "one store for all executions",
        engine("reading::executions_of_one_step_never_see_each_other"),
        [
            (ENGINE + "step.rs", "    state: Mutex<State>,\n", "    state: &'static Mutex<State>,\n"),
            (
                ENGINE + "step.rs",
                "        let state = Mutex::new(State {",
                "        static ALL: std::sync::LazyLock<Mutex<State>> = std::sync::LazyLock::new(|| Mutex::new(State {",
            ),
            (
                ENGINE + "step.rs",
                "            usage: Usage::default(),\n        });\n",
                "            usage: Usage::default(),\n        }));\n        let state = &*ALL;\n",
            ),
        ],
    ),
    Mutation(
        "call id not checked",
        engine("reading::not_found_is_one_error_whatever_the_reason"),
        [
            (
                ENGINE + "store.rs",
                "self.results.get_mut(&call)",
                "{\n            let _ = call;\n            self.results.values_mut().next()\n        }",
            ),
        ],
    ),
    Mutation(
        "summary drift: a key is renamed",
        engine("summaries::keys_stand_in_wire_order", "summaries::a_summary_reads_like_this"),
        [(ENGINE + "preview.rs", "    lines: u64,\n", "    #[serde(rename = \"line_count\")]\n    lines: u64,\n")],
    ),
    Mutation(
        "summary drift: two keys change places",
        engine("summaries::keys_stand_in_wire_order", "summaries::a_summary_reads_like_this"),
        [
            (
                ENGINE + "preview.rs",
                "    size_bytes: u64,\n    lines: u64,\n",
                "    lines: u64,\n    size_bytes: u64,\n",
            ),
        ],
    ),
    Mutation(
        "line loop removed",
        engine("measuring::lines_are_counted_by_their_ends", "summaries::size_and_lines_are_those_of_the_stored_text"),
        [
            (
                ENGINE + "measure.rs",
                "    line_feeds + u64::from(",
                "    let _ = line_feeds;\n    u64::from(",
            ),
        ],
    ),
    Mutation(
        "trailing line feed adjustment removed",
        engine("measuring::lines_are_counted_by_their_ends", "summaries::size_and_lines_are_those_of_the_stored_text"),
        [(ENGINE + "measure.rs", " && !text.ends_with('\\n')", "")],
    ),
    Mutation(
        "first-party counter by default",
        engine("reading::usage_and_observer_count_successful_reads"),
        [
            (
                ENGINE + "step.rs",
                "            step,\n            observer,\n            state,\n",
                "            step,\n            observer: {\n                let _ = observer;\n                Self::unobserved()\n"
                "            },\n            state,\n",
            ),
        ],
    ),
    Mutation(
        "step read counter",
        engine("reading::usage_and_observer_count_successful_reads"),
        [(ENGINE + "step.rs", "        self.reads += 1;\n", "")],
    ),
    Mutation(
        "default 32 KiB",
        engine(
            "settings::defaults_are_the_shipped_ones",
            "boundaries::a_step_at_the_default_keeps_100_kib_inline_and_stores_300_kib",
        )
        + agent("answers::the_default_keeps_100_kib_and_stores_300_kib"),
        [(ENGINE + "settings.rs", "DEFAULT_THRESHOLD_BYTES: u64 = 131_072;", "DEFAULT_THRESHOLD_BYTES: u64 = 32_768;")],
    ),
    Mutation(
        "off by default",
        engine(
            "settings::defaults_are_the_shipped_ones",
            "boundaries::a_step_at_the_default_keeps_100_kib_inline_and_stores_300_kib",
        ),
        [(ENGINE + "settings.rs", "DEFAULT_ENABLED: Switch = Switch::On;", "DEFAULT_ENABLED: Switch = Switch::Off;")],
    ),
    Mutation(
        "subjects that had other seeds are compared",
        [("spill-report", "it", "subjects::what_subjects_were_not_given_alike_is_not_compared")],
        [("crates/spill-report/src/subjects/same.rs", "ours.draws == theirs.draws,", "true,")],
    ),
    Mutation(
        "reads of a masked result are lost",
        [("spill-mocks", "lib", "seen::tests::what_was_read_before_a_result_was_masked_is_still_seen")],
        [("crates/spill-mocks/src/seen.rs", "            self.take_earlier_read(reference, seen);\n", "")],
    ),
]

MUTATIONS += [Mutation(f"known fault {name}", tests, changes) for name, tests, changes in mutations_known_faults.FAULTS]


def mutated(tree, changes):
    """The files as they become, by path; the first change that does not fit is an error."""
    files = {}
    for name, text, replacement in changes:
        source = files.get(name) or (tree / name).read_text()
        found = source.count(text)
        if found != 1:
            raise ValueError(f"stands {found} times in {name}, not once: {text!r}")
        files[name] = source.replace(text, replacement)
    return files


def run(tree, target, tests):
    """The state of each named test: `ok`, `FAILED`, or what went wrong instead."""
    states = {}
    for crate, binary in sorted({test[:2] for test in tests}):
        names = [name for own_crate, own_binary, name in tests if (own_crate, own_binary) == (crate, binary)]
        which = ["--lib"] if binary == "lib" else ["--test", binary]
        command = ["cargo", "test", "--locked", "-p", crate, *which, "--no-fail-fast", "--", "--exact", *names]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "INSTA_UPDATE": "no", "RUST_BACKTRACE": "0"}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        for name in names:
            state = re.search(rf"^test {re.escape(name)} \.\.\. (\w+)", done.stdout, re.MULTILINE)
            errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
            states[crate, binary, name] = state[1] if state else f"not run: {'; '.join(errors[:3]) or done.returncode}"
    return states


def check(mutation, tree, target):
    """What is wrong with this mutation; empty when its tests fail as they must."""
    try:
        files = mutated(tree, mutation.changes)
    except ValueError as error:
        return [f"the fault no longer fits: {error}"]
    originals = {name: (tree / name).read_text() for name in files}
    try:
        for name, source in files.items():
            (tree / name).write_text(source)
        states = run(tree, target, mutation.tests)
    finally:
        for name, source in originals.items():
            (tree / name).write_text(source)
    return [f"{test[0]} {test[2]}: {state}" for test, state in states.items() if state != "FAILED"]


def main(words):
    chosen = [it for it in MUTATIONS if not words or any(word in it.name for word in words)]
    if words == ["--list"]:
        print("\n".join(f"{it.name}: {', '.join(test[2] for test in it.tests)}" for it in MUTATIONS))
        return 0
    if not chosen:
        print("no such mutation (see --list)")
        return 1
    with tempfile.TemporaryDirectory(prefix="mutations-") as home:
        tree = pathlib.Path(home) / "tree"
        target = pathlib.Path(os.environ.get("MUTATIONS_TARGET_DIR") or pathlib.Path(home) / "target")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", "target", "reports"), symlinks=True)
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        wrong = [f"without a fault, {test[0]} {test[2]}: {state}" for test, state in run(tree, target, tests).items() if state != "ok"]
        if wrong:
            print("\n".join(wrong))
            return 1
        survived = 0
        for mutation in chosen:
            wrong = check(mutation, tree, target)
            survived += bool(wrong)
            print(f"{'SURVIVED' if wrong else 'caught'}: {mutation.name}", *wrong, sep="\n    ", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} named faults are caught")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
