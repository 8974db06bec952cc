use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::{
    Arm, Block, Bytes, Call, Envelope, EnvelopeOptions, Form, InlineCap, InlineCapOptions, Kept,
    Layout, Mixed, Owner, Payload, Policy, PreviewShare, Previews, Shaped, SharedText, SpillStore,
    ToolResult, Verdict,
};

use super::{Bench, CALL, cap_with, enveloped, memory, owner};

fn texts(runs: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let palette = prop::sample::select(vec![
        "\"",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "\u{0}",
        "\u{1f}",
        "\u{7f}",
        "a",
        "é",
        "漢",
        "😀",
        "\u{feff}",
        "data:image/png;base64,",
        "{\"k\":[1,\"é\"]}\n",
        "2026-11-30 10:00:00 ERROR x\n",
        "a,b,\"c\n",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
    ]);
    vec((palette, 1_usize..300), runs).prop_map(|runs| {
        runs.iter()
            .map(|(piece, times)| piece.repeat(*times))
            .collect()
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts(0..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Value::from),
            vec((texts(0..2), inner), 0..12).prop_map(|pairs| pairs.into_iter().collect::<Value>()),
        ]
    })
}

fn results() -> impl Strategy<Value = ToolResult> {
    let block = prop_oneof![
        3 => texts(0..4).prop_map(Block::Text),
        1 => values().prop_map(Block::Other)
    ];
    (vec(block, 0..4), prop::option::of(values()), any::<bool>()).prop_map(
        |(blocks, structured, is_error)| ToolResult {
            blocks,
            structured,
            is_error,
        },
    )
}

/// Small and large, and the ends of the range.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..2_000_u64, 2 => 0..10_000_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn shares() -> impl Strategy<Value = PreviewShare> {
    let any = (0.0..=1.0_f64).prop_filter_map("above 0", PreviewShare::new);
    prop_oneof![Just(PreviewShare::ALL), any]
}

fn previews() -> impl Strategy<Value = Previews> {
    prop::sample::select(vec![Previews::Plain, Previews::Content])
}

fn cap_options() -> impl Strategy<Value = InlineCapOptions> {
    let layout = prop::sample::select(vec![Layout::Marked, Layout::Glued]);
    let mixed = prop::sample::select(vec![Mixed::Leave, Mixed::BoundText]);
    let hint = "[a-z \"\n]{0,80}";
    (numbers(), shares(), previews(), layout, mixed, hint).prop_map(
        |(cap, preview_share, preview, layout, mixed, hint)| InlineCapOptions {
            preview,
            layout,
            mixed,
            preview_share,
            retrieval_hint: hint,
            ..InlineCapOptions::capped(cap)
        },
    )
}

fn envelope_options() -> impl Strategy<Value = EnvelopeOptions> {
    let count = || numbers().prop_map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let prefix = "[a-z:/\" é]{0,40}";
    (
        numbers(),
        shares(),
        previews(),
        numbers(),
        count(),
        count(),
        prefix,
    )
        .prop_map(
            |(limit, preview_share, preview, ttl, items, chars, prefix)| EnvelopeOptions {
                preview_share,
                preview,
                max_payload_bytes: limit,
                spillover_ttl_seconds: ttl,
                preview_items: items,
                preview_string_chars: chars,
                resource_uri_prefix: prefix,
                ..EnvelopeOptions::default()
            },
        )
}

/// Kept results are the very same, replaced ones smaller than their original; stored is what was told, and nothing else.
fn check_shaped(bench: &Bench, shaped: &Shaped, result: &ToolResult) -> Result<(), TestCaseError> {
    prop_assert_eq!(shaped.is_error, result.is_error);
    let usage = bench.store.usage();
    match &shaped.verdict {
        Verdict::Keep(_) => {
            prop_assert!(shaped.prompt.ptr_eq(&shaped.record_text));
            prop_assert_eq!((usage.stored, usage.items), (0, 0));
        }
        Verdict::Replace { spilled, .. } => {
            prop_assert!(shaped.prompt.len() < shaped.record_text.len());
            prop_assert_eq!((usage.stored, usage.items), (1, 1));
            prop_assert_eq!(spilled.size, Bytes::new(bench.stored(shaped).len() as u64));
            prop_assert!(
                shaped
                    .prompt
                    .contains(&spilled.reference.replace('"', "\\\""))
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn inline_cap_never_exceeds_cap_or_original(options in cap_options(), result in results()) {
        let bench = cap_with(options.clone());
        let shaped = bench.shape("tool", result.clone());
        check_shaped(&bench, &shaped, &result)?;
        if let Verdict::Replace { text, spilled } = &shaped.verdict {
            let cap = options.max_inline_bytes.expect("a cap");
            prop_assert!(text.len() as u64 <= options.preview_share.of(cap) && cap < spilled.size.get());
        }
        let again = cap_with(options).shape("tool", result);
        prop_assert_eq!(again, shaped, "equal input, equal replacement");
    }

    #[test]
    fn an_envelope_never_exceeds_limit_or_original(options in envelope_options(), result in results()) {
        let bench = enveloped(options.clone());
        let shaped = bench.shape("tool", result.clone());
        check_shaped(&bench, &shaped, &result)?;
        if let Verdict::Replace { text, spilled } = &shaped.verdict {
            let limit = options.max_payload_bytes;
            prop_assert!(text.len() as u64 <= options.preview_share.of(limit) && limit < spilled.size.get());
            prop_assert!((text.len() as u64) < spilled.size.get());
            let envelope: Value = serde_json::from_str(text).expect("an envelope is JSON");
            prop_assert_eq!(&envelope["sizeBytes"], &json!(spilled.size.get()));
            prop_assert_eq!(envelope["resourceUri"].as_str(), Some(spilled.reference.as_str()));
        }
        let again = enveloped(options).shape("tool", result);
        prop_assert_eq!(again, shaped, "equal input, equal replacement");
    }

    #[test]
    fn bytes_of_any_kind_are_taken(bytes in vec(any::<u8>(), 0..3_000), options in envelope_options(), observed in any::<bool>()) {
        let form = if observed { Form::Observed } else { Form::Published };
        let limit = options.max_payload_bytes;
        let store = memory(1 << 20);
        let envelope = Envelope::new(EnvelopeOptions { form, ..options }, store);
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        if let Verdict::Replace { text, .. } = envelope.wrap(&call, Payload::Bytes(&bytes)) {
            prop_assert!(observed || text.len() as u64 <= limit);
        }
    }

    #[test]
    fn the_observed_form_is_total_too(options in envelope_options(), result in results()) {
        let bench = enveloped(EnvelopeOptions { form: Form::Observed, ..options.clone() });
        let shaped = bench.shape("tool", result.clone());
        let again = enveloped(EnvelopeOptions { form: Form::Observed, ..options }).shape("tool", result);
        prop_assert_eq!(again, shaped);
    }

    #[test]
    fn names_and_owners_of_any_length(name in "[a-zA-Z/._\0é😀~ -]{0,16}", times in 0_usize..2_000, text in texts(2..6)) {
        let long = name.repeat(times);
        let owner = Owner::new(&long);
        let call = Call::new(&long, CALL).owned_by(&owner);
        for bench in [super::capped(500), super::limited(600)] {
            let shaped = bench.policy.shape(&call, ToolResult::text(text.clone()));
            if let Verdict::Replace { text, spilled } = &shaped.verdict {
                prop_assert!(text.len() <= 600 && spilled.reference.len() < 64);
            }
        }
    }

    #[test]
    fn the_log_copy_is_bounded_like_the_result(cap in 0..600_u64, text in texts(0..4), is_error in any::<bool>()) {
        let text = SharedText::from(text);
        let owner = owner();
        let call = Call::new("read", CALL).owned_by(&owner);
        let verdict = |arm| {
            InlineCap::new(InlineCapOptions::capped(cap), memory(1 << 20)).bound(&call, arm, &text, is_error)
        };
        match (verdict(Arm::Result), verdict(Arm::Dispatch)) {
            (Verdict::Replace { text: result, .. }, Verdict::Replace { text: log, spilled }) => {
                prop_assert_eq!(result, log);
                prop_assert_eq!(spilled.arm, Arm::Dispatch);
            }
            (Verdict::Keep(result), Verdict::Keep(log)) => prop_assert_eq!(result, log),
            _ => prop_assert!(false, "one of the two"),
        }
    }

    #[test]
    fn without_a_cap_nothing_happens(result in results()) {
        let bench = cap_with(InlineCapOptions::default());
        let shaped = bench.shape("tool", result.clone());
        prop_assert_eq!(&shaped.verdict, &Verdict::Keep(Kept::Off));
        check_shaped(&bench, &shaped, &result)?;
    }
}

/// Concurrent sessions with one policy never see each other's results.
#[test]
fn sessions_stay_apart_with_a_barrier_before_the_reads() {
    let store = memory(1 << 20);
    let policy = InlineCap::new(InlineCapOptions::capped(400), store.clone());
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for session in 0..8 {
            let (policy, store, barrier) = (&policy, &store, &barrier);
            scope.spawn(move || {
                let owner = Owner::new(&format!("s{session}"));
                let call = Call::new("tool", CALL).owned_by(&owner);
                let text = format!("{session}").repeat(1_000);
                let shaped = policy.shape(&call, ToolResult::text(text.clone()));
                let key = super::spilled(&shaped).key.expect("a key");
                barrier.wait();
                let read = |reader: &str| {
                    let reader = spill_engine::Reader::Of(Owner::new(reader));
                    let all = spill_engine::ByteRange::ALL;
                    store.read(key, &reader, all, call.now)
                };
                for other in 0..8 {
                    let answer = read(&format!("s{other}")).map(|slice| slice.bytes().to_vec());
                    let own = (other == session).then(|| text.clone().into_bytes());
                    assert_eq!(answer.ok(), own);
                }
            });
        }
    });
}
