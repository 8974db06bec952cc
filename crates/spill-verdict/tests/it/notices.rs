//! What is noticed beside a verdict and what a run does not show.

use spill_record::Class;
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
