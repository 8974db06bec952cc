//! `sweep`: settings against cost and quality.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Said, folder, rows, scenario_with, spillgate};

fn sweep(folder: &Path, more: &[&str]) -> Said {
    let scenario = scenario_with(folder, "review", "small");
    let scenario = scenario.to_string_lossy();
    let mut arguments = vec!["sweep", "--quiet", "--reps", "2", "--scenario", &scenario];
    arguments.extend_from_slice(more);
    spillgate(folder, &arguments)
}

fn only_folder(reports: &Path) -> PathBuf {
    let mut folders = fs::read_dir(reports).unwrap();
    let found = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    found
}

#[test]
fn what_a_threshold_cannot_change_is_not_run_again() {
    let temp = folder();
    let said = sweep(
        temp.path(),
        &["--thresholds", "4KiB..64KiB", "--out", "one"],
    );
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let first = only_folder(&temp.path().join("one"));
    let points = rows(&first.join("sweep.csv"));
    let thresholds: Vec<&str> = points.iter().map(|row| &*row["threshold_bytes"]).collect();
    assert_eq!(thresholds, ["", "4096", "8192", "16384", "32768", "65536"]);
    let same: Vec<&str> = points.iter().map(|row| &*row["same_as_control"]).collect();
    // Files of 7 to 12 KiB: 16 KiB stores nothing, which is seen by running it.
    assert_eq!(same, ["0", "0", "0", "0", "2", "2"]);
    assert!(points.iter().all(|row| row["runs"] == "2"));
    let made = rows(&first.join("runs.csv"));
    let copies = made.iter().filter(|row| !row["same_as"].is_empty()).count();
    assert_eq!(copies, 4);

    // What was not run is what would have come out.
    let alone = sweep(temp.path(), &["--thresholds", "64KiB", "--out", "alone"]);
    assert_eq!(alone.code, Some(0));
    let alone = rows(&only_folder(&temp.path().join("alone")).join("sweep.csv"));
    let last = points.last().unwrap();
    for column in [
        "median_input_tokens",
        "median_iterations",
        "mean_quality",
        "success_rate",
    ] {
        assert_eq!(alone.last().unwrap()[column], last[column], "{column}");
    }
}

#[test]
fn a_sweep_is_told_as_a_sweep_by_every_verb() {
    let temp = folder();
    let said = sweep(
        temp.path(),
        &["--thresholds", "8KiB,32KiB,64KiB", "--out", "one"],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout
            .contains("review/small: stored nothing, as off: 32KiB, 64KiB"),
        "{}",
        said.stdout
    );
    let folder = only_folder(&temp.path().join("one"));
    let manifest = fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"kind\":\"sweep\""));
    assert!(
        !manifest.contains("\"shipped\":true"),
        "none of the settings ships"
    );
    let name = folder.to_string_lossy();
    let judged = spillgate(temp.path(), &["judge", &name]);
    assert_eq!(judged.code, Some(0), "{}", judged.stderr);
    assert_eq!(
        judged.stdout,
        said.stdout
            .replace("one/", &format!("{}/", temp.path().join("one").display()))
    );
    let page = fs::read(folder.join("sweep.html")).unwrap();
    fs::remove_file(folder.join("sweep.html")).unwrap();
    let reported = spillgate(temp.path(), &["report", &name]);
    assert!(
        reported.stdout.trim().ends_with("sweep.html"),
        "{}",
        reported.stderr
    );
    assert!(
        fs::read(folder.join("sweep.html")).unwrap() == page,
        "equal bytes"
    );
    assert!(!folder.join("verdict.json").exists() && !folder.join("report.html").exists());
    for (arguments, words) in [
        (
            &["compare", &name, &name][..],
            "holds a sweep, in which nothing is judged",
        ),
        (
            &["report", &name, "--prices", "p.toml"],
            "leave --prices out",
        ),
        (&["merge", &name], "is no shard"),
        (&["accept", "--resume", &name], "made by `spillgate sweep`"),
    ] {
        let refused = spillgate(temp.path(), arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stdout);
        assert!(
            refused.stderr.contains(words),
            "{arguments:?}: {}",
            refused.stderr
        );
    }
}

#[test]
fn a_sweep_is_gone_on_with_and_gives_the_same_curves() {
    let temp = folder();
    let thresholds = ["--thresholds", "4KiB,16KiB", "--profile", "hasty,diligent"];
    let whole = sweep(
        temp.path(),
        &[&thresholds[..], &["--out", "one", "--json"]].concat(),
    );
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let parsed: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!(
        parsed["curves"].as_array().unwrap().len(),
        2,
        "one a profile"
    );

    let path = only_folder(&temp.path().join("one"));
    let runs = path.join("runs.jsonl");
    let text = fs::read_to_string(&runs).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    // As a kill leaves it: three records and a torn one.
    fs::write(&runs, format!("{}\n{{\"schema\"", kept.join("\n"))).unwrap();
    let name = path.to_string_lossy();
    let resumed = sweep(
        temp.path(),
        &[&thresholds[..], &["--resume", &name, "--json"]].concat(),
    );
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(resumed.stdout, whole.stdout);
}

#[test]
fn settings_that_cannot_be_swept_are_refused_before_a_run() {
    let temp = folder();
    for (flags, words) in [
        (
            &["--thresholds", "1KiB"][..],
            "outside the subject's bounds",
        ),
        (&["--thresholds", "big"], "no size"),
        (&["--preview-share", "0.5"], "fixed size"),
        (
            &["--policy", "inline-cap", "--preview-share", "7"],
            "preview_share",
        ),
        (&["--profile", "wise"], "none of"),
        (&["--resume", "no-such-folder"], "no-such-folder"),
    ] {
        let said = sweep(temp.path(), flags);
        assert_eq!(said.code, Some(2), "{flags:?}: {}", said.stdout);
        assert!(said.stderr.contains(words), "{flags:?}: {}", said.stderr);
    }
    assert!(!temp.path().join("reports").exists());
}
