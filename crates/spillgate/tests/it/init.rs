//! `init`: a scenario to start from that runs as it is written.

use std::fs;

use crate::program::{folder, rows, spillgate};

fn check(recipe: &str) {
    let folder = folder();
    let said = spillgate(
        folder.path(),
        &["init", "--recipe", recipe, "--out", "my.toml"],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let listed = spillgate(folder.path(), &["list", "--scenario", "my.toml", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains(&format!("my-{recipe}")));
    let ran = spillgate(
        folder.path(),
        &[
            "accept",
            "--quiet",
            "--stage",
            "quick",
            "--scenario",
            "my.toml",
        ],
    );
    assert!(
        matches!(ran.code, Some(0 | 3 | 4)),
        "{:?} {}",
        ran.code,
        ran.stderr
    );
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    assert_eq!(rows.len(), 6);
    assert!(
        rows.iter().all(|row| row["outcome"] == "succeeded"),
        "{rows:?}"
    );
}

#[test]
fn a_started_scenario_runs_as_it_is() {
    check("review");
    check("document");
    check("records");
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = folder();
    fs::write(folder.path().join("scenario.toml"), "mine").unwrap();
    let said = spillgate(folder.path(), &["init"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(
        said.stderr,
        "spillgate init: scenario.toml is there, and nothing is overwritten (name another file with --out)\n"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("scenario.toml")).unwrap(),
        "mine"
    );
    let said = spillgate(folder.path(), &["init", "--out", "nowhere/my.toml"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("cannot be made"), "{}", said.stderr);
}

/// The keys of the model, limits and rules are those of the scenarios that ship with the program.
#[test]
fn a_started_scenario_has_the_defaults_of_the_built_in_ones() {
    let built_in = spill_scenario::built_in().unwrap();
    let folder = folder();
    let said = spillgate(folder.path(), &["init"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let started = spill_scenario::load(&folder.path().join("scenario.toml")).unwrap();
    assert_eq!(started.model, built_in[0].model);
    assert_eq!(started.limits, built_in[0].limits);
    assert_eq!(started.rules, built_in[0].rules);
    assert_eq!(started.configurations, built_in[0].configurations);
}
