//! What is noticed beside a verdict and what a run does not show.

use spill_record::{Class, Stage};
use spill_verdict::judge;

use crate::builder::{Case, score};

#[track_caller]
fn check_warnings(case: &Case, expected: &[&str]) {
    assert_eq!(judge(&case.set).warnings, expected);
}

#[test]
fn lost_facts_are_means_over_the_pairs_of_both() {
    // The control finds 11 of 12 facts in each of 5 pairs: 55 of 60, and 46 of 60.
    let lost = Case::full().one("32KiB", "large", 2, |run| score(run, 2, 0));
    let words = "Under 32KiB the answers hold fewer of the expected facts than with off, which no rule judges outside documents: review/large 76.667 % against 91.667 %.";
    check_warnings(&lost, &[words]);
    // A pair of which one side is not known counts for neither.
    let unknown = lost.one("off", "large", 1, |run| run.quality = None);
    let words = "Under 32KiB the answers hold fewer of the expected facts than with off, which no rule judges outside documents: review/large 72.917 % against 91.667 %.";
    check_warnings(&unknown, &[words]);
    let nothing = Case::full().cell("32KiB", "large", |run| run.quality = None);
    check_warnings(&nothing, &[]);
    let gained = Case::full().one("32KiB", "large", 2, |run| score(run, 12, 3));
    check_warnings(&gained, &[]);
}

#[test]
fn each_pair_counts_once_in_a_mean_however_many_configurations_have_run_it() {
    // One fact more in one pair and one fewer in another are the same mean.
    let even = Case::full()
        .one("128KiB", "large", 0, |run| score(run, 12, 3))
        .one("128KiB", "large", 1, |run| score(run, 10, 3));
    check_warnings(&even, &[]);
    let uneven = even.set(|set| {
        let dropped = |configuration: &str, input: &str, repetition| {
            (configuration, input, repetition) == ("32KiB", "large", 0)
        };
        let planned = &mut set.manifest.plan.runs;
        planned.retain(|run| !dropped(&run.configuration, &run.input, run.repetition));
        set.runs
            .retain(|run| !dropped(&run.configuration, &run.input, run.repetition));
    });
    check_warnings(&uneven, &[]);
}

#[test]
fn a_billionth_of_quality_is_no_difference() {
    let less_by = |difference: f64| {
        Case::with_repetitions(Stage::Full, 1)
            .cell("128KiB", "large", |run| score(run, 0, 0))
            .cell("32KiB", "large", |run| score(run, 0, 0))
            .cell("off", "large", |run| {
                score(run, 0, 0);
                run.quality = Some(difference);
            })
    };
    let warnings = |difference| {
        let mut warnings = judge(&less_by(difference).set).warnings;
        warnings.retain(|words| words.contains("fewer of the expected facts"));
        warnings.len()
    };
    assert_eq!(warnings(1e-9), 0);
    assert_eq!(warnings(2e-9), 2);
}

#[test]
fn classes_that_a_plan_lacks_are_named() {
    let absent = |only: fn(Class) -> bool| {
        let case = Case::full().set(|set| {
            set.manifest.plan.inputs.retain(|input| only(input.class));
        });
        let notes = judge(&case.set).not_shown.into_iter();
        notes
            .filter(|note| note.starts_with("No input of class"))
            .collect::<Vec<String>>()
    };
    assert_eq!(absent(|_| true), [""; 0]);
    assert_eq!(
        absent(|class| class != Class::Document),
        ["No input of class document was run."]
    );
    assert_eq!(
        absent(|class| class == Class::Small),
        ["No input of class medium, large, document was run."]
    );
}
