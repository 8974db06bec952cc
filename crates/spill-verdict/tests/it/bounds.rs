//! What live mode writes beside its states: the worse bound, its margin, the words.

use spill_record::{Mode, RunRecord, Stage};
use spill_verdict::{Interval, IntervalOf, Rule, RuleVerdict, State, judge};

use crate::builder::{Case, exhaust, lose, score};

fn live(pairs: u32, input: &str, alter: fn(&mut RunRecord)) -> Case {
    Case::with_repetitions(Stage::Full, pairs)
        .set(|set| set.manifest.mode = Mode::Live)
        .cell("128KiB", input, alter)
}

fn row(case: &Case, rule: Rule, input: &str) -> RuleVerdict {
    let verdict = judge(&case.set);
    let mut rows = verdict.candidates[0].rules.iter();
    rows.find(|row| row.rule == rule && row.input == input)
        .expect("every rule is judged on every input")
        .clone()
}

fn interval(case: &Case, rule: Rule, input: &str) -> Interval {
    let row = row(case, rule, input);
    row.interval.expect("live mode bounds the difference")
}

#[test]
fn a_margin_is_below_nothing() {
    let case = live(30, "small", |_| ());
    let success = interval(&case, Rule::SuccessRate, "small");
    assert_eq!((success.margin, success.confidence), (Some(-0.1), 0.95));
    let quality = interval(&case, Rule::Quality, "document");
    assert_eq!(quality.of, IntervalOf::QualityDifference);
    assert_eq!((quality.margin, quality.confidence), (Some(-0.1), 0.95));
}

/// Differences that are equal in all pairs have no width.
#[track_caller]
fn check_worse(alter: fn(&mut RunRecord), expected: f64) {
    let found = interval(&live(30, "document", alter), Rule::Quality, "document");
    for bound in [found.lower, found.upper] {
        let bound = bound.expect("two bounds");
        assert!((bound - expected).abs() < 1e-9, "{found:?}");
    }
}

#[test]
fn of_quality_and_the_end_the_worse_bound_is_shown() {
    // The control finds 19 of 20 facts and all 5 of the end.
    check_worse(|run| score(run, 19, 4), -0.2);
    check_worse(|run| score(run, 19, 0), -1.0);
    check_worse(|run| score(run, 14, 5), -0.25);
}

#[test]
fn words_have_both_bounds_and_the_margin_in_points() {
    let case = live(30, "document", |run| score(run, 14, 5));
    let words = "; difference -25 points to -25 points at 95 % each, \
                 of the end 0 points to 0 points at 95 % each, margin -10 points";
    let found = row(&case, Rule::Quality, "document").words;
    assert!(found.ends_with(words), "{found}");
    assert!(found.starts_with("quality 70 % against 95 %"), "{found}");
    let success = row(&case, Rule::SuccessRate, "document").words;
    assert!(
        success.ends_with(" at 95 % each, margin -10 points"),
        "{success}"
    );
}

#[test]
fn an_absent_pair_can_move_a_bound_and_takes_no_hit_back() {
    let dear = live(30, "small", |run| run.input_tokens = Some(900_000));
    assert_eq!(row(&dear, Rule::InputTokens, "small").state, State::Broken);
    let absent = dear.one("128KiB", "small", 7, lose);
    let found = row(&absent, Rule::InputTokens, "small");
    assert_eq!(found.state, State::NotProven, "{}", found.words);
    let hit = live(30, "small", |_| ())
        .one("128KiB", "small", 3, exhaust)
        .one("128KiB", "small", 7, lose);
    let found = row(&hit, Rule::IterationLimit, "small");
    assert_eq!(found.state, State::Broken, "{}", found.words);
}

#[test]
fn twenty_pairs_are_enough_for_a_bootstrap() {
    let of = |pairs| row(&live(pairs, "document", |_| ()), Rule::Quality, "document");
    assert_eq!(of(20).state, State::Holds);
    let few = of(19);
    assert_eq!(few.state, State::NotProven);
    let words = "; 19 pairs are too few to bound it, 20 are needed";
    assert!(few.words.ends_with(words), "{}", few.words);
}

#[test]
fn too_few_pairs_for_a_median_still_show_its_ratio() {
    let few = row(&live(4, "small", |_| ()), Rule::InputTokens, "small");
    assert_eq!(few.state, State::NotProven);
    let words = "ratio 1, limit ≤ 1.1, over 4 runs of both; \
                 4 pairs cannot bound a median at 95 %, 5 are needed";
    assert!(few.words.ends_with(words), "{}", few.words);
}

/// The bounds of a quality that differs from pair to pair, where the seed of the last pair is so much more.
fn resampled(more: u64) -> String {
    let case = live(30, "document", |run| {
        score(run, 10 + u64::from(run.repetition % 7), 5);
    });
    let last = |scenario: &str, repetition| scenario == "document" && repetition == 29;
    let case = case.set(|set| {
        let planned = set.manifest.plan.runs.iter_mut();
        planned
            .filter(|run| last(&run.scenario, run.repetition))
            .for_each(|run| run.seed += more);
        let runs = set.runs.iter_mut();
        runs.filter(|run| last(&run.scenario, run.repetition))
            .for_each(|run| run.seed += more);
    });
    let found = interval(&case, Rule::Quality, "document");
    format!("{:?} {:?}", found.lower, found.upper)
}

#[test]
fn pairs_of_other_seeds_are_resampled_otherwise() {
    let bounds: Vec<String> = (0..6).map(resampled).collect();
    assert_eq!(bounds[0], resampled(0));
    assert!(bounds.iter().any(|other| *other != bounds[0]), "{bounds:?}");
}
