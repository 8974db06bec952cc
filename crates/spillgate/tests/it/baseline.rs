//! The accepted run, what is said against it, and the pages of single runs.

use std::fs;
use std::path::Path;

use crate::program::{Said, accept, folder, rows, scenario_with, spillgate};

/// A full acceptance of one input with two repetitions.
fn accept_full(folder: &Path, input: &str, more: &[&str]) -> Said {
    let scenario = scenario_with(folder, "review", input);
    let scenario = scenario.to_string_lossy();
    let mut arguments = vec!["accept", "--quiet", "--reps", "2", "--scenario", &scenario];
    arguments.extend_from_slice(more);
    spillgate(folder, &arguments)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_answer_is_blessed_and_later_reports_are_held_against_it() {
    let folder = folder();
    let said = accept_full(folder.path(), "large", &["--bless", "  the first one "]);
    assert_eq!(said.code, Some(3), "{}{}", said.stdout, said.stderr);
    assert!(
        said.stderr.contains("blessed: reports/baseline"),
        "{}",
        said.stderr
    );
    let baseline = folder.path().join("reports/baseline");
    let kept = [
        "baseline.json",
        "manifest.json",
        "runs.jsonl",
        "sensitivity.jsonl",
        "summary.csv",
        "verdict.json",
    ];
    assert_eq!(names(&baseline), kept);
    let blessing: serde_json::Value =
        serde_json::from_slice(&fs::read(baseline.join("baseline.json")).unwrap()).unwrap();
    assert_eq!(blessing["reason"], "the first one");
    assert_eq!(blessing["exit_code"], 3);
    let latest = folder.path().join("reports/latest");
    assert_eq!(
        fs::read(baseline.join("verdict.json")).unwrap(),
        fs::read(latest.join("verdict.json")).unwrap()
    );

    let page = || fs::read_to_string(latest.join("report.html")).unwrap();
    assert!(page().contains("No report has been accepted here yet"));
    assert_eq!(
        spillgate(folder.path(), &["report", "reports/latest"]).code,
        Some(0)
    );
    assert!(page().contains("This run is the accepted one, accepted on "));
    // The accepted run is a run folder like any other, without its calls.
    assert_eq!(
        spillgate(folder.path(), &["judge", "reports/baseline"]).code,
        Some(3)
    );

    accept_full(folder.path(), "large", &["--seed", "2"]);
    assert!(page().contains("The decision is still disable; "));
    let compared = spillgate(
        folder.path(),
        &["compare", "reports/baseline", "reports/latest"],
    );
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(
        compared.stdout.contains("seeds: base 1; "),
        "{}",
        compared.stdout
    );
    assert!(compared.stdout.ends_with("comparison: compare.html\n"));
    let html = fs::read_to_string(folder.path().join("compare.html")).unwrap();
    assert!(html.contains("Two runs side by side"));
    let same = spillgate(
        folder.path(),
        &[
            "compare",
            "reports/latest",
            "reports/latest",
            "--json",
            "--out",
            "same.html",
        ],
    );
    let same: serde_json::Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!(same["changed"], serde_json::json!([]));

    let text = fs::read_to_string(baseline.join("runs.jsonl")).unwrap();
    fs::write(
        baseline.join("runs.jsonl"),
        text.replace("succeeded", "failed"),
    )
    .unwrap();
    let judged = spillgate(folder.path(), &["judge", "reports/baseline"]);
    assert_eq!(judged.code, Some(2));
    assert!(
        judged.stderr.contains("is not what was accepted"),
        "{}",
        judged.stderr
    );
    let reported = spillgate(folder.path(), &["report", "reports/latest"]);
    assert_eq!(reported.code, Some(0), "a damaged baseline is in the way");
    assert!(
        reported
            .stderr
            .contains("the report says nothing about changes")
    );
}

#[test]
fn what_is_no_answer_is_not_blessed() {
    let folder = folder();
    let said = accept_full(folder.path(), "small", &["--bless", "wishful"]);
    assert_eq!(said.code, Some(4));
    assert!(said.stderr.contains("not blessed"), "{}", said.stderr);
    assert!(!folder.path().join("reports/baseline").exists());
}

#[test]
fn a_run_has_a_page_by_the_beginning_of_its_id() {
    let folder = folder();
    accept(folder.path(), "review", "large", &[]);
    let latest = folder.path().join("reports/latest");
    let rows = rows(&latest.join("runs.csv"));
    let run = rows
        .iter()
        .find(|row| row["results_persisted"] != "0")
        .unwrap();
    let id = &run["run_id"];
    let said = spillgate(
        folder.path(),
        &["report", "reports/latest", "--run", &id[..8]],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.stdout, format!("reports/latest/run-{id}.html\n"));
    let page = fs::read_to_string(latest.join(format!("run-{id}.html"))).unwrap();
    let calls = format!("Timeline: {} LLM calls", run["llm_calls"]);
    assert!(
        page.contains(&calls),
        "the page has other calls than {calls}"
    );
    assert!(page.contains("bytes stored as i"));

    let report = fs::read_to_string(latest.join("report.html")).unwrap();
    assert!(report.contains("<details id=\"timeline-0\">"));
    for (id, complaint) in [
        ("", "has no run"),
        ("no-such-run", "has no run"),
        ("../x", "has no run"),
    ] {
        let said = spillgate(folder.path(), &["report", "reports/latest", "--run", id]);
        assert_eq!(said.code, Some(2), "{id:?}");
        assert!(said.stderr.contains(complaint), "{}", said.stderr);
    }
}
