//! Every entry of sections A to D has a test that is named for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Entries of which only a part is the engine's, and where the rest is held.
const SHARED: [(u32, &str); 8] = [
    (
        3,
        "the engine plans which results of a turn leave; the agent's turn loop carries the plan out",
    ),
    (
        5,
        "the engine decides by bytes; tokens are counted, not estimated, by `spill-tokens`",
    ),
    (
        6,
        "the engine keeps no estimate that could drift; `spill-tokens` counts and learns no ratio",
    ),
    (
        12,
        "the engine keeps both values of a result; which one a program gets is the agent's to do",
    ),
    (
        14,
        "the engine's part is that one read completes a result; total tokens and repeated calls are rules of `spill-verdict`",
    ),
    (
        38,
        "the engine's part is the notice at the head and the counter of rereads; compaction is the agent's caller's",
    ),
    (
        50,
        "the engine reads the text inside an envelope by JSON Pointer; the agent takes text blocks out of MCP's",
    ),
    (
        58,
        "the engine recognises a read-back in any layer over the same store; the agent puts one layer only",
    ),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of this crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The entries that a test's name holds: `17` and `18` for `fault_17_and_18_executions_stay_apart`.
fn entries_in(name: &str) -> Vec<u32> {
    name.split('_')
        .filter(|word| *word != "and")
        .map_while(|word| word.parse().ok())
        .collect()
}

fn tested() -> BTreeMap<u32, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("tests"), &mut files);
    let mut tested = BTreeMap::<u32, BTreeSet<String>>::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("text");
        let mut is_test = false;
        for line in source.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("fn fault_") {
                assert!(is_test, "{}: {line} is no test", file.display());
                let name = name.split('(').next().unwrap_or_default();
                for entry in entries_in(name) {
                    tested.entry(entry).or_default().insert(name.to_owned());
                }
            }
            // Doc comments and further attributes may stand between.
            is_test = line == "#[test]"
                || (is_test && (line.starts_with("#[") || line.starts_with("//")));
        }
    }
    tested
}

#[test]
fn every_entry_has_a_test_that_is_named_for_it() {
    let tested = tested();
    let missing: Vec<u32> = (1..=58)
        .filter(|entry| !tested.contains_key(entry))
        .collect();
    assert!(missing.is_empty(), "entries without a test: {missing:?}");
    let strange: Vec<u32> = tested
        .keys()
        .copied()
        .filter(|entry| !(1..=58).contains(entry))
        .collect();
    assert!(
        strange.is_empty(),
        "entries that sections A to D do not have: {strange:?}"
    );
    for (entry, rest) in SHARED {
        assert!(tested.contains_key(&entry) && !rest.is_empty(), "{entry}");
    }
}

#[test]
fn names_are_read_as_they_are_meant() {
    for (name, entries) in [
        ("17_and_18_executions_stay_apart", &[17, 18][..]),
        ("40_one_line_of_50_mb_is_read_in_parts", &[40]),
        ("05_the_decision_is_by_bytes", &[5]),
        ("and_so_on", &[]),
    ] {
        assert_eq!(entries_in(name), entries);
    }
}
