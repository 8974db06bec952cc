//! A composite tool's own calls: whole for the tool, bounded for the record, in nobody's way.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use spill_agent::{
    AbortSignal, EndReason, SpillSettings, StepResult, SubCall, ToolAnswer, run_step,
};
use spill_engine::ToolResult;

use crate::ports::{
    FnTools, ScriptedModel, Turn, answer, calls, envelope, inline_cap, job, off, printed,
    result_text, text_of, threshold,
};

/// `both` asks for a large and a small text and joins them.
fn composite(_name: &str, _arguments: &Map<String, Value>) -> ToolAnswer {
    let sub_call = |size, result| SubCall {
        tool: "text".to_owned(),
        arguments: Map::from_iter([("size".to_owned(), json!(size))]),
        result,
    };
    ToolAnswer {
        result: ToolResult::text(format!("{}{}", text_of(9_000), text_of(30))),
        sub_calls: vec![
            sub_call(9_000, ToolResult::text(text_of(9_000))),
            sub_call(30, ToolResult::error(text_of(30))),
            sub_call(8_000, ToolResult::text(text_of(8_000))),
        ],
    }
}

const TOOLS: FnTools = FnTools {
    names: &["both"],
    answer: composite,
};

async fn run(settings: impl Into<SpillSettings>) -> (ScriptedModel, StepResult) {
    let both = || calls(&[("both", "{}"), ("both", "{}")]);
    let model = ScriptedModel::new([both(), both(), answer("done")]);
    let result = run_step(&job(), settings, &model, &TOOLS, &AbortSignal::never()).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    (model, result)
}

fn whole() -> Value {
    json!([
        {"id": "i1c0:code:1", "name": "text", "arguments": {"size": 9_000}, "result": text_of(9_000), "isError": false},
        {"id": "i1c0:code:2", "name": "text", "arguments": {"size": 30}, "result": text_of(30), "isError": true},
        {"id": "i1c0:code:3", "name": "text", "arguments": {"size": 8_000}, "result": text_of(8_000), "isError": false},
    ])
}

#[tokio::test(start_paused = true)]
async fn the_record_has_whole_copies_where_the_policy_bounds_none() {
    for settings in [off().into(), threshold(4096).into(), envelope(&[])] {
        let (_, result) = run(settings).await;
        assert_eq!(printed(&result)["toolsCalled"][0]["subCalls"], whole());
    }
}

#[tokio::test(start_paused = true)]
async fn the_inline_cap_bounds_the_records_copies_and_nothing_else() {
    let (model, result) = run(inline_cap(&[])).await;
    let record = printed(&result)["toolsCalled"].clone();
    let entry = &record[0];
    assert_eq!(
        entry["result"].as_str().map(str::len),
        Some(9_030),
        "the composite call's own result stays whole in the record"
    );
    let copies = entry["subCalls"].as_array().expect("three");
    let sizes: Vec<usize> = copies
        .iter()
        .map(|copy| copy["result"].as_str().expect("a text").len())
        .collect();
    assert!(sizes[0] <= 4_096 && sizes[2] <= 4_096, "{sizes:?}");
    assert_eq!(copies[1], whole()[1]);
    let notice = copies[0]["result"].as_str().expect("a text");
    assert!(notice.contains("bytes. Full formatted result stored at: "));
    assert!(result_text(&model.bodies()[1], 3).len() <= 4_096);
    // Four composite results left the prompt; copies for the record did not.
    assert_eq!(result.spill.persisted, 4);
    assert_eq!(result.spill.persisted_by_tool.len(), 1);
    assert_eq!(result.spill.persisted_bytes, 4 * 9_030);
    assert_eq!(result.spill.store_peak_bytes, 4 * (9_030 + 9_000 + 8_000));
    let body = json!({"toolsCalled": record, "finalAnswer": "done"});
    assert_eq!(result.body_bytes, body.to_string().len() as u64);
}

/// The copies are made beside the loop: their names must not get into those of the prompts.
#[tokio::test(start_paused = true)]
async fn the_copies_change_no_prompt_and_have_the_same_names_each_time() {
    let (model, result) = run(inline_cap(&[])).await;
    for _ in 0..5 {
        let (again, other) = run(inline_cap(&[])).await;
        assert!(model.requests() == again.requests());
        assert_eq!(printed(&result), printed(&other));
    }
}

/// A step that is cut off keeps what its tools called.
#[tokio::test(start_paused = true)]
async fn a_step_that_times_out_keeps_the_sub_calls() {
    let model = ScriptedModel::new([calls(&[("both", "{}")]), Turn::Hang]);
    let never = AbortSignal::never();
    let result = run_step(&job(), inline_cap(&[]), &model, &TOOLS, &never).await;
    assert_eq!(result.end_reason, EndReason::Timeout);
    let entry = printed(&result)["toolsCalled"][0]["subCalls"].clone();
    assert_eq!(entry.as_array().map(Vec::len), Some(3));
    assert_eq!(entry[1], whole()[1]);
}

fn in_files(directory: &Path) -> SpillSettings {
    inline_cap(&[
        ("SPILLGATE_STORE", "file"),
        ("SPILLGATE_STORE_DIR", directory.to_str().expect("a text")),
    ])
}

/// Names in a store's directory, without its lock.
fn left_in(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name != ".lock").count()
}

/// The copies share the results' directory, not the order of their names, and go with them.
#[tokio::test(start_paused = true)]
async fn copies_in_files_change_no_prompt_and_leave_none_behind() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().canonicalize().expect("it exists");
    let (model, result) = run(in_files(&home.join("0/spill"))).await;
    assert_eq!(result.spill.persisted, 4);
    for number in 1..5 {
        let directory = home.join(format!("{number}/spill"));
        let (again, other) = run(in_files(&directory)).await;
        assert!(model.requests() == again.requests());
        assert_eq!(printed(&result), printed(&other));
        assert_eq!(left_in(&directory), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_step_that_is_cut_off_leave_no_file_behind() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().canonicalize().expect("it exists").join("spill");
    let model = ScriptedModel::new([calls(&[("both", "{}")]), Turn::Hang]);
    let never = AbortSignal::never();
    let result = run_step(&job(), in_files(&directory), &model, &TOOLS, &never).await;
    assert_eq!(result.end_reason, EndReason::Timeout);
    assert_eq!(left_in(&directory), 0);
}
