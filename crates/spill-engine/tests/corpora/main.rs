//! Replays the corpora of the fuzz targets through the targets' own checks.

#[path = "../../fuzz/checks.rs"]
mod checks;

use std::path::Path;

/// Runs `check` on every file of `target`'s corpus, and on all their prefixes, so that a shortened input is covered too.
fn check_corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&folder).expect("a corpus in the tree");
    let mut replayed = 0;
    for entry in entries {
        let input = std::fs::read(entry.expect("an entry").path()).expect("a file");
        check(&input);
        for end in 0..input.len().min(200) {
            check(&input[..end]);
        }
        replayed += 1;
    }
    assert!(replayed >= 3, "{target} has {replayed} inputs");
}

#[test]
fn previews() {
    check_corpus("previews", checks::previews);
}

#[test]
fn ranges() {
    check_corpus("ranges", checks::ranges);
}

#[test]
fn pointers() {
    check_corpus("pointers", checks::pointers);
}

#[test]
fn references() {
    check_corpus("references", checks::references);
}

#[test]
fn names() {
    check_corpus("names", checks::names);
}
