use proptest::prelude::*;
use spill_record::{Outcome, RunRecord};
use spill_verdict::{Decision, Rule, State, Verdict, exit, judge};

use crate::builder::{Case, exhaust, fail, lose};

/// What may happen to a run.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Well,
    Failed,
    Lost,
    Exhausted,
    Leaked,
    Missing,
    Untold,
    Spent(u64),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Well),
        1 => Just(Fate::Failed),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Exhausted),
        1 => Just(Fate::Leaked),
        1 => Just(Fate::Missing),
        1 => Just(Fate::Untold),
        2 => any::<u64>().prop_map(Fate::Spent),
    ]
}

fn suffer(run: &mut RunRecord, fate: Fate) -> bool {
    match fate {
        Fate::Well => {}
        Fate::Failed => fail(run),
        Fate::Lost => lose(run),
        Fate::Exhausted => exhaust(run),
        Fate::Leaked => run.files_written = Some(1),
        Fate::Missing => return false,
        Fate::Untold => {
            (
                run.input_tokens,
                run.results_persisted,
                run.hit_iteration_limit,
            ) = (None, None, None);
        }
        Fate::Spent(tokens) => run.input_tokens = Some(tokens),
    }
    true
}

fn cases() -> impl Strategy<Value = Case> {
    proptest::collection::vec(fate(), 60).prop_map(|fates| {
        Case::full().set(|set| {
            let mut fates = fates.into_iter();
            set.runs
                .retain_mut(|run| suffer(run, fates.next().expect("one fate a run")));
        })
    })
}

fn numbers(verdict: &Verdict) -> Vec<f64> {
    let rows = verdict
        .candidates
        .iter()
        .flat_map(|candidate| &candidate.rules);
    rows.flat_map(|row| [row.observed, row.limit])
        .flatten()
        .collect()
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self
            .set
            .runs
            .iter()
            .map(|r| (&r.input, &r.configuration, r.repetition, r.outcome));
        f.debug_list().entries(runs).finish()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn the_order_of_runs_does_not_change_the_verdict(
        case in cases(),
        shuffle in proptest::collection::vec(any::<u32>(), 60),
    ) {
        let before = judge(&case.set);
        let mut keyed: Vec<(u32, RunRecord)> = shuffle.into_iter().zip(case.set.runs.clone()).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let runs = keyed.into_iter().map(|(_, run)| run).collect();
        let shuffled = case.set(|set| set.runs = runs);
        prop_assert_eq!(judge(&shuffled.set), before);
    }

    /// Known fault 114: ai-dynamo/dynamo PR #3674.
    #[test]
    fn counts_are_conserved_and_numbers_are_finite(case in cases()) {
        let verdict = judge(&case.set);
        let d = verdict.denominators;
        prop_assert_eq!(d.planned, d.finished + d.infrastructure + d.missing);
        prop_assert_eq!(d.finished, d.succeeded + d.failed);
        prop_assert_eq!(d.started, case.set.runs.len() as u64);
        prop_assert!(numbers(&verdict).into_iter().all(f64::is_finite));
    }

    #[test]
    fn a_pass_has_every_run_that_its_candidate_needs(case in cases()) {
        let verdict = judge(&case.set);
        if verdict.exit_code() == exit::ACCEPTED {
            prop_assert_eq!(verdict.decision, Decision::Keep);
            prop_assert_eq!(verdict.denominators.missing, 0);
            prop_assert_eq!(verdict.leak_runs, 0);
            let accepted = &verdict.candidates[0];
            let proven = accepted.rules.iter().all(|row| match row.state {
                State::NotApplicable => true,
                // Token counts are compared where both runs succeeded.
                State::Holds if row.rule == Rule::InputTokens => row.n > 0,
                State::Holds => row.n == row.planned,
                State::Broken | State::NotProven | State::NotRun => false,
            });
            prop_assert!(proven);
            let lost = |run: &&RunRecord| run.outcome == Outcome::Infrastructure && run.configuration != "32KiB";
            prop_assert_eq!(case.set.runs.iter().filter(lost).count(), 0);
        }
    }

    #[test]
    fn a_verdict_reads_back_as_it_was_written(case in cases()) {
        let verdict = judge(&case.set);
        let text = serde_json::to_string(&verdict).expect("a verdict is JSON");
        let read: Verdict = serde_json::from_str(&text).expect("a verdict reads back");
        prop_assert_eq!(serde_json::to_string(&read).expect("a verdict is JSON"), text);
    }
}
