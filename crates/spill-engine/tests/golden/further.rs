//! Further cases of the kinds in the golden files, against a second implementation that is slow and plain: whole vectors of
//! bytes or UTF-16 units, and the rules one after the other. No case gives a difference that is not in the tables.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spill_engine::{
    Arm, Call, CallId, Envelope, EnvelopeOptions, Form, InlineCap, InlineCapOptions, Layout,
    Omitted, Owner, Payload, SharedText, Strategy as Retention, TextRetainer, Verdict,
};

use super::support::Noting;

const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};
const LOCATOR: &str = "/s/big.txt";
const HINT: &str = "Use X.";

/// What a replaced or kept text reads, and how often something was stored.
fn ours_glued(text: &SharedText, cap: u64) -> (Option<String>, usize) {
    let store = Arc::new(Noting::new(LOCATOR));
    let options = InlineCapOptions {
        layout: Layout::Glued,
        retrieval_hint: HINT.to_owned(),
        ..InlineCapOptions::capped(cap)
    };
    let owner = Owner::new("s1");
    let call = Call::new("big", CALL).owned_by(&owner);
    let verdict = InlineCap::new(options, store.clone()).bound(&call, Arm::Result, text, false);
    let saved = store.saved.lock().expect("one thread").len();
    match verdict {
        Verdict::Keep(_) => (None, saved),
        Verdict::Replace { text, .. } => (Some(text.to_string()), saved),
    }
}

fn plain_glued(text: &str, cap: usize) -> Option<String> {
    let bytes = text.as_bytes();
    let n = bytes.len();
    if n <= cap {
        return None;
    }
    let notice = |omitted: usize| {
        format!("(Omitted {omitted} bytes. Full formatted result stored at: {LOCATOR}. {HINT})")
    };
    let reserve = notice(n).len() + 2;
    let budget = cap.saturating_sub(reserve);
    let (kept, omitted) = plain_retention(bytes, budget - budget / 2, budget / 2);
    let out = if kept.is_empty() {
        notice(omitted)
    } else {
        format!("{kept}\n\n{}", notice(omitted))
    };
    (out.len() <= cap).then_some(out)
}

/// The rules of retention on a whole stream; the byte order mark is kept.
fn plain_retention(bytes: &[u8], head: usize, tail: usize) -> (String, usize) {
    let prefix = bytes.len().min(head);
    let suffix = (bytes.len() - prefix).min(tail);
    if prefix + suffix == bytes.len() {
        return (String::from_utf8_lossy(bytes).into_owned(), 0);
    }
    let mut first = bytes[..prefix].to_vec();
    for back in 1..=4.min(first.len()) {
        let byte = first[first.len() - back];
        if back < 4 && (0x80..0xc0).contains(&byte) {
            continue;
        }
        let expected = match byte {
            0xf8.. => 0,
            0xf0.. => 4,
            0xe0.. => 3,
            0x80.. => 2,
            _ => 1,
        };
        if expected > back {
            first.truncate(first.len() - back);
        }
        break;
    }
    let mut last = bytes[bytes.len() - suffix..].to_vec();
    while last.first().is_some_and(|byte| byte & 0xc0 == 0x80) {
        last.remove(0);
    }
    let omitted = bytes.len() - first.len() - last.len();
    let text = String::from_utf8_lossy(&first).into_owned() + &String::from_utf8_lossy(&last);
    (text, omitted)
}

/// Texts whose characters fall differently on every cut.
fn texts() -> Vec<String> {
    let pieces = [
        "x",
        "é",
        "中",
        "🚀",
        "\u{feff}",
        "a\r\n",
        "é🚀",
        "中x",
        "\u{feff}🚀a",
        "\0\u{7f}",
    ];
    let mut texts = Vec::new();
    for piece in pieces {
        for times in [1, 20, 34, 40, 333, 334] {
            texts.push(piece.repeat(times));
            texts.push(format!("b{}", piece.repeat(times)));
        }
    }
    texts
}

#[test]
fn every_cap_of_every_text_reads_as_the_plain_rules_say() {
    let mut replaced = 0;
    for text in texts() {
        let shared = SharedText::from(text.clone());
        let n = text.len();
        let near = [n.saturating_sub(1), n, n + 1];
        for cap in (0..170).chain(near) {
            let expected = plain_glued(&text, cap);
            let (ours, saved) = ours_glued(&shared, cap as u64);
            assert_eq!(ours, expected, "{} bytes, cap {cap}", text.len());
            assert_eq!(
                saved,
                usize::from(expected.is_some()),
                "stored exactly when told"
            );
            replaced += saved;
        }
    }
    assert!(replaced > 3_000, "{replaced}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn retention_of_any_bytes_in_any_chunks(
        chunks in vec(prop_oneof![
            vec(any::<u8>(), 0..12),
            "[aé中🚀\u{feff}\n]{0,6}".prop_map(String::into_bytes),
            vec(prop::sample::select(vec![0x61, 0x80, 0xbf, 0xc3, 0xe4, 0xf0, 0xfb]), 0..8),
        ], 0..8),
        head in 0_usize..24,
        tail in 0_usize..24,
    ) {
        let whole = chunks.concat();
        for (strategy, head, tail) in [
            (Retention::HeadTail { head_bytes: head, tail_bytes: tail }, head, tail),
            (Retention::Head { max_bytes: head }, head, 0),
            (Retention::Tail { max_bytes: tail }, 0, tail),
        ] {
            let mut retainer = TextRetainer::new(strategy);
            let (mut seen, mut gap) = (0, 0);
            for chunk in &chunks {
                seen += chunk.len();
                let prefix = seen.min(head);
                let now = seen - prefix - (seen - prefix).min(tail);
                let pushed = retainer.push(chunk);
                prop_assert_eq!((pushed.kept, pushed.truncated), (now == gap, now > 0));
                gap = now;
            }
            let kept = retainer.finish();
            let (text, omitted) = plain_retention(&whole, head, tail);
            prop_assert_eq!(&kept.text, &text);
            let expected = if omitted == 0 && gap == 0 { Omitted::None } else { Omitted::Exact(omitted as u64) };
            prop_assert_eq!(kept.omitted, expected);
        }
    }

    #[test]
    fn observed_envelopes_of_any_value(
        value in values(),
        limit in prop_oneof![0_i64..4, 4_i64..200],
        around in -2_i64..3,
        near in any::<bool>(),
        items in 0_usize..5,
        chars in prop_oneof![0_usize..40, Just(500)],
    ) {
        let limit = if near { plain_json(&value).len() as i64 + around } else { limit };
        let limit = u64::try_from(limit.max(0)).expect("not negative");
        check_envelope(&value, limit, items, chars)?;
    }
}

/// Texts and containers as tools return them. Numbers are such that both languages write them alike.
fn values() -> impl Strategy<Value = Value> {
    let text = "[aé中😀\u{feff}\"\\\\\n\u{1}\u{7f}]{0,30}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1_000_i32..1_000).prop_map(|half| json!(f64::from(half) + 0.5)),
        text.prop_map(Value::from),
    ];
    let key = prop_oneof!["[a-c]{1,2}", "[0-9]{1,3}", Just("4294967295".to_owned())];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((key.clone(), inner), 0..6).prop_map(|pairs| pairs.into_iter().collect::<Value>()),
        ]
    })
}

fn check_envelope(
    value: &Value,
    limit: u64,
    items: usize,
    chars: usize,
) -> Result<(), TestCaseError> {
    let store = Arc::new(Noting::new("unused"));
    let options = EnvelopeOptions {
        max_payload_bytes: limit,
        preview_items: items,
        preview_string_chars: chars,
        form: Form::Observed,
        ..EnvelopeOptions::default()
    };
    let verdict =
        Envelope::new(options, store.clone()).wrap(&Call::new("t", CALL), Payload::Json(value));
    let saved = store.saved.lock().expect("one thread");
    match plain_envelope(value, limit, items, chars) {
        None => prop_assert!(matches!(verdict, Verdict::Keep(_)) && saved.is_empty()),
        Some((envelope, stored)) => {
            let Verdict::Replace { text, .. } = verdict else {
                return Err(TestCaseError::fail("not replaced"));
            };
            prop_assert_eq!(text.as_str(), envelope);
            prop_assert_eq!(saved[0].text(), stored);
        }
    }
    Ok(())
}

fn plain_envelope(
    value: &Value,
    limit: u64,
    items: usize,
    chars: usize,
) -> Option<(String, String)> {
    if value.is_null() {
        return None;
    }
    let value = in_js_order(value);
    let (stored, mime) = match &value {
        Value::String(text) => (text.clone(), "text/plain"),
        other => (plain_json(other), "application/json"),
    };
    let size = stored.len() as u64;
    if size <= limit {
        return None;
    }
    let units = plain_size(size);
    let (total, summary, mut preview) = match &value {
        Value::Array(all) => {
            let shown: Vec<_> = all
                .iter()
                .take(items)
                .map(|item| plain_capped(item, chars))
                .collect();
            (
                Some(all.len()),
                format!("Query returned {} items ({units})", all.len()),
                json!(shown),
            )
        }
        Value::Object(map) => {
            let mut shown = Map::new();
            for (key, item) in map.iter().take(items) {
                shown.insert(key.clone(), plain_capped(item, chars));
            }
            let summary = format!("Object with {} top-level fields ({units})", map.len());
            (Some(map.len()), summary, Value::Object(shown))
        }
        Value::String(text) => (
            None,
            format!("Text payload ({units})"),
            json!(plain_cut(text, chars)),
        ),
        scalar => (None, format!("Dataset payload ({units})"), scalar.clone()),
    };
    if plain_json(&preview).len() as u64 > limit {
        preview = json!("[preview omitted]");
    }
    let uri = "resource://data-spillover/spill-00000000-0000-4000-8000-000000000001";
    let mut envelope =
        json!({"_spillover": true, "resourceUri": uri, "mimeType": mime, "sizeBytes": size});
    if let Some(total) = total {
        envelope["totalItems"] = json!(total);
    }
    envelope["summary"] = json!(summary);
    envelope["preview"] = preview;
    envelope["hint"] = json!(format!(
        "Full dataset ({summary}) exceeded prompt limit. Read full data via MCP resources/read with URI '{uri}'."
    ));
    Some((envelope.to_string(), stored))
}

fn plain_json(value: &Value) -> String {
    value.to_string()
}

fn in_js_order(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(in_js_order).collect(),
        Value::Object(map) => {
            let index = |key: &String| {
                key.parse::<u32>()
                    .ok()
                    .filter(|number| *number != u32::MAX && number.to_string() == *key)
            };
            let mut numbered: Vec<_> = map.iter().filter(|(key, _)| index(key).is_some()).collect();
            numbered.sort_by_key(|(key, _)| index(key));
            let named = map.iter().filter(|(key, _)| index(key).is_none());
            let all = numbered.into_iter().chain(named);
            all.map(|(key, item)| (key.clone(), in_js_order(item)))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

fn plain_cut(text: &str, chars: usize) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() <= chars {
        return text.to_owned();
    }
    let whole = String::from_utf16(&units[..chars])
        .or_else(|_| String::from_utf16(&units[..chars - 1]))
        .expect("at most one half of a pair is cut off");
    whole + "... [truncated]"
}

fn plain_capped(value: &Value, chars: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => plain_cut(text, chars).into(),
        Value::Array(_) | Value::Object(_) if plain_cost(value) > chars => "[truncated]".into(),
        container => {
            let text = plain_json(container);
            if text.encode_utf16().count() <= chars {
                container.clone()
            } else {
                plain_cut(&text, chars).into()
            }
        }
    }
}

fn plain_cost(value: &Value) -> usize {
    match value {
        Value::String(text) => text.encode_utf16().count(),
        Value::Array(items) => 8 + items.iter().map(plain_cost).sum::<usize>(),
        Value::Object(map) => 8 + map.values().map(plain_cost).sum::<usize>(),
        _ => 8,
    }
}

/// JavaScript's `toFixed(1)`: the quotient by a power of two is exact, and ties go up.
fn plain_size(size: u64) -> String {
    let fixed = |unit: f64| {
        let tenths = (size as f64 / unit * 10.0 + 0.5).floor();
        format!("{:.1}", tenths / 10.0)
    };
    match size {
        0..1_024 => format!("{size} B"),
        1_024..1_048_576 => format!("{} KB", fixed(1_024.0)),
        _ => format!("{} MB", fixed(1_048_576.0)),
    }
}

#[test]
fn envelopes_at_the_boundaries_of_units_and_cuts() {
    for bytes in [
        1_023, 1_024, 1_280, 1_331, 2_303, 2_304, 2_305, 1_048_575, 1_048_576, 1_310_720,
    ] {
        check_envelope(&json!("x".repeat(bytes)), 100, 3, 5).expect("the same");
    }
    for piece in ["a", "é", "中", "😀", "\u{feff}", "\"", "a😀", "é\n"] {
        for times in 38..42 {
            let text = piece.repeat(times);
            let size = text.len() as u64;
            for limit in [0, size - 1, size, size + 1] {
                for chars in [0, 1, 2, 3, 39, 40, 41, 80, 81, 82] {
                    let row = json!({"id": times, "text": text, "2": [piece], "1": {}});
                    check_envelope(&json!(text), limit, 3, chars).expect("the same");
                    check_envelope(&json!([text, row, text]), limit, 2, chars).expect("the same");
                    check_envelope(&row, limit, 3, chars).expect("the same");
                }
            }
        }
    }
}
