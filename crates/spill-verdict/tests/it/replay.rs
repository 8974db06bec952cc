//! Gates, recommendations and exit codes of replays.

use proptest::prelude::*;
use spill_record::{Class, SessionRecord};
use spill_verdict::{
    AdviceKind, Gate, GateState, advice, exit, judge_replay, replay_summary, replay_text,
};

use crate::replay_builder::{record, session, sessions, totals};

#[track_caller]
fn check_gate(gate: &str, state: GateState, observed: Option<f64>) {
    let totals = totals(&sessions());
    let verdict = Gate::parse(gate)
        .and_then(|gate| gate.judge(&record(&[]), &totals.all))
        .expect("a gate about what is replayed");
    let found = verdict.observed.map(|value| (value * 1e6).round() / 1e6);
    assert_eq!(
        (verdict.state, found),
        (state, observed),
        "{gate}: {verdict:?}"
    );
}

#[test]
fn gates_hold_are_broken_or_are_not_proven() {
    use GateState::{Broken, Holds, NotProven};
    // Six transcripts of 1,000,000 tokens, of which five save 20 % at 32 KiB under used.
    let at = |rest: &str| format!("saved_input_tokens[threshold=32KiB{rest}]");
    check_gate(&format!("{} >= 16%", at("")), Holds, Some(16.666_667));
    check_gate(&format!("{} >= 16.67%", at("")), Broken, Some(16.666_667));
    check_gate(&format!("{} >= 1000000", at("")), Holds, Some(1e6));
    check_gate(&format!("{} > 1000000", at("")), Broken, Some(1e6));
    check_gate(&format!("{}<=1000000", at("")), Holds, Some(1e6));
    check_gate(&format!("{} < 1000000", at("")), Broken, Some(1e6));
    check_gate(
        &format!("{} >= 20%", at(", read_back=none")),
        Holds,
        Some(25.0),
    );
    check_gate(
        &format!("{} >= -10%", at(", read_back=whole")),
        Holds,
        Some(-8.333_333),
    );
    // The shipped threshold is meant where none is named.
    check_gate("saved_input_tokens >= 3%", Holds, Some(3.333_333));
    check_gate("extra_calls <= 4%", Broken, Some(4.166_667));
    check_gate("extra_calls[read_back=whole] <= 20", Holds, Some(20.0));
    check_gate("replaced_results >= 10", Holds, Some(10.0));
    check_gate("used_results <= 50%", Holds, Some(50.0));
    check_gate("peak_context_tokens <= 50%", Holds, Some(50.0));
    check_gate("calls_over_window <= 0", Holds, Some(0.0));
    check_gate("sessions >= 6", Holds, Some(6.0));
    check_gate("calls >= 121", Broken, Some(120.0));
    check_gate("saved_cost >= 0", NotProven, None);
    check_gate(
        "input_tokens[threshold=32KiB] <= 90%",
        Holds,
        Some(83.333_333),
    );
    check_gate("input_tokens[threshold=off] <= 6000000", Holds, Some(6e6));
    check_gate("input_tokens[threshold=off] < 6000000", Broken, Some(6e6));
    check_gate(
        "peak_context_tokens[threshold=off] <= 50%",
        Holds,
        Some(50.0),
    );
    check_gate("calls_over_window[threshold=off] <= 0", Holds, Some(0.0));
    check_gate("calls[threshold=off] >= 121", Broken, Some(120.0));
    check_gate("input_cost[threshold=off] >= 0", NotProven, None);
}

#[test]
fn what_is_recorded_saves_nothing() {
    #[track_caller]
    fn check(gate: &str, words: &str) {
        let refused = Gate::parse(gate).expect_err("it is refused").to_string();
        assert!(refused.contains(words), "{gate}: {refused}");
    }
    for figure in [
        "saved_input_tokens",
        "saved_input_bytes",
        "saved_uncached_tokens",
        "saved_cost",
        "extra_calls",
        "replaced_results",
        "used_results",
    ] {
        let words = format!(
            "where nothing is replaced: {figure} says nothing of it (at off there are input_tokens"
        );
        check(&format!("{figure}[threshold=off] >= 0"), &words);
    }
    check(
        "input_tokens[threshold=off, read_back=used] >= 0",
        "name it alone",
    );
    check(
        "input_tokens[policy=envelope, threshold=off] >= 0",
        "name it alone",
    );
    check(
        "saved_input_tokens[threshold=4KiB, threshold = 16KiB] >= 0",
        "names \"threshold\" twice",
    );
}

#[test]
fn what_a_gate_needs_is_known_before_anything_is_read() {
    #[track_caller]
    fn check(gate: &str, prices: bool, window: bool, lacks: Option<&str>) {
        let gate = Gate::parse(gate).expect("a gate");
        assert_eq!(gate.lacks(prices, window), lacks, "{gate}");
    }
    check("saved_cost >= 0", false, true, Some("--prices"));
    check("saved_cost >= 0", true, false, None);
    check(
        "input_cost[threshold=off] <= 5",
        false,
        true,
        Some("--prices"),
    );
    check("calls_over_window <= 0", true, false, Some("--window"));
    check("calls_over_window <= 0", false, true, None);
    check("peak_context_tokens <= 50%", true, false, Some("--window"));
    check("peak_context_tokens <= 50000", false, false, None);
    check("saved_input_tokens >= 0", false, false, None);
}

/// Known fault 95: grafana/k6 #1346.
#[test]
fn what_was_not_tried_is_not_proven() {
    let nothing: Vec<SessionRecord> = vec![session(1, Class::Small, [None; 3])];
    let totals = totals(&nothing);
    for gate in [
        "saved_input_tokens >= 0",
        "extra_calls <= 0",
        "calls_over_window <= 0",
    ] {
        let verdict = Gate::parse(gate)
            .expect("a gate")
            .judge(&record(&[]), &totals.all);
        assert_eq!(
            verdict.expect("one variant").state,
            GateState::NotProven,
            "{gate}"
        );
    }
    let none = crate::replay_builder::totals(&[]);
    let verdict = Gate::parse("sessions >= 0")
        .expect("a gate")
        .judge(&record(&[]), &none.all);
    assert_eq!(verdict.expect("one variant").state, GateState::NotProven);
}

#[track_caller]
fn check_exit(gates: &[&str], sessions: &[SessionRecord], lost: u64, code: u8) {
    let mut record = record(gates);
    record.files.lost = lost;
    let judgement = judge_replay(&record, &totals(sessions)).expect("gates");
    assert_eq!(judgement.exit_code, code, "{gates:?}");
}

#[test]
fn exit_codes_have_the_precedence_of_every_verb() {
    let (holds, broken, open) = ("sessions >= 1", "sessions >= 99", "saved_cost >= 0");
    check_exit(&[], &sessions(), 0, exit::ACCEPTED);
    check_exit(&[holds], &sessions(), 0, exit::ACCEPTED);
    check_exit(&[holds, broken], &sessions(), 0, exit::REJECTED);
    check_exit(&[holds, open], &sessions(), 0, exit::NOT_PROVEN);
    check_exit(&[open, broken], &sessions(), 0, exit::REJECTED);
    check_exit(&[holds], &sessions(), 1, exit::INCOMPLETE);
    check_exit(&[broken], &sessions(), 1, exit::INCOMPLETE);
    check_exit(&[], &[], 0, exit::NOT_PROVEN);
    check_exit(&[], &[], 1, exit::INCOMPLETE);
    check_exit(&["sessions >= 0"], &[], 0, exit::NOT_PROVEN);
}

#[track_caller]
fn check_advice(saved: [Option<[i64; 3]>; 3], count: u64, kind: Option<u64>, indication: bool) {
    let all: Vec<SessionRecord> = (0..count)
        .map(|n| session(n, Class::Medium, saved))
        .collect();
    let advice = advice(&record(&[]), &totals(&all));
    let found = match advice[0].kind {
        AdviceKind::Threshold { bytes, .. } => Some(bytes >> 10),
        AdviceKind::Off => Some(0),
        AdviceKind::NothingToReplace => None,
    };
    assert_eq!(
        (found, advice[0].is_indication),
        (kind, indication),
        "{advice:?}"
    );
}

#[test]
fn the_largest_threshold_that_saves_nearly_as_much_is_recommended() {
    // What counts is what is saved when the used results are read back.
    check_advice(
        [Some([50, 10, -90]), Some([30, 20, -10]), Some([5, 4, -1])],
        5,
        Some(32),
        false,
    );
    check_advice(
        [Some([50, 20, -90]), Some([30, 20, -10]), Some([5, 4, -1])],
        5,
        Some(32),
        false,
    );
    check_advice(
        [Some([50, 20, -90]), Some([30, 18, -10]), Some([5, 4, -1])],
        5,
        Some(8),
        false,
    );
    check_advice(
        [Some([50, 20, -90]), Some([30, 19, -10]), Some([5, 4, -1])],
        5,
        Some(32),
        false,
    );
    check_advice(
        [Some([50, -1, -90]), Some([30, -2, -10]), Some([5, 0, -1])],
        5,
        Some(0),
        false,
    );
    check_advice([Some([9, 9, 9]), None, None], 4, Some(8), true);
    check_advice([None; 3], 5, None, false);
}

#[test]
fn a_replay_reads_like_this() {
    let record = record(&[
        "saved_input_tokens[threshold=32KiB] >= 10%",
        "extra_calls <= 1%",
    ]);
    let totals = totals(&sessions());
    let judgement = judge_replay(&record, &totals).expect("gates");
    let text = replay_text(&record, &totals, &judgement);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn the_summary_has_a_variant_for_each_cell_and_assumption() {
    let record = record(&["sessions >= 1"]);
    let totals = totals(&sessions());
    let judgement = judge_replay(&record, &totals).expect("gates");
    let summary = replay_summary(&record, &totals, &judgement);
    assert_eq!(summary.variants.len(), 9);
    let one = &summary.variants[4];
    assert_eq!((one.threshold_bytes, &*one.read_back), (32 << 10, "used"));
    assert_eq!((one.saved_input_tokens, one.saved_cost), (1_000_000, None));
    assert_eq!(summary.gates[0].state, "holds");
}

proptest! {
    /// No text makes the reader of expressions panic, and what it reads it says again.
    #[test]
    fn any_expression_is_read_or_refused(text in "[a-z_]{0,20}(\\[[a-z=,0-9KiB ]{0,20}\\])? ?[<>=]{0,2} ?[0-9.%KMiB-]{0,8}|\\PC{0,60}") {
        if let Ok(gate) = Gate::parse(&text) {
            prop_assert_eq!(gate.text(), text.trim());
            prop_assert_eq!(Gate::parse(gate.text()), Ok(gate));
        }
    }
}
