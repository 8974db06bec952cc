use serde_json::{Value, json};
use spill_engine::{
    Arm, Block, Call, Canonical, Decision, InlineCapOptions, Kept, Layout, Mixed, Owner, Policy,
    SpillStore, ToolResult, Verdict, Warning, decide_inline_cap,
};

use super::{Bench, CALL, cap_with, capped, memory, owner, spilled, structured};

fn check_decision(size: u64, cap: Option<u64>, decision: Decision) {
    let decided = decide_inline_cap(spill_engine::Bytes::new(size), cap);
    assert_eq!(decided, decision, "{size} under {cap:?}");
}

#[test]
fn the_equal_case_stays() {
    check_decision(99, Some(100), Decision::Inline);
    check_decision(100, Some(100), Decision::Inline);
    check_decision(101, Some(100), Decision::Store);
    check_decision(0, Some(0), Decision::Inline);
    check_decision(1, Some(0), Decision::Store);
    check_decision(u64::MAX, Some(u64::MAX), Decision::Inline);
    check_decision(u64::MAX, None, Decision::Inline);
}

#[test]
fn replacements_read_like_this() {
    let lines: String = (0..400)
        .map(|line| format!("line {line} of the log\n"))
        .collect();
    let mut shown = Vec::new();
    for (name, cap, is_error, layout) in [
        ("large cap", 1_500, false, Layout::Marked),
        ("large cap, a failure", 1_500, true, Layout::Marked),
        ("middle cap", 400, false, Layout::Marked),
        ("small cap", 200, false, Layout::Marked),
        ("small cap, a failure", 200, true, Layout::Marked),
        ("hardly room for a notice", 150, false, Layout::Marked),
        ("glued", 400, false, Layout::Glued),
    ] {
        let bench = cap_with(InlineCapOptions {
            layout,
            ..InlineCapOptions::capped(cap)
        });
        let result = ToolResult {
            is_error,
            ..ToolResult::text(lines.clone())
        };
        let text = bench.shape("tool", result).prompt;
        shown.push(format!(
            "=== {name}: cap {cap}, {} bytes\n{text}",
            text.len()
        ));
    }
    insta::assert_snapshot!(shown.join("\n"));
}

fn check_kept(bench: &Bench, call: &Call<'_>, result: ToolResult, kept: &Kept) {
    let shaped = bench.policy.shape(call, result);
    assert_eq!(shaped.verdict, Verdict::Keep(kept.clone()));
    assert!(shaped.prompt.ptr_eq(&shaped.record_text));
    assert_eq!(bench.store.usage().stored, 0);
}

#[test]
fn some_results_are_left_alone() {
    let big = || ToolResult::text("x".repeat(1_000));
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let nested = Call {
        sub_call: Some(1),
        ..call
    };
    check_kept(&capped(300), &nested, big(), &Kept::Nested);
    let read = Call {
        tool: "read",
        ..call
    };
    check_kept(&capped(300), &read, big(), &Kept::ByName);
    let picture = Block::Other(json!({"type": "image", "data": "aGk="}));
    let mixed = || ToolResult {
        blocks: vec![Block::Text("x".repeat(1_000)), picture.clone()],
        ..ToolResult::default()
    };
    check_kept(&capped(300), &call, mixed(), &Kept::NotText);
    check_kept(
        &capped(300),
        &call,
        ToolResult::default(),
        &Kept::WithinLimit,
    );
    let nobody = Call::new("tool", CALL);
    let arm = Arm::Result;
    let tool = "tool".to_owned();
    check_kept(
        &capped(300),
        &nobody,
        big(),
        &Kept::Warned(Warning::NoOwner { tool, arm }),
    );
}

#[test]
fn a_skip_list_of_ones_own_replaces_the_default() {
    let options = json!({"maxInlineBytes": 300, "skipTools": ["view"]});
    let options = InlineCapOptions::from_json(&options).expect("good options");
    let kept = |tool| {
        let shaped = cap_with(options.clone()).shape(tool, ToolResult::text("x".repeat(900)));
        matches!(shaped.verdict, Verdict::Keep(Kept::ByName))
    };
    assert_eq!(
        (kept("view"), kept("read"), kept("viewer")),
        (true, false, false)
    );
}

#[test]
fn mixed_content_is_bounded_when_asked_for() {
    let picture = Block::Other(json!({"type": "image", "data": "aGk="}));
    let blocks = vec![
        picture.clone(),
        Block::Text("a".repeat(500)),
        picture.clone(),
        Block::Text("b".repeat(500)),
    ];
    let bench = cap_with(InlineCapOptions {
        mixed: Mixed::BoundText,
        ..InlineCapOptions::capped(400)
    });
    let result = ToolResult {
        blocks: blocks.clone(),
        ..ToolResult::default()
    };
    let shaped = bench.shape("tool", result);
    assert_eq!(bench.stored(&shaped), "a".repeat(500) + &"b".repeat(500));
    assert_eq!(shaped.canonical, Canonical::Blocks(blocks));
    let prompt: Value = serde_json::from_str(&shaped.prompt).expect("a content array");
    let kinds: Vec<_> = prompt
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["image", "text", "image"]);
    let Verdict::Replace { text, .. } = &shaped.verdict else {
        panic!("replaced")
    };
    assert_eq!(prompt[1]["text"].as_str(), Some(text.as_str()));
}

#[test]
fn a_mixed_result_that_would_grow_is_kept_and_nothing_is_stored() {
    // The notice's line feeds and quotes take two bytes each once they are JSON.
    let bench = cap_with(InlineCapOptions {
        mixed: Mixed::BoundText,
        retrieval_hint: "\"\"\"\"\"\"\"\"\"\"".to_owned(),
        ..InlineCapOptions::capped(400)
    });
    let result = ToolResult {
        blocks: vec![
            Block::Text("x".repeat(401)),
            Block::Other(json!({"type": "image"})),
        ],
        ..ToolResult::default()
    };
    let shaped = bench.shape("tool", result);
    assert!(matches!(
        shaped.verdict.warning(),
        Some(Warning::NoticeTooLarge { .. })
    ));
    assert_eq!(bench.store.usage().stored, 0);
}

#[test]
fn the_log_copy_exempts_nobody_and_says_so() {
    let policy = spill_engine::InlineCap::new(InlineCapOptions::capped(300), memory(1 << 20));
    let owner = owner();
    let call = Call {
        sub_call: Some(3),
        ..Call::new("read", CALL).owned_by(&owner)
    };
    let text = "x".repeat(1_000);
    let shaped = policy.shape_log(&call, ToolResult::text(text.clone()));
    let spilled = spilled(&shaped);
    assert_eq!(
        (spilled.call.as_str(), spilled.arm),
        ("i1c0:code:3", Arm::Dispatch)
    );
    assert_eq!(
        *shaped.record_text, text,
        "the program has the whole result"
    );
    let model = policy.shape(&call, ToolResult::text(text));
    assert_eq!(model.verdict, Verdict::Keep(Kept::Nested));
    let nobody = Call::new("read", CALL);
    let warning = policy
        .shape_log(&nobody, ToolResult::text("x".repeat(301)))
        .verdict;
    let warning = warning.warning().expect("a warning").to_string();
    assert_eq!(
        warning,
        "spill-policy: no session owner for read dispatch; keeping the inline content"
    );
}

#[test]
fn a_structured_value_is_bounded_as_its_json_and_comes_back() {
    let value = super::rows(100);
    let bench = capped(600);
    let shaped = bench.shape("tool", structured(value.clone()));
    assert_eq!(bench.stored(&shaped), value.to_string());
    assert_eq!(shaped.canonical, Canonical::Value(value));
}

fn check_options(options: Value, outcome: Result<Option<u64>, &str>) {
    let read = InlineCapOptions::from_json(&options);
    let read = read
        .map(|options| options.max_inline_bytes)
        .map_err(|error| error.to_string());
    assert_eq!(read, outcome.map_err(str::to_owned), "{options}");
}

#[test]
fn a_bad_cap_fails_the_load() {
    check_options(json!({}), Ok(None));
    check_options(json!({"maxInlineBytes": 0}), Ok(Some(0)));
    check_options(json!({"maxInlineBytes": 50_000}), Ok(Some(50_000)));
    check_options(json!({"maxInlineBytes": 5e3}), Ok(Some(5_000)));
    check_options(json!({"maxInlineBytes": u64::MAX}), Ok(Some(u64::MAX)));
    for (cap, got) in [
        (json!(-1), "-1"),
        (json!(1.5), "1.5"),
        (json!("8"), "\"8\""),
        (Value::Null, "null"),
    ] {
        let refusal =
            format!("spill-policy: maxInlineBytes must be a non-negative integer (got {got})");
        check_options(json!({"maxInlineBytes": cap}), Err(&refusal));
    }
    assert!(
        InlineCapOptions::from_json(&json!({"maxInlineByte": 1})).is_err(),
        "a misspelt name"
    );
    assert!(InlineCapOptions::from_json(&json!([])).is_err());
}

#[test]
fn debug_output_holds_no_content() {
    let bench = capped(300);
    let shaped = bench.text("secret ".repeat(300));
    let debug = format!("{shaped:?} {:?}", shaped.verdict);
    assert!(!debug.contains("secret"), "{debug}");
    let owner = Owner::new("x");
    let call = Call::new("tool", CALL).owned_by(&owner);
    assert!(
        !format!(
            "{:?}",
            bench.policy.shape(&call, structured(json!({"secret": 1})))
        )
        .contains("secret")
    );
}
