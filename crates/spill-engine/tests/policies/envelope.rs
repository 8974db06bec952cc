use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::{
    Bytes, Call, Canonical, Decision, Envelope, EnvelopeOptions, Form, Kept, Millis, Payload,
    Policy, PreviewShare, Previews, Reader, Resource, SpillStore, Storage, ToolResult, Verdict,
    Warning, decide_envelope,
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
        "previewShare": 0.5, "preview": "content",
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
        preview_share: PreviewShare::new(0.5).expect("a share"),
        preview: Previews::Content,
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

/// A stored text of an envelope with `limit`, and the way to read it.
fn stored(limit: u64, payload: Payload<'_>) -> (Envelope, String) {
    let options = EnvelopeOptions {
        max_payload_bytes: limit,
        ..EnvelopeOptions::default()
    };
    let policy = Envelope::new(options, memory(1 << 20));
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    match policy.wrap(&call, payload) {
        Verdict::Replace { spilled, .. } => (policy, spilled.reference),
        Verdict::Keep(kept) => panic!("kept: {kept:?}"),
    }
}

fn read(policy: &Envelope, uri: &str) -> Result<Resource, String> {
    let reader = Reader::Of(owner());
    let resource = policy.read_resource(uri, &reader, Millis::new(0));
    resource.map_err(|error| error.to_string())
}

#[test]
fn a_small_record_is_read_whole_and_a_large_one_in_pages() {
    let small = "word ".repeat(140).into();
    let (policy, uri) = stored(600, Payload::Text(&small));
    let answer = read(&policy, &uri).expect("a record").to_json();
    assert_eq!(
        answer,
        json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": *small, "_meta": {
            "offset": 0, "length": 700, "nextOffset": null, "sizeBytes": 700,
        }}]})
    );
    let part = read(&policy, &format!("{uri}?offset=5&length=9")).expect("a part");
    assert_eq!(
        (part.text.as_str(), part.next_offset),
        ("word word", Some(14))
    );
}

#[test]
fn a_read_is_refused_with_a_way_out() {
    let text = "x".repeat(2_000).into();
    let (policy, uri) = stored(600, Payload::Text(&text));
    for (uri, said) in [
        (format!("{uri}?offset=2001"), "out of range"),
        (format!("{uri}?offset=-1"), "offset"),
        (format!("{uri}?offset=+1"), "offset"),
        (format!("{uri}?page=2"), "page"),
        (format!("{uri}?length=0"), "nothing"),
        (format!("{uri}x"), "not found"),
        ("resource://elsewhere/1".to_owned(), "not found"),
    ] {
        let refusal = read(&policy, &uri).expect_err("a refusal");
        assert!(refusal.contains(said), "{uri}: {refusal}");
    }
    let end = read(&policy, &format!("{uri}?offset=2000")).expect("the end");
    assert_eq!((end.text.as_str(), end.next_offset), ("", None));
    let stranger = policy.read_resource(&uri, &Reader::Stranger, Millis::new(0));
    let unknown = policy.read_resource(
        "resource://data-spillover/0000000000000000",
        &Reader::Stranger,
        Millis::new(0),
    );
    assert_eq!(stranger, unknown, "one answer, no hint which");
    let late = policy.read_resource(&uri, &Reader::Of(owner()), Millis::new(3_600_001));
    assert!(
        late.expect_err("expired")
            .to_string()
            .starts_with("expired")
    );
}

fn pages(policy: &Envelope, uri: &str, length: u64, cap: usize) -> String {
    let (mut joined, mut next) = (String::new(), Some(0));
    while let Some(offset) = next {
        let page = read(policy, &format!("{uri}?offset={offset}&length={length}")).expect("a page");
        assert_eq!(page.offset, offset);
        assert!(page.to_json().to_string().len() <= cap);
        assert!(page.next_offset.is_none_or(|next| next > offset));
        joined.push_str(&page.text);
        next = page.next_offset;
    }
    joined
}

/// An offset inside a character moves to the next one, and the answer says so.
#[test]
fn a_page_starts_at_a_whole_character() {
    let text = "é漢😀x".repeat(300).into();
    let (policy, uri) = stored(1_500, Payload::Text(&text));
    for asked in 0..30 {
        let page = read(&policy, &format!("{uri}?offset={asked}&length=20")).expect("a page");
        let start = text.ceil_char_boundary(asked);
        let end = text.floor_char_boundary(asked + 20);
        assert_eq!(page.offset, start as u64, "{asked}");
        assert_eq!(page.text, text[start..end], "{asked}");
        assert_eq!(page.next_offset, Some(end as u64), "{asked}");
    }
}

/// An offset inside a group of four moves back to its start, a length down to whole groups.
#[test]
fn a_page_of_base64_is_whole_groups() {
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    let (policy, uri) = stored(1_500, Payload::Bytes(&bytes));
    let whole = pages(&policy, &uri, 1_000, 1_500);
    for (asked, length, start, end) in [
        (0, 4, 0, 4),
        (3, 4, 0, 4),
        (5, 11, 4, 12),
        (101, 103, 100, 200),
        (6_660, 100, 6_660, 6_668),
        (8, 1, 8, 12),
    ] {
        let place = format!("{uri}?offset={asked}&length={length}");
        let page = read(&policy, &place).expect("a page");
        assert_eq!(page.offset, start as u64, "{place}");
        assert_eq!(page.text, whole[start..end], "{place}");
    }
    let most = read(&policy, &uri).expect("a page");
    assert!(
        (1_000..=1_400).contains(&most.text.len()),
        "{}",
        most.text.len()
    );
}

#[test]
fn base64_is_cut_where_it_can_be_decoded() {
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    let (policy, uri) = stored(1_500, Payload::Bytes(&bytes));
    let whole = pages(&policy, &uri, 1_001, 1_500);
    assert_eq!(whole.len(), 6_668);
    let first = read(&policy, &uri).expect("a page");
    assert_eq!(first.text.len() % 4, 0);
    assert_eq!(first.to_json()["contents"][0]["blob"], first.text.as_str());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_concatenate_to_the_record(
        text in "[a\"\\\\\n\u{1}é漢😀]{400,900}",
        limit in 500_u64..2_000,
        length in prop_oneof![1_u64..5, 20_u64..3_000, Just(u64::MAX)],
    ) {
        let text = (text + &"x".repeat(1_700)).into();
        let (policy, uri) = stored(limit, Payload::Text(&text));
        let cap = usize::try_from(limit.max(1_024)).expect("small");
        prop_assert_eq!(pages(&policy, &uri, length, cap), text.as_str());
    }

    #[test]
    fn any_uri_is_answered(tail in "(\\?(offset|length|x)?=?[0-9]{0,22}&?(length=[0-9]{0,22})?)?.{0,5}") {
        let text = "x".repeat(2_000).into();
        let (policy, uri) = stored(600, Payload::Text(&text));
        let _ = read(&policy, &format!("{uri}{tail}"));
        let _ = read(&policy, &tail);
    }
}

#[test]
fn what_a_composite_tool_asks_for_it_gets_whole() {
    let policy = Envelope::new(EnvelopeOptions::default(), memory(1 << 20));
    let owner = owner();
    let nested = Call {
        sub_call: Some(1),
        ..Call::new("tool", CALL).owned_by(&owner)
    };
    let text = "x".repeat(20_000);
    let shaped = policy.shape(&nested, ToolResult::text(text.clone()));
    assert_eq!(*shaped.prompt, text);
    assert_eq!(shaped.verdict, Verdict::Keep(Kept::Nested));
    assert_eq!(policy.store().usage().stored, 0);
}
