use spill_record::RunRecord;
use spill_verdict::{Decision, Proposed, State, Verdict, exit, judge};

use crate::builder::{Case, exhaust, fail, lose, score};

#[track_caller]
fn check_decision(case: Case, decision: Decision, exit_code: u8) {
    let _ = decide(case, decision, exit_code);
}

#[track_caller]
fn decide(case: Case, decision: Decision, exit_code: u8) -> Verdict {
    let verdict = judge(&case.set);
    assert_eq!(
        (verdict.decision, verdict.exit_code()),
        (decision, exit_code),
        "{}",
        verdict.decision_sentence()
    );
    verdict
}

fn nothing_stored(run: &mut RunRecord) {
    run.results_persisted = Some(0);
    run.prompt_digest = Some(run.pair_id.clone());
    run.offered_tools_digest = Some("plain".to_owned());
}

#[test]
fn the_shipped_candidate_is_kept_when_it_holds() {
    let verdict = decide(Case::full(), Decision::Keep, exit::ACCEPTED);
    assert_eq!(
        verdict.proposed,
        Some(Proposed {
            configuration: Some("128KiB".to_owned()),
            enabled: true,
            threshold_bytes: Some(131_072)
        })
    );
    assert!(verdict.candidates[0].considered && !verdict.candidates[1].considered);
    // What the second one came to does not matter then.
    check_decision(
        Case::full().cell("32KiB", "large", fail),
        Decision::Keep,
        exit::ACCEPTED,
    );
}

#[test]
fn the_next_candidate_is_tried_after_a_broken_one() {
    let verdict = decide(
        Case::full().cell("128KiB", "large", exhaust),
        Decision::Change,
        exit::REJECTED,
    );
    assert_eq!(
        verdict.proposed,
        Some(Proposed {
            configuration: Some("32KiB".to_owned()),
            enabled: true,
            threshold_bytes: Some(32_768)
        })
    );
    assert!(
        verdict
            .sentence
            .starts_with("Change the default from 128KiB"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn spilling_is_disabled_when_every_candidate_is_broken() {
    let broken = || {
        Case::full()
            .cell("128KiB", "large", exhaust)
            .cell("32KiB", "document", |r| score(r, 3, 0))
    };
    let verdict = decide(broken(), Decision::Disable, exit::REJECTED);
    assert_eq!(
        verdict.proposed,
        Some(Proposed {
            configuration: None,
            enabled: false,
            threshold_bytes: None
        })
    );
    // Off ships already: nothing changes.
    let off_ships = broken().set(|set| {
        for configuration in &mut set.manifest.plan.configurations {
            configuration.shipped = configuration.name == "off";
        }
    });
    check_decision(off_ships, Decision::Keep, exit::ACCEPTED);
}

#[test]
fn not_proven_stops_the_ladder() {
    let thin = || Case::full().one("128KiB", "large", 0, lose);
    let verdict = decide(thin(), Decision::None, exit::NOT_PROVEN);
    assert_eq!(verdict.proposed, None);
    assert!(!verdict.candidates[1].considered);
    assert_eq!(verdict.candidates[1].state, State::Holds);
    let after_broken = Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "large", 0, lose);
    check_decision(after_broken, Decision::None, exit::NOT_PROVEN);
    // Broken elsewhere beats not proven here.
    check_decision(
        thin().cell("128KiB", "small", exhaust),
        Decision::Change,
        exit::REJECTED,
    );
}

#[test]
fn a_candidate_that_stored_nothing_was_not_tried() {
    let idle = || {
        Case::full()
            .cell("128KiB", "large", nothing_stored)
            .cell("off", "large", nothing_stored)
    };
    let verdict = decide(idle(), Decision::None, exit::NOT_PROVEN);
    assert_eq!(verdict.candidates[0].state, State::NotProven);
    assert!(
        verdict.candidates[0].words.contains("it was not tried"),
        "{}",
        verdict.candidates[0].words
    );
    let untold = Case::full().every(|r| {
        if r.configuration == "128KiB" {
            r.results_persisted = None;
        }
    });
    check_decision(untold, Decision::None, exit::NOT_PROVEN);
    let idle_and_broken = idle().one("128KiB", "small", 0, fail);
    check_decision(idle_and_broken, Decision::Change, exit::REJECTED);
}

#[test]
fn a_leak_in_any_run_is_exit_6() {
    let leak = |r: &mut RunRecord| r.leak_findings = vec!["stderr, byte 9".to_owned()];
    let file = |r: &mut RunRecord| r.files_written = Some(2);
    let verdict = decide(
        Case::full().one("128KiB", "small", 0, leak),
        Decision::Change,
        exit::LEAK,
    );
    assert_eq!((verdict.leak_runs, verdict.leaks.len()), (1, 1));
    check_decision(
        Case::full().one("128KiB", "small", 0, file),
        Decision::Change,
        exit::LEAK,
    );
    // One of the control: no configuration is the cause, so none is the cure.
    check_decision(
        Case::full().one("off", "small", 0, leak),
        Decision::None,
        exit::LEAK,
    );
    // One of a candidate that the ladder never reaches.
    check_decision(
        Case::full().one("32KiB", "small", 0, file),
        Decision::Keep,
        exit::LEAK,
    );
    // And those of extra pairs and of lost runs.
    let extra = Case::full().set(|set| {
        let mut run = set.runs[0].clone();
        (run.run_id, run.pair_id) = ("extra".to_owned(), "extra pair".to_owned());
        run.files_written = Some(1);
        set.sensitivity.push(run);
    });
    check_decision(extra, Decision::None, exit::LEAK);
    let lost = Case::full().one("off", "small", 0, |r| {
        lose(r);
        leak(r);
    });
    check_decision(lost, Decision::None, exit::LEAK);
    let many = judge(&Case::full().every(leak).set).leaks;
    assert_eq!(many.len(), 50);
}

/// Known fault 89: bheisler/criterion.rs #824; ordo-one/benchmark #235.
/// Known fault 99: bheisler/criterion.rs #824.
#[test]
fn exit_codes_follow_their_precedence() {
    let check =
        |codes: &[u8], expected| assert_eq!(exit::first_that_applies(codes), expected, "{codes:?}");
    check(&[0, 1, 2, 3, 4, 5, 6, 7], exit::USAGE);
    check(&[0, 1, 3, 4, 5, 6, 7], exit::INTERNAL);
    check(&[0, 3, 4, 5, 6, 7], exit::LEAK);
    check(&[0, 3, 4, 5, 7], exit::SELF_TEST);
    check(&[0, 3, 4, 5], exit::INCOMPLETE);
    check(&[0, 3, 4], exit::REJECTED);
    check(&[0, 4], exit::NOT_PROVEN);
    check(&[0], exit::ACCEPTED);
    check(&[], exit::INTERNAL);
    check(&[42], exit::INTERNAL);
    // A leak outranks what is incomplete, a fault of the harness outranks a leak.
    let leak = |r: &mut RunRecord| r.files_written = Some(1);
    let both = Case::full()
        .one("off", "small", 0, leak)
        .without(|r| r.input == "small" && r.repetition == 1);
    check_decision(both, Decision::None, exit::LEAK);
    let all = Case::full()
        .one("off", "small", 0, leak)
        .one("32KiB", "small", 2, |r| {
            r.prompt_digest = Some("other".to_owned());
        });
    check_decision(all, Decision::None, exit::INTERNAL);
}

#[test]
fn requests_of_runs_that_stored_nothing_are_the_same_bytes() {
    let other = |r: &mut RunRecord| r.prompt_digest = Some("other".to_owned());
    let tools = |r: &mut RunRecord| r.offered_tools_digest = Some("other".to_owned());
    let foreign = |case: Case| {
        case.set(|set| set.manifest.subject = "./agent".to_owned())
            .every(|r| r.subject = "./agent".to_owned())
    };
    let verdict = decide(
        Case::full().one("128KiB", "small", 1, other),
        Decision::None,
        exit::INTERNAL,
    );
    assert_eq!(verdict.harness_errors.len(), 1);
    check_decision(
        Case::full().one("32KiB", "small", 1, tools),
        Decision::None,
        exit::INTERNAL,
    );
    // Two of three stored nothing: those two are compared.
    check_decision(
        Case::full().one("128KiB", "document", 1, other),
        Decision::None,
        exit::INTERNAL,
    );
    // Another subject may do as it likes; it is reported.
    let verdict = decide(
        foreign(Case::full().one("128KiB", "small", 1, other)),
        Decision::Keep,
        exit::ACCEPTED,
    );
    assert_eq!(
        (verdict.warnings.len(), verdict.harness_errors.len()),
        (1, 0)
    );
    // Runs that stored something differ as they must.
    check_decision(
        Case::full().one("32KiB", "large", 1, other),
        Decision::Keep,
        exit::ACCEPTED,
    );
    // Where time decided the end, requests cannot be compared.
    let slow = Case::full().one("128KiB", "small", 1, |r| {
        fail(r);
        r.end_reason = spill_record::EndReason::Timeout;
        other(r);
    });
    check_decision(slow, Decision::Change, exit::REJECTED);
}

#[test]
fn each_pure_profile_has_its_decision() {
    let decisions = |case: Case| -> Vec<(String, Decision, u64)> {
        let profiles = judge(&case.set).profiles;
        profiles
            .into_iter()
            .map(|p| (p.profile, p.decision, p.pairs))
            .collect()
    };
    let expect = |diligent, hasty, selective| {
        vec![
            ("diligent".to_owned(), diligent, 4),
            ("hasty".to_owned(), hasty, 4),
            ("selective".to_owned(), selective, 12),
        ]
    };
    assert_eq!(
        decisions(Case::full()),
        expect(Decision::Keep, Decision::Keep, Decision::Keep)
    );
    // Only the hasty pair loses facts: the mix and that profile say no, the others yes.
    let hasty = || Case::full().one("128KiB", "document", 2, |r| score(r, 5, 1));
    assert_eq!(judge(&hasty().set).decision, Decision::Change);
    assert_eq!(
        decisions(hasty()),
        expect(Decision::Keep, Decision::Change, Decision::Keep)
    );
}

#[test]
fn extra_pairs_stand_in_for_a_profile_that_was_not_drawn() {
    let without_hasty = || {
        Case::full().set(|set| {
            let hasty: Vec<RunRecord> = set
                .runs
                .iter()
                .filter(|r| r.profile == "hasty")
                .cloned()
                .collect();
            for run in &mut set.manifest.plan.runs {
                if run.profile == "hasty" {
                    run.profile = "selective".to_owned();
                }
            }
            for run in &mut set.runs {
                if run.profile == "hasty" {
                    run.profile = "selective".to_owned();
                }
            }
            for mut run in hasty {
                run.run_id = format!("x{}", run.run_id);
                run.pair_id = format!("x{}", run.pair_id);
                set.sensitivity.push(run);
            }
        })
    };
    let hasty = |case: Case| {
        judge(&case.set)
            .profiles
            .into_iter()
            .find(|p| p.profile == "hasty")
            .expect("hasty is in the population")
    };
    let found = hasty(without_hasty());
    assert_eq!(
        (found.decision, found.pairs, found.extra_pairs),
        (Decision::Keep, 4, 4)
    );
    let nothing = hasty(without_hasty().set(|set| set.sensitivity.clear()));
    assert_eq!((nothing.decision, nothing.pairs), (Decision::None, 0));
    assert_eq!(nothing.candidates[0].state, State::NotRun);
    // Extra pairs never enter the verdict itself.
    let lossy = without_hasty().set(|set| set.sensitivity.iter_mut().for_each(fail));
    assert_eq!(judge(&lossy.set).exit_code(), exit::ACCEPTED);
}

#[test]
fn a_reason_names_every_input_and_every_rule_of_its_state() {
    let words = |case: Case| judge(&case.set).candidates.swap_remove(0).words;
    let twice = Case::full()
        .cell("128KiB", "large", fail)
        .one("128KiB", "small", 0, fail);
    let found = words(twice);
    assert!(
        found.starts_with("rule 1 (success rate) is broken on review/large (and review/small):"),
        "{found}"
    );
    let every = words(Case::full().every(|r| {
        if r.configuration == "128KiB" {
            exhaust(r);
        }
    }));
    assert!(
        every.contains("on review/small (and review/medium, review/large, document):"),
        "{every}"
    );
    assert!(
        every.ends_with("; also broken: rule 2 (iteration limit)"),
        "{every}"
    );
}
