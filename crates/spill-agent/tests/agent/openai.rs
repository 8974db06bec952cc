//! The model client over real sockets.

use std::time::Duration;

use serde_json::{Value, json};
use spill_agent::{
    AbortSignal, ApiKey, EndReason, OpenAiChat, RetryPolicy, StepResult, http_client, run_step,
};
use spill_engine::Settings;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{header, method, path},
};

use crate::ports::{TOOLS, job};

const POLICY: RetryPolicy = RetryPolicy {
    max_retries: 2,
    base: Duration::from_millis(1),
};

pub(crate) fn completion(message: &Value) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    })
}

fn done() -> ResponseTemplate {
    ResponseTemplate::new(200)
        .set_body_json(completion(&json!({"role": "assistant", "content": "done"})))
}

async fn step_at(base_url: &str) -> StepResult {
    let client = http_client().expect("a client");
    let model = OpenAiChat::new(client, base_url, &ApiKey::new("key-1"), POLICY).expect("a client");
    run_step(
        &job(),
        Settings::DEFAULT,
        &model,
        &TOOLS,
        &AbortSignal::never(),
    )
    .await
}

/// The server answers `first` up to `times` times, then `done`.
async fn step_after(first: ResponseTemplate, times: u64) -> (StepResult, usize) {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(first)
        .up_to_n_times(times)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(done())
        .mount(&server)
        .await;
    let result = step_at(&format!("{}/v1", server.uri())).await;
    let requests = server.received_requests().await.expect("recorded");
    (result, requests.len())
}

#[tokio::test]
async fn a_request_is_one_body_with_key_and_length() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/run/7/v1/chat/completions"))
        .and(header("authorization", "Bearer key-1"))
        .and(header("content-type", "application/json"))
        .respond_with(done())
        .mount(&server)
        .await;
    let result = step_at(&format!("{}/run/7/v1/", server.uri())).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    assert_eq!(
        result
            .tokens_used
            .map(|used| (used.uncached_input, used.cache_read, used.output)),
        Some((60, 40, 5))
    );
    let requests = server.received_requests().await.expect("recorded");
    let length = requests[0].headers["content-length"]
        .to_str()
        .expect("digits");
    assert_eq!(length, requests[0].body.len().to_string());
    assert!(!requests[0].headers.contains_key("transfer-encoding"));
    assert!(
        requests[0]
            .body
            .starts_with(br#"{"model":"m","messages":[{"role":"system""#)
    );
}

async fn check_retried(status: u16, times: u64) {
    let (result, requests) = step_after(ResponseTemplate::new(status), times).await;
    assert_eq!(
        result.end_reason,
        EndReason::Answered,
        "{status}: {:?}",
        result.error
    );
    assert_eq!(u64::from(result.llm_retries), times, "{status}");
    assert_eq!(
        (result.llm_calls, requests as u64),
        (1, times + 1),
        "{status}"
    );
}

/// Known fault 73: open-telemetry/semantic-conventions-genai #476.
/// Known fault 74: NOFireAI/ravel #928.
#[tokio::test]
async fn passing_failures_are_retried_and_counted() {
    check_retried(429, 1).await;
    check_retried(500, 2).await;
    check_retried(503, 2).await;
    check_retried(529, 1).await;
}

/// Known fault 74: NOFireAI/ravel #928.
#[tokio::test]
async fn the_bound_on_retries_holds() {
    let (result, requests) = step_after(ResponseTemplate::new(500), 9).await;
    assert_eq!(result.end_reason, EndReason::ModelError);
    assert_eq!((result.llm_retries, requests), (2, 3));
    assert_eq!(
        result.error.as_deref(),
        Some("model call failed 3 times, last: HTTP 500 (raise `maxRetries` to wait longer)")
    );
}

#[tokio::test]
async fn the_servers_wait_is_honoured() {
    let wait = ResponseTemplate::new(429).insert_header("retry-after-ms", "30");
    let (result, _) = step_after(wait, 1).await;
    assert_eq!(
        (result.end_reason, result.llm_retries),
        (EndReason::Answered, 1)
    );
    assert!(result.duration_ms >= 30.0);

    let too_long = ResponseTemplate::new(429).insert_header("retry-after", "3600");
    let (result, requests) = step_after(too_long, 1).await;
    assert_eq!((result.end_reason, requests), (EndReason::ModelError, 1));
    assert_eq!(
        result.error.as_deref(),
        Some("model server asks to wait 3600000 ms, the limit is 60000 ms (run again later)")
    );
}

async fn check_final(answer: ResponseTemplate, reason: EndReason, error: &str) {
    let (result, requests) = step_after(answer, 1).await;
    assert_eq!(result.end_reason, reason);
    assert_eq!((result.llm_retries, requests), (0, 1));
    let message = result.error.expect("an error");
    assert!(message.contains(error), "{message}");
}

#[tokio::test]
async fn lasting_failures_are_not_retried() {
    let error = |status, code: &str| {
        ResponseTemplate::new(status).set_body_json(json!({"error": {
            "message": "no way", "type": "invalid_request_error", "param": null, "code": code,
        }}))
    };
    check_final(
        error(400, "context_length_exceeded"),
        EndReason::ContextWindow,
        "request exceeds the context window: no way",
    )
    .await;
    check_final(
        error(401, "invalid_api_key"),
        EndReason::ModelError,
        "model server answered 401: no way",
    )
    .await;
    check_final(
        ResponseTemplate::new(404),
        EndReason::ModelError,
        "model server answered 404",
    )
    .await;
    check_final(
        ResponseTemplate::new(302).insert_header("location", "http://127.0.0.1:1/"),
        EndReason::ModelError,
        "model server answered 302",
    )
    .await;
    let garbage = |body: &str| ResponseTemplate::new(200).set_body_string(body);
    check_final(
        garbage("<html>"),
        EndReason::ModelError,
        "not a chat completion",
    )
    .await;
    check_final(
        garbage(r#"{"choices":[]}"#),
        EndReason::ModelError,
        "`choices` is empty",
    )
    .await;
    let bytes = ResponseTemplate::new(200).set_body_bytes([0xff, 0x00, 0xc3]);
    check_final(bytes, EndReason::ModelError, "not a chat completion").await;
}

/// Known fault 70: NousResearch/hermes-agent #12023.
#[tokio::test]
async fn a_missing_usage_is_missing_in_the_result() {
    let mut body = completion(&json!({"role": "assistant", "content": "done"}));
    body["usage"].take();
    let (result, _) = step_after(ResponseTemplate::new(200).set_body_json(body), 1).await;
    assert_eq!(
        (result.end_reason, result.tokens_used),
        (EndReason::Answered, None)
    );
}

#[tokio::test]
async fn nobody_listening_is_retried_within_the_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let result = step_at(&format!("http://{address}/v1")).await;
    assert_eq!(
        (result.end_reason, result.llm_retries),
        (EndReason::ModelError, 2)
    );
    let message = result.error.expect("an error");
    assert!(message.contains("last: connection refused"), "{message}");
}

/// Cuts the connection of every request: the first before the answer, the second within it.
#[tokio::test]
async fn lost_connections_are_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let whole = completion(&json!({"role": "assistant", "content": "done"})).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        whole.len()
    );
    let answers = [
        String::new(),
        format!("{head}{}", &whole[..9]),
        format!("{head}{whole}"),
    ];
    let server = async {
        for answer in answers {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut request = vec![0; 65_536];
            let read = socket.read(&mut request).await.expect("a request");
            assert!(read > 0);
            socket
                .write_all(answer.as_bytes())
                .await
                .expect("an open socket");
        }
    };
    let base_url = format!("http://{address}/v1");
    let (result, ()) = futures::join!(step_at(&base_url), server);
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    assert_eq!(result.llm_retries, 2);
}
