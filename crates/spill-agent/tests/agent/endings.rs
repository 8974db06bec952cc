//! The ways a step ends without an answer.

use spill_agent::{
    AbortSignal, EndReason, ModelFailure, ModelReply, StepResult, StepStatus, ToolCall, abort_pair,
    run_step,
};
use spill_engine::Settings;

use crate::ports::{ScriptedModel, TOOLS, TextTools, Turn, answer, calls, job, printed, run};

fn check_end(result: &StepResult, status: StepStatus, reason: EndReason, error: Option<&str>) {
    assert_eq!(result.status, status);
    assert_eq!(result.end_reason, reason);
    assert_eq!(result.error.as_deref(), error);
    assert_eq!(result.final_answer, "");
    assert_eq!(
        result.hit_iteration_limit,
        reason == EndReason::IterationLimit
    );
}

#[tokio::test(start_paused = true)]
async fn the_iteration_limit_ends_the_step_after_its_last_calls() {
    let model = ScriptedModel::new((0..9).map(|_| calls(&[("text", r#"{"size":20}"#)])));
    let result = run(Settings::DEFAULT, &model).await;
    check_end(
        &result,
        StepStatus::Failed,
        EndReason::IterationLimit,
        Some("no answer within 5 iterations"),
    );
    assert_eq!((result.iterations, result.llm_calls), (5, 5));
    assert_eq!(result.tools_called.len(), 5);
}

async fn check_reply(reply: ModelReply, reason: EndReason, error: &str) {
    let model = ScriptedModel::new([Turn::Reply(reply)]);
    let result = run(Settings::DEFAULT, &model).await;
    check_end(&result, StepStatus::Failed, reason, Some(error));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_a_failure() {
    for content in [None, Some(""), Some(" \n\t")] {
        let reply = ModelReply {
            content: content.map(str::to_owned),
            ..ModelReply::default()
        };
        check_reply(reply, EndReason::EmptyAnswer, "the model answered nothing").await;
    }
}

/// Known fault 60: anthropics/claude-code #31330.
#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_told_apart_are_a_model_error() {
    for (ids, error) in [
        (["a", "a"], "tool call 1 repeats the id of an earlier one"),
        (["a", ""], "tool call 1 has an empty id"),
    ] {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "text".to_owned(),
            arguments: "{}".to_owned(),
        };
        let reply = ModelReply {
            tool_calls: ids.map(call).into(),
            ..ModelReply::default()
        };
        let message = format!("model server's answer is malformed: {error}");
        check_reply(reply, EndReason::ModelError, &message).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_call_ends_the_step_with_what_is_known() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":20}"#)]),
        Turn::Fail(ModelFailure::ContextWindow {
            message: "too long".to_owned(),
        }),
    ]);
    let result = run(Settings::DEFAULT, &model).await;
    check_end(
        &result,
        StepStatus::Failed,
        EndReason::ContextWindow,
        Some("request exceeds the context window: too long"),
    );
    assert_eq!(result.tools_called.len(), 1);
    assert_eq!((result.llm_calls, result.llm_retries), (1, 1));
    assert_eq!(result.tokens_used.map(|used| used.uncached_input), Some(60));
}

#[tokio::test(start_paused = true)]
async fn a_tool_server_out_of_reach_ends_the_step() {
    let model = ScriptedModel::new([answer("never asked")]);
    let none = TextTools::new(&[]);
    let result = run_step(
        &job(),
        Settings::DEFAULT,
        &model,
        &none,
        &AbortSignal::never(),
    )
    .await;
    check_end(
        &result,
        StepStatus::Failed,
        EndReason::ToolError,
        Some("tool server is out of reach: no server"),
    );
    assert_eq!(result.llm_calls, 0);

    let model = ScriptedModel::new([calls(&[("text", r#"{"size":20}"#), ("lost", "{}")])]);
    let result = run(Settings::DEFAULT, &model).await;
    check_end(
        &result,
        StepStatus::Failed,
        EndReason::ToolError,
        Some("tool server is out of reach: the line is cut"),
    );
    assert_eq!(result.tools_called.len(), 2);
}

/// Of three parallel calls the middle one stalls: the other two stay in the record, in order.
fn stalling() -> ScriptedModel {
    ScriptedModel::new([calls(&[
        ("text", r#"{"size":31}"#),
        ("hang", "{}"),
        ("text", r#"{"size":33,"ms":10}"#),
    ])])
}

fn check_completed_siblings(result: &StepResult) {
    let printed = printed(result);
    let called = printed["toolsCalled"].as_array().expect("an array");
    let sizes: Vec<_> = called
        .iter()
        .map(|entry| entry["result"].as_str().map(str::len))
        .collect();
    assert_eq!(sizes, [Some(31), Some(33)]);
}

/// Known fault 59: earendil-works/pi #7053.
#[tokio::test(start_paused = true)]
async fn a_timeout_keeps_what_is_done() {
    let result = run(Settings::DEFAULT, &stalling()).await;
    check_end(
        &result,
        StepStatus::TimedOut,
        EndReason::Timeout,
        Some("the step took longer than 1000 ms"),
    );
    assert!((result.duration_ms - 1000.0).abs() < 5.0);
    check_completed_siblings(&result);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_answers_times_out() {
    let result = run(Settings::DEFAULT, &ScriptedModel::new([Turn::Hang])).await;
    assert_eq!(result.end_reason, EndReason::Timeout);
    assert_eq!(result.tokens_used, None);
}

/// Known fault 59: earendil-works/pi #7053.
#[tokio::test(start_paused = true)]
async fn an_abort_keeps_the_callers_reason_and_what_is_done() {
    let (handle, signal) = abort_pair();
    let model = stalling();
    let job = job();
    let step = run_step(&job, Settings::DEFAULT, &model, &TOOLS, &signal);
    let caller = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        handle.abort("the user closed the window");
    };
    let (result, ()) = futures::join!(step, caller);
    check_end(&result, StepStatus::Aborted, EndReason::Aborted, None);
    assert_eq!(
        result.abort_reason.as_deref(),
        Some("the user closed the window")
    );
    check_completed_siblings(&result);
}

#[tokio::test(start_paused = true)]
async fn an_abort_before_the_start_asks_nobody() {
    let (handle, signal) = abort_pair();
    handle.abort("too late");
    let model = ScriptedModel::new([answer("never asked")]);
    let result = run_step(&job(), Settings::DEFAULT, &model, &TOOLS, &signal).await;
    check_end(&result, StepStatus::Aborted, EndReason::Aborted, None);
    assert_eq!((result.iterations, model.requests().len()), (0, 0));
}
