//! `previewShare`: a replacement takes no more than its share of the limit, and what is replaced does not depend on it.

use serde_json::{Value, json};
use spill_engine::{
    EnvelopeOptions, InlineCapOptions, Kept, SpillStore, ToolResult, Verdict, configure,
};

use super::{Bench, cap_with, enveloped, memory, rows, structured};

const LIMIT: u64 = 4_000;

fn sharing(share: &Value) -> [Bench; 2] {
    let cap = json!({"maxInlineBytes": LIMIT, "previewShare": share});
    let envelope = json!({"maxPayloadBytes": LIMIT, "previewItems": 99, "previewShare": share});
    [
        cap_with(InlineCapOptions::from_json(&cap).expect("good options")),
        enveloped(EnvelopeOptions::from_json(&envelope).expect("good options")),
    ]
}

#[test]
fn a_replacement_takes_its_share_of_the_limit() {
    for (share, most) in [(1.0, 4_000), (0.5, 2_000), (0.25, 1_000), (0.249_9, 999)] {
        for bench in sharing(&json!(share)) {
            let shaped = bench.shape("tool", structured(rows(500)));
            let (bytes, name) = (shaped.prompt.len(), bench.policy.name());
            assert!(
                (most / 2..=most).contains(&bytes),
                "{name}, {share}: {bytes}"
            );
        }
    }
}

#[test]
fn what_is_replaced_does_not_depend_on_the_share() {
    for bench in sharing(&json!(0.2)) {
        for (bytes, kept) in [(801, true), (4_000, true), (4_001, false)] {
            let shaped = bench.text("x".repeat(bytes));
            let within = shaped.verdict == Verdict::Keep(Kept::WithinLimit);
            assert_eq!(within, kept, "{bytes}");
            assert!(within || shaped.prompt.len() <= 800);
        }
    }
}

#[test]
fn a_share_that_no_notice_fits_is_named_and_nothing_is_stored() {
    for bench in sharing(&json!(0.01)) {
        let shaped = bench.text("x".repeat(5_000));
        let warning = shaped.verdict.warning().expect("a warning").to_string();
        assert!(warning.contains("exceeds previewShare of max"), "{warning}");
        assert_eq!(bench.store.usage().stored, 0);
    }
}

#[test]
fn a_read_back_is_bounded_by_the_limit_itself() {
    let options = json!({"maxPayloadBytes": LIMIT, "previewShare": 0.2});
    let options = EnvelopeOptions::from_json(&options).expect("good options");
    let store = memory(1 << 20);
    let policy = spill_engine::Envelope::new(options, store);
    let owner = super::owner();
    let call = spill_engine::Call::new("tool", super::CALL).owned_by(&owner);
    let shaped = spill_engine::Policy::shape(&policy, &call, ToolResult::text("x".repeat(5_000)));
    let reference = &super::spilled(&shaped).reference;
    let reader = spill_engine::Reader::Of(owner.clone());
    let answer = policy
        .read_resource(reference, &reader, call.now)
        .expect("it is there");
    assert!(answer.text.len() > 3_000);
}

#[test]
fn a_bad_share_fails_the_load() {
    for (name, limit) in [
        ("inline-cap", "maxInlineBytes"),
        ("envelope", "maxPayloadBytes"),
    ] {
        for (share, got) in [
            (json!(0), "0"),
            (json!(-0.5), "-0.5"),
            (json!(1.01), "1.01"),
            (json!("half"), "\"half\""),
        ] {
            let options = json!({limit: 1_000, "previewShare": share});
            let refusal = configure(name, &options, memory(1_000))
                .err()
                .expect("refused");
            assert_eq!(
                refusal.to_string(),
                format!(
                    "spill-policy: previewShare must be a number above 0 and at most 1 (got {got})"
                )
            );
        }
    }
}
