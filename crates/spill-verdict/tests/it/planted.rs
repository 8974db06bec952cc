//! The gate's reduced self-test: what it plants is caught, whatever the run itself came to.

use spill_record::{Class, Mode};
use spill_verdict::{PlantedOutcome, exit, judge};

use crate::builder::{Case, fail, lose};

#[track_caller]
fn check(case: Case, not_applicable: usize) {
    let verdict = judge(&case.set);
    assert_eq!(verdict.self_test.len(), 11);
    let count = |outcome| {
        let all = verdict.self_test.iter();
        all.filter(|fault| fault.outcome == outcome).count()
    };
    assert_eq!(count(PlantedOutcome::Missed), 0, "{:#?}", verdict.self_test);
    assert_eq!(count(PlantedOutcome::NotApplicable), not_applicable);
    assert_ne!(verdict.exit_code(), exit::SELF_TEST);
}

#[test]
fn every_planted_fault_is_caught_by_its_own_rule() {
    check(Case::full(), 0);
    check(Case::full().cell("off", "large", fail), 0);
    check(Case::full().every(lose), 0);
    check(Case::full().every(|run| run.files_written = Some(3)), 0);
    check(Case::full().set(|set| set.manifest.mode = Mode::Live), 0);
}

#[test]
fn limits_of_a_plan_are_what_is_tested() {
    let ratio =
        |ratio| Case::full().set(|set| set.manifest.plan.rules.input_tokens_ratio_limit = ratio);
    check(ratio(1.5), 0);
    check(ratio(100.0), 0);
    check(ratio(0.5), 0);
    check(ratio(0.0), 0);
    let large = |ratio| {
        Case::full().set(|set| set.manifest.plan.rules.large_input_tokens_ratio_limit = ratio)
    };
    check(large(0.5), 0);
    check(large(1.3), 0);
    // A limit that nothing can pass has no fault.
    check(
        Case::full().set(|set| set.manifest.plan.rules.quality_allowance = 1.0),
        1,
    );
}

#[test]
fn a_plan_without_a_class_is_not_tested_for_it() {
    let documents = Case::full().set(|set| {
        let plan = &mut set.manifest.plan;
        plan.inputs.retain(|input| input.class == Class::Document);
        plan.runs.retain(|run| run.input == "document");
        set.runs.retain(|run| run.input == "document");
    });
    check(documents, 2);
}

#[test]
fn a_gate_whose_plan_accepts_nothing_is_not_trusted() {
    // Nothing is below 0 tokens.
    let strict =
        Case::full().set(|set| set.manifest.plan.rules.large_input_tokens_ratio_limit = 0.0);
    let verdict = judge(&strict.set);
    assert_eq!(verdict.exit_code(), exit::SELF_TEST);
    // A fault that breaks its own rule beside another one that is broken anyway proves nothing.
    let all = verdict.self_test.iter();
    let missed = all.filter(|fault| fault.outcome == PlantedOutcome::Missed);
    let missed: Vec<&str> = missed.map(|fault| &*fault.expected).collect();
    let expected = [
        "accepted",
        "rule 1 broken",
        "rule 2 broken",
        "rule 4 broken",
    ];
    assert_eq!(missed[..4], expected);
    assert_eq!(missed[4..], ["rule 5 broken"; 2]);
    assert!(
        verdict.sentence.contains("self-test"),
        "{}",
        verdict.sentence
    );
    assert_eq!(verdict.decision, spill_verdict::Decision::None);
}

#[test]
fn nothing_recorded_is_nothing_tested() {
    let nothing = Case::full().without(|_| true);
    let verdict = judge(&nothing.set);
    assert!(verdict.self_test.is_empty());
    assert_eq!(verdict.exit_code(), exit::INCOMPLETE);
}
