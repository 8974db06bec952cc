//! A subject whose error, answer and tool names are hostile, a megabyte of it: every file and the
//! terminal stay sound.

use std::fs;

use spill_record::is_unsafe;

use crate::planted_faults::wrapper;
use crate::program::{accept, folder, rows, spillgate};

/// What the planted fault says.
const TEXT: &str =
    "=cmd|</script><script>alert(1)</script>\"'\u{202e}\u{0}\u{1b}]0;x\u{7}\u{9b}31m\n| a | b\n";

#[test]
fn nothing_that_a_subject_says_breaks_a_file() {
    let folder = folder();
    let subject = wrapper(folder.path(), "speaks-in-tongues");
    let subject = subject.to_string_lossy();
    let said = accept(folder.path(), "review", "large", &["--subject", &subject]);
    let latest = folder.path().join("reports/latest");
    let runs = rows(&latest.join("runs.csv"));
    let errors: Vec<&String> = runs.iter().map(|row| &row["end_reason"]).collect();
    assert_eq!(said.code, Some(3), "{}{errors:?}", said.stderr);
    let bad = |text: &str| text.chars().find(|c| is_unsafe(*c) && *c != '\n');
    assert_eq!((bad(&said.stdout), bad(&said.stderr)), (None, None));

    for row in &runs {
        if row["configuration"] != "off" {
            assert_eq!(row["end_reason"], "model_error", "{}", row["error"]);
            assert!(row["error"].starts_with("'=cmd|"), "{}", row["error"]);
            assert!(row["error"].chars().count() <= 32_767);
            let tools: serde_json::Value = serde_json::from_str(&row["persisted_by_tool"]).unwrap();
            assert_eq!(
                tools[TEXT],
                row["results_persisted"].parse::<u64>().unwrap()
            );
        }
    }
    for (name, most) in [
        ("report.html", 1_000_000),
        ("junit.xml", 300_000),
        ("summary.md", 300_000),
        ("summary.csv", 100_000),
        ("rules.csv", 300_000),
        ("runs.csv", 1_000_000),
        ("verdict.json", 500_000),
    ] {
        let file = fs::read_to_string(latest.join(name)).unwrap();
        assert!(file.len() <= most, "{name} has {} bytes", file.len());
        let is_data = name.ends_with(".csv") || name.ends_with(".json");
        assert!(is_data || !file.contains("<script>alert"), "{name}");
        assert_eq!(bad(&file), None, "{name}");
    }
    let run = runs
        .iter()
        .find(|row| row["configuration"] == "128KiB")
        .unwrap();
    let page = ["report", "reports/latest", "--run", &run["run_id"]];
    let said = spillgate(folder.path(), &page);
    let page = fs::read_to_string(folder.path().join(said.stdout.trim())).unwrap();
    assert!(!page.contains("<script>alert") && bad(&page).is_none());
    assert!(page.len() < 500_000, "{} bytes", page.len());
}
