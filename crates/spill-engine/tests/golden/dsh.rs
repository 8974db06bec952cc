//! Replays the golden values of DeepSeek Harness: retention, wording, and the policy in both layouts.

use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Accepted, Block, Call, CallId, InlineCap, InlineCapOptions, ItemRetainer, Kept, Omitted, Owner,
    Passed, Pipeline, Policy, Pushed, Shaped, Strategy, TextRetainer, ToolResult, Transformed,
    Verdict, Visibility, budget,
};

use super::support::{self, Noting, Row, built, check_differences};

pub(crate) const GOLDEN: &str = include_str!("../../../../fixtures/reference/golden-dsh.json");
/// The call that the golden file names `c1`.
const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

fn cases(part: &str, count: usize) -> Vec<Value> {
    let golden = support::golden(GOLDEN);
    let cases = golden[part].as_array().expect("cases").clone();
    assert_eq!(cases.len(), count, "{part}");
    cases
}

fn name_of(case: &Value) -> String {
    case["name"]
        .as_str()
        .map_or_else(|| case.to_string(), str::to_owned)
}

fn pushed(pushed: Pushed) -> Value {
    json!({"kept": pushed.kept, "truncated": pushed.truncated})
}

fn omitted(omitted: Omitted) -> Value {
    match omitted {
        Omitted::None => json!({"kind": "none"}),
        Omitted::Exact(count) => json!({"kind": "exact", "count": count}),
        Omitted::Unknown => json!({"kind": "unknown"}),
    }
}

fn chunk(chunk: &Value) -> Vec<u8> {
    match chunk {
        Value::String(text) => text.clone().into_bytes(),
        _ => {
            let hex = chunk["hex"].as_str().expect("hex");
            let byte = |digits| u8::from_str_radix(digits, 16).expect("two digits");
            hex.split(' ').map(byte).collect()
        }
    }
}

fn replay_text(case: &Value) -> Value {
    let mut retainer = match Strategy::from_json(&case["strategy"]) {
        Ok(strategy) => TextRetainer::new(strategy),
        Err(error) => return json!({"error": error.to_string()}),
    };
    let chunks = case["chunks"].as_array().expect("chunks");
    let pushes: Vec<_> = chunks
        .iter()
        .map(|one| pushed(retainer.push(chunk(one))))
        .collect();
    let kept = retainer.finish();
    json!({"pushes": pushes, "result": {
        "text": kept.text,
        "truncated": kept.truncated(),
        "omittedBytes": omitted(kept.omitted),
    }})
}

fn replay_items(case: &Value) -> Value {
    let mut retainer = match budget("maxItems", &case["maxItems"]) {
        Ok(most) => ItemRetainer::new(most),
        Err(error) => return json!({"error": error.to_string()}),
    };
    let items = case["items"].as_array().expect("items");
    let pushes: Vec<_> = items
        .iter()
        .map(|item| pushed(retainer.push(item.clone())))
        .collect();
    let kept = retainer.finish();
    json!({"pushes": pushes, "result": {
        "items": kept.items,
        "truncated": kept.truncated(),
        "seen": kept.seen,
        "kept": kept.items.len(),
        "omitted": omitted(kept.omitted),
    }})
}

fn compare(found: &mut Vec<(String, String)>, case: &Value, ours: &Value, values: &[&str]) {
    for what in values {
        if case[*what] != ours[*what] {
            found.push((name_of(case), (*what).to_owned()));
        }
    }
}

#[test]
fn every_retention_case_is_replayed() {
    let mut found = Vec::new();
    for case in cases("textRetainer", 23) {
        compare(
            &mut found,
            &case,
            &replay_text(&case),
            &["pushes", "result", "error"],
        );
    }
    for case in cases("itemRetainer", 4) {
        compare(
            &mut found,
            &case,
            &replay_items(&case),
            &["pushes", "result", "error"],
        );
    }
    for case in cases("wording", 3) {
        let count = case["omitted"]["count"].as_u64();
        let kind = case["omitted"]["kind"].as_str().expect("a kind");
        let omitted = match (kind, count) {
            ("none", _) => Omitted::None,
            ("exact", Some(count)) => Omitted::Exact(count),
            _ => Omitted::Unknown,
        };
        let text = omitted.wording(case["unit"].as_str().expect("a unit"));
        compare(&mut found, &case, &json!({"text": text}), &["text"]);
    }
    assert_eq!(RETENTION.len(), 2);
    check_differences("retention", &found, RETENTION);
}

/// What became of a case's call, under the names that the golden file uses.
fn replay_policy(case: &Value, layout: &str) -> Value {
    let mut options = case["config"].clone();
    options["layout"] = layout.into();
    options["retrievalHint"] = case["retrievalHint"].clone();
    let options = match InlineCapOptions::from_json(&options) {
        Ok(options) => options,
        Err(error) => return json!({"error": error.to_string(), "saves": [], "warnings": []}),
    };
    let off = options.max_inline_bytes.is_none();
    let store = Arc::new(Noting::new(case["locator"].as_str().expect("a locator")));
    let policy = Arc::new(InlineCap::new(options, store.clone()));
    let owner = case["session"].as_str().map(Owner::new);
    let dispatch = case["arm"] == json!("dispatch");
    let mut call = Call::new(case["tool"].as_str().expect("a tool"), CALL);
    call.owner = owner.as_ref();
    call.sub_call = dispatch.then_some(1);
    let input = ToolResult {
        blocks: blocks(&case["input"]),
        ..ToolResult::default()
    };
    let passed = if dispatch {
        Passed::Shaped {
            shaped: Box::new(policy.shape_log(&call, input.clone())),
            additional_contexts: vec![],
        }
    } else {
        let downstream = downstream(&case["downstreamDecision"]);
        let transform = move |_: &Call<'_>, _: &ToolResult| downstream.clone();
        let policy: Arc<dyn Policy> = policy;
        Pipeline::new()
            .around_all(policy)
            .transform(transform)
            .run(&call, input)
    };
    let mut outcome = outcome(&passed, off);
    if dispatch {
        outcome["decision"] = Value::Null;
        outcome["extraKeys"] = Value::Null;
    }
    outcome["saves"] = saves(&store, &passed);
    outcome
}

fn blocks(input: &Value) -> Vec<Block> {
    match built(input).expect("JSON") {
        Value::String(text) => vec![Block::Text(text)],
        Value::Array(blocks) => blocks
            .into_iter()
            .map(|block| match block["type"].as_str() {
                Some("text") => Block::Text(block["text"].as_str().expect("a text").to_owned()),
                _ => Block::Other(block),
            })
            .collect(),
        other => panic!("no content {other}"),
    }
}

fn downstream(decision: &Value) -> Transformed {
    if decision["kind"] == json!("block") {
        let feedback = decision["feedback"].as_str().expect("a text").to_owned();
        return Transformed::Block { feedback };
    }
    let contexts = decision["additionalContexts"].as_array();
    Transformed::Accept(Accepted {
        content: decision.get("content").map(blocks),
        value: decision.get("value").cloned(),
        additional_contexts: contexts.map_or(vec![], |texts| {
            let texts = texts.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }),
    })
}

fn outcome(passed: &Passed, off: bool) -> Value {
    let unchanged =
        |decision: &str| json!({"changed": false, "decision": decision, "warnings": []});
    match passed {
        Passed::Blocked { .. } => unchanged("block"),
        Passed::Value { .. } => unchanged("accept"),
        Passed::Shaped { shaped, .. } if off => {
            assert_eq!(shaped.verdict, Verdict::Keep(Kept::Off));
            json!({"warnings": []})
        }
        Passed::Shaped {
            shaped,
            additional_contexts,
        } => of_shaped(shaped, additional_contexts),
    }
}

fn of_shaped(shaped: &Shaped, additional_contexts: &[String]) -> Value {
    let warnings: Vec<_> = shaped
        .verdict
        .warning()
        .iter()
        .map(ToString::to_string)
        .collect();
    match &shaped.verdict {
        Verdict::Keep(_) => json!({"changed": false, "decision": "accept", "warnings": warnings}),
        Verdict::Replace { text, .. } => {
            assert_eq!(*text, shaped.prompt);
            let extra: &[&str] = match additional_contexts {
                [] => &[],
                _ => &["additionalContexts"],
            };
            json!({
                "changed": true,
                "decision": "accept",
                "output": text.as_str(),
                "outputBytes": text.len(),
                "extraKeys": extra,
                "warnings": warnings,
            })
        }
    }
}

fn saves(store: &Noting, passed: &Passed) -> Value {
    let saved = store.saved.lock().expect("one thread");
    let saves = saved.iter().map(|saved| {
        let Passed::Shaped { shaped, .. } = passed else {
            panic!("only a bounded result is stored");
        };
        let Verdict::Replace { spilled, .. } = &shaped.verdict else {
            panic!("only a replaced result is stored");
        };
        let owner = match &saved.head.visibility {
            Visibility::Only(owner) => json!({"sessionId": owner.as_str()}),
            Visibility::Anyone => Value::Null,
        };
        json!({
            "owner": owner,
            "source": {
                "toolName": spilled.tool,
                "callId": spilled.call.replace(&CALL.to_string(), "c1"),
                "label": spilled.arm.to_string(),
            },
            "suggestedName": saved.label,
            "contentBytes": saved.content.size().get(),
        })
    });
    saves.collect()
}

fn policy_differences(layout: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for case in cases("policy", 22) {
        let ours = replay_policy(&case, layout);
        let values = [
            "error",
            "changed",
            "decision",
            "output",
            "outputBytes",
            "extraKeys",
            "warnings",
            "saves",
        ];
        compare(&mut found, &case, &ours, &values);
    }
    found
}

#[test]
fn the_glued_layout_replays_every_case() {
    let found = policy_differences("glued");
    assert_eq!(GLUED.len(), 1);
    check_differences("glued", &found, GLUED);
}

#[test]
fn the_marked_layout_differs_where_a_weakness_is_mended() {
    let found = policy_differences("marked");
    assert_eq!(MARKED.len(), 8);
    check_differences("marked", &found, MARKED);
}

/// Differences of the retainers.
pub(crate) const RETENTION: &[Row] = &[
    Row {
        case: "tail: BOM at the start of the kept suffix is dropped by the decoder",
        what: &["result"],
        weakness: 13,
        ours: "a byte order mark is kept like any character",
    },
    Row {
        case: "head: BOM at stream start is dropped by the decoder (nothing omitted)",
        what: &["result"],
        weakness: 13,
        ours: "a byte order mark is kept like any character",
    },
];

/// Differences of the glued layout.
pub(crate) const GLUED: &[Row] = &[Row {
    case: "cap 0 with non-empty text: notice can never fit",
    what: &["saves"],
    weakness: 1,
    ours: "the notice is tested first, so no file is left that nobody is told of",
}];

/// Differences of the marked layout, which is the default.
pub(crate) const MARKED: &[Row] = &[
    Row {
        case: "odd preview budget: head gets the extra byte",
        what: &["output"],
        weakness: 2,
        ours: "one end alone where a marker takes too much of the cap",
    },
    Row {
        case: "even preview budget",
        what: &["output"],
        weakness: 2,
        ours: "one end alone where a marker takes too much of the cap",
    },
    Row {
        case: "head/tail markers visible",
        what: &["output"],
        weakness: 2,
        ours: "a marker with the count stands at the cut",
    },
    Row {
        case: "multi-byte text: cuts trimmed, omitted count grows",
        what: &["output", "outputBytes"],
        weakness: 2,
        ours: "one end alone where a marker takes too much of the cap",
    },
    Row {
        case: "cap = notice + 3: one byte of preview",
        what: &["output", "outputBytes"],
        weakness: 3,
        ours: "the byte reserved for a longer count is used",
    },
    Row {
        case: "cap 0 with non-empty text: notice can never fit",
        what: &["saves"],
        weakness: 1,
        ours: "the notice is tested first, so no file is left that nobody is told of",
    },
    Row {
        case: "several text blocks are joined without a separator",
        what: &["output"],
        weakness: 2,
        ours: "one end alone where a marker takes too much of the cap",
    },
    Row {
        case: "dispatch log arm label and sub-call id",
        what: &["output", "outputBytes"],
        weakness: 3,
        ours: "one end alone where a marker takes too much of the cap, and every byte of the cap is used",
    },
];
