//! One whole job over real sockets.

use std::time::Duration;

use serde_json::{Value, json};
use spill_agent::{AbortSignal, EndReason, StepJob, abort_pair, run_job};
use spill_engine::Settings;
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::method};

use crate::{
    mcp::{self, Script},
    openai::completion,
    ports::{job, text_of, threshold},
};

/// Calls two tools at once, then answers.
fn two_turns(request: &Request) -> ResponseTemplate {
    let body: Value = request.body_json().expect("a chat request");
    let messages = body["messages"].as_array().expect("messages").len();
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let message = if messages == 2 {
        json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [
            call("c0", "text", "{\"size\":300000}"), call("c1", "refuse", "{}"),
        ]})
    } else {
        json!({"role": "assistant", "content": "done", "refusal": null, "annotations": []})
    };
    ResponseTemplate::new(200).set_body_json(completion(&message))
}

pub(crate) struct Servers {
    model: MockServer,
    tools: MockServer,
}

pub(crate) async fn servers() -> Servers {
    let model = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(two_turns)
        .mount(&model)
        .await;
    Servers {
        model,
        tools: mcp::server(Script { session: None }).await,
    }
}

impl Servers {
    pub(crate) fn job(&self) -> StepJob {
        StepJob {
            llm_url: format!("{}/v1", self.model.uri()),
            mcp_url: format!("{}/mcp", self.tools.uri()),
            step_timeout_ms: 60_000,
            ..job()
        }
    }
}

#[tokio::test]
async fn a_job_runs_over_both_servers() {
    let servers = servers().await;
    let result = run_job(&servers.job(), Settings::DEFAULT, &AbortSignal::never())
        .await
        .expect("a possible job");
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    assert_eq!(result.spill.persisted, 1);
    let printed = serde_json::to_value(&result).expect("JSON");
    assert!(printed["toolsCalled"][0]["result"] == json!(text_of(300_000)));
    assert_eq!(
        printed["toolsCalled"][1]["result"],
        json!("tool call failed: no such path")
    );
    let requests = servers.model.received_requests().await.expect("recorded");
    assert_eq!(requests.len(), 2);
    assert!(requests[1].body.len() < 10_000);
}

#[tokio::test]
async fn an_abort_cuts_a_call_that_is_in_flight() {
    let servers = servers().await;
    let hanging = MockServer::start().await;
    let (handle, signal) = abort_pair();
    let on_request = move |_: &Request| {
        handle.abort("SIGTERM");
        ResponseTemplate::new(200).set_delay(Duration::from_secs(60))
    };
    Mock::given(method("POST"))
        .respond_with(on_request)
        .mount(&hanging)
        .await;
    let job = StepJob {
        llm_url: format!("{}/v1", hanging.uri()),
        ..servers.job()
    };
    let step = run_job(&job, threshold(4096), &signal);
    let result = tokio::time::timeout(Duration::from_secs(30), step)
        .await
        .expect("the abort cuts the call")
        .expect("a possible job");
    assert_eq!(result.end_reason, EndReason::Aborted);
    assert_eq!(result.abort_reason.as_deref(), Some("SIGTERM"));
    assert_eq!(result.llm_calls, 0);
}

/// An embedder may spawn a job on a multi-thread runtime.
#[tokio::test]
async fn a_job_may_move_between_threads() {
    let servers = servers().await;
    let job = servers.job();
    let running =
        tokio::spawn(async move { run_job(&job, Settings::DEFAULT, &AbortSignal::never()).await });
    let result = running.await.expect("no panic").expect("a possible job");
    assert_eq!(result.end_reason, EndReason::Answered);
}
