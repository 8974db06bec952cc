//! The main job: what the folder holds, that it repeats, that configurations differ as they must.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use spill_record::{MEASURED_COLUMNS, OPTIONAL_COLUMNS};

use crate::program::{Row, accept, folder, repository, rows, scenario_with, spillgate, verdict};

const FILES: [&str; 11] = [
    "calls.jsonl",
    "junit.xml",
    "manifest.json",
    "report.html",
    "rules.csv",
    "runs.csv",
    "runs.jsonl",
    "sensitivity.jsonl",
    "summary.csv",
    "summary.md",
    "verdict.json",
];

fn unmeasured(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter()
        .map(|mut row| {
            row.retain(|name, _| !MEASURED_COLUMNS.contains(&name.as_str()));
            row
        })
        .collect()
}

fn of<'a>(rows: &'a [Row], configuration: &str) -> Vec<&'a Row> {
    let found: Vec<_> = rows
        .iter()
        .filter(|row| row["configuration"] == configuration)
        .collect();
    assert!(!found.is_empty(), "no run of {configuration}");
    found
}

#[test]
fn the_built_in_plan_has_60_runs() {
    let said = spillgate(&repository(), &["list"]);
    assert_eq!(said.code, Some(0));
    assert!(said.stdout.contains("60 runs"), "{}", said.stdout);
    let said = spillgate(&repository(), &["list", "--stage", "quick"]);
    assert!(said.stdout.contains("24 runs"), "{}", said.stdout);
}

#[test]
fn a_small_change_is_the_same_under_all_configurations_and_repeats_with_its_seed() {
    let folder = folder();
    let said = accept(folder.path(), "review", "small", &[]);
    // Nothing reached a threshold: no candidate was tried.
    assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
    let latest = folder.path().join("reports/latest");
    let mut names: Vec<_> = fs::read_dir(&latest)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, FILES);

    let first = rows(&latest.join("runs.csv"));
    assert_eq!(first.len(), 6);
    for row in &first {
        for (name, cell) in row {
            assert!(
                !cell.is_empty() || OPTIONAL_COLUMNS.contains(&name.as_str()),
                "{name} is empty in run {}",
                row["run_id"]
            );
        }
        assert_eq!(row["outcome"], "succeeded", "{}", row["error"]);
        assert_eq!(row["quality"], "1");
    }
    for repetition in ["0", "1"] {
        let digests: BTreeSet<_> = first
            .iter()
            .filter(|row| row["repetition"] == repetition)
            .map(|row| (&row["prompt_digest"], &row["offered_tools_digest"]))
            .collect();
        assert_eq!(digests.len(), 1, "repetition {repetition}");
    }
    assert_eq!(verdict(folder.path())["decision"], "none");

    accept(folder.path(), "review", "small", &["--jobs", "1"]);
    let second = rows(&folder.path().join("reports/latest/runs.csv"));
    assert_eq!(unmeasured(first), unmeasured(second));
}

#[test]
fn a_document_between_the_thresholds_is_stored_by_the_lower_one_only() {
    let folder = folder();
    accept(folder.path(), "document", "handbook", &[]);
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    for row in of(&rows, "32KiB") {
        assert_eq!(row["results_persisted"], "1");
        if row["profile"] != "hasty" {
            assert_ne!(row["reads"], "0");
        }
    }
    for row in of(&rows, "128KiB") {
        assert_eq!(
            (row["results_persisted"].as_str(), row["reads"].as_str()),
            ("0", "0")
        );
        assert_eq!(
            row["effective_settings"],
            of(&rows, "128KiB")[0]["effective_settings"]
        );
    }
}

#[test]
fn a_large_change_is_stored_by_both() {
    let folder = folder();
    accept(folder.path(), "review", "large", &[]);
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    for configuration in ["128KiB", "32KiB"] {
        for row in of(&rows, configuration) {
            assert_ne!(row["results_persisted"], "0");
        }
    }
    for row in of(&rows, "off") {
        assert_eq!(row["results_persisted"], "0");
        assert!(row["largest_result_bytes"].parse::<u64>().unwrap() >= 131_072);
    }
}

/// Whoever reads it takes the folder for whole.
#[test]
fn a_verdict_stands_only_where_all_files_do() {
    let folder = folder();
    accept(folder.path(), "review", "small", &["--reps", "1"]);
    let latest = folder.path().join("reports/latest");
    for name in ["report.html", "summary.md"] {
        let verdict = latest.join("verdict.json");
        fs::remove_file(&verdict).unwrap();
        fs::remove_file(latest.join(name)).unwrap();
        fs::create_dir(latest.join(name)).unwrap();
        let said = spillgate(folder.path(), &["judge", "reports/latest"]);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(name), "{}", said.stderr);
        assert!(!verdict.exists(), "{name} is not there");
        fs::remove_dir(latest.join(name)).unwrap();
        spillgate(folder.path(), &["judge", "reports/latest"]);
        assert!(verdict.exists() && latest.join(name).is_file());
    }
}

#[test]
fn judge_and_report_rebuild_the_folder_byte_for_byte() {
    let folder = folder();
    let accepted = accept(folder.path(), "document", "handbook", &[]);
    let latest = folder.path().join("reports/latest");
    let derived = [
        "junit.xml",
        "report.html",
        "rules.csv",
        "runs.csv",
        "summary.csv",
        "summary.md",
        "verdict.json",
    ];
    let read = |latest: &Path| derived.map(|name| fs::read(latest.join(name)).unwrap());
    let before = read(&latest);
    for name in derived {
        fs::remove_file(latest.join(name)).unwrap();
    }
    let judged = spillgate(folder.path(), &["judge", "reports/latest"]);
    assert_eq!(judged.code, accepted.code);
    assert!(read(&latest) == before, "judge rebuilt other bytes");
    let reported = spillgate(folder.path(), &["report", "reports/latest"]);
    assert_eq!(reported.code, Some(0));
    assert!(read(&latest) == before, "report rebuilt other bytes");
}

#[test]
fn deleting_the_facts_leaves_every_request_as_it_was() {
    let folder = folder();
    let digests = |said_folder: &Path| -> Vec<(String, String)> {
        rows(&said_folder.join("reports/latest/runs.csv"))
            .into_iter()
            .map(|row| {
                (
                    row["prompt_digest"].clone(),
                    row["offered_tools_digest"].clone(),
                )
            })
            .collect()
    };
    accept(folder.path(), "review", "small", &[]);
    let with_facts = digests(folder.path());

    let copy = folder.path().join("no-facts");
    copy_folder(&repository().join("fixtures/review-small"), &copy);
    fs::remove_file(copy.join("facts.toml")).unwrap();
    let scenario = scenario_with(folder.path(), "review", "small");
    let fixtures = repository().join("fixtures/review-small");
    let text = fs::read_to_string(&scenario).unwrap();
    fs::write(
        &scenario,
        text.replace(&*fixtures.to_string_lossy(), "no-facts"),
    )
    .unwrap();
    let scenario = scenario.to_string_lossy();
    spillgate(
        folder.path(),
        &[
            "accept",
            "--quiet",
            "--stage",
            "quick",
            "--scenario",
            &scenario,
        ],
    );
    assert_eq!(digests(folder.path()), with_facts);
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_document_no_candidate_stores_is_not_proven() {
    let folder = folder();
    let text: String = (0..400)
        .map(|number| format!("# Part {number}\n\nIt was decided to keep part {number} short.\n\n"))
        .collect();
    fs::write(folder.path().join("short.md"), &text).unwrap();
    let said = spillgate(
        folder.path(),
        &[
            "accept",
            "--quiet",
            "--stage",
            "quick",
            "--document",
            "short.md",
        ],
    );
    assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
    let verdict = verdict(folder.path());
    assert_eq!(verdict["candidates"][0]["state"], "not_proven");
}

#[test]
fn two_acceptances_at_once_do_not_meet() {
    let folder = folder();
    let scenario = scenario_with(folder.path(), "review", "small");
    let scenario = scenario.to_string_lossy();
    let codes: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let stage = ["--stage", "quick"];
                    spillgate(
                        folder.path(),
                        &[
                            "accept",
                            "--quiet",
                            stage[0],
                            stage[1],
                            "--scenario",
                            &scenario,
                        ],
                    )
                    .code
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(codes, [Some(4), Some(4)]);
    // Two run folders and the link.
    assert_eq!(
        fs::read_dir(folder.path().join("reports")).unwrap().count(),
        3
    );
}

/// A prompt that does not fit is the subject's failure, which spilling can cure; not the harness's.
#[test]
fn a_prompt_over_the_context_window_is_a_failed_run() {
    let folder = folder();
    let scenario = scenario_with(folder.path(), "document", "handbook");
    let text = fs::read_to_string(&scenario).unwrap();
    let narrow = text.replace(
        "context_window_tokens = 400000",
        "context_window_tokens = 20000",
    );
    assert_ne!(narrow, text);
    fs::write(&scenario, narrow).unwrap();
    let scenario = scenario.to_string_lossy();
    spillgate(
        folder.path(),
        &["accept", "--quiet", "--reps", "1", "--scenario", &scenario],
    );
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    for row in of(&rows, "off") {
        assert_eq!(
            (row["outcome"].as_str(), row["end_reason"].as_str()),
            ("failed", "context_window"),
            "{}",
            row["error"]
        );
    }
}

#[test]
fn an_answer_that_cannot_be_printed_is_not_success() {
    let printed_to = |place: std::process::Stdio, arguments: &[&str]| {
        let mut command = crate::program::program();
        let output = command.args(arguments).stdout(place).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let folder = folder();
    // Not proven without the flag: a lost answer goes before what was found.
    fs::write(folder.path().join("empty.json"), "[]").unwrap();
    let empty = folder.path().join("empty.json").display().to_string();
    let out = folder.path().join("reports").display().to_string();
    let replay = ["replay", &empty, "--out", &out];
    for (arguments, code, said_of_it) in [
        (&["list", "--stage", "quick"][..], 0, 1),
        (&["completions", "bash"], 0, 1),
        (&["step", "--print-settings"], 0, 1),
        (&["--help"], 0, 0),
        (&replay, 4, 1),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let (found, said) = printed_to(full.unwrap().into(), arguments);
        assert_eq!(found, Some(2), "{arguments:?}: {said}");
        let times = said.matches("standard output cannot be written").count();
        assert_eq!(times, said_of_it, "{arguments:?}: {said}");
        // As behind `| head`: nobody misses it.
        let (reader, gone) = std::io::pipe().unwrap();
        drop(reader);
        let (found, said) = printed_to(gone.into(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {said}");
    }
}

#[test]
fn a_text_that_no_answer_can_contain_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("a.md"), "# Head\n\nThe limit is 3.\n").unwrap();
    let expecting = |text: &str| {
        let arguments = ["list", "--document", "a.md", "--expect", text];
        spillgate(folder.path(), &arguments).code
    };
    assert_eq!(expecting("limit is 3"), Some(0));
    assert_eq!(expecting("section: Head"), Some(0));
    assert_eq!(expecting("no such words"), Some(2));
    let without = spillgate(folder.path(), &["list", "--expect", "section: Head"]);
    assert_eq!(without.code, Some(2), "{}", without.stderr);
}
