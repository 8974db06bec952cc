//! Entries about what is decided, configured and left alone.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    AnswerCap, Ask, Block, ByteRange, Call, Canonical, Envelope, InlineCap, Kept, Policy, Reader,
    Reading, Settings, SpillStore, ToolResult, Verdict, configure,
};

use super::{CALL, cap_options, envelope_options, memory, owner, step};

fn policies(limit: u64) -> [Arc<dyn Policy>; 2] {
    let cap = InlineCap::new(cap_options(&json!({"maxInlineBytes": limit})), memory());
    let envelope = Envelope::new(
        envelope_options(&json!({"maxPayloadBytes": limit})),
        memory(),
    );
    [Arc::new(cap), Arc::new(envelope)]
}

/// ASCII and Han turns by turns: no odd one moves a later decision, since nothing is learned and nothing is estimated.
#[test]
fn fault_06_an_odd_turn_moves_no_later_decision() {
    let turns: Vec<String> = (0..40)
        .map(|turn| {
            let piece = if turn % 2 == 0 { "abc" } else { "漢" };
            piece.repeat(1_990 + turn)
        })
        .collect();
    let bytes = turns[20].len() as u64;
    let owner = owner();
    for (running, place) in policies(bytes).into_iter().zip(0..) {
        for (turn, text) in (0..).zip(&turns) {
            let call = Call {
                call: spill_engine::CallId {
                    iteration: turn,
                    index: 0,
                },
                ..Call::new("tool", CALL).owned_by(&owner)
            };
            let decide = |policy: &dyn Policy| {
                let shaped = policy.shape(&call, ToolResult::text(text.clone()));
                (shaped.verdict.decision(), shaped.measured)
            };
            let fresh = policies(bytes).into_iter().nth(place).expect("the same");
            let decided = decide(&*running);
            assert_eq!(decided, decide(&*fresh), "turn {turn}");
            let over = text.len() as u64 > bytes;
            assert_eq!(
                decided.0 == spill_engine::Decision::Store,
                over,
                "turn {turn}"
            );
        }
    }
}

/// Each limit can be set by its caller, takes effect exactly there, is told back, and stands once in the sources.
#[test]
fn fault_13_a_limit_has_one_source_and_is_told_back() {
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    for (name, option) in [
        ("inline-cap", "maxInlineBytes"),
        ("envelope", "maxPayloadBytes"),
    ] {
        let policy = configure(name, &json!({option: 5_000}), memory()).expect("good options");
        for (bytes, replaced) in [(5_000, false), (5_001, true)] {
            let shaped = policy.shape(&call, ToolResult::text("x".repeat(bytes)));
            let is = matches!(shaped.verdict, Verdict::Replace { .. });
            assert_eq!(is, replaced, "{name}, {bytes}");
        }
    }
    let cap = InlineCap::new(cap_options(&json!({"maxInlineBytes": 5_000})), memory());
    assert_eq!(cap.options().max_inline_bytes, Some(5_000));
    let envelope = Envelope::new(
        envelope_options(&json!({"maxPayloadBytes": 5_000})),
        memory(),
    );
    assert_eq!(envelope.options().max_payload_bytes, 5_000);
    let (settings, warnings) = Settings::from_lookup(|name| {
        (name == spill_engine::THRESHOLD_VAR).then(|| "5000".to_owned())
    });
    assert_eq!((settings.threshold.get(), warnings.len()), (5_000, 0));
    assert_eq!(step(settings).settings(), settings);

    for default in ["131_072", "16_777_216", "10_240", "3_600"] {
        let places = places_of(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")),
            default,
        );
        assert_eq!(places, 1, "{default} stands once in the sources");
    }
}

/// Lines of code, not of docs, that hold `text`.
fn places_of(folder: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder of this crate");
    let count = |path: &Path| {
        if path.is_dir() {
            return places_of(path, text);
        }
        let source = std::fs::read_to_string(path).expect("text");
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().map(str::trim);
        lines
            .filter(|line| !line.starts_with("//") && line.contains(text))
            .count()
    };
    entries
        .map(|entry| count(&entry.expect("an entry").path()))
        .sum()
}

/// 9 KB under an 8,000-byte cap: what is missing is one read away, so that nothing needs to be called again, and both answers
/// together are little more than the whole.
#[test]
fn fault_14_one_read_completes_a_result_that_was_just_over() {
    let store = memory();
    let options = cap_options(&json!({"maxInlineBytes": 8_000, "layout": "glued"}));
    let policy = InlineCap::new(options, store.clone());
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let text: String = (0..600)
        .map(|line| format!("line number {line}\n"))
        .collect();
    let text = &text[..9_000];
    let shaped = policy.shape(&call, ToolResult::text(text));
    let (kept, notice) = shaped.prompt.split_once("\n\n(Omitted ").expect("a notice");
    let omitted: usize = notice
        .split(' ')
        .next()
        .expect("a number")
        .parse()
        .expect("a number");
    let head = kept.len().div_ceil(2);
    assert_eq!(
        (&kept[..head], kept.len() + omitted),
        (&text[..head], text.len())
    );

    let Verdict::Replace { spilled, .. } = &shaped.verdict else {
        panic!("replaced")
    };
    let cap = AnswerCap::new(8_000).expect("a cap");
    let reading = Reading::new(&*store, Reader::Of(owner.clone()), cap);
    let gap = ByteRange {
        offset: head as u64,
        length: omitted as u64,
    };
    let key = spilled.key.expect("a store's key");
    let answer = reading
        .answer(key, &Ask::Bytes(gap), call.now)
        .expect("inside");
    let whole = [
        &kept.as_bytes()[..head],
        answer.bytes(),
        &kept.as_bytes()[head..],
    ]
    .concat();
    assert_eq!(whole, text.as_bytes(), "one read, and nothing is missing");
    assert_eq!(reading.counts().answers, 1);
    assert!(shaped.prompt.len() + answer.render().len() < text.len() + 600);
}

/// What the caller puts beside a result is his, whatever its form: a struct, a list, a text, a number.
#[test]
fn fault_23_metadata_of_any_form_is_left_alone() {
    let forms = [
        json!({"trace": {"id": 7}, "_spillover": "theirs", "resourceUri": 1}),
        json!(["a", {"b": null}]),
        json!("a text"),
        json!(3.5),
        Value::Null,
    ];
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let bound = json!({"maxInlineBytes": 500, "mixedContent": "bound-text"});
    let envelope = json!({"maxPayloadBytes": 700});
    for form in forms {
        let block = Block::Other(json!({"type": "resource", "_meta": form, "meta": form}));
        let result = || ToolResult {
            blocks: vec![block.clone(), Block::Text("x".repeat(5_000))],
            structured: Some(form.clone()),
            is_error: false,
        };
        let cap = InlineCap::new(cap_options(&bound), memory());
        let shaped = cap.shape(&call, result());
        let prompt: Value = serde_json::from_str(&shaped.prompt).expect("a content array");
        let Block::Other(theirs) = &block else {
            panic!("it is one")
        };
        assert_eq!(&prompt[0], theirs, "as it came, and no key of ours in it");
        assert_eq!(shaped.canonical, Canonical::Blocks(result().blocks));

        let policy = Envelope::new(envelope_options(&envelope), memory());
        let shaped = policy.shape(&call, result());
        assert_eq!(shaped.canonical, Canonical::Blocks(result().blocks));
        let whole: Value = serde_json::from_str(&shaped.record_text).expect("JSON");
        assert_eq!(&whole[0], theirs);
        let stood: Value = serde_json::from_str(&shaped.prompt).expect("an envelope");
        assert_eq!(
            stood["_spillover"], true,
            "ours stand in a result of our own"
        );
    }
}

/// 120 distinct lines read back raw, through a second layer over the same store: verbatim.
#[test]
fn fault_58_no_layer_reprocesses_a_read_back() {
    let store = memory();
    let lines: String = (0..120)
        .map(|line| format!("distinct line {line:04}\n"))
        .collect();
    let owner = owner();
    let call = Call::new("run", CALL).owned_by(&owner);
    let cap = |limit: u64| {
        InlineCap::new(
            cap_options(&json!({"maxInlineBytes": limit, "skipTools": []})),
            store.clone(),
        )
    };
    let first = cap(600).shape(&call, ToolResult::text(lines.clone()));
    let Verdict::Replace { spilled, .. } = &first.verdict else {
        panic!("replaced")
    };
    let key = spilled.key.expect("a store's key");
    let reader = Reader::Of(owner.clone());
    let raw = store
        .read(key, &reader, ByteRange::ALL, call.now)
        .expect("stored");
    let raw = String::from_utf8(raw.bytes().to_vec()).expect("text");
    let arguments = json!({"path": spilled.reference, "raw": true});
    let reading = Call {
        arguments: &arguments,
        ..Call::new("shell_proxy", CALL).owned_by(&owner)
    };
    let mut passed = ToolResult::text(raw);
    for layer in [cap(600), cap(300)] {
        let shaped = layer.shape(&reading, passed);
        assert_eq!(shaped.verdict, Verdict::Keep(Kept::ReadBack));
        passed = ToolResult::text(shaped.prompt.to_string());
    }
    assert_eq!(passed, ToolResult::text(lines), "verbatim");
    assert_eq!(store.usage().stored, 1, "and not stored again");

    let step = step(Settings::DEFAULT);
    let text = "x".repeat(300 << 10);
    step.shape(&Call::new("run", CALL), ToolResult::text(text.clone()));
    let answer = Call::new(
        spill_engine::READ_TOOL,
        spill_engine::CallId { index: 1, ..CALL },
    );
    let shaped = step.shape(&answer, ToolResult::text(text.clone()));
    assert_eq!(shaped.verdict, Verdict::Keep(Kept::ReadBack));
    assert_eq!(*shaped.prompt, text);
}
