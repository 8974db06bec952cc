//! Curves of settings against cost and quality, and the one that is recommended.

use spill_verdict::{Sweep, SweepCurve, sweep};

use crate::builder::{Case, fail, score};

fn on<'a>(sweep: &'a Sweep, input: &str) -> &'a SweepCurve {
    let mut curves = sweep.curves.iter();
    curves
        .find(|curve| curve.input == input)
        .expect("a curve an input")
}

#[track_caller]
fn check(case: &Case, input: &str, recommended: &str, runner_up: Option<&str>) -> SweepCurve {
    let sweep = sweep(&case.set);
    let curve = on(&sweep, input);
    let one = curve.recommended.as_ref().expect("runs finished");
    assert_eq!(one.configuration, recommended, "{}", one.words);
    assert_eq!(one.runner_up.as_deref(), runner_up, "{}", one.words);
    curve.clone()
}

#[test]
fn the_fewest_tokens_win_among_those_that_lose_nothing() {
    // Tokens of the large input: 900,000, 500,000 and 350,000.
    let curve = check(&Case::full(), "large", "32KiB", Some("128KiB"));
    let one = curve.recommended.expect("runs finished");
    assert!((one.runner_up_costs_more.expect("a runner-up") - 3.0 / 7.0).abs() < 1e-9);
    let loses = Case::full().cell("32KiB", "large", |run| score(run, 3, 0));
    check(&loses, "large", "128KiB", Some("off"));
    let fails = Case::full().one("32KiB", "large", 2, fail);
    check(&fails, "large", "128KiB", Some("off"));
    let neither = loses.cell("128KiB", "large", |run| score(run, 3, 0));
    let curve = check(&neither, "large", "off", None);
    assert!(curve.recommended.expect("runs").words.contains("2 lose"));
}

#[test]
fn of_equal_settings_the_one_that_changes_least_is_taken() {
    check(&Case::full(), "small", "off", None);
    let dearer = Case::full().cell("off", "small", |run| {
        run.input_tokens = run.input_tokens.map(|tokens| tokens + 1);
    });
    check(&dearer, "small", "128KiB", Some("off"));
}

#[test]
fn the_front_has_what_nothing_beats_in_everything() {
    let case = Case::full().cell("32KiB", "large", |run| score(run, 3, 0));
    let sweep = sweep(&case.set);
    let front: Vec<bool> = on(&sweep, "large")
        .points
        .iter()
        .map(|p| p.on_front)
        .collect();
    // Off is dearer and no better than 128KiB; 32KiB is cheaper and worse.
    assert_eq!(front, [false, true, true]);
}

/// Known fault 94: seiggy/lucia-dotnet PR #238.
#[test]
fn what_was_not_run_is_not_recommended() {
    let none = Case::full().without(|run| run.configuration == "off" && run.input == "large");
    let swept = sweep(&none.set);
    assert!(on(&swept, "large").recommended.is_none());
    assert_eq!(swept.missing, 5);
}
