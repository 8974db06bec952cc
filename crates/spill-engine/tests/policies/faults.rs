//! Faults of published systems, by their number in the catalogue, sections A to C: each test is the reproduction.

use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Block, Call, Canonical, EnvelopeOptions, InlineCap, InlineCapOptions, Kept, Layout, Mixed,
    Owner, Passed, Pipeline, Policy, SpillStore, ToolResult, Verdict, Warning,
};

use super::{
    Bench, CALL, cap_with, capped, enveloped, limited, memory, owner, rows, spilled, structured,
};

fn blocks(blocks: Vec<Block>) -> ToolResult {
    ToolResult {
        blocks,
        ..ToolResult::default()
    }
}

fn texts(count: usize, bytes: usize) -> Vec<Block> {
    vec![Block::Text("x".repeat(bytes)); count]
}

fn both(limit: u64) -> [Bench; 2] {
    [capped(limit), limited(limit)]
}

#[test]
fn fault_01_a_list_of_text_blocks_is_measured() {
    for bench in both(32_768) {
        for result in [
            ToolResult::text("x".repeat(200_000)),
            blocks(texts(1, 200_000)),
            blocks(texts(2, 100_000)),
            structured(json!({"text": "x".repeat(200_000)})),
        ] {
            let shaped = bench.shape("tool", result);
            assert!(shaped.prompt.len() <= 32_768, "{}", shaped.prompt.len());
        }
    }
}

#[test]
fn fault_02_one_cap_stands_over_the_sum_of_many_blocks() {
    for bench in both(400_000) {
        let shaped = bench.shape("tool", blocks(texts(500, 2_000)));
        assert!(shaped.prompt.len() <= 400_000 && shaped.prompt.len() < shaped.record_text.len());
    }
}

#[test]
fn fault_04_side_data_is_not_measured() {
    for bench in both(1_000) {
        let result = ToolResult {
            structured: Some(json!({"details": "x".repeat(1_000_000)})),
            ..ToolResult::text("visible ".repeat(12))
        };
        let shaped = bench.shape("tool", result);
        assert_eq!(shaped.verdict, Verdict::Keep(Kept::WithinLimit));
        assert!(shaped.measured.expect("measured").get() < 100);
    }
}

#[test]
fn fault_05_the_decision_is_by_bytes_in_every_script() {
    for piece in ["漢", "か", "한", "ไ", "😀", "QUJD"] {
        let bytes = piece.len() * 400;
        for bench in both(bytes as u64) {
            assert_eq!(
                bench.text(piece.repeat(400)).verdict,
                Verdict::Keep(Kept::WithinLimit)
            );
        }
        for bench in both(bytes as u64 - 1) {
            let _ = spilled(&bench.text(piece.repeat(400)));
        }
    }
}

#[test]
fn fault_07_media_bytes_do_not_count_as_text() {
    let picture = json!({"type": "image", "data": "QUJD".repeat(250_000)});
    let bench = cap_with(InlineCapOptions {
        mixed: Mixed::BoundText,
        ..InlineCapOptions::capped(1_000)
    });
    let result = blocks(vec![
        Block::Other(picture.clone()),
        Block::Text("ten words ".repeat(5)),
    ]);
    let shaped = bench.shape("tool", result);
    assert_eq!(shaped.verdict, Verdict::Keep(Kept::WithinLimit));
    let result = blocks(vec![
        Block::Other(picture.clone()),
        Block::Text("word ".repeat(500)),
    ]);
    let shaped = bench.shape("tool", result);
    let prompt: Value = serde_json::from_str(&shaped.prompt).expect("JSON");
    assert_eq!(prompt[0], picture, "bounding the text leaves the picture");
}

#[test]
fn fault_08_a_medium_written_as_text_is_never_cut() {
    let picture = format!("data:image/png;base64,{}", "QUJD".repeat(50_000));
    let bench = capped(32_768);
    let shaped = bench.text(picture.clone());
    assert!(
        !shaped.prompt.contains("QUJD") && shaped.prompt.len() < 300,
        "{}",
        shaped.prompt
    );
    assert_eq!(bench.stored(&shaped), picture);
}

#[test]
fn fault_09_every_tool_of_every_source_passes_one_place() {
    let bench = capped(10_000);
    let pipeline = Pipeline::new().around_all(bench.policy.clone());
    let owner = owner();
    for tool in [
        "bash",
        "execute",
        "mcp__files__read_file",
        "grep",
        "fetch",
        "",
        "étrange",
    ] {
        let call = Call::new(tool, CALL).owned_by(&owner);
        match pipeline.run(&call, ToolResult::text("x".repeat(20_000))) {
            Passed::Shaped { shaped, .. } => assert!(shaped.prompt.len() <= 10_000, "{tool}"),
            other => panic!("{tool}: {other:?}"),
        }
    }
}

#[test]
fn fault_10_no_tool_is_forgotten_by_an_allow_list() {
    let bench = capped(10_000);
    let exempt: Vec<_> = ["execute", "read", "reader", "Read", "run"]
        .into_iter()
        .filter(|tool| {
            bench
                .shape(tool, ToolResult::text("x".repeat(1 << 20)))
                .verdict
                == Verdict::Keep(Kept::ByName)
        })
        .collect();
    assert_eq!(
        exempt,
        ["read"],
        "exemptions are named, everything else is bounded"
    );
}

#[test]
fn fault_11_two_tools_of_one_size_have_opposite_wishes() {
    let off = cap_with(InlineCapOptions::default());
    let small = capped(2_000);
    let pipeline = Pipeline::new()
        .around("list", off.policy)
        .around("fetch", small.policy);
    let owner = owner();
    let verdict = |tool| {
        let call = Call::new(tool, CALL).owned_by(&owner);
        match pipeline.run(&call, ToolResult::text("word ".repeat(2_400))) {
            Passed::Shaped { shaped, .. } => shaped.verdict,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        verdict("list"),
        Verdict::Keep(Kept::Off),
        "the reason is told"
    );
    assert!(matches!(verdict("fetch"), Verdict::Replace { .. }));
}

#[test]
fn fault_12_code_that_calls_a_tool_gets_the_value_and_not_the_preview() {
    let value = rows(2_000);
    for bench in both(10_240) {
        let shaped = bench.shape("query", structured(value.clone()));
        assert_eq!(shaped.canonical, Canonical::Value(value.clone()));
        assert_eq!(*shaped.record_text, value.to_string());
        let _ = spilled(&shaped);
    }
    let nested = Call {
        sub_call: Some(1),
        ..Call::new("query", CALL)
    };
    let shaped = capped(10).policy.shape(&nested, structured(value.clone()));
    assert_eq!(*shaped.prompt, value.to_string());
}

#[test]
fn fault_16_reference_and_notice_have_a_fixed_bound() {
    let tool = "t".repeat(1_400);
    for bench in both(600) {
        let shaped = bench.shape(&tool, ToolResult::text("x".repeat(5_000)));
        assert!(spilled(&shaped).reference.len() <= 64);
        assert!(shaped.prompt.len() <= 600 && !shaped.prompt.contains("ttt"));
    }
}

#[test]
fn fault_19_any_value_is_taken_whole() {
    let big: Value = serde_json::from_str(&"9".repeat(300)).expect("a float");
    let fields: Value = (0..62)
        .map(|key| (format!("key{key}"), json!("v".repeat(40))))
        .collect();
    let value = json!({"big": big, "fields": fields, "none": null, "deep": [[[[[[]]]]]]});
    for bench in both(1_000) {
        let shaped = bench.shape("tool", structured(value.clone()));
        assert_eq!(
            bench.stored(&shaped),
            value.to_string(),
            "no key is dropped"
        );
    }
}

/// A store that takes nothing.
fn full(policy: fn(Arc<dyn SpillStore>) -> Arc<dyn Policy>) -> Bench {
    let store = memory(10);
    Bench {
        policy: policy(store.clone()),
        store,
    }
}

fn failing() -> [Bench; 2] {
    let cap: fn(Arc<dyn SpillStore>) -> Arc<dyn Policy> =
        |store| Arc::new(InlineCap::new(InlineCapOptions::capped(1_000), store));
    let envelope: fn(Arc<dyn SpillStore>) -> Arc<dyn Policy> = |store| {
        let options = EnvelopeOptions {
            max_payload_bytes: 1_000,
            ..EnvelopeOptions::default()
        };
        Arc::new(spill_engine::Envelope::new(options, store))
    };
    [full(cap), full(envelope)]
}

#[test]
fn fault_20_and_22_what_cannot_be_stored_stays_and_somebody_is_told() {
    for bench in failing() {
        let shaped = bench.text("x".repeat(2_000));
        assert!(shaped.prompt.ptr_eq(&shaped.record_text), "untouched");
        let warning = shaped.verdict.warning().expect("a warning").to_string();
        assert!(
            warning.contains("quota") && warning.contains("keeping the inline content"),
            "{warning}"
        );
        assert!(!warning.contains("xx"), "no content");
    }
}

#[test]
fn fault_21_few_lines_that_are_huge_are_bounded_by_bytes() {
    for bench in both(32_768) {
        let lines = vec!["x".repeat(200_000); 50].join("\n");
        assert!(bench.text(lines).prompt.len() <= 32_768);
    }
}

#[test]
fn fault_24_errors_are_bounded_keep_their_flag_and_show_their_end() {
    let stderr = (0..60_000)
        .map(|line| format!("at frame {line} of the stack\n"))
        .collect::<String>();
    let bench = capped(8_192);
    let failed = |text: String| bench.shape("tool", ToolResult::error(text));
    let shaped = failed(format!("{stderr}panicked: the reason"));
    assert!(shaped.is_error && shaped.prompt.len() <= 8_192);
    let (before, after) = shaped
        .prompt
        .split_once("bytes left out ...]")
        .expect("a marker");
    assert!(after.len() > 2 * before.len() && after.contains("panicked: the reason"));
    let small = failed("x".repeat(8_192));
    assert_eq!(small.verdict, Verdict::Keep(Kept::WithinLimit));
    assert!(small.is_error);
}

#[test]
fn fault_25_the_stored_copy_is_complete() {
    for bench in both(50_000) {
        let text: String = (0..80_000_u32)
            .map(|place| char::from(b'a' + u8::try_from(place % 26).expect("small")))
            .collect();
        let shaped = bench.text(text.clone());
        assert_eq!(bench.stored(&shaped), text);
    }
}

#[test]
fn fault_26_a_read_back_is_known_by_its_reference_whatever_the_tool_is_called() {
    for bench in both(600) {
        let shaped = bench.text("row ".repeat(1_000));
        let reference = &spilled(&shaped).reference;
        let owner = owner();
        let stranger = Owner::new("another");
        let verdict = |arguments: &Value, owner: &Owner| {
            let call = Call {
                arguments,
                ..Call::new("open_document", CALL).owned_by(owner)
            };
            bench
                .policy
                .shape(&call, ToolResult::text("row ".repeat(500)))
                .verdict
        };
        for arguments in [
            json!({"path": reference}),
            json!([{"deep": [reference]}]),
            json!(reference),
        ] {
            assert_eq!(
                verdict(&arguments, &owner),
                Verdict::Keep(Kept::ReadBack),
                "{arguments}"
            );
        }
        let not_a_read = [
            json!({"path": format!("{reference}x")}),
            json!({"command": format!("cat {reference} | sort")}),
            json!({"rows": {"$spill": reference}}),
            json!({}),
        ];
        for arguments in not_a_read {
            assert!(
                matches!(verdict(&arguments, &owner), Verdict::Replace { .. }),
                "{arguments}"
            );
        }
        assert!(
            matches!(
                verdict(&json!({"path": reference}), &stranger),
                Verdict::Replace { .. }
            ),
            "a reference of another session exempts nothing"
        );
    }
}

#[test]
fn fault_29_the_preview_is_the_same_live_and_replayed() {
    let emoji = "😀".repeat(2_000);
    for cap in 200..240 {
        for bench in both(cap + 300) {
            let live = bench.text(emoji.clone()).prompt.to_string();
            let request = serde_json::to_string(&live).expect("JSON");
            let replayed: String = serde_json::from_str(&request).expect("JSON");
            assert_eq!(live, replayed);
            assert!(!live.contains('\u{fffd}'));
        }
    }
}

#[test]
fn fault_30_no_cut_falls_inside_a_character() {
    for layout in [Layout::Marked, Layout::Glued] {
        for before in 29_990..30_010 {
            let text = "a".repeat(before) + "😀" + &"b".repeat(30_000);
            let bench = cap_with(InlineCapOptions {
                layout,
                ..InlineCapOptions::capped(60_000)
            });
            let shaped = bench.text(text);
            assert!(shaped.prompt.len() <= 60_000);
        }
    }
}

#[test]
fn fault_33_one_long_line_is_bounded() {
    for bench in both(32_768) {
        assert!(bench.text("x".repeat(1 << 20)).prompt.len() <= 32_768);
    }
}

#[test]
fn fault_33_each_option_of_the_cap_changes_what_happens() {
    let mixed = || {
        blocks(vec![
            Block::Text("line\n".repeat(400)),
            Block::Other(json!({"type": "image"})),
        ])
    };
    let text = || ToolResult::text("line\n".repeat(400));
    let log = || ToolResult::text("2026-11-30 10:00:00 INFO x\n".repeat(100));
    let base = json!({"maxInlineBytes": 900});
    for (key, value, tool, result) in [
        (
            "maxInlineBytes",
            json!(901),
            "tool",
            text as fn() -> ToolResult,
        ),
        ("skipTools", json!(["tool"]), "tool", text),
        ("mixedContent", json!("bound-text"), "tool", mixed),
        ("layout", json!("glued"), "tool", text),
        ("retrievalHint", json!("Ask."), "tool", text),
        ("previewShare", json!(0.5), "tool", text),
        ("preview", json!("content"), "tool", log),
    ] {
        let prompt = |options: &Value| {
            let options = InlineCapOptions::from_json(options).expect("good options");
            cap_with(options).shape(tool, result()).prompt
        };
        let mut changed = base.clone();
        changed[key] = value;
        assert_ne!(prompt(&base), prompt(&changed), "{key}");
    }
}

#[test]
fn fault_33_each_option_of_the_envelope_changes_what_happens() {
    let base = json!({"maxPayloadBytes": 1_000});
    let result = || {
        structured(json!([{"name": "n".repeat(200)}, "s".repeat(300), "t", "u", "v".repeat(2_000)]))
    };
    for (key, value) in [
        ("maxPayloadBytes", json!(100_000)),
        ("previewItems", json!(1)),
        ("previewStringChars", json!(20)),
        ("resourceUriPrefix", json!("spill:")),
        ("form", json!("observed")),
        ("previewShare", json!(0.5)),
        // "preview" changes the preview of a text: see `each_kind_of_text_has_its_preview`.
    ] {
        let prompt = |options: &Value| {
            let options = EnvelopeOptions::from_json(options).expect("good options");
            enveloped(options).shape("tool", result()).prompt
        };
        let mut changed = base.clone();
        changed[key] = value;
        assert_ne!(prompt(&base), prompt(&changed), "{key}");
    }
    // `spilloverTtlSeconds` changes when a record expires: see `a_record_lives_as_long_as_the_options_say`.
}

#[test]
fn fault_34_a_first_line_over_the_cap_is_cut_inside_and_said_so() {
    let shaped = capped(50_000).text("y".repeat(60_000));
    assert!(shaped.prompt.matches('y').count() > 49_000);
    assert!(shaped.prompt.contains("bytes left out ...]"));
}

#[test]
fn fault_35_both_ends_are_shown_and_the_end_has_at_least_a_third() {
    let text = format!("START{}MIDDLE{}END", "x".repeat(50_000), "x".repeat(50_000));
    for result in [ToolResult::text(text.clone()), ToolResult::error(text)] {
        let prompt = capped(9_000).shape("tool", result).prompt;
        let (before, after) = prompt.split_once("bytes left out ...]").expect("a marker");
        assert!(before.contains("START") && after.contains("END") && !prompt.contains("MIDDLE"));
        assert!(after.matches('x').count() * 3 >= prompt.matches('x').count());
    }
}

#[test]
fn fault_36_a_preview_larger_than_the_threshold_never_makes_a_result_grow() {
    for limit in [10, 300, 500, 1_000] {
        let bench = enveloped(EnvelopeOptions {
            max_payload_bytes: limit,
            preview_string_chars: 10_000,
            ..EnvelopeOptions::default()
        });
        for over in [1, 2, 100, 400] {
            let size = usize::try_from(limit).expect("small") + over;
            let shaped = bench.text("x".repeat(size));
            assert!(shaped.prompt.len() <= size);
        }
    }
    assert!(
        EnvelopeOptions::from_json(&json!({"previewItems": -1})).is_err(),
        "refused at load"
    );
}

#[test]
fn fault_37_and_38_the_notice_stands_first_and_last_outside_the_data() {
    let shaped = capped(4_000).shape("tool", structured(rows(3_400)));
    let reference = &spilled(&shaped).reference;
    let (first, rest) = shaped.prompt.split_once('\n').expect("a first line");
    let last = rest.lines().last().expect("a last line");
    assert!(
        first.starts_with('(') && first.contains(reference.as_str()),
        "{first}"
    );
    assert!(
        last.starts_with('(') && last.contains(reference.as_str()),
        "{last}"
    );
}

#[test]
fn fault_40_a_single_line_shows_content_and_is_read_by_offset() {
    let line = rows(600).to_string();
    let prompt = capped(16_384).text(line).prompt;
    assert!(prompt.len() > 16_000 && prompt.contains("offset"));
    let envelope = limited(2_000).shape("tool", structured(rows(600))).prompt;
    assert!(envelope.contains("?offset=0&length="), "{envelope}");
}

#[test]
fn fault_41_at_the_cap_nothing_is_said_to_be_cut() {
    for (bytes, kept) in [(999, true), (1_000, true), (1_001, false)] {
        for bench in both(1_000) {
            let text = "x".repeat(bytes);
            let shaped = bench.text(text.clone());
            assert_eq!(*shaped.prompt == text, kept, "{bytes}");
        }
    }
}

#[test]
fn fault_42_no_reference_is_told_when_nothing_was_written() {
    for bench in failing() {
        let shaped = bench.text("x".repeat(2_000));
        assert!(matches!(
            shaped.verdict,
            Verdict::Keep(Kept::Warned(
                Warning::StoreFailed { .. } | Warning::NoRoom { .. }
            ))
        ));
        let warning = shaped.verdict.warning().expect("a warning").to_string();
        assert!(
            !warning.contains("resource://") && !warning.contains("stored at"),
            "{warning}"
        );
    }
}
