//! What is noticed where one process served many executions at once.

use spill_record::{ConfigurationRole, ExecutionsRecord};
use spill_verdict::{control_of, judge};

use crate::builder::Case;

fn record(input: &str, configuration: &str, executions: u64, peak: u64) -> ExecutionsRecord {
    ExecutionsRecord {
        schema: spill_record::SCHEMA,
        scenario: "review".to_owned(),
        input: input.to_owned(),
        configuration: configuration.to_owned(),
        executions,
        answered: executions,
        results_persisted: 0,
        budget_bytes: None,
        memory_limit_bytes: 1 << 31,
        before_bytes: Some(1_000),
        before_anonymous_bytes: Some(100),
        peak_bytes: Some(peak),
        after_bytes: Some(1_000),
        after_anonymous_bytes: Some(100),
        files_written: Some(0),
        leak_findings: Vec::new(),
        error: None,
    }
}

/// 8 executions of the large input under off take 100,000 bytes; the others would stand for it.
fn measured(peak: u64) -> Case {
    Case::full().set(|set| {
        set.executions = vec![
            record("large", "128KiB", 8, peak),
            record("large", "32KiB", 8, 1),
            record("large", "off", 1, 1),
            record("small", "off", 8, 1),
            record("large", "off", 8, 100_000),
        ];
        let mut elsewhere = record("large", "off", 8, 1);
        elsewhere.scenario = "document".to_owned();
        set.executions.insert(0, elsewhere);
    })
}

#[test]
fn memory_is_held_against_the_control_of_the_same_input_and_number() {
    assert_eq!(judge(&measured(102_000).set).warnings, [""; 0]);
    let above = judge(&measured(150_000).set);
    assert_eq!(
        above.warnings,
        ["8 executions at once under 128KiB took 50 % more memory than under off."]
    );
}

#[test]
fn a_control_that_took_nothing_is_no_measure() {
    let unmeasured = measured(150_000).set(|set| {
        let control = set.executions.last_mut();
        control.expect("there are records").peak_bytes = Some(0);
    });
    assert_eq!(judge(&unmeasured.set).warnings, [""; 0]);
}

#[test]
fn without_a_control_there_is_nothing_to_hold_it_against() {
    let case = measured(150_000);
    let one = record("large", "128KiB", 8, 150_000);
    let control = control_of(&case.set, &one).and_then(|control| control.peak_bytes);
    assert_eq!(control, Some(100_000));
    let none = case.set(|set| {
        set.manifest.plan.configurations[0].role = ConfigurationRole::Candidate;
    });
    assert_eq!(control_of(&none.set, &one), None);
}
