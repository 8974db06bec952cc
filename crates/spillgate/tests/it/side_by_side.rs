//! Several subjects side by side: the built-in one and a small one in Python.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Row, accept, folder, rows, spillgate};
use crate::subjects::{STDOUT, subject};

/// Reviews the small input once under each configuration of the subject, and returns the run folder.
fn review(folder: &Path, out: &str, more: &[&str]) -> String {
    let mut arguments = vec!["--reps", "1", "--out", out];
    arguments.extend_from_slice(more);
    let said = accept(folder, "review", "small", &arguments);
    let made = format!("{out}/latest");
    assert!(
        folder.join(&made).join("runs.csv").exists(),
        "{}",
        said.stderr
    );
    made
}

fn check_refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let said = spillgate(folder, &[&["compare"][..], arguments].concat());
    assert_eq!(said.code, Some(2), "{}{}", said.stdout, said.stderr);
    for part in words {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert!(!folder.join("compare.html").exists(), "{arguments:?}");
}

#[test]
fn two_subjects_stand_side_by_side_as_their_records_say() {
    let folder = folder();
    let folder = folder.path();
    let file = subject(folder, "stdout,keeps", STDOUT);
    let ours = review(folder, "ours", &[]);
    let theirs = review(folder, "theirs", &["--subject", &file]);
    let said = spillgate(
        folder,
        &[
            "compare",
            &ours,
            &theirs,
            "--out",
            "page.html",
            "--csv",
            "table.csv",
        ],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.ends_with("comparison: page.html\n"));
    assert!(
        said.stdout.contains("small-agent  default"),
        "{}",
        said.stdout
    );

    let recorded: Vec<Row> = [&ours, &theirs]
        .into_iter()
        .flat_map(|made| rows(&folder.join(made).join("runs.csv")))
        .collect();
    let table = rows(&folder.join("table.csv"));
    assert_eq!(table.len(), 5);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    for row in &table {
        let named = |run: &&Row| {
            (&run["subject"], &run["configuration"]) == (&row["subject"], &row["configuration"])
        };
        let run = recorded.iter().find(named).expect("its run");
        for (figure, column) in [
            ("median_iterations", "iterations"),
            ("median_input_tokens", "input_tokens"),
            ("median_output_tokens", "output_tokens"),
            ("mean_quality", "quality"),
            ("kept_files", "kept_files"),
            ("files_written", "files_written"),
            ("leak_findings", "leak_findings"),
            ("median_served_bytes", "largest_result_bytes"),
        ] {
            assert_eq!(row[figure], run[column], "{figure}");
        }
        assert_eq!((&*row["planned"], &*row["succeeded"]), ("1", "1"));
        let is_ours = row["subject"] == "built-in";
        assert_eq!(row["peak_memory_is_lower_bound"], (!is_ours).to_string());
        // Every result of this input is below each limit.
        assert_eq!(
            (&*row["largest_result"], &*row["median_reads"]),
            ("whole", "0")
        );
        assert!(page.contains(&format!(">{}</th>", row["subject"])));
    }

    let json = spillgate(folder, &["compare", &ours, &theirs, "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["inputs"][0]["rows"].as_array().map(Vec::len), Some(5));
    fs::remove_file(folder.join("compare.html")).unwrap();

    let other = review(folder, "other", &["--seed", "2", "--subject", &file]);
    check_refused(
        folder,
        &[&ours, &other],
        &[
            "ours/latest and other/latest cannot be compared",
            "review/small",
        ],
    );
    check_refused(
        folder,
        &[&theirs, &other, &ours],
        &[
            "theirs/latest and other/latest cannot be compared",
            "same subject",
        ],
    );
}

#[test]
fn folders_of_one_subject_are_compared_two_at_a_time() {
    let folder = folder();
    let folder = folder.path();
    let ours = review(folder, "ours", &[]);
    let (page, records) = ("ours/latest/report.html", "ours/latest/runs.jsonl");
    check_refused(
        folder,
        &[&ours, &ours, &ours],
        &["3 run folders of one subject"],
    );
    check_refused(
        folder,
        &[&ours, &ours, "--csv", "table.csv"],
        &["leave it out"],
    );
    check_refused(folder, &[&ours], &["2"]);
    let before = fs::read(folder.join(records)).unwrap();
    for place in [page, records] {
        check_refused(
            folder,
            &[&ours, &ours, "--csv", place],
            &["is there and no table"],
        );
    }
    check_refused(
        folder,
        &[&ours, &ours, "--csv", "./both", "--out", "both"],
        &["--csv and --out both name"],
    );
    assert_eq!(fs::read(folder.join(records)).unwrap(), before);
    assert!(!folder.join("table.csv").exists());
}
