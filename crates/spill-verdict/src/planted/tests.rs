//! What is planted: the fault that its name says and nothing else, in records that have none.

#[expect(dead_code, reason = "a part of it serves here")]
#[path = "../../tests/it/builder.rs"]
mod builder;

use builder::{Case, exhaust};
use spill_record::{
    Class, EndReason, FactPlace, FactsOrigin, Outcome, RunRecord, RunSet, SidecarRun,
};

use super::{FAULTS, sound_set};

fn sound(case: &Case) -> RunSet {
    sound_set(&case.set).expect("there is a record to shape others after")
}

fn ratios(small: f64, large: f64) -> Case {
    Case::full().set(|set| {
        let rules = &mut set.manifest.plan.rules;
        rules.input_tokens_ratio_limit = small;
        rules.large_input_tokens_ratio_limit = large;
    })
}

/// The set with the one fault whose name begins like this.
fn planted(case: &Case, name: &str) -> RunSet {
    let mut set = sound(case);
    let fault = FAULTS.iter().find(|fault| fault.name.starts_with(name));
    assert!((fault.expect("a fault of that name").plant)(&mut set));
    set
}

/// Exactly `count` runs of the candidate on `input`, from the first on, are altered, each of them so.
#[track_caller]
fn check(case: &Case, name: &str, input: &str, count: usize, alter: fn(&mut RunRecord)) {
    let mut expected = sound(case);
    let runs = expected.runs.iter_mut();
    let cell = runs.filter(|run| run.input == input && run.configuration == "128KiB");
    cell.take(count).for_each(alter);
    let found = planted(case, name);
    assert_ne!(found.runs, sound(case).runs, "{name}");
    assert_eq!(found.runs, expected.runs, "{name}");
}

#[test]
fn a_fault_is_what_its_name_says() {
    let case = ratios(2.0, 0.5);
    // 2 × 1.05 of 100,000 tokens, and one more.
    check(&case, "input tokens 5 %", "small", 5, |run| {
        run.input_tokens = Some(210_001);
    });
    check(&case, "input tokens at the limit", "large", 5, |run| {
        run.input_tokens = Some(50_000);
    });
    check(&case, "one lost success", "small", 1, |run| {
        run.outcome = Outcome::Failed;
        run.end_reason = EndReason::ModelError;
    });
    check(&case, "one new iteration-limit hit", "small", 1, |run| {
        run.hit_iteration_limit = Some(true);
    });
    // Five of ten facts lie at the end.
    check(&case, "answers that miss the end", "document", 5, |run| {
        (run.facts_found, run.end_facts_found) = (Some(5), Some(0));
        run.quality = Some(0.5);
    });
    check(&case, "one file written", "small", 1, |run| {
        run.files_written = Some(1);
    });
    check(&case, "one log line", "small", 1, |run| {
        run.leak_findings = vec!["stderr".to_owned()];
    });
}

#[test]
fn what_is_to_be_missed_is_missing() {
    // Two configurations, four inputs, five repetitions.
    let case = Case::full();
    assert_eq!(sound(&case).runs.len(), 40);
    let fewer = planted(&case, "one repetition fewer").runs;
    assert_eq!(fewer.len(), 32);
    assert!(fewer.iter().all(|run| run.repetition < 4));
    assert_eq!(planted(&case, "one missing run").runs.len(), 39);
    assert_eq!(planted(&case, "no data").runs.len(), 0);
}

#[track_caller]
fn check_tokens(case: &Case, expected: [u64; 4]) {
    let set = sound(case);
    let of = |class: Class, configuration: &str| {
        let mut runs = set.runs.iter();
        let run = runs.find(|run| run.class == class && run.configuration == configuration);
        run.and_then(|run| run.input_tokens)
    };
    for (class, tokens) in super::ANY.into_iter().zip(expected) {
        assert_eq!(of(class, "off"), Some(100_000), "{class:?}");
        assert_eq!(of(class, "128KiB"), Some(tokens), "{class:?}");
    }
}

#[test]
fn a_sound_candidate_spends_what_its_limits_allow_and_no_more_than_the_control() {
    check_tokens(&ratios(1.1, 1.0), [100_000, 100_000, 90_000, 100_000]);
    check_tokens(&ratios(0.5, 0.25), [50_000, 50_000, 22_500, 100_000]);
    check_tokens(&ratios(100.0, 100.0), [100_000, 100_000, 90_000, 100_000]);
}

#[test]
fn half_of_the_facts_are_at_the_end() {
    let derived = Case::full().set(|set| {
        for input in &mut set.manifest.plan.inputs {
            input.facts_origin = FactsOrigin::Derived;
        }
    });
    let set = sound(&derived);
    for input in &set.manifest.plan.inputs {
        let at = |place| {
            let facts = input.facts.iter();
            facts.filter(|fact| fact.place == Some(place)).count()
        };
        assert_eq!((at(FactPlace::Middle), at(FactPlace::End)), (5, 5));
        assert_eq!(input.facts_origin, FactsOrigin::Scenario);
    }
    for run in &set.runs {
        assert_eq!((run.facts_expected, run.facts_found), (Some(10), Some(10)));
        let end = (run.end_facts_expected, run.end_facts_found);
        assert_eq!(end, (Some(5), Some(5)));
    }
}

#[test]
fn what_befell_the_run_itself_stays_out_of_it() {
    let spoiled = Case::full().every(|run| {
        exhaust(run);
        run.error = Some("a request did not fit the context window".to_owned());
        run.leak_findings = vec!["stderr".to_owned()];
        run.files_written = Some(2);
        run.same_as = Some("another".to_owned());
        run.kept_files = Some(3);
        run.sampled_memory_bytes = Some(4);
        run.memory_check = Some("whole tree".to_owned());
        run.sidecars = vec![SidecarRun {
            name: "proxy".to_owned(),
            peak_rss_bytes: None,
            cpu_ms: None,
            log_bytes: None,
            files_written: Some(2),
            state_files: None,
            state_bytes: None,
            leak_findings: vec!["standard error".to_owned()],
        }];
    });
    for run in sound(&spoiled).runs {
        assert_eq!(run.outcome, Outcome::Succeeded);
        assert_eq!(run.end_reason, EndReason::Answered);
        assert_eq!(run.hit_iteration_limit, Some(false));
        assert_eq!(run.files_written, Some(0));
        assert!(run.leak_findings.is_empty() && run.sidecars.is_empty());
        let rest = (run.error, run.same_as, run.kept_files);
        assert_eq!(rest, (None, None, None));
        assert_eq!(run.effective_settings, None);
        assert_eq!((run.sampled_memory_bytes, run.memory_check), (None, None));
    }
}
