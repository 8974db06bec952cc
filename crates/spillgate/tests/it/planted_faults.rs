//! Wrapper subjects with one planted fault each: every one is rejected by its own rule.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::program::{Said, accept, folder, rows, verdict};

/// A script that plants `fault` under candidates only: the control stays sound.
pub(crate) fn wrapper(folder: &Path, fault: &str) -> PathBuf {
    let path = folder.join(fault);
    let script = format!(
        "#!/bin/sh\n\
         [ \"$CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED\" = false ] || export SPILLGATE_PLANTED_FAULT={fault}\n\
         exec '{}' planted \"$@\"\n",
        crate::program::SPILLGATE
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn accept_faulty(folder: &Path, name: &str, input: &str, fault: &str) -> Said {
    let subject = wrapper(folder, fault);
    accept(
        folder,
        name,
        input,
        &["--subject", &subject.to_string_lossy()],
    )
}

/// The fault's candidate breaks `rule`, and the exit code is `code`.
fn check(name: &str, input: &str, fault: &str, rule: &str, code: i32) {
    let folder = folder();
    let said = accept_faulty(folder.path(), name, input, fault);
    assert_eq!(
        said.code,
        Some(code),
        "{fault}: {}{}",
        said.stdout,
        said.stderr
    );
    let verdict = verdict(folder.path());
    let broken: Vec<&str> = verdict["candidates"][0]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["state"] == "broken")
        .map(|row| row["rule"].as_str().unwrap())
        .collect();
    assert!(broken.contains(&rule), "{fault}: broken are {broken:?}");
}

#[test]
fn an_answer_without_the_tail_breaks_rule_4() {
    check("document", "handbook", "loses-the-tail", "quality", 3);
}

#[test]
fn fifteen_percent_more_tokens_break_rule_3() {
    check("review", "small", "costs-15-percent", "input_tokens", 3);
}

#[test]
fn a_file_breaks_rule_5() {
    check("review", "small", "plants-a-file", "nothing_leaks", 6);
}

#[test]
fn a_log_line_with_half_a_preview_breaks_rule_5() {
    check("review", "small", "plants-a-log-line", "nothing_leaks", 6);
}

#[test]
fn the_iteration_limit_breaks_rule_2() {
    check("review", "small", "hits-the-limit", "iteration_limit", 3);
}

#[test]
fn a_crash_breaks_rule_1() {
    check("review", "small", "crashes", "success_rate", 3);
}

#[test]
fn what_is_no_step_result_is_a_crash_of_the_subject() {
    check("review", "small", "babbles", "success_rate", 3);
}

/// Known fault 120: promptfoo/promptfoo #4673.
#[test]
fn figures_that_contradict_the_journal_make_the_verdict_incomplete() {
    let folder = folder();
    let said = accept_faulty(folder.path(), "review", "small", "lies");
    assert_eq!(said.code, Some(5), "{}{}", said.stdout, said.stderr);
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    let lied: Vec<_> = rows
        .iter()
        .filter(|row| row["end_reason"] == "mismatch")
        .collect();
    assert_eq!(lied.len(), 4);
    assert!(
        lied[0]["error"].contains("1 answered LLM calls"),
        "{}",
        lied[0]["error"]
    );
}

#[test]
fn a_default_that_is_not_the_labelled_one_stops_before_the_first_run() {
    let folder = folder();
    let said = accept_faulty(folder.path(), "review", "small", "other-default");
    assert_eq!(said.code, Some(2), "{}{}", said.stdout, said.stderr);
    assert!(
        said.stderr.contains("labelled threshold_bytes = 131072"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("would use 32768"), "{}", said.stderr);
    assert!(
        !folder.path().join("reports").exists(),
        "nothing is written"
    );
}

#[test]
fn a_subject_that_hangs_is_killed_and_breaks_rule_1() {
    let folder = folder();
    let scenario = crate::program::scenario_with(folder.path(), "review", "small");
    let text = fs::read_to_string(&scenario).unwrap();
    let short = text
        .replace("run_timeout_ms = 90000", "run_timeout_ms = 700")
        .replace("step_timeout_ms = 60000", "step_timeout_ms = 600");
    assert_ne!(short, text);
    fs::write(&scenario, short).unwrap();
    let subject = wrapper(folder.path(), "hangs");
    let said = crate::program::spillgate(
        folder.path(),
        &[
            "accept",
            "--quiet",
            "--reps",
            "1",
            "--scenario",
            &scenario.to_string_lossy(),
            "--subject",
            &subject.to_string_lossy(),
        ],
    );
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    let hung: Vec<_> = rows
        .iter()
        .filter(|row| row["end_reason"] == "timeout")
        .collect();
    assert!(hung.len() >= 2, "{}{}", said.stdout, said.stderr);
}

/// A process that left the group and holds the streams open does not hold the run.
#[test]
fn a_child_left_behind_does_not_make_the_run_time_out() {
    let folder = folder();
    let said = accept_faulty(folder.path(), "review", "small", "leaves-a-child");
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    assert_eq!(rows.len(), 6, "{}{}", said.stdout, said.stderr);
    for row in rows {
        assert_eq!(row["outcome"], "succeeded", "{}", row["error"]);
        // The child lives for 20 s; the run must not wait for it.
        assert!(row["process_ms"].parse::<f64>().unwrap() < 15_000.0);
    }
}

#[test]
fn the_gate_catches_what_is_planted_in_real_runs() {
    let folder = folder();
    let said = crate::program::spillgate(folder.path(), &["self-test", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let outcomes: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let outcomes = outcomes.as_array().unwrap();
    assert_eq!(outcomes.len(), 12);
    assert!(outcomes.iter().all(|one| one["caught"] == true));
    assert!(
        !folder.path().join("reports").exists(),
        "nothing is written"
    );
}

/// The wrapper's rule of one run: of two runs that may plant, one does.
#[test]
fn a_fault_of_one_run_is_planted_once() {
    let folder = folder();
    let once = folder.path().join("once");
    let mock = crate::program::Mock::start(&["--input", "small"]);
    let job = mock.job(folder.path(), 20_000);
    let codes = [(); 2].map(|()| {
        let output = crate::program::program()
            .args(["planted", "--job"])
            .arg(&job)
            .env("SPILLGATE_PLANTED_FAULT", "crashes")
            .env("SPILLGATE_PLANTED_ONCE", &once)
            .output()
            .unwrap();
        output.status.code()
    });
    assert_eq!(codes, [Some(1), Some(0)]);
}
