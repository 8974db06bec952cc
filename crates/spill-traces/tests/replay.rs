//! Replay against figures worked out by hand, and laws over all policies.

use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::{SUMMARY_LIMIT_BYTES, Settings, Threshold};
use spill_traces::{Import, Imported, Limits, Outcome, Policy, ReadBack, Replay, Transcript};

fn bytes(text: &str) -> u64 {
    text.len() as u64
}

/// A conversation with one result of each size, asked for one after the other, and a last answer.
fn conversation(sizes: &[usize]) -> Transcript {
    let mut messages = vec![json!({"role": "user", "content": "0123456789"})];
    for (index, size) in sizes.iter().enumerate() {
        let id = index.to_string();
        let function = json!({"name": "read", "arguments": "{}"});
        let call = json!([{"id": id, "type": "function", "function": function}]);
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": call}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "x".repeat(*size)}));
    }
    messages.push(json!({"role": "assistant", "content": "done"}));
    let text = Value::from(messages).to_string();
    let mut found = None;
    Import::new(Limits::DEFAULT).stream("c", text.as_bytes(), &mut |imported| {
        if let Imported::Transcript(transcript) = imported {
            found = Some(*transcript);
        }
    });
    found.expect("one conversation")
}

fn replay(transcript: &Transcript, policy: Policy, read_back: ReadBack) -> Outcome {
    Replay::new(transcript, &mut bytes).under(policy, read_back, &mut bytes)
}

fn fixed(threshold_bytes: u64) -> Policy {
    Policy::Fixed {
        threshold_bytes,
        replacement: 100,
    }
}

fn workflow_step(threshold: u64) -> Policy {
    Policy::WorkflowStep(Settings {
        threshold: Threshold::new(threshold).expect("within the bounds"),
        ..Settings::DEFAULT
    })
}

#[test]
fn a_replacement_saves_with_every_call_that_was_sent_the_result() {
    // Contexts: 10; 10 + 6 + 1000; 10 + 6 + 1000 + 6 + 500.
    let transcript = conversation(&[1_000, 500]);
    let outcome = replay(&transcript, fixed(1_000), ReadBack::None);
    assert_eq!(
        (outcome.calls, outcome.extra_calls, outcome.replaced_results),
        (3, 0, 1)
    );
    assert_eq!(
        (outcome.sent, outcome.results_sent),
        (10 + 1_016 + 1_522, 2_500)
    );
    assert_eq!((outcome.results_saved, outcome.saved()), (1_800, 1_800));
    assert_eq!((outcome.peak, outcome.peak_replayed), (1_522, 622));
    assert_eq!(
        outcome.saved_by_tool.get(&Some("read".to_owned())),
        Some(&1_800)
    );
}

#[test]
fn the_equal_case_is_replaced() {
    let transcript = conversation(&[1_000]);
    assert_eq!(
        replay(&transcript, fixed(1_000), ReadBack::None).replaced_results,
        1
    );
    assert_eq!(
        replay(&transcript, fixed(1_001), ReadBack::None).replaced_results,
        0
    );
}

#[test]
fn reading_back_adds_calls_and_stays_in_the_context() {
    // Two reads of 400 and one of 200: contexts 116, 516, 916; then the recorded call with 1,116.
    let transcript = conversation(&[1_000]);
    let outcome = replay(&transcript, fixed(400), ReadBack::Whole);
    assert_eq!(
        (outcome.extra_calls, outcome.extra_sent),
        (3, 116 + 516 + 916)
    );
    assert_eq!(outcome.sent_replayed, 10 + 1_116 + outcome.extra_sent);
    assert_eq!(outcome.results_saved, -100);
    let half = replay(&transcript, fixed(400), ReadBack::Share(0.5));
    assert_eq!(
        (half.extra_calls, half.extra_sent, half.results_saved),
        (2, 116 + 516, 400)
    );
}

#[test]
fn the_engine_makes_the_previews_and_the_slices() {
    let transcript = conversation(&[40_000, 5_000]);
    let outcome = replay(&transcript, workflow_step(32_768), ReadBack::None);
    assert_eq!(outcome.replaced_results, 1);
    let preview = 40_000 - outcome.results_saved / 2;
    let limit = i64::try_from(SUMMARY_LIMIT_BYTES).expect("a small limit");
    assert!(preview > 100 && preview <= limit, "{preview}");
    let whole = replay(&transcript, workflow_step(32_768), ReadBack::Whole);
    assert_eq!(whole.extra_calls, 2);
    assert!(
        whole.results_saved < 0,
        "a header line stands before each slice"
    );
}

#[test]
fn a_policy_that_is_off_changes_nothing() {
    let transcript = conversation(&[2_000_000]);
    let off = Policy::WorkflowStep(Settings {
        enabled: spill_engine::Switch::Off,
        ..Settings::DEFAULT
    });
    let outcome = replay(&transcript, off, ReadBack::Whole);
    assert_eq!(
        (
            outcome.saved(),
            outcome.replaced_results,
            outcome.extra_calls
        ),
        (0, 0, 0)
    );
    assert_eq!(outcome.sent, outcome.sent_replayed);
}

proptest! {
    /// Without reads nothing costs more than before, a higher threshold saves less, and savings on results are all savings.
    #[test]
    fn savings_without_reads(
        sizes in proptest::collection::vec(0_usize..20_000, 1..6),
        low in 4_096_u64..8_000,
        more in 0_u64..8_000,
    ) {
        let transcript = conversation(&sizes);
        for policy in [fixed, workflow_step] {
            let lower = replay(&transcript, policy(low), ReadBack::None);
            let higher = replay(&transcript, policy(low + more), ReadBack::None);
            prop_assert!(higher.saved() >= 0);
            prop_assert!(lower.saved() >= higher.saved());
            prop_assert_eq!(lower.saved(), lower.results_saved);
            prop_assert!(lower.peak_replayed <= lower.peak);
        }
    }

    /// Reading more never saves more.
    #[test]
    fn reading_more_costs_more(size in 4_096_usize..50_000, share in 0.0_f64..1.0) {
        let transcript = conversation(&[size, 10]);
        for policy in [fixed(4_096), workflow_step(4_096)] {
            let none = replay(&transcript, policy, ReadBack::None);
            let part = replay(&transcript, policy, ReadBack::Share(share));
            let whole = replay(&transcript, policy, ReadBack::Whole);
            prop_assert!(none.saved() >= part.saved());
            prop_assert!(part.saved() >= whole.saved());
        }
    }
}
