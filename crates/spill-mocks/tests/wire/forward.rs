//! The LLM server as a forwarding recorder, in front of endpoints that follow a script.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use spill_mocks::{
    Attempt, BilledTokens, Endpoint, EndpointKey, Gate, Journal, LlmCallEntry, LlmServer, Registry,
    Upstream, UpstreamOptions,
};
use spill_tokens::TokenCounter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{LOCAL, run};

pub(crate) const KEY: &str = "sk-canary-0123456789";
pub(crate) const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
pub(crate) const MESSAGES: &str = "/v1/messages";

/// How an endpoint answers each request.
#[derive(Clone)]
pub(crate) enum Script {
    /// With these bytes; then it closes the connection.
    Says(String),
    /// Never.
    Silent,
}

/// An answer with a length, or without one where it is cut short.
pub(crate) fn answer(status: &str, kind: &str, more: &str, body: &str) -> Script {
    Script::Says(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n{body}",
        body.len()
    ))
}

pub(crate) fn says(body: &Value) -> Script {
    answer("200 OK", "application/json", "", &body.to_string())
}

pub(crate) fn streams(events: &str) -> Script {
    answer("200 OK", "text/event-stream", "", events)
}

/// Ten bytes more are announced than are sent.
pub(crate) fn cut(kind: &str, body: &str) -> Script {
    Script::Says(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len() + 10
    ))
}

/// An endpoint, and the requests that reached it.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(LOCAL).await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                requests.lock().expect("no panic").push(request);
                match &script {
                    Script::Says(bytes) => {
                        drop(stream.write_all(bytes.as_bytes()).await);
                        drop(stream.shutdown().await);
                    }
                    Script::Silent => std::future::pending().await,
                }
            }
        });
        Self { address, seen }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

/// Head and body of a request that says its length.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut held = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap_or(0);
        held.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&held).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        if read == 0 {
            return text;
        }
    }
}

/// Model, what was billed, what is estimated, and whether an answer came.
pub(crate) type Settled = (String, Option<BilledTokens>, BilledTokens, bool);

/// A gate that keeps what it is told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    is_shut: bool,
    pub(crate) settled: Mutex<Vec<Settled>>,
}

impl Gate for Told {
    fn admits(&self) -> bool {
        !self.is_shut
    }

    fn settle(&self, attempt: &Attempt<'_>) {
        self.settled.lock().expect("no panic").push((
            attempt.model.to_owned(),
            attempt.billed,
            attempt.estimated,
            attempt.is_answered,
        ));
    }
}

pub(crate) struct Recorder {
    pub(crate) registry: Arc<Registry>,
    llm: LlmServer,
    pub(crate) told: Arc<Told>,
    pub(crate) upstream: Arc<Upstream>,
}

impl Recorder {
    pub(crate) async fn before(api: &str, address: SocketAddr, is_shut: bool) -> Self {
        Self::patient(api, address, is_shut, Duration::from_secs(30)).await
    }

    async fn patient(
        api: &str,
        address: SocketAddr,
        is_shut: bool,
        read_timeout: Duration,
    ) -> Self {
        let path = if api == "openai" { "/v1" } else { "" };
        let endpoint = Endpoint::parse(&format!("{api}:http://{address}{path}"));
        let options = UpstreamOptions {
            connect_timeout: Duration::from_secs(5),
            read_timeout,
            extra_roots: None,
        };
        let told = Arc::new(Told {
            is_shut,
            ..Told::default()
        });
        let upstream = Arc::new(
            Upstream::new(
                endpoint.expect("an endpoint"),
                EndpointKey::new(KEY).expect("a key"),
                &options,
                Arc::clone(&told) as Arc<dyn Gate>,
            )
            .expect("no certificates are given"),
        );
        let tokens = Arc::new(TokenCounter::o200k_base());
        let registry = Arc::new(Registry::forwarding(tokens, Arc::clone(&upstream)));
        registry.register(run("r1"));
        Self {
            llm: LlmServer::start(LOCAL, Arc::clone(&registry))
                .await
                .expect("a free port"),
            registry,
            told,
            upstream,
        }
    }

    /// Sends a request as a subject with the dummy key does; status, headers and the text, as far as it came.
    pub(crate) async fn ask(
        &self,
        path: &str,
        body: &Value,
    ) -> (u16, reqwest::header::HeaderMap, Option<String>) {
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        let request = client
            .post(format!("{}{path}", self.llm.root_url("r1")))
            .header("authorization", "Bearer dummy-key")
            .header("x-api-key", "dummy-key")
            .header("x-odd", "dummy-key")
            .body(body.to_string());
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.text().await.ok())
    }

    pub(crate) fn journal(&self) -> Journal {
        self.registry.finish("r1")
    }
}

pub(crate) fn body(path: &str, stream: bool) -> Value {
    match path {
        RESPONSES => json!({"model": "real-1", "input": "Review.", "stream": stream}),
        MESSAGES => json!({"model": "real-1", "max_tokens": 9, "stream": stream,
            "messages": [{"role": "user", "content": "Review."}]}),
        _ => json!({"model": "real-1", "stream": stream,
            "messages": [{"role": "user", "content": "Review."}]}),
    }
}

fn api_of(path: &str) -> &'static str {
    if path == MESSAGES {
        "anthropic"
    } else {
        "openai"
    }
}

/// One request through the recorder: what the subject got, and the journal's entry.
pub(crate) async fn through(
    path: &str,
    body: &Value,
    script: Script,
) -> (
    u16,
    Option<String>,
    LlmCallEntry,
    Option<String>,
    Scripted,
    Recorder,
) {
    let patience = Duration::from_millis(match script {
        Script::Says(_) => 30_000,
        Script::Silent => 300,
    });
    let endpoint = Scripted::start(script).await;
    let recorder = Recorder::patient(api_of(path), endpoint.address, false, patience).await;
    let (status, _, text) = recorder.ask(path, body).await;
    let mut journal = recorder.journal();
    assert_eq!(journal.llm.len(), 1, "each attempt is one entry");
    let entry = journal.llm.remove(0);
    (status, text, entry, journal.last_answer, endpoint, recorder)
}

pub(crate) fn buckets(entry: &LlmCallEntry) -> Option<[u64; 4]> {
    (!entry.usage_is_missing).then_some([
        entry.uncached_input_tokens,
        entry.cache_read_tokens,
        entry.cache_write_tokens,
        entry.output_tokens,
    ])
}

pub(crate) fn events(all: &[&str]) -> String {
    all.iter().map(|data| format!("data: {data}\n\n")).collect()
}

pub(crate) const CHAT_STREAM: [&str; 5] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"He"},"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"llo"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16}}}"#,
    "[DONE]",
];

pub(crate) const MESSAGES_STREAM: [&str; 6] = [
    r#"{"type":"message_start","message":{"content":[],"stop_reason":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":5,"cache_read_input_tokens":11,"output_tokens":1}}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"read_diff","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}}"#,
    r#"{"type":"message_stop"}"#,
];

/// What an answer is journalled as.
struct Expected<'a> {
    buckets: Option<[u64; 4]>,
    calls: &'a [&'a str],
    finish: &'a str,
    last: Option<&'a str>,
}

async fn check_answer(path: &str, stream: bool, script: Script, expected: Expected<'_>) {
    let sent = match &script {
        Script::Says(bytes) => bytes
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned()),
        Script::Silent => None,
    };
    let mut request = body(path, stream);
    if path == CHAT && stream {
        request["stream_options"] = json!({"include_usage": true});
    }
    let (status, text, entry, last, endpoint, recorder) = through(path, &request, script).await;
    assert_eq!(
        (status, &text),
        (200, &sent),
        "{path}: the answer goes on unchanged"
    );
    assert_eq!(buckets(&entry), expected.buckets, "{path}");
    assert_eq!(entry.calls_tools, expected.calls, "{path}");
    assert_eq!(
        (entry.status, &*entry.finish_reason),
        (200, expected.finish),
        "{path}"
    );
    assert_eq!(last.as_deref(), expected.last, "{path}");
    assert_eq!((entry.iteration, entry.lost), (1, None), "{path}");
    assert!(entry.context.user_bytes > 0 && entry.model_time_ms.is_some());
    let seen = endpoint.seen();
    assert_eq!(seen.len(), 1);
    let (head, received) = seen[0].split_once("\r\n\r\n").expect("a head");
    assert!(
        !seen[0].contains("dummy-key"),
        "the dummy key stays here: {head}"
    );
    assert_eq!(
        received,
        request.to_string(),
        "the request goes on unchanged"
    );
    let head = head.to_lowercase();
    if path == MESSAGES {
        assert!(head.contains(&format!("x-api-key: {KEY}")), "{head}");
        assert!(head.contains("anthropic-version: 2023-06-01"), "{head}");
    } else {
        assert!(
            head.contains(&format!("authorization: bearer {KEY}")),
            "{head}"
        );
    }
    let settled = recorder.told.settled.lock().expect("no panic").clone();
    let billed = settled[0]
        .1
        .map(|b| [b.uncached_input, b.cache_read, b.cache_write, b.output]);
    assert_eq!(
        (settled.len(), billed, settled[0].3),
        (1, expected.buckets, true)
    );
}

#[tokio::test]
async fn answers_of_every_api_are_read_on_the_way() {
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 16}});
    let said = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}], "usage": usage});
    let hello = |finish| Expected {
        buckets: Some([4, 16, 0, 3]),
        calls: &[],
        finish,
        last: Some("Hello"),
    };
    check_answer(CHAT, false, says(&said), hello("stop")).await;
    check_answer(CHAT, true, streams(&events(&CHAT_STREAM)), hello("stop")).await;
    let mut untold = said.clone();
    untold["usage"] = Value::Null;
    let expected = Expected {
        buckets: None,
        ..hello("stop")
    };
    check_answer(CHAT, false, says(&untold), expected).await;
    untold["usage"] = json!({"prompt_tokens": 0, "completion_tokens": 0});
    let expected = Expected {
        buckets: None,
        ..hello("stop")
    };
    check_answer(CHAT, false, says(&untold), expected).await;
    // Some servers leave out the last word.
    check_answer(
        CHAT,
        true,
        streams(&events(&CHAT_STREAM[..4])),
        hello("stop"),
    )
    .await;
    let called = json!({"choices": [{"message": {"content": null, "tool_calls": [
        {"id": "c", "function": {"name": "read_diff", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}], "usage": usage});
    let expected = Expected {
        buckets: Some([4, 16, 0, 3]),
        calls: &["read_diff"],
        finish: "tool_calls",
        last: None,
    };
    check_answer(CHAT, false, says(&called), expected).await;
    let response = json!({"status": "completed", "output": [
        {"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}],
        "usage": {"input_tokens": 20, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 16}}});
    check_answer(RESPONSES, false, says(&response), hello("completed")).await;
    let done = json!({"type": "response.completed", "response": response}).to_string();
    let stream = events(&[r#"{"type":"response.created","response":{}}"#, &done]);
    check_answer(RESPONSES, true, streams(&stream), hello("completed")).await;
    let tool_use = || Expected {
        buckets: Some([7, 11, 5, 30]),
        calls: &["read_diff"],
        finish: "tool_use",
        last: None,
    };
    check_answer(
        MESSAGES,
        true,
        streams(&events(&MESSAGES_STREAM)),
        tool_use(),
    )
    .await;
    let message = json!({"content": [{"type": "tool_use", "name": "read_diff"}], "stop_reason": "tool_use",
        "usage": {"input_tokens": 7, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 11, "output_tokens": 30}});
    check_answer(MESSAGES, false, says(&message), tool_use()).await;
}

#[tokio::test]
async fn usage_of_a_stream_is_asked_for_and_kept_from_those_who_did_not() {
    let script = streams(&events(&CHAT_STREAM));
    let (_, text, entry, last, endpoint, _) = through(CHAT, &body(CHAT, true), script).await;
    let without = [&CHAT_STREAM[..3], &CHAT_STREAM[4..]].concat();
    assert_eq!(text, Some(events(&without)));
    assert_eq!(buckets(&entry), Some([4, 16, 0, 3]));
    assert_eq!(last.as_deref(), Some("Hello"));
    assert!(endpoint.seen()[0].contains(r#""stream_options":{"include_usage":true}"#));
}
