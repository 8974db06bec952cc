//! Absent, lost and extra runs side by side, and what the verdict says of them.

use spill_record::{FactPlace, RunRecord};
use spill_verdict::{Decision, Rule, RuleVerdict, State, judge};

use crate::builder::{Case, exhaust, fail, lose, score};

/// The row of 128KiB on the medium input.
fn row(case: &Case, rule: Rule) -> RuleVerdict {
    let verdict = judge(&case.set);
    let mut rows = verdict.candidates[0].rules.iter();
    rows.find(|row| row.rule == rule && row.input == "medium")
        .expect("every rule is judged on every input")
        .clone()
}

#[track_caller]
fn check(case: Case, rule: Rule, state: State, n: u64, words: &str) {
    let row = row(&case, rule);
    assert_eq!((row.state, row.n), (state, n), "{}", row.words);
    assert!(row.words.contains(words), "{}", row.words);
}

fn on_medium(repetition: u32) -> impl Fn(&RunRecord) -> bool {
    move |r| r.configuration == "128KiB" && r.input == "medium" && r.repetition == repetition
}

#[test]
fn absent_pairs_are_told_apart() {
    let two = Case::full()
        .one("128KiB", "medium", 0, lose)
        .without(on_medium(1));
    let words = "; 3 of 5 planned pairs could be compared, 1 missing, 1 lost to the harness";
    check(two, Rule::SuccessRate, State::NotRun, 3, words);
    // Two losses could be made up by two absent pairs, three could not.
    let lost = || {
        Case::full()
            .one("128KiB", "medium", 0, lose)
            .one("128KiB", "medium", 1, lose)
            .one("128KiB", "medium", 2, fail)
            .one("128KiB", "medium", 3, fail)
    };
    check(lost(), Rule::SuccessRate, State::NotProven, 3, "2 lost;");
    let three = lost().one("128KiB", "medium", 4, fail);
    check(three, Rule::SuccessRate, State::Broken, 3, "3 lost;");
}

#[test]
fn rates_of_nothing_say_how_the_runs_ended() {
    let nobody = Case::full()
        .cell("off", "medium", exhaust)
        .cell("128KiB", "medium", fail);
    let words = "0 lost; all ended as context_window or iteration_limit, \
                 first error: a request did not fit the context window";
    check(nobody, Rule::SuccessRate, State::NotProven, 5, words);
    let sound = row(&Case::full(), Rule::SuccessRate);
    assert!(sound.words.ends_with("0 lost"), "{}", sound.words);
}

#[test]
fn a_pair_that_does_not_tell_its_limit_is_counted() {
    let untold = Case::full().one("128KiB", "medium", 1, |r| r.hit_iteration_limit = None);
    let words = "under the candidate only; 1 pair did not tell";
    check(untold, Rule::IterationLimit, State::NotProven, 5, words);
    let told = row(&Case::full(), Rule::IterationLimit);
    assert!(told.words.ends_with("candidate only"), "{}", told.words);
}

/// An extra pair of the medium input, of which the candidate's run is altered.
fn beside(case: Case, alter: impl Fn(&mut RunRecord)) -> Case {
    case.set(|set| {
        let pair = set.runs.iter().filter(|run| {
            run.input == "medium" && run.repetition == 0 && run.configuration != "32KiB"
        });
        let pair: Vec<RunRecord> = pair.cloned().collect();
        for mut run in pair {
            run.run_id = format!("extra/{}", run.configuration);
            run.pair_id = "extra".to_owned();
            if run.configuration == "128KiB" {
                alter(&mut run);
            }
            set.sensitivity.push(run);
        }
    })
}

#[test]
fn a_leak_of_an_extra_pair_breaks_rule_5_and_is_counted_by_itself() {
    let leak = |run: &mut RunRecord| run.files_written = Some(1);
    let words = "0 runs of 5 searched wrote a file or let result content out, \
                 and 1 run of the extra pairs";
    let one = beside(Case::full(), leak);
    check(one, Rule::NothingLeaks, State::Broken, 5, words);
    let both = beside(Case::full().one("128KiB", "medium", 2, leak), leak);
    let words = "1 run of 5 searched wrote a file or let result content out, \
                 and 1 run of the extra pairs";
    check(both, Rule::NothingLeaks, State::Broken, 5, words);
    let none = row(&beside(Case::full(), |_| ()), Rule::NothingLeaks);
    assert_eq!(
        (none.state, none.n, none.observed),
        (State::Holds, 5, Some(0.0))
    );
    assert_eq!(
        none.words,
        "0 runs of 5 searched wrote a file or let result content out"
    );
}

#[test]
fn rule_5_asks_of_extra_pairs_only_that_they_do_not_leak() {
    let holds = |alter: fn(&mut RunRecord)| {
        let case = beside(Case::full(), alter);
        check(case, Rule::NothingLeaks, State::Holds, 5, "0 runs of 5");
    };
    holds(|run| run.files_written = None);
    holds(|run| run.leak_check.clear());
    holds(lose);
    holds(|run| run.configuration = "32KiB".to_owned());
}

#[test]
fn rule_5_counts_what_was_not_searched_missing_and_lost() {
    let some = Case::full()
        .one("128KiB", "medium", 0, |r| r.files_written = None)
        .one("128KiB", "medium", 1, lose)
        .one("128KiB", "medium", 2, |r| {
            lose(r);
            r.files_written = None;
        })
        .without(on_medium(3));
    let words = "0 runs of 1 searched wrote a file or let result content out, 1 not searched, 1 missing, 2 \
         lost to the harness";
    check(some, Rule::NothingLeaks, State::NotRun, 1, words);
}

#[test]
fn a_leak_says_where_even_where_no_run_was_searched() {
    let found = Case::full()
        .cell("128KiB", "medium", |run| run.leak_check.clear())
        .one("128KiB", "medium", 3, |run| {
            run.leak_findings = vec!["stderr, byte 17".to_owned(), "home/log".to_owned()];
        });
    let found = row(&found, Rule::NothingLeaks);
    assert_eq!((found.state, found.n), (State::Broken, 0));
    assert_eq!(found.observed, Some(1.0));
    assert_eq!(
        found.evidence[0].words,
        "files written: 0; places with content: 2, first in stderr, byte 17"
    );
    let written = Case::full().one("128KiB", "medium", 3, |run| run.files_written = Some(1_200));
    let words = &row(&written, Rule::NothingLeaks).evidence[0].words;
    assert_eq!(words, "files written: 1,200; places with content: 0");
}

#[test]
fn under_a_profile_an_extra_pair_is_searched_like_any_other() {
    // The hasty pair is drawn once an input; another one stands beside it.
    let hasty = |alter: fn(&mut RunRecord)| {
        let case = Case::full().set(|set| {
            let runs = set.runs.iter().filter(|run| run.profile == "hasty");
            let runs: Vec<RunRecord> = runs.cloned().collect();
            for mut run in runs {
                run.run_id = format!("extra/{}", run.run_id);
                run.pair_id = format!("extra/{}", run.pair_id);
                if run.configuration == "128KiB" {
                    alter(&mut run);
                }
                set.sensitivity.push(run);
            }
        });
        let profiles = judge(&case.set).profiles;
        let found = profiles.into_iter().find(|one| one.profile == "hasty");
        let found = found.expect("hasty is in the population");
        assert_eq!((found.pairs, found.extra_pairs), (8, 4));
        found.decision
    };
    assert_eq!(hasty(|_| ()), Decision::Keep);
    assert_eq!(hasty(|run| run.files_written = None), Decision::None);
}

#[test]
fn a_sentence_names_one_problem_and_counts_the_others() {
    let sentence = |case: Case| judge(&case.set).sentence;
    let one = sentence(Case::full().without(on_medium(0)));
    assert!(
        one.starts_with("No decision, the runs are incomplete: 1 run of 60 planned")
            && !one.contains("further"),
        "{one}"
    );
    let two = sentence(Case::full().without(on_medium(0)).set(|set| {
        let mut stranger = set.runs[0].clone();
        stranger.run_id = "stranger".to_owned();
        set.runs.push(stranger);
    }));
    assert!(two.contains(" (and 1 further problem)"), "{two}");
}

#[test]
fn what_a_run_says_of_its_settings_is_held_against_the_plan() {
    let problems = |label: Option<&str>, used: Option<&str>| {
        let case = Case::full()
            .set(|set| set.manifest.plan.configurations[1].policy = label.map(str::to_owned))
            .one("128KiB", "medium", 0, |run| {
                run.effective_settings = used.map(|used| serde_json::json!({ "policy": used }));
            });
        judge(&case.set).problems.len()
    };
    assert_eq!(problems(None, None), 0);
    assert_eq!(problems(Some("inline-cap"), None), 0);
    assert_eq!(problems(None, Some("inline-cap")), 0);
    assert_eq!(problems(Some("inline-cap"), Some("inline-cap")), 0);
    // The record is refused, so its run is missing as well.
    assert_eq!(problems(Some("inline-cap"), Some("workflow-step")), 2);
}

#[track_caller]
fn check_quality(case: Case, state: State, words: &str) -> RuleVerdict {
    let verdict = judge(&case.set);
    let mut rows = verdict.candidates[0].rules.iter();
    let row = rows.find(|row| row.rule == Rule::Quality && row.input == "document");
    let row = row.expect("every rule is judged on every input").clone();
    assert_eq!(row.state, state, "{}", row.words);
    assert!(row.words.contains(words), "{}", row.words);
    row
}

#[test]
fn an_absent_pair_could_have_gained_every_fact() {
    // The control finds 19 of 20 facts in each pair. What is lost, an absent pair could gain up to 20.
    let lost = |facts: [u64; 3], allowance: f64| {
        Case::full()
            .set(|set| set.manifest.plan.rules.quality_allowance = allowance)
            .cell("128KiB", "document", |run| {
                if let Some(lost) = facts.get(run.repetition as usize) {
                    score(run, 19 - lost, 5);
                }
            })
            .one("128KiB", "document", 4, lose)
    };
    let words = "; 4 of 5 planned pairs could be compared, 0 missing, 1 lost to the harness";
    check_quality(lost([6, 6, 6], 0.0), State::NotProven, words);
    check_quality(lost([6, 7, 7], 0.0), State::NotProven, words);
    check_quality(lost([7, 7, 7], 0.0), State::Broken, words);
    // An allowance of 5 % is 1 fact in each of the 5 planned pairs: 25 may be lost.
    check_quality(lost([7, 8, 8], 0.05), State::NotProven, words);
    check_quality(lost([9, 9, 8], 0.05), State::Broken, words);
}

#[test]
fn a_document_without_a_fact_at_its_end_says_so() {
    let words = ": no fact lies in the last tenth (give one with --expect or in the scenario)";
    let middle = Case::full().set(|set| {
        let document = set.manifest.plan.inputs.last_mut();
        for fact in &mut document.expect("there is a document").facts {
            fact.place = Some(FactPlace::Middle);
        }
    });
    check_quality(middle, State::Holds, words);
    let end = check_quality(Case::full(), State::Holds, "");
    assert!(!end.words.contains("last tenth"), "{}", end.words);
}

#[test]
fn scores_against_other_numbers_of_facts_are_not_compared() {
    for configuration in ["off", "128KiB"] {
        let other = Case::full().one(configuration, "document", 2, |run| {
            run.end_facts_expected = Some(6);
        });
        let words = "coverage of the end not measured";
        let row = check_quality(other, State::NotProven, words);
        assert_eq!(row.observed, Some(0.0));
    }
}
