use serde_json::{Value, json};
use spill_engine::{Block, Placement, PromptText, SharedText, ToolResult};

use super::{admit, call, low, plain, read, step, summary};

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

/// Checks the result string of small results, and that it stands in record and prompt alike.
#[track_caller]
fn check_string(blocks: Vec<Block>, structured: Option<Value>, expected: &str) {
    let admitted = step(low()).admit(
        call(0),
        "tool",
        ToolResult {
            blocks,
            structured,
            is_error: false,
        },
    );
    assert_eq!(admitted.record_text.as_str(), expected);
    assert_eq!(admitted.prompt.as_str(), expected);
}

#[test]
fn one_text_block_is_the_text() {
    check_string(vec![text("plain")], None, "plain");
    check_string(vec![text("plain")], Some(json!({"a": 1})), "plain");
    check_string(vec![text("")], Some(json!({"a": 1})), "");
}

#[test]
fn other_blocks_are_the_json_of_the_content_array() {
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    check_string(
        vec![text("a"), text("b\n")],
        None,
        r#"[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]"#,
    );
    check_string(
        vec![Block::Other(image.clone())],
        Some(json!({"ignored": true})),
        r#"[{"type":"image","data":"aGk=","mimeType":"image/png"}]"#,
    );
    check_string(
        vec![text("see"), Block::Other(image)],
        None,
        r#"[{"type":"text","text":"see"},{"type":"image","data":"aGk=","mimeType":"image/png"}]"#,
    );
}

#[test]
fn structured_content_counts_only_without_blocks() {
    check_string(
        vec![],
        Some(json!({"z": 1, "a": [true, null]})),
        r#"{"z":1,"a":[true,null]}"#,
    );
    check_string(vec![], Some(json!("text")), "\"text\"");
    check_string(vec![], None, "[]");
}

#[test]
fn many_small_blocks_are_measured_together() {
    let blocks = vec![Block::Text("x".repeat(100)); 50];
    let step = step(low());
    let admitted = step.admit(
        call(0),
        "tool",
        ToolResult {
            blocks,
            ..ToolResult::default()
        },
    );
    assert_eq!(admitted.placement, Placement::Stored);
    assert_eq!(
        admitted.measured.map(spill_engine::Bytes::get),
        Some(admitted.record_text.len() as u64)
    );
    assert_eq!(
        summary(&admitted)["structure"],
        "array(50 items; first: object(type, text))"
    );
}

#[test]
fn json_is_measured_by_its_own_length() {
    let exactly = |size: usize| Some(json!({"k": "x".repeat(size - 8)}));
    for (size, placement) in [(4_095, false), (4_096, true), (4_097, true)] {
        let result = ToolResult {
            structured: exactly(size),
            ..ToolResult::default()
        };
        let admitted = step(low()).admit(call(0), "tool", result);
        assert_eq!(admitted.record_text.len(), size);
        assert_eq!(admitted.placement == Placement::Stored, placement, "{size}");
    }
}

#[test]
fn error_results_are_bounded_and_stay_errors() {
    let step = step(low());
    let small = step.admit(call(0), "tool", ToolResult::error("no such file"));
    let large = step.admit(
        call(1),
        "tool",
        ToolResult::error("at frame\n".repeat(200_000)),
    );
    assert!(small.is_error && large.is_error);
    assert_eq!(small.prompt.as_str(), "no such file");
    assert_eq!(large.placement, Placement::Stored);
    assert!(!admit(&step, 2, "fine").is_error);
}

#[test]
fn record_prompt_and_store_share_the_one_allocation_that_came_in() {
    let step = step(low());
    let inline = plain(1_000);
    let at = inline.as_ptr();
    let admitted = admit(&step, 0, inline);
    let PromptText::Inline(prompt) = &admitted.prompt else {
        panic!("1,000 bytes stay inline")
    };
    assert!(prompt.ptr_eq(&admitted.record_text));
    assert_eq!(prompt.as_ptr(), at, "moved, not copied");
    assert_eq!(prompt.owners(), 2);

    let stored = plain(100_000);
    let at = stored.as_ptr();
    let admitted = admit(&step, 1, stored);
    assert_eq!(admitted.record_text.as_ptr(), at, "moved, not copied");
    assert_eq!(admitted.record_text.owners(), 2, "record and store");
    let answer = read(&step, 1, 10, 20).expect("stored");
    assert_eq!(answer.text().as_ptr(), admitted.record_text[10..].as_ptr());
}

#[test]
fn release_and_drop_let_the_text_go() {
    let step_a = step(low());
    let admitted = admit(&step_a, 0, plain(100_000));
    let text: SharedText = admitted.record_text.clone();
    drop(admitted);
    assert_eq!(text.owners(), 2);
    step_a.release();
    assert_eq!(text.owners(), 1);
    step_a.release();

    let step_b = step(low());
    let text = admit(&step_b, 0, plain(100_000)).record_text;
    assert_eq!(text.owners(), 2);
    drop(step_b);
    assert_eq!(text.owners(), 1);
}

#[test]
fn debug_output_holds_no_content() {
    let secret = "secret ".repeat(1_000);
    let step = step(low());
    let result = ToolResult {
        blocks: vec![text(&secret), Block::Other(json!({"secret": secret}))],
        structured: Some(json!(secret)),
        is_error: false,
    };
    let shown = format!(
        "{result:?} {:?} {:?}",
        SharedText::from(secret.clone()),
        step.admit(call(0), "t", result.clone()).record_text
    );
    assert!(!shown.contains("secret"), "{shown}");
    admit(&step, 1, secret);
    let shown = format!("{:?}", read(&step, 1, 0, 100).expect("stored"));
    assert!(!shown.contains("secret"), "{shown}");
}
