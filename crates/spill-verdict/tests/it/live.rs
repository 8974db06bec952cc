//! What a stochastic endpoint proves: bounds and margins instead of literal comparisons.

use spill_record::{CapReached, Mode, PromptTokens, RunRecord, Spending, Stage};
use spill_verdict::{IntervalOf, Rule, RuleVerdict, State, attainable, exit, judge};

use crate::builder::{Case, exhaust, fail, score};

fn live(pairs: u32) -> Case {
    Case::with_repetitions(Stage::Full, pairs).set(|set| set.manifest.mode = Mode::Live)
}

fn row(case: Case, rule: Rule, input: &str) -> RuleVerdict {
    let verdict = judge(&case.set);
    let rows = verdict.candidates[0].rules.iter();
    rows.clone()
        .find(|row| row.rule == rule && row.input == input)
        .expect("every rule has a row on every input")
        .clone()
}

#[track_caller]
fn check(case: Case, rule: Rule, input: &str, state: State) -> RuleVerdict {
    let row = row(case, rule, input);
    assert_eq!(row.state, state, "{}", row.words);
    row
}

/// Alters the first `count` runs of the candidate on `input`.
fn first(case: Case, input: &str, count: u32, alter: fn(&mut RunRecord)) -> Case {
    case.cell("128KiB", input, |run| {
        if run.repetition < count {
            alter(run);
        }
    })
}

#[test]
fn thirty_pairs_without_a_failure_prove_ten_points_and_five_pairs_do_not() {
    let row = check(live(30), Rule::SuccessRate, "small", State::Holds);
    let interval = row.interval.expect("live mode bounds the difference");
    assert_eq!(interval.of, IntervalOf::SuccessDifference);
    assert!(interval.lower.expect("two bounds") > -0.1, "{}", row.words);
    check(live(20), Rule::SuccessRate, "small", State::NotProven);
    check(live(5), Rule::SuccessRate, "small", State::NotProven);
}

/// Known fault 100: lance0/rustbgpd #339.
#[test]
fn a_loss_within_the_noise_is_not_proven_and_a_clear_one_is_broken() {
    let lost = |pairs, losses| first(live(pairs), "small", losses, fail);
    check(lost(30, 1), Rule::SuccessRate, "small", State::NotProven);
    check(lost(100, 1), Rule::SuccessRate, "small", State::Holds);
    check(lost(30, 12), Rule::SuccessRate, "small", State::Broken);
}

#[test]
fn no_limit_hit_in_sixty_pairs_bounds_their_rate_below_five_percent() {
    let row = check(live(60), Rule::IterationLimit, "small", State::Holds);
    let upper = row.interval.and_then(|interval| interval.upper);
    assert!(upper.expect("an upper bound") < 0.05, "{}", row.words);
    let hit = first(live(60), "small", 1, exhaust);
    check(hit, Rule::IterationLimit, "small", State::Broken);
}

#[test]
fn tokens_are_bounded_by_an_order_statistic() {
    let dearer = |pairs, count| {
        first(live(pairs), "small", count, |run| {
            run.input_tokens = run.input_tokens.map(|tokens| tokens * 2);
        })
    };
    check(live(5), Rule::InputTokens, "small", State::Holds);
    check(live(4), Rule::InputTokens, "small", State::NotProven);
    // The 20th of 30 is the bound: 10 dear pairs are above it, 11 reach it.
    check(dearer(30, 10), Rule::InputTokens, "small", State::Holds);
    check(dearer(30, 11), Rule::InputTokens, "small", State::NotProven);
    check(dearer(30, 20), Rule::InputTokens, "small", State::Broken);
}

#[test]
fn large_inputs_are_judged_by_their_signs() {
    let row = check(live(5), Rule::InputTokens, "large", State::Holds);
    let p = row.interval.and_then(|interval| interval.p_value);
    assert_eq!(p.map(|p| (p * 1e5).round()), Some(3_125.0));
    let dearer = |count| {
        first(live(5), "large", count, |run| {
            run.input_tokens = run.input_tokens.map(|tokens| tokens * 3);
        })
    };
    check(dearer(1), Rule::InputTokens, "large", State::NotProven);
    check(dearer(5), Rule::InputTokens, "large", State::Broken);
}

#[test]
fn qualities_are_bounded_by_a_bootstrap_of_enough_pairs() {
    check(live(30), Rule::Quality, "document", State::Holds);
    check(live(19), Rule::Quality, "document", State::NotProven);
    let worse = |count| first(live(30), "document", count, |run| score(run, 1, 0));
    check(worse(30), Rule::Quality, "document", State::Broken);
    check(worse(4), Rule::Quality, "document", State::NotProven);
    // The end alone is as much as everything.
    let end = first(live(30), "document", 30, |run| score(run, 19, 0));
    check(end, Rule::Quality, "document", State::Broken);
}

/// One pair of thirty has a fact more, none has more of the end: 0 is the lower bound of both.
#[test]
fn of_equal_lower_bounds_that_of_all_facts_is_shown() {
    let gained = first(live(30), "document", 1, |run| score(run, 20, 5));
    let row = check(gained, Rule::Quality, "document", State::Holds);
    let interval = row.interval.expect("live mode bounds the difference");
    assert_eq!(interval.lower, Some(0.0), "{}", row.words);
    assert!(interval.upper > Some(0.0), "{}", row.words);
}

#[test]
fn the_absolute_rule_and_the_ladder_stand_as_in_simulated_mode() {
    check(live(5), Rule::NothingLeaks, "small", State::Holds);
    assert_eq!(judge(&live(5).set).exit_code(), exit::NOT_PROVEN);
    assert_eq!(judge(&live(30).set).exit_code(), exit::ACCEPTED);
    let missing = live(30).without(|run| run.input == "small" && run.repetition == 29);
    assert_eq!(judge(&missing.set).exit_code(), exit::INCOMPLETE);
}

#[test]
fn equal_records_give_equal_bounds_in_any_order() {
    let forward = judge(&live(30).set);
    let backward = judge(&live(30).set(|set| set.runs.reverse()).set);
    assert_eq!(forward, backward);
    assert!(forward.profiles.is_empty(), "nobody drew a profile");
}

#[test]
fn what_can_be_proven_is_known_before_the_first_run() {
    let of = |pairs| attainable(&live(pairs).set.manifest.plan).join("\n");
    insta::assert_snapshot!("attainable_5", of(5));
    insta::assert_snapshot!("attainable_30", of(30));
}

#[test]
fn a_real_model_need_not_say_the_same_twice() {
    let case = live(5).one("128KiB", "small", 1, |run| {
        run.prompt_digest = Some("another".to_owned());
    });
    assert_eq!(judge(&case.set).harness_errors, [""; 0]);
}

#[test]
fn a_reached_cap_makes_the_acceptance_incomplete_and_says_so() {
    let spending = |reached| Spending {
        limit_tokens: Some(1_000),
        limit_money: Some("2.5".to_owned()),
        currency: Some("USD".to_owned()),
        billed: PromptTokens {
            uncached_input_tokens: 1_200,
            ..PromptTokens::default()
        },
        money: Some("2.51".to_owned()),
        reached,
        ..Spending::default()
    };
    let check = |reached, words: &str| {
        let case = live(5)
            .without(|run| run.repetition == 4)
            .set(|set| set.spending = Some(spending(reached)));
        let verdict = judge(&case.set);
        assert_eq!(verdict.exit_code(), exit::INCOMPLETE);
        let sentence = verdict.decision_sentence();
        assert!(sentence.contains(words), "{sentence}");
    };
    check(
        Some(CapReached::Tokens),
        "the spending cap of 1,000 tokens was reached: 1,200 are spent",
    );
    check(
        Some(CapReached::Money),
        "the spending cap of 2.5 USD was reached: 2.51 are spent",
    );
    check(None, "without a usable record");
}

#[test]
fn nothing_that_only_a_simulation_has_is_said_of_a_live_run() {
    let verdict = judge(&live(5).set);
    assert_eq!(verdict.profiles.len(), 0);
    let said = verdict.not_shown.join(" ");
    for word in ["profile", "simulated"] {
        assert!(!said.contains(word), "{said}");
    }
}
