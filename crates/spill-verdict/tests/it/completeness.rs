use spill_record::{RunRecord, Stage, TornLine};
use spill_verdict::{Decision, Denominators, State, Verdict, exit, judge};

use crate::builder::{Case, fail, lose, score};

#[track_caller]
fn check_incomplete(case: Case, message: &str) {
    let _ = find_incomplete(case, message);
}

#[track_caller]
fn find_incomplete(case: Case, message: &str) -> Verdict {
    let verdict = judge(&case.set);
    assert_eq!(
        (verdict.decision, verdict.exit_code()),
        (Decision::None, exit::INCOMPLETE),
        "{}",
        verdict.decision_sentence()
    );
    assert!(
        verdict
            .problems
            .iter()
            .any(|problem| problem.contains(message)),
        "no problem says {message:?}: {:?}",
        verdict.problems
    );
    verdict
}

/// Known fault 114: ai-dynamo/dynamo PR #3674.
/// Known fault 123: vllm-project/vllm #21104 and #10847.
#[test]
fn every_planned_run_is_accounted_for() {
    let case = Case::full()
        .one("off", "small", 0, fail)
        .one("128KiB", "large", 1, lose)
        .without(|r| r.input == "medium" && r.repetition == 4);
    let expected = Denominators {
        planned: 60,
        started: 57,
        finished: 56,
        succeeded: 55,
        failed: 1,
        infrastructure: 1,
        missing: 3,
    };
    assert_eq!(judge(&case.set).denominators, expected);
}

/// Known fault 87: andymai/occt-wasm PR #44.
/// Known fault 95: grafana/k6 #1346.
/// Known fault 102: i-dot-ai/themefinder PR #119.
#[test]
fn no_data_is_never_a_pass() {
    let verdict = find_incomplete(Case::full().without(|_| true), "no run finished");
    assert!(
        verdict
            .candidates
            .iter()
            .all(|candidate| candidate.state == State::NotRun)
    );
    check_incomplete(Case::full().every(lose), "no run finished");
    let empty_plan = Case::full().set(|set| {
        set.manifest.plan.runs.clear();
        set.manifest.plan.inputs.clear();
        set.runs.clear();
    });
    check_incomplete(empty_plan, "no run finished");
    let no_control = Case::full().set(|set| {
        set.manifest.plan.configurations[0].role = spill_record::ConfigurationRole::Candidate;
    });
    check_incomplete(no_control, "0 controls");
}

/// Known fault 108: sierra-research/tau2-bench #543.
#[test]
fn a_missing_run_is_incomplete_whatever_the_others_say() {
    let one = |r: &RunRecord| r.configuration == "32KiB" && r.input == "small" && r.repetition == 0;
    check_incomplete(
        Case::full().without(one),
        "1 run of 60 planned without a usable record",
    );
    check_incomplete(
        Case::full().cell("128KiB", "large", fail).without(one),
        "without a usable record",
    );
    check_incomplete(
        Case::full().without(|r| r.configuration == "off"),
        "20 runs of 60 planned",
    );
}

/// Known fault 107: sierra-research/tau2-bench #493.
#[test]
fn the_harness_may_lose_runs_within_its_budget_only() {
    // The budget is 5 % of 60 runs: three are within it, four are not.
    let lost = |count: u32| {
        Case::full().cell("32KiB", "large", |r| {
            if r.repetition < count {
                lose(r);
            }
        })
    };
    assert_eq!(judge(&lost(3).set).exit_code(), exit::ACCEPTED);
    check_incomplete(
        lost(4),
        "4 runs of 60 lost to the harness, more than the budget of 5 %; the first was lost as \
         mock_unavailable: the mock server could not be reached",
    );
}

/// What took all runs is the first thing that is said, and not only in the records.
#[test]
fn where_no_run_finished_the_first_loss_says_why() {
    let all = Case::full().every(lose);
    let verdict = find_incomplete(all, "no run finished");
    let sentence = verdict.decision_sentence();
    let why = "the first was lost as mock_unavailable: the mock server could not be reached";
    assert!(sentence.contains(why), "{sentence}");
}

/// Known fault 88: developerz-ai/wurk PR #68.
#[test]
fn a_cell_that_the_plan_drops_or_renames_is_missed() {
    let dropped = Case::full().set(|set| {
        set.manifest
            .plan
            .runs
            .retain(|r| !(r.configuration == "128KiB" && r.input == "large"));
        set.runs
            .retain(|r| !(r.configuration == "128KiB" && r.input == "large"));
    });
    let verdict = find_incomplete(
        dropped,
        "the plan has 0 of 5 repetitions of review/large under 128KiB",
    );
    assert_ne!(verdict.candidates[0].state, State::Holds);
    let renamed = Case::full().set(|set| {
        for run in &mut set.manifest.plan.runs {
            if run.input == "large" {
                run.input = "large2".to_owned();
            }
        }
        for run in &mut set.runs {
            if run.input == "large" {
                run.input = "large2".to_owned();
            }
        }
    });
    check_incomplete(
        renamed,
        "the plan runs review/large2 under 128KiB, which it does not describe",
    );
}

#[test]
fn a_record_that_contradicts_the_plan_is_refused() {
    let check = |alter: fn(&mut RunRecord), message: &str| {
        let verdict = find_incomplete(Case::full().one("128KiB", "document", 1, alter), message);
        let Denominators {
            started, missing, ..
        } = verdict.denominators;
        assert_eq!(
            (started, missing),
            (60, 1),
            "a refused record does not fill its slot"
        );
    };
    check(|r| r.pair_id = "other".to_owned(), "its pair is other");
    check(
        |r| r.configuration = "off".to_owned(),
        "its configuration is off, the plan has 128KiB",
    );
    check(|r| r.input = "small".to_owned(), "its input is small");
    check(|r| r.profile = "hasty".to_owned(), "its profile is hasty");
    check(
        |r| r.subject = "./other".to_owned(),
        "its subject is ./other",
    );
    check(|r| r.seed += 1, "its repetition and seed are 1 and 1002");
    check(
        |r| r.class = spill_record::Class::Small,
        "its recipe and class are document and small",
    );
    check(
        |r| r.facts_expected = Some(3),
        "it was scored against 3 facts, the plan has 20",
    );
    check(|r| r.facts_found = Some(21), "it found 21 of 20 facts");
    check(|r| r.end_facts_found = Some(6), "it found 6 of 5 end facts");
    check(
        |r| r.quality = Some(f64::NAN),
        "its quality is not 19 of 20 facts",
    );
    check(
        |r| r.quality = Some(1.5),
        "its quality is not 19 of 20 facts",
    );
    // A millionth of a fact is more than rounding.
    check(
        |r| {
            score(r, 0, 0);
            r.quality = Some(1e-6 / 20.0);
        },
        "its quality is not 0 of 20 facts",
    );
    check(
        |r| r.facts_found = None,
        "it has a quality without counts of facts",
    );
    check(
        |r| {
            r.effective_settings =
                Some(serde_json::json!({"enabled": true, "threshold_bytes": 32768}));
        },
        "the subject ran with other settings than 128KiB is labelled with",
    );
    check(
        |r| r.effective_settings = Some(serde_json::json!({"enabled": false})),
        "the subject ran with other settings than 128KiB is labelled with",
    );
}

#[test]
fn duplicates_strangers_and_torn_lines() {
    let twice = |alter: fn(&mut RunRecord)| {
        Case::full().set(move |set| {
            let mut run = set.runs[7].clone();
            alter(&mut run);
            set.runs.push(run);
        })
    };
    let verdict = judge(&twice(|_| ()).set);
    assert_eq!(verdict.exit_code(), exit::ACCEPTED);
    assert_eq!(
        (verdict.denominators.started, verdict.warnings.len()),
        (60, 1)
    );
    check_incomplete(
        twice(|r| r.input_tokens = Some(1)),
        "recorded twice with different values; neither counts",
    );
    check_incomplete(
        twice(|r| r.run_id = "stranger".to_owned()),
        "run stranger is not in the plan",
    );
    let torn = |case: Case| {
        case.set(|set| {
            set.torn.push(TornLine {
                file: "runs.jsonl".to_owned(),
                line: 60,
                bytes: 12,
            });
        })
    };
    let verdict = judge(&torn(Case::full()).set);
    assert_eq!(
        (verdict.exit_code(), verdict.warnings.len()),
        (exit::ACCEPTED, 1)
    );
    check_incomplete(
        torn(Case::full().set(|set| drop(set.runs.pop()))),
        "1 run of 60 planned",
    );
}

#[test]
fn the_quick_stage_can_accept_and_says_what_has_still_to_run() {
    let verdict = judge(&Case::with_repetitions(Stage::Quick, 2).set);
    assert_eq!(
        (verdict.exit_code(), verdict.denominators.planned),
        (exit::ACCEPTED, 24)
    );
    assert!(
        verdict
            .sentence
            .ends_with("This was the quick stage; full has still to run.")
    );
    assert!(
        verdict.not_shown[0].contains("full has still to run"),
        "{:?}",
        verdict.not_shown
    );
}

/// Known fault 77: smarr/ReBenchDB #224; MDA2AV/HttpArena PR #1322.
#[test]
fn a_control_that_never_succeeds_is_noticed() {
    let failing = spill_verdict::judge(
        &crate::builder::Case::full()
            .cell("off", "small", crate::builder::fail)
            .set,
    );
    let sound = spill_verdict::judge(
        &crate::builder::Case::full()
            .one("off", "small", 1, crate::builder::fail)
            .set,
    );
    let noticed = |verdict: &spill_verdict::Verdict| {
        let words = "No run of off succeeded on review/small";
        verdict.warnings.iter().any(|line| line.starts_with(words))
    };
    assert!(noticed(&failing), "{:?}", failing.warnings);
    assert!(!noticed(&sound), "{:?}", sound.warnings);
}
