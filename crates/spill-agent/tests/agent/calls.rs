//! Tool calls: order, errors, and which tools may be called.

use serde_json::{Value, json};
use spill_agent::{AbortSignal, EndReason, StepJob, run_step};
use spill_engine::{READ_TOOL, Settings};
use tokio::time::Instant;

use crate::ports::{
    ScriptedModel, TOOLS, TextTools, answer, calls, job, printed, read, run, threshold,
};

/// Known fault 59: earendil-works/pi #7053.
/// Known fault 60: anthropics/claude-code #31330.
#[tokio::test(start_paused = true)]
async fn parallel_calls_run_side_by_side_and_stay_in_call_order() {
    let model = ScriptedModel::new([
        calls(&[
            ("text", r#"{"size":31,"ms":300}"#),
            ("text", r#"{"size":32,"ms":200}"#),
            ("text", r#"{"size":33,"ms":100}"#),
        ]),
        answer("done"),
    ]);
    let started = Instant::now();
    let result = printed(&run(Settings::DEFAULT, &model).await);
    assert_eq!(started.elapsed().as_millis(), 300);
    let sizes: Vec<_> = (0..3)
        .map(|index| {
            result["toolsCalled"][index]["result"]
                .as_str()
                .map(str::len)
        })
        .collect();
    assert_eq!(sizes, [Some(31), Some(32), Some(33)]);
    let body = &model.bodies()[1];
    let ids: Vec<_> = (3..6)
        .map(|index| body["messages"][index]["tool_call_id"].as_str())
        .collect();
    assert_eq!(ids, [Some("c0"), Some("c1"), Some("c2")]);
}

/// The model calls once; the step goes on, and the model is told `message` as an error.
async fn check_told(name: &str, arguments: &str, recorded: Value, message: &str) {
    let model = ScriptedModel::new([calls(&[(name, arguments)]), answer("done")]);
    let result = run(Settings::DEFAULT, &model).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{name} {arguments}");
    assert_eq!(
        model.last_content(),
        format!("<tool-result error=\"true\">\n{message}\n</tool-result>")
    );
    assert_eq!(
        printed(&result)["toolsCalled"],
        json!([{"name": name, "arguments": recorded, "result": message, "isError": true}])
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_model_gets_wrong_is_told_to_it() {
    let way_out = "(call again with one JSON object)";
    check_told(
        "text",
        "{\"size\":",
        json!({}),
        &format!(
            "the arguments are not a JSON object: EOF while parsing a value at line 1 column 8 {way_out}"
        ),
    )
    .await;
    check_told(
        "text",
        "[1]",
        json!({}),
        &format!(
            "the arguments are not a JSON object: invalid type: sequence, expected a map at line 1 column 0 {way_out}"
        ),
    )
    .await;
    let known = "(call one of: text, fail, hang, lost)";
    check_told(
        "nope",
        "{\"a\":1}",
        json!({"a": 1}),
        &format!("there is no tool \"nope\" {known}"),
    )
    .await;
    check_told(
        "nope",
        "{",
        json!({}),
        &format!("there is no tool \"nope\" {known}"),
    )
    .await;
    check_told(
        "",
        "{}",
        json!({}),
        &format!("there is no tool \"\" {known}"),
    )
    .await;
    check_told(
        READ_TOOL,
        "{}",
        json!({}),
        &format!("there is no tool \"{READ_TOOL}\" {known}"),
    )
    .await;
    check_told("fail", "{}", json!({}), "tool call failed: it broke").await;
}

#[tokio::test(start_paused = true)]
async fn empty_arguments_are_no_arguments() {
    let model = ScriptedModel::new([calls(&[("text", " ")]), answer("done")]);
    let result = printed(&run(Settings::DEFAULT, &model).await);
    assert_eq!(result["toolsCalled"][0]["arguments"], json!({}));
    assert_eq!(result["toolsCalled"][0]["isError"], json!(false));
}

#[tokio::test(start_paused = true)]
async fn a_refused_read_is_an_ordinary_error() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#)]),
        read(9, 9, 1),
        answer("done"),
    ]);
    let result = run(threshold(4096), &model).await;
    assert_eq!(result.end_reason, EndReason::Answered);
    assert_eq!(result.spill.reads, 0);
    assert!(
        model
            .last_content()
            .starts_with("<tool-result error=\"true\">\nnot found")
    );
    assert_eq!(printed(&result)["toolsCalled"][1]["isError"], json!(true));
}

async fn offered(job: &StepJob) -> (Vec<String>, Vec<String>, Value) {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#)]),
        read(1, 0, 4),
        answer("done"),
    ]);
    let result = run_step(job, threshold(4096), &model, &TOOLS, &AbortSignal::never()).await;
    let read_entry = printed(&result)["toolsCalled"][1].clone();
    (model.offered(0), model.offered(1), read_entry)
}

#[tokio::test(start_paused = true)]
async fn the_read_tool_passes_the_allow_list_after_the_first_stored_result() {
    let job = StepJob {
        allowed_tools: Some(vec!["text".to_owned()]),
        ..job()
    };
    let (first, second, entry) = offered(&job).await;
    assert_eq!(first, ["text"]);
    assert_eq!(second, ["text", READ_TOOL]);
    assert_eq!(entry["bytes"], json!(4));
}

#[tokio::test(start_paused = true)]
async fn an_explicit_exclude_of_the_read_tool_wins() {
    let job = StepJob {
        excluded_tools: vec![READ_TOOL.to_owned()],
        ..job()
    };
    let (first, second, entry) = offered(&job).await;
    assert_eq!(first, ["text", "fail", "hang", "lost"]);
    assert_eq!(second, first);
    assert_eq!(entry["isError"], json!(true));
}

#[tokio::test(start_paused = true)]
async fn a_tool_outside_the_allow_list_is_not_called() {
    let job = StepJob {
        allowed_tools: Some(vec!["fail".to_owned()]),
        ..job()
    };
    let tools = TextTools::new(&["text", "fail"]);
    let model = ScriptedModel::new([calls(&[("text", "{}")]), answer("done")]);
    run_step(
        &job,
        Settings::DEFAULT,
        &model,
        &tools,
        &AbortSignal::never(),
    )
    .await;
    assert_eq!(tools.called(), 0);
    assert!(
        model
            .last_content()
            .contains("there is no tool \"text\" (call one of: fail)")
    );
}
