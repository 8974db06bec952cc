//! What rules, states and decisions are called, in files and for people.

use std::collections::BTreeSet;

use serde_json::{Value, to_value};
use spill_verdict::{Bound, Decision, Rule, State};

#[track_caller]
fn check(written: serde_json::Result<Value>, name: &str) {
    assert_eq!(written.expect("a name is JSON"), Value::from(name));
}

#[test]
fn a_name_is_what_files_hold() {
    for state in [
        State::Holds,
        State::Broken,
        State::NotProven,
        State::NotApplicable,
        State::NotRun,
    ] {
        check(to_value(state), state.as_str());
        assert_eq!(state.words(), state.as_str().replace('_', " "));
    }
    for rule in Rule::ALL {
        check(to_value(rule), rule.as_str());
    }
    for bound in [Bound::AtLeast, Bound::AtMost, Bound::Below] {
        check(to_value(bound), bound.as_str());
    }
    for decision in [
        Decision::Keep,
        Decision::Change,
        Decision::Disable,
        Decision::None,
    ] {
        check(to_value(decision), decision.as_str());
    }
}

#[test]
fn every_rule_demands_something_of_its_own() {
    let demands: BTreeSet<&str> = Rule::ALL.map(Rule::demands).into_iter().collect();
    assert_eq!(demands.len(), Rule::ALL.len());
    assert!(demands.iter().all(|one| one.ends_with('.')), "{demands:?}");
}
