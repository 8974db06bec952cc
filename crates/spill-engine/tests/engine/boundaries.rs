use spill_engine::{
    Bytes, Decision, InlineReason, MAX_THRESHOLD_BYTES, MIN_BUDGET_BYTES, MIN_THRESHOLD_BYTES,
    Placement, PromptText, READ_TOOL, Settings, Switch, ToolResult, decide,
};

use super::{admit, call, low, noted, plain, read, settings, step};

#[track_caller]
fn check_decision(size: u64, stored: u64, settings: &Settings, expected: Decision) {
    let decision = decide(Bytes::new(size), Bytes::new(stored), settings);
    assert_eq!(decision, expected, "{size} bytes with {stored} stored");
}

#[track_caller]
fn check_placement(settings: Settings, size: u64, expected: Placement) {
    let admitted = admit(&step(settings), 0, plain(size));
    assert_eq!(admitted.measured, Some(Bytes::new(size)));
    assert_eq!(admitted.placement, expected, "{size} bytes");
}

const BELOW: Placement = Placement::Inline(InlineReason::BelowThreshold);
const OVER: Placement = Placement::Inline(InlineReason::OverBudget);

#[test]
fn the_decision_at_its_bounds() {
    let settings = settings(4_096, 1_048_576);
    check_decision(0, 0, &settings, Decision::Inline);
    check_decision(4_095, 0, &settings, Decision::Inline);
    check_decision(4_096, 0, &settings, Decision::Store);
    check_decision(4_097, 0, &settings, Decision::Store);
    check_decision(1_048_576, 0, &settings, Decision::Store);
    check_decision(1_048_577, 0, &settings, Decision::InlineOverBudget);
    check_decision(4_096, 1_044_480, &settings, Decision::Store);
    check_decision(4_096, 1_044_481, &settings, Decision::InlineOverBudget);
    check_decision(4_095, 1_048_576, &settings, Decision::Inline);
    check_decision(u64::MAX, u64::MAX, &settings, Decision::InlineOverBudget);
    check_decision(
        u64::MAX,
        0,
        &Settings {
            enabled: Switch::Off,
            ..settings
        },
        Decision::Inline,
    );
}

#[test]
fn the_threshold_at_its_bounds() {
    check_placement(low(), MIN_THRESHOLD_BYTES - 1, BELOW);
    check_placement(low(), MIN_THRESHOLD_BYTES, Placement::Stored);
    check_placement(low(), MIN_THRESHOLD_BYTES + 1, Placement::Stored);
    let high = settings(MAX_THRESHOLD_BYTES, 16_777_216);
    check_placement(high, MAX_THRESHOLD_BYTES - 1, BELOW);
    check_placement(high, MAX_THRESHOLD_BYTES, Placement::Stored);
    check_placement(high, MAX_THRESHOLD_BYTES + 1, Placement::Stored);
    check_placement(Settings::DEFAULT, 131_071, BELOW);
    check_placement(Settings::DEFAULT, 131_072, Placement::Stored);
    check_placement(Settings::DEFAULT, 131_073, Placement::Stored);
}

/// Fails when the shipped default is off, or lower or much higher than it is.
#[test]
fn a_step_at_the_default_keeps_100_kib_inline_and_stores_300_kib() {
    let (settings, _) = Settings::from_lookup(|_| None);
    let step = step(settings);
    let small = admit(&step, 0, "a".repeat(100 * 1024));
    assert_eq!(small.placement, BELOW);
    assert_eq!(small.prompt, PromptText::Inline(small.record_text.clone()));
    assert!(!step.offers_read());

    let large = admit(&step, 1, "b".repeat(300 * 1024));
    assert_eq!(large.placement, Placement::Stored);
    assert!(large.prompt.as_str().len() < 4_096);
    assert_eq!(large.record_text.as_str(), "b".repeat(300 * 1024));
    assert!(step.offers_read());
    assert_eq!(
        read(&step, 1, 300 * 1024 - 4, 4).expect("stored").text(),
        "bbbb"
    );
}

#[test]
fn what_is_measured_is_the_json_serialisation() {
    check_placement_of_text(&"\"".repeat(2_046), BELOW);
    check_placement_of_text(&"\"".repeat(2_047), Placement::Stored);
    check_placement_of_text(&"\u{1}".repeat(682), BELOW);
    check_placement_of_text(&"\u{1}".repeat(683), Placement::Stored);
    check_placement_of_text(&"漢".repeat(1_364), BELOW);
    check_placement_of_text(&"漢".repeat(1_365), Placement::Stored);
}

#[track_caller]
fn check_placement_of_text(text: &str, expected: Placement) {
    assert_eq!(admit(&step(low()), 0, text).placement, expected);
}

#[test]
fn switched_off_nothing_happens_at_all() {
    let (step, notes) = noted(Settings {
        enabled: Switch::Off,
        ..low()
    });
    let text = plain(300 * 1024);
    let admitted = admit(&step, 0, text.clone());
    assert_eq!(admitted.placement, Placement::Inline(InlineReason::Off));
    assert_eq!(admitted.measured, None);
    assert_eq!(admitted.prompt.as_str(), text);
    assert!(!step.offers_read());
    assert_eq!(step.settings().enabled, Switch::Off);
    assert_eq!(step.settings().threshold, low().threshold);
    assert_eq!(step.usage(), spill_engine::Usage::default());
    assert_eq!(notes.taken(), Vec::<String>::new());
}

#[test]
fn over_budget_stays_inline_and_a_later_one_that_fits_is_stored() {
    let step = step(settings(4_096, MIN_BUDGET_BYTES));
    assert_eq!(
        admit(&step, 0, plain(1_000_000)).placement,
        Placement::Stored
    );
    assert_eq!(admit(&step, 1, plain(48_577)).placement, OVER);
    assert_eq!(admit(&step, 2, plain(48_576)).placement, Placement::Stored);
    assert_eq!(admit(&step, 3, plain(4_096)).placement, OVER);
    assert_eq!(admit(&step, 4, plain(4_095)).placement, BELOW);
    assert_eq!(step.usage().budget_used_bytes, MIN_BUDGET_BYTES);
    assert_eq!(read(&step, 2, 0, 4_096).expect("stored").bytes(), 4_096);
}

#[test]
fn the_budget_warns_once_per_execution() {
    for _ in 0..2 {
        let (step, notes) = noted(settings(4_096, MIN_BUDGET_BYTES));
        for index in 0..3 {
            let admitted = admit(&step, index, plain(MIN_BUDGET_BYTES + 1));
            assert_eq!(admitted.placement, OVER);
            assert_eq!(admitted.prompt.as_str(), plain(MIN_BUDGET_BYTES + 1));
        }
        assert_eq!(step.usage().over_budget, 3);
        insta::allow_duplicates! {
            insta::assert_snapshot!(notes.taken().join("\n"));
        }
    }
}

#[test]
fn a_budget_below_one_result_leaves_it_inline() {
    check_placement(
        settings(MAX_THRESHOLD_BYTES, MIN_BUDGET_BYTES),
        1_048_576,
        Placement::Stored,
    );
    check_placement(
        settings(MAX_THRESHOLD_BYTES, MIN_BUDGET_BYTES),
        1_048_577,
        OVER,
    );
}

#[test]
fn answers_of_the_read_tool_are_never_stored() {
    let step = step(low());
    let admitted = step.admit(call(0), READ_TOOL, ToolResult::text(plain(1_048_576)));
    assert_eq!(
        admitted.placement,
        Placement::Inline(InlineReason::ReadTool)
    );
    assert_eq!(admitted.measured, None);
    assert!(!step.offers_read());
    assert_eq!(step.usage().persisted, 0);
}

#[test]
fn a_reference_never_changes_its_meaning() {
    let step = step(low());
    admit(&step, 0, "first ".repeat(1_000));
    let again = admit(&step, 0, "second ".repeat(1_000));
    assert_eq!(again.placement, Placement::Inline(InlineReason::CallTaken));
    assert!(
        read(&step, 0, 0, 100)
            .expect("stored")
            .text()
            .starts_with("first ")
    );
    assert_eq!(step.usage().persisted, 1);
}

#[test]
fn one_result_may_have_a_threshold_of_its_own() {
    let step = step(Settings::DEFAULT);
    let lowest = low().threshold;
    let usual = admit(&step, 0, plain(5_000));
    assert_eq!(usual.placement, BELOW);
    let lowered = step.admit_from(lowest, call(0), "tool", ToolResult::text(plain(5_000)));
    assert_eq!(lowered.placement, Placement::Stored);
    let below = step.admit_from(lowest, call(1), "tool", ToolResult::text(plain(4_095)));
    assert_eq!(below.placement, BELOW);
}
