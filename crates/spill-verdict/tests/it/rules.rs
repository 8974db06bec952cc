use spill_record::FactsOrigin;
use spill_verdict::{Figures, Rule, RuleVerdict, State, TokenBasis, judge};

use crate::builder::{Case, exhaust, fail, lose, score};

fn row(case: Case, configuration: &str, rule: Rule, input: &str) -> RuleVerdict {
    let verdict = judge(&case.set);
    verdict
        .candidates
        .into_iter()
        .find(|candidate| candidate.configuration == configuration)
        .expect("the candidate is judged")
        .rules
        .into_iter()
        .find(|row| row.rule == rule && row.input == input)
        .expect("every rule is judged on every input")
}

#[track_caller]
fn check_rule(rule: Rule, input: &str, case: Case, state: State, observed: Option<f64>, n: u64) {
    let row = row(case, "128KiB", rule, input);
    assert_eq!(
        (row.state, row.observed, row.n),
        (state, observed, n),
        "{}",
        row.words
    );
    assert!(!row.words.is_empty(), "a state is explained in words");
}

/// Known fault 112: CherryHQ/stella #1054.
#[test]
fn rule_1_success_rate() {
    let check = |case, state, observed, n| {
        check_rule(Rule::SuccessRate, "medium", case, state, observed, n);
    };
    check(Case::full(), State::Holds, Some(1.0), 5);
    check(
        Case::full().one("128KiB", "medium", 3, fail),
        State::Broken,
        Some(0.8),
        5,
    );
    // Lost one pair, gained another: the rate is not lower.
    let swapped = || {
        Case::full()
            .one("128KiB", "medium", 3, fail)
            .one("off", "medium", 1, fail)
    };
    check(swapped(), State::Holds, Some(0.8), 5);
    check(
        Case::full()
            .cell("off", "medium", fail)
            .cell("128KiB", "medium", fail),
        State::NotProven,
        Some(0.0),
        5,
    );
    check(
        Case::full().one("128KiB", "medium", 0, lose),
        State::NotProven,
        Some(1.0),
        4,
    );
    // One lost pair could be made up by the absent one, two could not.
    check(
        Case::full()
            .one("128KiB", "medium", 0, lose)
            .one("128KiB", "medium", 1, fail),
        State::NotProven,
        Some(0.75),
        4,
    );
    let two = Case::full()
        .one("128KiB", "medium", 0, lose)
        .one("128KiB", "medium", 1, fail)
        .one("128KiB", "medium", 2, fail);
    check(two, State::Broken, Some(0.5), 4);
    check(
        Case::full().cell("128KiB", "medium", lose),
        State::NotProven,
        None,
        0,
    );
    let missing = |all: bool| {
        Case::full().without(move |r| {
            r.configuration == "128KiB" && r.input == "medium" && (all || r.repetition == 2)
        })
    };
    check(missing(false), State::NotRun, Some(1.0), 4);
    check(missing(true), State::NotRun, None, 0);

    let figures = row(swapped(), "128KiB", Rule::SuccessRate, "medium").figures;
    let expected = Figures::Success {
        control_succeeded: 4,
        candidate_succeeded: 4,
        gains: 1,
        losses: 1,
    };
    assert_eq!(figures, Some(expected));
}

/// Known fault 98: grafana/k6 #590.
/// Known fault 106: promptfoo/promptfoo #5847.
#[test]
fn rule_1_is_judged_on_every_input_by_itself() {
    // A gain on one input does not pay for a loss on another.
    let case = Case::full()
        .one("128KiB", "medium", 0, fail)
        .one("off", "large", 0, fail);
    let verdict = judge(&case.set);
    assert_eq!(verdict.candidates[0].state, State::Broken);
}

/// Known fault 109: sierra-research/tau2-bench #82.
#[test]
fn rule_2_new_hits_of_the_iteration_limit() {
    let check = |case, state, observed, n| {
        check_rule(Rule::IterationLimit, "large", case, state, observed, n);
    };
    check(Case::full(), State::Holds, Some(0.0), 5);
    check(
        Case::full().one("128KiB", "large", 4, exhaust),
        State::Broken,
        Some(1.0),
        5,
    );
    // The control hit it in the same pair, or in another one.
    check(
        Case::full()
            .one("128KiB", "large", 4, exhaust)
            .one("off", "large", 4, exhaust),
        State::Holds,
        Some(0.0),
        5,
    );
    check(
        Case::full()
            .one("128KiB", "large", 4, exhaust)
            .one("off", "large", 3, exhaust),
        State::Broken,
        Some(1.0),
        5,
    );
    // The end reason counts even where the flag is absent.
    let by_reason = Case::full().one("128KiB", "large", 4, |r| {
        exhaust(r);
        r.hit_iteration_limit = None;
    });
    check(by_reason, State::Broken, Some(1.0), 5);
    check(
        Case::full().one("128KiB", "large", 1, |r| r.hit_iteration_limit = None),
        State::NotProven,
        Some(0.0),
        5,
    );
    check(
        Case::full().one("128KiB", "large", 1, lose),
        State::NotProven,
        Some(0.0),
        4,
    );
    // A hit is a hit, whatever an absent pair had shown.
    check(
        Case::full()
            .one("128KiB", "large", 1, lose)
            .one("128KiB", "large", 2, exhaust),
        State::Broken,
        Some(1.0),
        4,
    );
    check(
        Case::full().without(|r| r.configuration == "off" && r.input == "large"),
        State::NotRun,
        None,
        0,
    );
}

fn spend(case: Case, configuration: &str, input: &str, tokens: [u64; 5]) -> Case {
    case.cell(configuration, input, |r| {
        r.input_tokens = Some(tokens[r.repetition as usize]);
    })
}

fn tokens(input: &str, control: [u64; 5], candidate: [u64; 5]) -> Case {
    spend(
        spend(Case::full(), "off", input, control),
        "128KiB",
        input,
        candidate,
    )
}

#[test]
fn rule_3_input_tokens_of_small_and_medium_stay_within_the_limit() {
    for input in ["small", "medium"] {
        let check = |candidate, state, observed| {
            check_rule(
                Rule::InputTokens,
                input,
                tokens(input, [100; 5], candidate),
                state,
                observed,
                5,
            );
        };
        check([100; 5], State::Holds, Some(1.0));
        check([110; 5], State::Holds, Some(1.1));
        check([111; 5], State::Broken, Some(1.11));
        check([90, 90, 110, 999, 999], State::Holds, Some(1.1));
        check([0, 0, 111, 111, 111], State::Broken, Some(1.11));
    }
    let close = tokens("medium", [1_000_000; 5], [1_100_001; 5]);
    check_rule(
        Rule::InputTokens,
        "medium",
        close,
        State::Broken,
        Some(1.100_001),
        5,
    );
}

#[test]
fn rule_3_input_tokens_of_large_are_below_the_control() {
    let check = |candidate, state, observed| {
        check_rule(
            Rule::InputTokens,
            "large",
            tokens("large", [100; 5], candidate),
            state,
            observed,
            5,
        );
    };
    check([99; 5], State::Holds, Some(0.99));
    check([100; 5], State::Broken, Some(1.0));
    check([99, 99, 99, 500, 500], State::Holds, Some(0.99));
}

#[test]
fn rule_3_ratio_of_medians_gates_not_the_median_of_ratios() {
    let case = tokens(
        "medium",
        [100, 200, 300, 400, 500],
        [200, 210, 240, 420, 525],
    );
    let row = row(case, "128KiB", Rule::InputTokens, "medium");
    assert_eq!((row.state, row.observed), (State::Holds, Some(0.8)));
    let Some(Figures::Tokens {
        median_paired_ratio,
        ..
    }) = row.figures
    else {
        panic!("rule 3 has its figures: {:?}", row.figures)
    };
    assert_eq!(median_paired_ratio, Some(1.05));
    assert_eq!(
        row.evidence[0].words,
        "2 times the control's input tokens (selective)"
    );
}

#[test]
fn rule_3_uses_pairs_that_both_succeeded_once_a_run_did_not() {
    // The control died early in two pairs and looks cheap there.
    let case = || tokens("large", [10, 10, 100, 100, 100], [50; 5]);
    check_rule(
        Rule::InputTokens,
        "large",
        case(),
        State::Holds,
        Some(0.5),
        5,
    );
    let censored = tokens("large", [10, 10, 10, 100, 100], [50; 5])
        .one("off", "large", 0, fail)
        .one("off", "large", 1, fail)
        .one("off", "large", 2, fail);
    let row = row(censored, "128KiB", Rule::InputTokens, "large");
    assert_eq!(
        (row.state, row.observed, row.n),
        (State::Holds, Some(0.5), 2),
        "{}",
        row.words
    );
    assert!(
        row.words
            .contains("the 2 pairs of 5 that succeeded under both"),
        "{}",
        row.words
    );
    let Some(Figures::Tokens {
        basis,
        all_runs,
        both_succeeded,
        both_succeeded_pairs,
        per_success,
        ..
    }) = row.figures
    else {
        panic!("rule 3 has its figures: {:?}", row.figures)
    };
    assert_eq!(basis, TokenBasis::BothSucceeded);
    assert_eq!(
        (all_runs.control, all_runs.candidate),
        (Some(10.0), Some(50.0))
    );
    assert_eq!(
        (both_succeeded.control, both_succeeded.candidate),
        (Some(100.0), Some(50.0))
    );
    assert_eq!(both_succeeded_pairs, 2);
    assert_eq!(
        (per_success.control, per_success.candidate),
        (Some(115.0), Some(50.0))
    );
}

/// Known fault 70: NousResearch/hermes-agent #12023.
#[test]
fn rule_3_without_figures_proves_nothing() {
    let check = |case, state, n| check_rule(Rule::InputTokens, "large", case, state, None, n);
    check(Case::full().cell("off", "large", fail), State::NotProven, 0);
    check(
        Case::full().one("128KiB", "large", 2, |r| r.input_tokens = None),
        State::NotProven,
        5,
    );
    check(
        Case::full().cell("off", "large", |r| r.input_tokens = Some(0)),
        State::NotProven,
        5,
    );
    let says = |case, words: &str| {
        let row = row(case, "128KiB", Rule::InputTokens, "large");
        assert!(row.words.contains(words), "{}", row.words);
    };
    says(
        Case::full().one("128KiB", "large", 2, |r| r.input_tokens = None),
        "some run does not tell its tokens",
    );
    says(
        Case::full().cell("off", "large", |r| r.input_tokens = Some(0)),
        "the control spent no input tokens",
    );
    check(Case::full().cell("off", "large", lose), State::NotProven, 0);
    check(
        Case::full().without(|r| r.configuration == "128KiB" && r.input == "large"),
        State::NotRun,
        0,
    );
    check_rule(
        Rule::InputTokens,
        "document",
        Case::full(),
        State::NotApplicable,
        None,
        0,
    );
    // Too dear, but an absent pair might have moved the median.
    let thin = tokens("medium", [100; 5], [150; 5]).one("off", "medium", 0, lose);
    check_rule(
        Rule::InputTokens,
        "medium",
        thin,
        State::NotProven,
        Some(1.5),
        4,
    );
}

#[test]
fn rule_4_document_quality_and_coverage_of_the_end() {
    let check = |case, state, observed, n| {
        check_rule(Rule::Quality, "document", case, state, observed, n);
    };
    check(Case::full(), State::Holds, Some(0.0), 5);
    check(
        Case::full().one("128KiB", "document", 0, |r| score(r, 18, 5)),
        State::Broken,
        Some(-0.01),
        5,
    );
    check(
        Case::full().one("128KiB", "document", 0, |r| score(r, 20, 5)),
        State::Holds,
        Some(0.0),
        5,
    );
    // Quality is better, yet the end is lost.
    check(
        Case::full().cell("128KiB", "document", |r| score(r, 20, 4)),
        State::Broken,
        Some(-0.2),
        5,
    );
    // One pair pays for another: the mean decides.
    let paid = Case::full()
        .one("128KiB", "document", 0, |r| score(r, 18, 5))
        .one("128KiB", "document", 1, |r| score(r, 20, 5));
    check(paid, State::Holds, Some(0.0), 5);
    let allowed = Case::full()
        .set(|set| set.manifest.plan.rules.quality_allowance = 0.05)
        .cell("128KiB", "document", |r| score(r, 18, 5));
    check(allowed, State::Holds, Some(-0.05), 5);
    // A control that failed lost its facts; one that answered without any never had them.
    let lost = Case::full().cell("off", "document", |r| {
        fail(r);
        score(r, 0, 0);
    });
    check(lost, State::Holds, Some(0.95), 5);
    let never = Case::full()
        .cell("off", "document", |r| score(r, 0, 0))
        .cell("128KiB", "document", |r| score(r, 0, 0));
    check(never, State::NotProven, Some(0.0), 5);
    check_rule(
        Rule::Quality,
        "large",
        Case::full().cell("128KiB", "large", |r| score(r, 0, 0)),
        State::NotApplicable,
        None,
        0,
    );
}

/// Known fault 91: confident-ai/deepeval PR #3234.
#[test]
fn rule_4_without_enough_facts_proves_nothing() {
    let check = |case, state, observed, n| {
        check_rule(Rule::Quality, "document", case, state, observed, n);
    };
    let facts = |count: usize, origin| {
        Case::full()
            .set(move |set| {
                let input = set
                    .manifest
                    .plan
                    .inputs
                    .last_mut()
                    .expect("there is a document");
                input.facts.truncate(count);
                input.facts_origin = origin;
            })
            .every(move |r| {
                if r.input == "document" {
                    r.facts_expected = Some(count as u64);
                    r.end_facts_expected = Some(1);
                    if count > 0 {
                        score(r, count as u64, 1);
                    } else {
                        (r.facts_found, r.quality) = (None, None);
                    }
                }
            })
    };
    check(
        facts(4, FactsOrigin::Derived),
        State::NotProven,
        Some(0.0),
        5,
    );
    check(facts(5, FactsOrigin::Derived), State::Holds, Some(0.0), 5);
    check(facts(4, FactsOrigin::Scenario), State::Holds, Some(0.0), 5);
    check(facts(1, FactsOrigin::Expected), State::Holds, Some(0.0), 5);
    let none = facts(0, FactsOrigin::Expected).every(|r| {
        (r.end_facts_expected, r.end_facts_found) = (Some(0), Some(0));
    });
    check(none, State::NotProven, None, 5);
    let no_end =
        Case::full().every(|r| (r.end_facts_expected, r.end_facts_found) = (Some(0), Some(0)));
    check(no_end, State::NotProven, Some(0.0), 5);
    let unscored = Case::full().one("off", "document", 1, |r| {
        (r.facts_found, r.quality, r.end_facts_found) = (None, None, None);
    });
    check(unscored, State::NotProven, None, 5);
    check(
        Case::full().one("128KiB", "document", 1, lose),
        State::NotProven,
        Some(0.0),
        4,
    );
    check(
        Case::full().without(|r| r.configuration == "128KiB" && r.input == "document"),
        State::NotRun,
        None,
        0,
    );
    // The absent pair could not make up for this.
    let lost = Case::full()
        .cell("128KiB", "document", |r| score(r, 1, 0))
        .one("128KiB", "document", 1, lose);
    check(lost, State::Broken, Some(-1.0), 4);
}

#[test]
fn rule_5_nothing_is_written_and_nothing_leaks() {
    let check = |case, state, observed, n| {
        check_rule(Rule::NothingLeaks, "small", case, state, observed, n);
    };
    check(Case::full(), State::Holds, Some(0.0), 5);
    check(
        Case::full().one("128KiB", "small", 0, |r| r.files_written = Some(1)),
        State::Broken,
        Some(1.0),
        5,
    );
    let logged =
        |r: &mut spill_record::RunRecord| r.leak_findings = vec!["stderr, byte 17".to_owned()];
    check(
        Case::full().one("128KiB", "small", 0, logged),
        State::Broken,
        Some(1.0),
        5,
    );
    check(
        Case::full().cell("off", "small", logged),
        State::Holds,
        Some(0.0),
        5,
    );
    check(
        Case::full().one("128KiB", "small", 0, |r| r.files_written = None),
        State::NotProven,
        Some(0.0),
        4,
    );
    check(
        Case::full().one("128KiB", "small", 0, |r| r.leak_check.clear()),
        State::NotProven,
        Some(0.0),
        4,
    );
    check(
        Case::full().one("128KiB", "small", 0, lose),
        State::NotProven,
        Some(0.0),
        4,
    );
    check(
        Case::full().without(|r| r.configuration == "128KiB" && r.input == "small"),
        State::NotRun,
        None,
        0,
    );
    // A leak of a run that the harness lost is still a leak.
    let lost = Case::full().one("128KiB", "small", 0, |r| {
        lose(r);
        logged(r);
    });
    check(lost, State::Broken, Some(1.0), 4);
}

#[test]
fn evidence_names_the_worst_pairs_and_is_bounded() {
    let many =
        Case::with_repetitions(spill_record::Stage::Full, 40).cell("128KiB", "large", exhaust);
    let worst = row(many, "128KiB", Rule::IterationLimit, "large");
    assert_eq!(
        (worst.observed, worst.evidence.len()),
        (Some(40.0), spill_verdict::EVIDENCE_LIMIT)
    );

    let case = Case::full().one("32KiB", "document", 3, |r| score(r, 2, 0));
    let pair = case
        .set
        .runs
        .iter()
        .find(|r| r.input == "document" && r.repetition == 3)
        .map(|r| r.pair_id.clone());
    let evidence = row(case, "32KiB", Rule::Quality, "document").evidence;
    assert_eq!(evidence.len(), 1);
    assert_eq!(Some(&evidence[0].pair_id), pair.as_ref());
    assert_eq!(
        evidence[0].words,
        "17 fewer found than under the control (selective)"
    );
}
