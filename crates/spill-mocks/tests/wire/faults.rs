//! Planned faults as a client meets them.

use std::sync::Arc;

use serde_json::{Value, json};
use spill_mocks::MockRun;
use spill_scenario::{FaultKind, LlmFault, PlannedFault, ToolFault};

use crate::{Mocks, json_of, request, rpc, run};

fn faulty(kind: FaultKind, call: u64) -> MockRun {
    let fault = PlannedFault {
        kind,
        call,
        times: 1,
        end_reason: None,
    };
    MockRun {
        faults: Arc::from([fault]),
        ..run("r1")
    }
}

async fn with_llm(fault: LlmFault) -> Mocks {
    let mocks = Mocks::start().await;
    mocks.registry.register(faulty(FaultKind::Llm(fault), 1));
    mocks
}

/// Sends one request in a dialect; the answer, which may break off.
async fn ask(mocks: &Mocks, path: &str, body: &Value) -> reqwest::Result<(u16, String)> {
    let url = format!("{}{path}", mocks.llm.root_url("r1"));
    let response = mocks.client.post(url).body(body.to_string()).send().await?;
    let status = response.status().as_u16();
    Ok((status, response.text().await?))
}

const APIS: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1beta/models/simulated:generateContent",
];

fn body_of(path: &str, stream: bool) -> Value {
    match path {
        "/v1/responses" => json!({"model": "simulated", "input": "Review.", "stream": stream}),
        "/v1/messages" => json!({"model": "simulated", "max_tokens": 9, "stream": stream,
            "messages": [{"role": "user", "content": "Review."}]}),
        "/v1/chat/completions" => json!({"model": "simulated", "stream": stream,
            "messages": [{"role": "user", "content": "Review."}]}),
        _ => json!({"contents": [{"role": "user", "parts": [{"text": "Review."}]}]}),
    }
}

/// The status and the word for the error in each dialect, in the order of [`APIS`].
async fn check_refusal(fault: LlmFault, expected: [(u16, &str, &str); 4]) {
    for (path, (status, place, word)) in APIS.into_iter().zip(expected) {
        let mocks = with_llm(fault).await;
        let (told, body) = ask(&mocks, path, &body_of(path, false))
            .await
            .expect("an answer");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(told, status, "{path} {fault:?}");
        assert_eq!(
            body.pointer(place),
            Some(&json!(word)),
            "{path} {fault:?}: {body}"
        );
        let journal = mocks.registry.finish("r1");
        assert_eq!(journal.llm[0].fault, Some(fault.name()));
        assert_eq!(journal.llm[0].status, status);
        assert_eq!(journal.llm[0].output_tokens, 0);
    }
}

#[tokio::test]
async fn refusals_have_each_providers_status_and_words() {
    let (code, kind, status) = ("/error/code", "/error/type", "/error/status");
    let limit = LlmFault::RateLimit {
        retry_after_ms: Some(1500),
    };
    check_refusal(
        limit,
        [
            (429, code, "rate_limit_exceeded"),
            (429, code, "rate_limit_exceeded"),
            (429, kind, "rate_limit_error"),
            (429, status, "RESOURCE_EXHAUSTED"),
        ],
    )
    .await;
    check_refusal(
        LlmFault::Unavailable,
        [
            (503, kind, "server_error"),
            (503, kind, "server_error"),
            (529, kind, "overloaded_error"),
            (503, status, "UNAVAILABLE"),
        ],
    )
    .await;
    check_refusal(
        LlmFault::ServerError,
        [
            (500, kind, "server_error"),
            (500, kind, "server_error"),
            (500, kind, "api_error"),
            (500, status, "INTERNAL"),
        ],
    )
    .await;
    check_refusal(
        LlmFault::Unauthorized,
        [
            (401, code, "invalid_api_key"),
            (401, code, "invalid_api_key"),
            (401, kind, "authentication_error"),
            (401, status, "UNAUTHENTICATED"),
        ],
    )
    .await;
    check_refusal(
        LlmFault::ContextWindow,
        [
            (400, code, "context_length_exceeded"),
            (400, code, "context_length_exceeded"),
            (400, kind, "invalid_request_error"),
            (400, status, "INVALID_ARGUMENT"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_again() {
    let fault = LlmFault::RateLimit {
        retry_after_ms: Some(1500),
    };
    let mocks = with_llm(fault).await;
    let answer = mocks.chat("r1", request(&json!({}))).await;
    assert_eq!(answer.headers()["retry-after"], "2");
    assert_eq!(answer.headers()["retry-after-ms"], "1500");
    // The fault is over: the same request is answered.
    assert_eq!(mocks.chat("r1", request(&json!({}))).await.status(), 200);
}

#[tokio::test]
async fn connections_break_before_and_within_an_answer() {
    for fault in [
        LlmFault::Reset,
        LlmFault::CutStream,
        LlmFault::Timeout { delay_ms: 5 },
    ] {
        for path in APIS {
            for stream in [false, true] {
                let mocks = with_llm(fault).await;
                let broken = ask(&mocks, path, &body_of(path, stream)).await;
                assert!(broken.is_err(), "{fault:?} {path}: {broken:?}");
                let entry = &mocks.registry.finish("r1").llm[0];
                assert_eq!(
                    (entry.status, entry.finish_reason.as_str()),
                    (0, fault.name())
                );
                assert_eq!(entry.output_tokens + entry.uncached_input_tokens, 0);
            }
        }
    }
}

#[tokio::test]
async fn a_stream_fails_with_the_providers_own_event() {
    for (path, expected) in [
        ("/v1/chat/completions", "data: {\"error\":"),
        ("/v1/responses", "event: error\ndata: {\"type\":\"error\""),
        ("/v1/messages", "event: error\ndata: {\"type\":\"error\""),
    ] {
        let mocks = with_llm(LlmFault::StreamError).await;
        let (status, body) = ask(&mocks, path, &body_of(path, true))
            .await
            .expect("an answer");
        let last = body.trim_end().rsplit("\n\n").next().expect("an event");
        assert_eq!(status, 200, "{path}");
        assert!(last.starts_with(expected), "{path}: {last}");
        let mocks = with_llm(LlmFault::StreamError).await;
        let (status, _) = ask(&mocks, path, &body_of(path, false))
            .await
            .expect("an answer");
        assert_eq!(status, 500, "{path}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_and_answers_without_a_choice() {
    for path in APIS {
        let mocks = with_llm(LlmFault::MalformedJson).await;
        let (status, body) = ask(&mocks, path, &body_of(path, false))
            .await
            .expect("an answer");
        assert_eq!(status, 200);
        assert!(
            serde_json::from_str::<Value>(&body).is_err(),
            "{path}: {body}"
        );
        let mocks = with_llm(LlmFault::EmptyChoice).await;
        let (_, body) = ask(&mocks, path, &body_of(path, false))
            .await
            .expect("an answer");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let list = ["choices", "output", "content", "candidates"];
        let found = list.iter().find_map(|name| body.get(*name));
        assert_eq!(found, Some(&json!([])), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_dripped_answer_is_the_answer() {
    for path in APIS {
        for stream in [false, true] {
            let plain = Mocks::start().await;
            let expected = ask(&plain, path, &body_of(path, stream))
                .await
                .expect("an answer");
            let mocks = with_llm(LlmFault::SlowDrip { delay_ms: 1 }).await;
            let dripped = ask(&mocks, path, &body_of(path, stream))
                .await
                .expect("an answer");
            assert_eq!(dripped, expected, "{path}");
            let entry = &mocks.registry.finish("r1").llm[0];
            assert_eq!((entry.status, entry.fault), (200, Some("slow_drip")));
            assert!(entry.output_tokens > 0);
        }
    }
}

#[tokio::test]
async fn what_the_model_says_wrongly_stands_in_its_calls() {
    let calls = |answer: &Value| answer["choices"][0]["message"]["tool_calls"].clone();
    let ask = async |fault| {
        let mocks = with_llm(fault).await;
        calls(&json_of(mocks.chat("r1", request(&json!({}))).await).await)
    };
    let function =
        |calls: &Value, name: &str| calls[0]["function"][name].as_str().map(str::to_owned);
    let malformed = function(&ask(LlmFault::MalformedArguments).await, "arguments").expect("text");
    assert!(
        serde_json::from_str::<Value>(&malformed).is_err(),
        "{malformed}"
    );
    let unknown = ask(LlmFault::UnknownTool).await;
    assert_eq!(function(&unknown, "name").as_deref(), Some("no_such_tool"));
    let twice = ask(LlmFault::DuplicateCallId).await;
    assert_eq!(twice.as_array().map(Vec::len), Some(2));
    assert_eq!(twice[0]["id"], twice[1]["id"]);
    let lost = ask(LlmFault::HallucinatedReference).await;
    assert!(
        function(&lost, "arguments")
            .expect("text")
            .contains("no-such-name")
    );
    let mocks = with_llm(LlmFault::EmptyAnswer).await;
    let empty = json_of(mocks.chat("r1", request(&json!({}))).await).await;
    assert_eq!(empty["choices"][0]["message"]["content"], "");
}

async fn tool(fault: ToolFault) -> reqwest::Result<(u16, String, String)> {
    let mocks = Mocks::start().await;
    mocks.registry.register(faulty(FaultKind::Tools(fault), 2));
    let call = rpc(
        "tools/call",
        &json!({"name": "list_changed_files", "arguments": {}}),
    );
    let send = || {
        let request = mocks.client.post(mocks.llm.tools_url("r1"));
        request.body(call.to_string()).send()
    };
    let first = send().await?.text().await?;
    assert!(
        first.contains("\"isError\":false"),
        "the first call is spared: {first}"
    );
    let response = send().await?;
    let kind = response.headers()["content-type"]
        .to_str()
        .expect("text")
        .to_owned();
    let status = response.status().as_u16();
    let body = response.text().await;
    let journal = mocks.registry.finish("r1");
    assert_eq!(journal.tools[1].fault, Some(fault.name()));
    Ok((status, kind, body?))
}

#[tokio::test]
async fn tool_calls_fail_in_each_way() {
    let json_kind = "application/json".to_owned();
    let (status, kind, body) = tool(ToolFault::ErrorResult).await.expect("an answer");
    assert_eq!((status, &kind), (200, &json_kind));
    assert!(body.contains("\"isError\":true"), "{body}");
    let (status, kind, _) = tool(ToolFault::WrongContentType).await.expect("an answer");
    assert_eq!((status, kind.as_str()), (200, "text/html"));
    let (status, _, _) = tool(ToolFault::HttpError { status: 503 })
        .await
        .expect("an answer");
    assert_eq!(status, 503);
    let (_, kind, body) = tool(ToolFault::MalformedJson).await.expect("an answer");
    assert!(
        kind == json_kind && serde_json::from_str::<Value>(&body).is_err(),
        "{body}"
    );
    let (_, _, body) = tool(ToolFault::Binary).await.expect("an answer");
    let result: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(result["result"]["content"][0]["type"], "image");
    let (_, _, body) = tool(ToolFault::LoneSurrogate).await.expect("an answer");
    assert!(body.contains("\\ud83e\""), "{body}");
    let (_, _, body) = tool(ToolFault::Slow { delay_ms: 1 })
        .await
        .expect("an answer");
    assert!(body.contains("\"isError\":false"), "{body}");
    assert!(tool(ToolFault::Cut).await.is_err());
    assert!(tool(ToolFault::Timeout { delay_ms: 1 }).await.is_err());
}
