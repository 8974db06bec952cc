use serde_json::{Value, json};
use spill_engine::{
    Bytes, Call, Canonical, Decision, Envelope, EnvelopeOptions, Form, Kept, Millis, Payload,
    Policy, Reader, SpillStore, Storage, ToolResult, Verdict, Warning, decide_envelope,
};

use super::{Bench, CALL, enveloped, limited, memory, owner, rows, spilled, structured};

fn check_decision(size: u64, limit: u64, decision: Decision) {
    assert_eq!(
        decide_envelope(Bytes::new(size), limit),
        decision,
        "{size} {limit}"
    );
}

#[test]
fn the_equal_case_stays() {
    check_decision(99, 100, Decision::Inline);
    check_decision(100, 100, Decision::Inline);
    check_decision(101, 100, Decision::Store);
    check_decision(0, 0, Decision::Inline);
    check_decision(1, 0, Decision::Store);
    check_decision(u64::MAX, u64::MAX, Decision::Inline);
}

#[test]
fn the_limit_goes_before_the_quota() {
    let options = EnvelopeOptions {
        max_payload_bytes: 1_000,
        ..EnvelopeOptions::default()
    };
    let policy = Envelope::new(options, memory(10));
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let decision = |bytes| {
        let result = ToolResult::text("x".repeat(bytes));
        policy.shape(&call, result).verdict.decision()
    };
    assert_eq!(decision(1_000), Decision::Inline);
    assert_eq!(decision(1_001), Decision::InlineOverBudget);
}

fn envelope(bench: &Bench, result: ToolResult) -> Value {
    let shaped = bench.shape("tool", result);
    let _ = spilled(&shaped);
    serde_json::from_str(&shaped.prompt).expect("an envelope is JSON")
}

#[test]
fn envelopes_read_like_this() {
    let bench = limited(2_000);
    let text = "word ".repeat(1_000);
    let deep = json!({"about": "a report", "rows": rows(100), "total": 100, "more": null, "2": 1});
    let shown = [
        envelope(&bench, ToolResult::text(text)),
        envelope(&bench, structured(rows(200))),
        envelope(&bench, structured(deep)),
    ];
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).expect("JSON"));
}

#[test]
fn a_preview_shrinks_until_the_envelope_fits() {
    for limit in [420, 450, 500, 700, 1_500, 4_000] {
        let bench = enveloped(EnvelopeOptions {
            max_payload_bytes: limit,
            preview_items: 1_000,
            preview_string_chars: 1_000_000,
            ..EnvelopeOptions::default()
        });
        for result in [ToolResult::text("é\"".repeat(5_000)), structured(rows(500))] {
            let shaped = bench.shape("tool", result);
            let bytes = shaped.prompt.len() as u64;
            assert!(bytes <= limit, "{bytes} of {limit}");
            let used = if limit >= 1_500 { limit / 3 } else { 0 };
            assert!(bytes > used, "{bytes} of {limit} wastes too much");
        }
    }
}

#[test]
fn a_limit_that_no_envelope_fits_keeps_the_result_and_stores_nothing() {
    let bench = limited(100);
    let shaped = bench.text("x".repeat(101));
    let warning = shaped.verdict.warning().expect("a warning").to_string();
    assert_eq!(
        warning,
        "spill-policy: spill notice for tool exceeds maxPayloadBytes; keeping the inline content"
    );
    assert_eq!(bench.store.usage().stored, 0);
}

#[test]
fn null_is_nothing_and_a_structured_string_is_a_text() {
    let bench = limited(0);
    assert_eq!(
        bench.shape("tool", structured(Value::Null)).verdict,
        Verdict::Keep(Kept::Nothing)
    );
    let bench = limited(500);
    let text = "a\"b".repeat(400);
    let shaped = bench.shape("tool", structured(json!(text)));
    assert_eq!(bench.stored(&shaped), text);
    assert_eq!(shaped.canonical, Canonical::Value(json!(text)));
}

#[test]
fn binary_has_a_placeholder() {
    let store = memory(1 << 20);
    let policy = Envelope::new(
        EnvelopeOptions {
            max_payload_bytes: 500,
            ..EnvelopeOptions::default()
        },
        store,
    );
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let Verdict::Replace { text, .. } = policy.wrap(&call, Payload::Bytes(&[66; 3_000])) else {
        panic!("replaced")
    };
    let envelope: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(envelope["preview"], "[binary: 3000 bytes]");
    assert_eq!(envelope["summary"], "Binary payload (3.9 KB)");
    assert_eq!(envelope.get("totalItems"), None);
}

#[test]
fn a_result_without_an_owner_is_kept_but_in_the_observed_form() {
    let nobody = Call::new("tool", CALL);
    let big = || ToolResult::text("x".repeat(1_000));
    let kept = limited(600).policy.shape(&nobody, big());
    assert!(matches!(
        kept.verdict.warning(),
        Some(Warning::NoOwner { .. })
    ));
    let bench = enveloped(EnvelopeOptions {
        max_payload_bytes: 600,
        form: Form::Observed,
        ..EnvelopeOptions::default()
    });
    let shaped = bench.policy.shape(&nobody, big());
    let key = spilled(&shaped).key.expect("a key");
    assert!(
        bench
            .store
            .describe(key, &Reader::Stranger, Millis::new(0))
            .is_ok()
    );
}

#[test]
fn a_record_lives_as_long_as_the_options_say() {
    let bench = enveloped(EnvelopeOptions {
        max_payload_bytes: 600,
        spillover_ttl_seconds: 2,
        ..EnvelopeOptions::default()
    });
    let owner = owner();
    let call = Call {
        now: Millis::new(10_000),
        ..Call::new("tool", CALL).owned_by(&owner)
    };
    let shaped = bench
        .policy
        .shape(&call, ToolResult::text("x".repeat(1_000)));
    let key = spilled(&shaped).key.expect("a key");
    let alive = |now| {
        bench
            .store
            .describe(key, &Reader::Of(owner.clone()), Millis::new(now))
            .is_ok()
    };
    assert_eq!((alive(12_000), alive(12_001)), (true, false));
}

#[test]
fn any_prefix_names_a_key() {
    for (prefix, form) in [
        ("resource://data-spillover/", Form::Published),
        ("", Form::Published),
        ("x?y=/é ", Form::Observed),
    ] {
        let store = memory(1 << 20);
        let options = EnvelopeOptions {
            max_payload_bytes: 600,
            resource_uri_prefix: prefix.to_owned(),
            form,
            ..EnvelopeOptions::default()
        };
        let policy = Envelope::new(options, store);
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let shaped = policy.shape(&call, ToolResult::text("x".repeat(1_000)));
        let spilled = spilled(&shaped);
        assert_eq!(policy.key_of(&spilled.reference), spilled.key);
        let part = format!("{}?offset=3&length=4", spilled.reference);
        assert_eq!(policy.key_of(&part), spilled.key);
        assert_eq!(policy.key_of(&format!("z{part}")), None);
    }
}

#[test]
fn options_have_their_published_names_and_defaults() {
    let all = json!({
        "maxPayloadBytes": 1, "spilloverTtlSeconds": 2, "previewItems": 3, "previewStringChars": 4,
        "resourceUriPrefix": "p", "storage": "filesystem", "storagePath": "d", "form": "observed",
    });
    let read = EnvelopeOptions::from_json(&all).expect("good options");
    let expected = EnvelopeOptions {
        max_payload_bytes: 1,
        spillover_ttl_seconds: 2,
        preview_items: 3,
        preview_string_chars: 4,
        resource_uri_prefix: "p".to_owned(),
        storage: Storage::Filesystem,
        storage_path: "d".to_owned(),
        form: Form::Observed,
    };
    assert_eq!(read, expected);
    let nulls = json!({"maxPayloadBytes": null, "previewItems": null, "storage": null});
    assert_eq!(
        EnvelopeOptions::from_json(&nulls),
        Ok(EnvelopeOptions::default())
    );
    for bad in [
        json!({"previewItems": -1}),
        json!({"maxPayloadBytes": 0.5}),
        json!({"spilloverTtlSeconds": "60"}),
        json!({"storage": "disk"}),
        json!({"maxPayload": 1}),
    ] {
        assert!(EnvelopeOptions::from_json(&bad).is_err(), "{bad}");
    }
}
