//! The figures of a sweep's points, and the words of its recommendations.

use spill_record::RunRecord;
use spill_verdict::{SweepCurve, SweepPoint, of_control, recommendation_line, sweep};

use crate::builder::{Case, fail, lose, score};

fn curve(case: &Case, input: &str) -> SweepCurve {
    let curves = sweep(&case.set).curves;
    let found = curves.into_iter().find(|curve| curve.input == input);
    found.expect("a curve an input")
}

#[test]
fn a_point_has_the_figures_of_its_runs() {
    let case = Case::full()
        .one("32KiB", "large", 0, |run| {
            run.same_as = Some("x".to_owned());
        })
        .one("32KiB", "large", 1, fail)
        .one("32KiB", "large", 4, lose)
        .cell("32KiB", "large", |run| run.reread_bytes = Some(3 * 16_384));
    let found = curve(&case, "large").points.swap_remove(2);
    // 350,000 tokens and 2 % more in each further repetition: the middle of 0 to 3.
    let expected = SweepPoint {
        configuration: "32KiB".to_owned(),
        threshold_bytes: Some(32_768),
        preview_share: None,
        runs: 4,
        same_as_control: 1,
        success_rate: Some(0.75),
        input_tokens: Some(360_500.0),
        iterations: Some(12.0),
        // 11 of 12 facts in three runs, none in one.
        quality: Some(0.6875),
        results_persisted: Some(28),
        // 7 reads of 16 KiB, of which 3 were read before.
        read_amplification: Some(1.75),
        on_front: true,
    };
    assert_eq!(found, expected);
    let unread = &curve(&case, "small").points[0];
    assert_eq!(unread.read_amplification, None);
    assert_eq!(unread.threshold_bytes, None);
    let scored_in_part = Case::full().one("32KiB", "large", 0, |run| run.quality = None);
    assert_eq!(curve(&scored_in_part, "large").points[2].quality, None);
}

#[track_caller]
fn check_front(case: &Case, input: &str, expected: [bool; 3]) {
    let points = curve(case, input).points;
    let front: Vec<bool> = points.iter().map(|point| point.on_front).collect();
    assert_eq!(front, expected);
}

#[test]
fn a_setting_that_is_better_in_one_thing_stays_on_the_front() {
    // Equal ones do not push each other off.
    check_front(&Case::full(), "small", [true, true, true]);
    check_front(&Case::full(), "large", [false, false, true]);
    let better = Case::full().cell("off", "large", |run| score(run, 12, 3));
    check_front(&better, "large", [true, false, true]);
    let surer = Case::full()
        .one("32KiB", "large", 1, |run| {
            fail(run);
            score(run, 11, 3);
        })
        .one("128KiB", "large", 1, |run| {
            fail(run);
            score(run, 11, 3);
        });
    check_front(&surer, "large", [true, false, true]);
    let dearer = Case::full().cell("128KiB", "small", |run| run.input_tokens = Some(62_401));
    check_front(&dearer, "small", [true, false, true]);
    // A quality that was not measured takes no part, tokens that were not take all.
    let unscored = Case::full().cell("off", "large", |run| run.quality = None);
    check_front(&unscored, "large", [false, false, true]);
    let untold = Case::full().cell("32KiB", "large", |run| run.input_tokens = None);
    check_front(&untold, "large", [false, true, false]);
}

#[track_caller]
fn check_line(case: &Case, input: &str, expected: &str) {
    assert_eq!(recommendation_line(&curve(case, input)), expected);
}

#[test]
fn a_recommendation_says_why() {
    check_line(
        &Case::full(),
        "large",
        "review/large: 32KiB: 364,000 against 936,000 median input tokens, 38.889 % of the control's; \
         128KiB is next with 42.857 % more",
    );
    check_line(
        &Case::full(),
        "small",
        "review/small: off: no setting costs fewer input tokens than storing nothing",
    );
    let lossy = Case::full().cell("32KiB", "large", |run| score(run, 3, 0));
    check_line(
        &lossy,
        "large",
        "review/large: 128KiB: 520,000 against 936,000 median input tokens, 55.556 % of the control's; \
         off is next with 80 % more; 1 lose success or quality against the control",
    );
    let none = Case::full().without(|run| run.configuration == "off" && run.input == "document");
    check_line(
        &none,
        "document",
        "document: no run of the control finished",
    );
}

#[track_caller]
fn check_taken(case: &Case, expected: &str) {
    let found = curve(case, "large").recommended.expect("runs finished");
    assert_eq!(found.configuration, expected, "{}", found.words);
}

#[test]
fn quality_may_fall_by_the_allowance_and_no_further() {
    let lossy = |allowance: f64, facts: u64| {
        Case::full()
            .set(|set| set.manifest.plan.rules.quality_allowance = allowance)
            .cell("32KiB", "large", |run| score(run, facts, 0))
    };
    // The control finds 11 of 12.
    check_taken(&lossy(0.0, 11), "32KiB");
    check_taken(&lossy(0.0, 12), "32KiB");
    check_taken(&lossy(0.0, 10), "128KiB");
    check_taken(&lossy(0.25, 8), "32KiB");
    check_taken(&lossy(0.25, 7), "128KiB");
    let all = |alter: fn(&mut RunRecord)| Case::full().cell("32KiB", "large", alter);
    check_taken(&all(|run| run.quality = None), "128KiB");
    let unscored = all(|run| run.quality = None)
        .cell("off", "large", |run| run.quality = None)
        .cell("128KiB", "large", |run| run.quality = None);
    check_taken(&unscored, "32KiB");
    check_taken(&all(|run| run.input_tokens = None), "128KiB");
}

#[test]
fn figures_beside_a_curve_are_of_the_control() {
    let case = Case::full();
    let curve = curve(&case, "large");
    let of = |index: usize| of_control(&curve, &curve.points[index]);
    assert_eq!(of(0), Some(1.0));
    let half = of(1).expect("both told their tokens");
    assert!((half - 520.0 / 936.0).abs() < 1e-12, "{half}");
    let empty = SweepCurve {
        points: Vec::new(),
        ..curve.clone()
    };
    assert_eq!(of_control(&empty, &curve.points[0]), None);
}
