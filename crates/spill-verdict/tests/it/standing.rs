use spill_record::RunRecord;
use spill_verdict::{Rule, State, judge, standing};

use crate::builder::{Case, fail};

/// State, n and planned number of the row that decides `rule` for 128KiB, and the row's input.
fn deciding(case: &Case, rule: Rule) -> (State, u64, u64, String) {
    let candidates = standing(&case.set);
    let candidate = candidates
        .iter()
        .find(|candidate| candidate.configuration == "128KiB")
        .expect("the candidate stands in the plan");
    assert_eq!(candidate.state, State::NotRun, "a view is no verdict");
    let row = candidate.deciding(rule).expect("every rule has a row");
    (row.state, row.n, row.planned, row.input.clone())
}

fn strict(case: &Case, rule: Rule) -> State {
    let verdict = judge(&case.set);
    let row = verdict.candidates[0].deciding(rule);
    row.expect("every rule is judged").state
}

fn leak(run: &mut RunRecord) {
    run.files_written = Some(1);
}

fn is_early(run: &RunRecord) -> bool {
    run.repetition < 2
}

#[test]
fn rules_stand_on_the_pairs_that_are_complete() {
    let case = Case::full().without(|run| !is_early(run));
    assert_eq!(strict(&case, Rule::SuccessRate), State::NotRun);
    for rule in Rule::ALL {
        let (state, n, planned, _) = deciding(&case, rule);
        assert_eq!((state, n, planned), (State::Holds, 2, 5), "{rule:?}");
    }
    let broken = Case::full()
        .one("128KiB", "medium", 1, fail)
        .without(|run| !is_early(run));
    let (state, n, _, input) = deciding(&broken, Rule::SuccessRate);
    assert_eq!((state, n, &*input), (State::Broken, 2, "medium"));
    assert_eq!(strict(&broken, Rule::SuccessRate), State::NotRun);
}

#[test]
fn a_pair_that_misses_a_run_waits_for_it() {
    let case = Case::full()
        .one("128KiB", "medium", 1, fail)
        .without(|run| !is_early(run) || (run.repetition == 1 && run.configuration == "32KiB"));
    let (state, n, _, _) = deciding(&case, Rule::SuccessRate);
    assert_eq!((state, n), (State::Holds, 1));
    // What no absent run could change does not wait.
    let leaking = Case::full()
        .one("128KiB", "medium", 1, leak)
        .without(|run| run.repetition != 1 || run.configuration != "128KiB");
    let (state, _, _, input) = deciding(&leaking, Rule::NothingLeaks);
    assert_eq!((state, &*input), (State::Broken, "medium"));
}

#[test]
fn an_input_without_a_pair_has_no_say_unless_it_is_the_only_one() {
    let case = Case::full().without(|run| !is_early(run) || run.input == "document");
    let (state, _, _, _) = deciding(&case, Rule::SuccessRate);
    assert_eq!(state, State::Holds);
    let (state, n, _, _) = deciding(&case, Rule::Quality);
    assert_eq!((state, n), (State::NotRun, 0));
    let nothing = Case::full().without(|_| true);
    assert_eq!(deciding(&nothing, Rule::InputTokens).0, State::NotRun);
}

#[test]
fn on_the_whole_plan_they_are_those_of_the_verdict() {
    let case = Case::full().one("128KiB", "large", 0, fail);
    let verdict = judge(&case.set);
    for (standing, judged) in standing(&case.set).iter().zip(&verdict.candidates) {
        for rule in Rule::ALL {
            assert_eq!(standing.deciding(rule), judged.deciding(rule), "{rule:?}");
        }
    }
}
