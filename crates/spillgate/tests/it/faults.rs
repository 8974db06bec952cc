//! Each family of planned faults: its runs end as the scenario says, and none is lost.

use std::fs;

use serde_json::Value;

use crate::program::{folder, repository, spillgate};

/// Runs `scenarios/faults/NAME.toml` and returns its run records.
fn run(scenario: &str) -> (Option<i32>, Vec<Value>) {
    let out = folder();
    let path = out.path().to_str().unwrap();
    let arguments = ["accept", "--quiet", "--scenario", scenario, "--out", path];
    let said = spillgate(&repository(), &arguments);
    let records = fs::read_to_string(out.path().join("latest/runs.jsonl")).unwrap();
    let mut records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    records.sort_by_key(|record| record["pair_id"].to_string());
    (said.code, records)
}

fn check(name: &str, runs: usize) {
    let (code, records) = run(&format!("scenarios/faults/{name}.toml"));
    assert_eq!(records.len(), runs, "{name}");
    for record in &records {
        let named = format!("{name} {}: {}", record["repetition"], record["error"]);
        assert_ne!(record["outcome"], "infrastructure", "{named}");
        assert!(
            record["faults"]
                .as_array()
                .is_some_and(|faults| !faults.is_empty()),
            "{named}"
        );
    }
    // A fault hits the same call of both runs of a pair.
    for pair in records.chunk_by(|one, other| one["pair_id"] == other["pair_id"]) {
        assert_eq!(pair.len(), 2, "{name}");
        assert_eq!(pair[0]["faults"], pair[1]["faults"], "{name}");
    }
    assert!(matches!(code, Some(0 | 3 | 4)), "{name}: {code:?}");
}

#[test]
fn the_model_refuses() {
    check("llm-refusals", 16);
}

#[test]
fn the_connection_to_the_model_fails() {
    check("llm-connections", 12);
}

#[test]
fn the_model_answers_what_no_agent_can_use() {
    check("llm-malformed", 8);
}

#[test]
fn the_model_makes_mistakes() {
    check("llm-mistakes", 8);
}

#[test]
fn the_tools_answer_with_errors() {
    check("tool-errors", 8);
}

#[test]
fn the_connection_to_the_tools_fails() {
    check("tool-connections", 6);
}

#[test]
fn results_stand_at_the_threshold() {
    check("tool-sizes", 12);
}

#[test]
fn results_are_hard_to_carry() {
    check("tool-bytes", 6);
}

#[test]
fn a_server_never_answers() {
    check("hung", 4);
}

#[test]
fn seeds_draw_faults() {
    check("seeded", 10);
}

/// A scenario can expect an end without any fault.
#[test]
fn a_model_that_repeats_itself_ends_at_the_limit() {
    let (_, records) = run("scenarios/faults/loopy.toml");
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(
            record["end_reason"], "iteration_limit",
            "{}",
            record["error"]
        );
        assert_eq!(record["iterations"], 12);
    }
}

/// A run that ends otherwise than its scenario expects is loud: exit 5, and the record says why.
#[test]
fn another_end_than_expected_is_no_evidence() {
    let out = folder();
    let text =
        fs::read_to_string(repository().join("scenarios/faults/llm-malformed.toml")).unwrap();
    let text = text
        .replace(
            "../../fixtures",
            repository().join("fixtures").to_str().unwrap(),
        )
        .replace("end_reason = \"model_error\"", "end_reason = \"answered\"");
    let path = out.path().join("wrong.toml");
    fs::write(&path, text).unwrap();
    let (code, records) = run(path.to_str().unwrap());
    assert_eq!(code, Some(5));
    let of = |repetition: u64| {
        let found = records
            .iter()
            .find(|record| record["repetition"] == repetition);
        found.unwrap()
    };
    assert_eq!(of(0)["end_reason"], "unexpected_end");
    assert_eq!(of(0)["outcome"], "infrastructure");
    assert_eq!(
        of(0)["error"],
        "the scenario expects the end answered, the run ended as model_error"
    );
    assert_eq!(of(3)["end_reason"], "empty_answer");
}

/// A fault that is planned for a call which never comes is loud too.
#[test]
fn a_fault_that_never_comes_to_pass_is_no_evidence() {
    let out = folder();
    let text =
        fs::read_to_string(repository().join("scenarios/faults/llm-malformed.toml")).unwrap();
    let text = text
        .replace(
            "../../fixtures",
            repository().join("fixtures").to_str().unwrap(),
        )
        .replace("call = 2", "call = 200");
    let path = out.path().join("late.toml");
    fs::write(&path, text).unwrap();
    let (code, records) = run(path.to_str().unwrap());
    assert_eq!(code, Some(5));
    let error = records[0]["error"].as_str().unwrap_or_default();
    let errors: Vec<&str> = records
        .iter()
        .filter_map(|record| record["error"].as_str())
        .collect();
    assert!(
        errors
            .iter()
            .any(|error| error.contains("no planned fault came to pass")),
        "{error}"
    );
}
