//! Faults that others reported of their harnesses, each with its reproduction. `spillgate`'s catalogue lists them all.

use spill_record::{Mode, RunRecord, Stage};
use spill_verdict::{Decision, Gate, Rule, RuleVerdict, State, Verdict, exit, judge};

use crate::builder::{Case, exhaust, fail, lose, score};
use crate::replay_builder::{record, sessions, totals};

fn row<'a>(verdict: &'a Verdict, rule: Rule, input: &str) -> &'a RuleVerdict {
    let mut rows = verdict.candidates[0].rules.iter();
    rows.find(|row| row.rule == rule && row.input == input)
        .expect("every rule has a row on every input")
}

/// The first `failed` runs of the candidate on the small input fail, the next `lost` are lost to the harness.
fn of_ten(failed: u32, lost: u32) -> Verdict {
    let case = Case::with_repetitions(Stage::Full, 10).cell("128KiB", "small", |run| {
        if run.repetition < failed {
            fail(run);
        } else if run.repetition < failed + lost {
            lose(run);
        }
    });
    judge(&case.set)
}

/// Of 10 runs, 1 is lost and 1 failed: 8 of 9 is shown with its n, and never as a pass.
///
/// Known fault 75: UKGovernmentBEIS/inspect_ai #3707.
/// Known fault 111: UKGovernmentBEIS/inspect_ai #2914.
#[test]
fn runs_with_errors_do_not_leave_the_denominator() {
    let verdict = of_ten(1, 1);
    let rate = row(&verdict, Rule::SuccessRate, "small");
    assert_eq!((rate.n, rate.planned), (9, 10));
    assert_eq!(rate.observed, Some(8.0 / 9.0));
    assert_ne!(rate.state, State::Holds);
    let all = verdict.denominators;
    assert_eq!((all.planned, all.failed, all.infrastructure), (120, 1, 1));
    // Nothing but the lost run: 9 of 9 are no pass of 10.
    let verdict = of_ten(0, 1);
    let rate = row(&verdict, Rule::SuccessRate, "small");
    assert_eq!((rate.observed, rate.state), (Some(1.0), State::NotProven));
    // A failed run stays in: 8 of 10, and not 8 of 8.
    let verdict = of_ten(2, 0);
    let rate = row(&verdict, Rule::SuccessRate, "small");
    assert_eq!((rate.observed, rate.n), (Some(0.8), 10));
    assert_eq!(rate.state, State::Broken);
}

/// What is lost could have gone either way: a rule that holds on one reading and not on the other proves nothing.
///
/// Known fault 107: sierra-research/tau2-bench #493.
/// Known fault 112: CherryHQ/stella #1054.
#[test]
fn lost_runs_are_a_bracket_and_not_dropped() {
    // One survivor of ten succeeded.
    let verdict = of_ten(0, 9);
    let rate = row(&verdict, Rule::SuccessRate, "small");
    assert_eq!((rate.observed, rate.n, rate.planned), (Some(1.0), 1, 10));
    assert_ne!(rate.state, State::Holds);
    assert_eq!(verdict.exit_code(), exit::INCOMPLETE, "beyond the budget");
    // Within the budget of 6 runs: had the lost ones succeeded it would hold, had they failed it would not.
    assert_eq!(
        row(&of_ten(0, 4), Rule::SuccessRate, "small").state,
        State::NotProven
    );
    // Broken whichever way they had gone.
    assert_eq!(
        row(&of_ten(2, 1), Rule::SuccessRate, "small").state,
        State::Broken
    );
}

/// Two runs of half a quality are two successes or two failures by a predicate, and no success by adding up.
///
/// Known fault 110: allenai/olmo-eval PR #338.
#[test]
fn successes_are_counted_and_not_added_up() {
    let halves = Case::full().cell("128KiB", "document", |run| score(run, 10, 3));
    let verdict = judge(&halves.set);
    assert_eq!(
        row(&verdict, Rule::SuccessRate, "document").observed,
        Some(1.0)
    );
    assert_eq!(verdict.denominators.succeeded, 60);
    // Left over from another plan, and told twice: nothing gets above one.
    let more = halves.set(|set| {
        let mut stranger = set.runs[0].clone();
        stranger.run_id = "of-another-plan".to_owned();
        set.runs.extend([stranger, set.runs[1].clone()]);
    });
    let verdict = judge(&more.set);
    assert_eq!(
        row(&verdict, Rule::SuccessRate, "document").observed,
        Some(1.0)
    );
    assert_eq!(verdict.denominators.succeeded, 60);
    assert_eq!(
        verdict.exit_code(),
        exit::INCOMPLETE,
        "the stranger is named"
    );
}

/// A step that used up its iterations keeps the score of what it had said, and its end is marked.
///
/// Known fault 109: sierra-research/tau2-bench #82.
#[test]
fn a_run_that_ends_at_the_limit_is_scored_and_marked() {
    let ended = |found: u64| {
        let case = Case::full().cell("128KiB", "document", |run| {
            score(run, found, 5);
            exhaust(run);
        });
        judge(&case.set)
    };
    // The control finds 19 of 20.
    let verdict = ended(10);
    let quality = row(&verdict, Rule::Quality, "document");
    assert!(
        quality
            .observed
            .is_some_and(|it| (it - (0.5 - 0.95)).abs() < 1e-9),
        "{}",
        quality.words
    );
    assert_eq!(quality.n, 5);
    assert_eq!(
        row(&verdict, Rule::IterationLimit, "document").observed,
        Some(5.0)
    );
    let other = ended(4);
    let quality = row(&other, Rule::Quality, "document")
        .observed
        .expect("it is scored");
    assert!((quality - (0.2 - 0.95)).abs() < 1e-9, "{quality}");
}

/// One good run of five does not decide.
///
/// Known fault 104: GoogleChrome/lighthouse-ci (assertions.js default).
#[test]
fn the_best_of_several_runs_does_not_decide() {
    let case = Case::full().cell("128KiB", "medium", |run| {
        run.input_tokens = Some(if run.repetition == 0 { 1 } else { 900_000 });
    });
    let verdict = judge(&case.set);
    let tokens = row(&verdict, Rule::InputTokens, "medium");
    assert_eq!(tokens.state, State::Broken, "{}", tokens.words);
    assert_ne!(verdict.decision, Decision::Keep);
}

/// A mean above the limit whose interval reaches across it is noise: not proven, and not broken.
///
/// Known fault 100: lance0/rustbgpd #339.
#[test]
fn a_mean_beyond_the_limit_is_not_enough() {
    let noisy = |pairs: u32, losses: u32| {
        let case = Case::with_repetitions(Stage::Full, pairs)
            .set(|set| set.manifest.mode = Mode::Live)
            .cell("128KiB", "small", |run| {
                if run.repetition < losses {
                    fail(run);
                }
            });
        row(&judge(&case.set), Rule::SuccessRate, "small").state
    };
    // 13 % lower, with a margin of 10 %.
    assert_eq!(noisy(30, 4), State::NotProven);
    assert_eq!(noisy(30, 12), State::Broken);
}

/// A loss on one input is not paid for by gains on the others, and is named with the input.
///
/// Known fault 98: grafana/k6 #590.
/// Known fault 106: promptfoo/promptfoo #5847.
#[test]
fn one_input_that_always_fails_is_not_hidden_in_the_whole() {
    let case = Case::full()
        .cell("128KiB", "small", fail)
        .cell("off", "large", fail)
        .cell("off", "medium", |run| {
            if run.repetition > 0 {
                fail(run);
            }
        });
    let verdict = judge(&case.set);
    assert_eq!(
        row(&verdict, Rule::SuccessRate, "small").state,
        State::Broken
    );
    assert_ne!(verdict.decision, Decision::Keep);
    assert_eq!(verdict.candidates[0].state, State::Broken);
    assert!(verdict.sentence.contains("small"), "{}", verdict.sentence);
}

/// What was never measured is not a pass, and not a failure.
///
/// Known fault 91: confident-ai/deepeval PR #3234.
/// Known fault 92: AndreaBozzo/dataprof PR #629.
/// Known fault 95: grafana/k6 #1346.
#[test]
fn a_measure_without_a_sample_is_not_judged() {
    let unmeasured = |run: &mut RunRecord| {
        (run.input_tokens, run.quality, run.facts_found) = (None, None, None);
        (run.end_facts_found, run.hit_iteration_limit) = (None, None);
    };
    let verdict = judge(&Case::full().cell("128KiB", "document", unmeasured).set);
    for rule in [Rule::InputTokens, Rule::Quality, Rule::IterationLimit] {
        let row = row(&verdict, rule, "document");
        assert!(
            matches!(row.state, State::NotProven | State::NotApplicable),
            "{rule:?}: {}",
            row.words
        );
        assert!(row.observed.is_none_or(f64::is_finite));
    }
    // One unmeasured run of five is no zero among them.
    let one = judge(&Case::full().one("128KiB", "document", 2, unmeasured).set);
    let quality = row(&one, Rule::Quality, "document");
    assert_eq!(
        (quality.state, quality.observed),
        (State::NotProven, None),
        "{}",
        quality.words
    );
    let nothing = judge(&Case::full().without(|run| run.input == "document").set);
    assert_eq!(
        row(&nothing, Rule::SuccessRate, "document").state,
        State::NotRun
    );
}

/// A failing rule says so in a word; nothing says `true` of it.
///
/// Known fault 97: grafana/k6 #1498.
#[test]
fn a_state_is_a_word_and_not_a_boolean() {
    let verdict = judge(&Case::full().cell("128KiB", "small", fail).set);
    let json = serde_json::to_value(&verdict).expect("a verdict is JSON");
    let rules = json["candidates"][0]["rules"].as_array().expect("rows");
    let mut states: Vec<&str> = rules
        .iter()
        .map(|row| row["state"].as_str().expect("a word"))
        .collect();
    states.sort_unstable();
    states.dedup();
    assert_eq!(states, ["broken", "holds", "not_applicable", "not_proven"]);
}

/// Every run of an endpoint that answers nothing but errors is lost: no result, and not exit code 0.
///
/// Known fault 87: andymai/occt-wasm PR #44.
/// Known fault 102: i-dot-ai/themefinder PR #119.
#[test]
fn no_run_that_can_be_judged_is_incomplete() {
    for case in [Case::full().every(lose), Case::full().without(|_| true)] {
        let verdict = judge(&case.set);
        assert_eq!(verdict.exit_code(), exit::INCOMPLETE);
        assert_eq!(verdict.decision, Decision::None);
    }
}

/// The code follows the verdict, whatever else went well.
///
/// Known fault 89: bheisler/criterion.rs #824; ordo-one/benchmark #235.
/// Known fault 99: bheisler/criterion.rs #824.
#[test]
fn a_regression_is_an_exit_code() {
    let slower = Case::full().cell("128KiB", "medium", |run| {
        run.input_tokens = run.input_tokens.map(|tokens| tokens * 2);
    });
    let verdict = judge(&slower.set);
    assert_eq!(
        row(&verdict, Rule::InputTokens, "medium").state,
        State::Broken
    );
    assert_eq!(verdict.exit_code(), exit::REJECTED);
    assert_eq!(judge(&Case::full().set).exit_code(), exit::ACCEPTED);
}

/// Blanks in a gate change nothing of what it is about, and a key that is none is refused.
///
/// Known fault 96: grafana/k6 #1526.
#[test]
fn blanks_in_a_key_do_not_make_it_match_nothing() {
    let totals = totals(&sessions());
    let observed = |text: &str| {
        let gate = Gate::parse(text).expect("a gate");
        gate.judge(&record(&[]), &totals.all)
            .expect("a variant")
            .observed
    };
    let plain = observed("saved_input_tokens[threshold=8KiB,read_back=none]>=1%");
    assert!(plain.is_some());
    for text in [
        "saved_input_tokens [ threshold = 8KiB , read_back = none ] >= 1%",
        "  saved_input_tokens[  threshold=8KiB,  read_back=none]  >=  1 %",
    ] {
        assert_eq!(observed(text), plain, "{text}");
    }
    for text in [
        "saved_input_tokens[thresholds=8KiB] >= 1%",
        "saved_tokens >= 1%",
    ] {
        assert!(Gate::parse(text).is_err(), "{text}");
    }
}

/// Errors are runs, counted one by one, and a rate stays between 0 and 1.
///
/// Known fault 114: ai-dynamo/dynamo PR #3674.
#[test]
fn kinds_of_errors_are_not_counted_in_place_of_runs() {
    let case = Case::full().cell("128KiB", "small", |run| {
        fail(run);
        run.error = Some(format!("error {} of four kinds", run.repetition % 4));
    });
    let verdict = judge(&case.set);
    let counts = verdict.denominators;
    assert_eq!(
        (counts.started, counts.succeeded, counts.failed),
        (60, 55, 5)
    );
    assert_eq!(
        row(&verdict, Rule::SuccessRate, "small").observed,
        Some(0.0)
    );
}
