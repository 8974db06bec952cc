//! Which input decides a rule, and what is published about the files.

use spill_record::RunRecord;
use spill_verdict::{
    Rule, Verdict, judge, replay_summary_schema, sweep, sweep_schema, terminal_table,
    verdict_schema,
};

use crate::builder::{Case, fail};

#[test]
fn three_candidates_stand_beside_each_other_and_four_below() {
    let head = |candidates: usize| {
        let mut verdict = judge(&Case::full().set);
        let one = verdict.candidates[0].clone();
        verdict.candidates = vec![one; candidates];
        let table = terminal_table(&verdict);
        let head = table.lines().nth(1).unwrap_or_default();
        head.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(head(3).as_deref(), Some("rule"));
    assert_eq!(head(4).as_deref(), Some("candidate"));
}

#[track_caller]
fn check_deciding(case: Case, rule: Rule, input: &str) {
    let verdict = judge(&case.set);
    let row = verdict.candidates[0].deciding(rule);
    assert_eq!(row.map(|row| &*row.input), Some(input));
}

#[test]
fn of_equal_states_the_input_closest_to_its_limit_decides() {
    let spend = |input: &str, tokens: u64| {
        Case::full().cell("128KiB", input, move |run| run.input_tokens = Some(tokens))
    };
    check_deciding(Case::full(), Rule::InputTokens, "small");
    check_deciding(spend("small", 60_000), Rule::InputTokens, "medium");
    check_deciding(spend("medium", 215_000), Rule::InputTokens, "medium");
    check_deciding(spend("large", 930_000), Rule::InputTokens, "large");
    // 0.905 of 1 is closer than 1 of 1.1.
    check_deciding(spend("large", 847_080), Rule::InputTokens, "large");
    // 1 and 2 successes of 5 on the small input are closer than 3 and 5 on the medium one.
    let first = |count: u32| {
        move |run: &mut RunRecord| {
            if run.repetition >= count {
                fail(run);
            }
        }
    };
    let gains = Case::full()
        .cell("off", "small", first(1))
        .cell("128KiB", "small", first(2))
        .cell("off", "medium", first(3))
        .cell("off", "large", first(0))
        .cell("off", "document", first(0));
    check_deciding(gains, Rule::SuccessRate, "small");
}

#[track_caller]
fn check_schema((name, text): (&str, String), expected: &str, file: Option<&serde_json::Value>) {
    assert_eq!(name, expected);
    let schema: serde_json::Value = serde_json::from_str(&text).expect("a schema is JSON");
    let described = schema["properties"].as_object().expect("fields");
    assert!(described.contains_key("schema"), "{described:?}");
    let written = file.and_then(serde_json::Value::as_object);
    for key in written.into_iter().flatten().map(|(key, _)| key) {
        assert!(described.contains_key(key), "{expected} lacks {key}");
    }
}

#[test]
fn schemas_describe_the_fields_of_their_files() {
    let verdict: Verdict = judge(&Case::full().set);
    let verdict = serde_json::to_value(verdict).expect("a verdict is JSON");
    check_schema(verdict_schema(), "verdict.schema.json", Some(&verdict));
    let sweep = serde_json::to_value(sweep(&Case::full().set)).expect("a sweep is JSON");
    check_schema(sweep_schema(), "sweep.schema.json", Some(&sweep));
    let name = "replay-summary.schema.json";
    check_schema(replay_summary_schema(), name, None);
}
