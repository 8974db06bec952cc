//! Faults that others reported of endpoints, recorders and mocks, each with its reproduction.

use std::sync::Arc;

use serde_json::{Value, json};
use spill_mocks::{Journal, MockRun};
use spill_scenario::{FaultKind, LatencyRecord, LlmFault, ModelSpec, PlannedFault};

use crate::{Mocks, json_of, request, run};

const LATENCY: LatencyRecord = LatencyRecord {
    overhead_ms: 100.0,
    uncached_token_ms: 1.0,
    output_token_ms: 0.0,
    queue_ms: 0.0,
    sleep_scale: 0.0,
};

/// A run whose first `times` requests meet `fault`, on a model that takes time.
fn refused(fault: LlmFault, times: u64) -> MockRun {
    let plain = run("r1");
    MockRun {
        faults: Arc::from([PlannedFault {
            kind: FaultKind::Llm(fault),
            call: 1,
            times,
            end_reason: None,
        }]),
        model: Arc::new(ModelSpec {
            latency: Some(LATENCY),
            ..(*plain.model).clone()
        }),
        ..plain
    }
}

/// Asks until there is an answer; what the server recorded.
async fn asked_until_answered(fault: LlmFault, times: u64) -> Journal {
    let mocks = Mocks::start().await;
    mocks.registry.register(refused(fault, times));
    for attempt in 0..=times {
        let answer = mocks.chat("r1", request(&json!({}))).await;
        assert_eq!(
            answer.status() == 200,
            attempt == times,
            "attempt {attempt}"
        );
    }
    mocks.registry.finish("r1")
}

/// Nine refusals and an answer are ten requests at the server, whatever a client calls one call.
///
/// Known fault 73: open-telemetry/semantic-conventions-genai #476.
/// Known fault 74: NOFireAI/ravel #928.
#[tokio::test]
async fn every_attempt_is_counted_at_the_server() {
    let journal = asked_until_answered(LlmFault::Unavailable, 9).await;
    let statuses: Vec<u16> = journal.llm.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [&[503; 9][..], &[200]].concat());
    let numbers: Vec<u64> = journal.llm.iter().map(|call| call.call).collect();
    assert_eq!(
        numbers,
        (0..10).collect::<Vec<u64>>(),
        "each has a number of its own"
    );
    // What was of use is that of the answer alone.
    let tokens = |call: &spill_mocks::LlmCallEntry| call.uncached_input_tokens + call.output_tokens;
    assert!(journal.llm[..9].iter().all(|call| tokens(call) == 0));
    assert!(tokens(&journal.llm[9]) > 0);
}

/// Waiting for a rate limit is no time of the model.
///
/// Known fault 84: matsonj/eval-connections #11.
#[tokio::test]
async fn waiting_for_a_rate_limit_is_no_model_time() {
    let fault = LlmFault::RateLimit {
        retry_after_ms: Some(660_000),
    };
    let journal = asked_until_answered(fault, 2).await;
    let times: Vec<Option<f64>> = journal.llm.iter().map(|call| call.model_time_ms).collect();
    assert_eq!(
        times[..2],
        [Some(100.0); 2],
        "what a request takes, and not the wait"
    );
    assert!(
        times[2].is_some_and(|ms| ms > 100.0 && ms < 60_000.0),
        "{times:?}"
    );
}

/// The usage of a stream stands behind its content, where a client has to ask for it; read to the end, it is that of the
/// whole reply.
///
/// Known fault 71: kyegomez/swarms #2159; NorthlandPositronics/Cogtrix #2376; activeagents/activeagent PR #362.
#[tokio::test]
async fn a_streams_usage_comes_last_and_on_request() {
    let asked = |options: Value| async move {
        let mocks = Mocks::start().await;
        let response = mocks.chat("r1", request(&options)).await;
        response.text().await.expect("a body")
    };
    let whole: Value = serde_json::from_str(&asked(json!({})).await).expect("JSON");
    let without = asked(json!({"stream": true})).await;
    assert!(!without.contains("prompt_tokens"), "{without}");
    let with = asked(json!({"stream": true, "stream_options": {"include_usage": true}})).await;
    let chunks: Vec<Value> = with
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let (last, before) = chunks.split_last().expect("chunks");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"], whole["usage"]);
    assert!(before.iter().all(|chunk| chunk["usage"].is_null()));
    assert!(
        before
            .iter()
            .any(|chunk| chunk["choices"][0]["finish_reason"].is_string())
    );
}

/// Uncached and cached prompt tokens as each dialect tells them, as disjoint buckets.
fn buckets(path: &str, reply: &Value) -> (u64, u64) {
    let at = |pointer: &str| reply.pointer(pointer).and_then(Value::as_u64);
    let known = |pointer: &str| at(pointer).expect("a number");
    match path {
        "/v1/chat/completions" => {
            let cached = known("/usage/prompt_tokens_details/cached_tokens");
            (known("/usage/prompt_tokens") - cached, cached)
        }
        "/v1/responses" => {
            let cached = known("/usage/input_tokens_details/cached_tokens");
            (known("/usage/input_tokens") - cached, cached)
        }
        "/v1/messages" => (
            known("/usage/input_tokens") + known("/usage/cache_creation_input_tokens"),
            known("/usage/cache_read_input_tokens"),
        ),
        _ => {
            let cached = at("/usageMetadata/cachedContentTokenCount").unwrap_or(0);
            (known("/usageMetadata/promptTokenCount") - cached, cached)
        }
    }
}

fn long_prompt(path: &str) -> Value {
    let text = "word ".repeat(1500);
    match path {
        "/v1/responses" => json!({"model": "simulated", "input": text}),
        "/v1/messages" => {
            json!({"model": "simulated", "max_tokens": 9, "messages": [{"role": "user",
            "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}]})
        }
        "/v1/chat/completions" => {
            json!({"model": "simulated", "messages": [{"role": "user", "content": text}]})
        }
        _ => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    }
}

/// The same prompt twice: the second time most of it is cached, the sum is the same, and nothing is counted twice, at the
/// client and in the journal. A cached prompt has a usage like any other.
///
/// Known fault 72: adolfousier/opencrabs #1636; earendil-works/pi PR #2148; tembo/agent-studio PR #238; omnigent-ai/omnigent #1801.
/// Known fault 121: UKGovernmentBEIS/inspect_ai PR #3946.
#[tokio::test]
async fn cached_tokens_are_a_part_of_the_prompt_and_counted_once() {
    for path in [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/simulated:generateContent",
    ] {
        let mocks = Mocks::start().await;
        let mut told = Vec::new();
        for _ in 0..2 {
            let url = format!("{}{path}", mocks.llm.root_url("r1"));
            let body = long_prompt(path).to_string();
            let reply = mocks
                .client
                .post(url)
                .body(body)
                .send()
                .await
                .expect("an answer");
            told.push(buckets(path, &json_of(reply).await));
        }
        let sum = |(uncached, cached): (u64, u64)| uncached + cached;
        assert_eq!(told[0].1, 0, "{path}");
        assert!(told[1].1 > 1_000, "{path}: {told:?}");
        assert_eq!(sum(told[0]), sum(told[1]), "{path}");
        let journal = mocks.registry.finish("r1");
        let journalled: Vec<(u64, u64)> = journal
            .llm
            .iter()
            .map(|call| {
                (
                    call.uncached_input_tokens + call.cache_write_tokens,
                    call.cache_read_tokens,
                )
            })
            .collect();
        assert_eq!(journalled, told, "{path}");
    }
}

/// Two runs that send the same bytes share no prompt cache.
///
/// Known fault 116: monarch-initiative/deep-research-client PR #77.
#[tokio::test]
async fn arms_share_no_cache() {
    let mocks = Mocks::start().await;
    mocks.registry.register(run("r2"));
    for run_id in ["r1", "r1", "r2"] {
        let body = long_prompt("/v1/chat/completions").to_string();
        assert_eq!(mocks.chat(run_id, body).await.status(), 200);
    }
    let cached = |run_id: &str| -> Vec<bool> {
        let journal = mocks.registry.finish(run_id);
        journal
            .llm
            .iter()
            .map(|call| call.cache_read_tokens > 0)
            .collect()
    };
    assert_eq!(cached("r1"), [false, true]);
    assert_eq!(cached("r2"), [false]);
}

/// The same request is answered from itself: again the same, however often, and in every run alike; a step that goes on gets
/// the next answer, and what no script has is refused.
///
/// Known fault 126: OpenHands/OpenHands-CLI #427 review.
#[tokio::test]
async fn an_answer_is_no_next_event_of_a_queue() {
    let mocks = Mocks::start().await;
    mocks.registry.register(run("r2"));
    let said = |run_id: &'static str, body: String| {
        let mocks = &mocks;
        async move {
            let mut reply = json_of(mocks.chat(run_id, body).await).await;
            reply["choices"].take()
        }
    };
    let first = said("r1", request(&json!({}))).await;
    assert_eq!(said("r1", request(&json!({}))).await, first);
    assert_eq!(said("r2", request(&json!({}))).await, first);
    let other = said("r1", request(&json!({"tools": []}))).await;
    assert_ne!(other, first);
    let stray = mocks.client.post(mocks.llm_url("/run/r1/v1/embeddings"));
    assert_eq!(
        stray.body("{}").send().await.expect("an answer").status(),
        404
    );
    assert_eq!(mocks.registry.finish("r1").unscripted.len(), 1);
}

/// A key that a client sends stands in nothing that is recorded.
///
/// Known fault 127: promptfoo/promptfoo #8805.
#[tokio::test]
async fn no_key_stands_in_a_journal() {
    let mocks = Mocks::start().await;
    for header in ["authorization", "x-api-key", "x-goog-api-key", "cookie"] {
        let url = format!("{}/chat/completions", mocks.llm.base_url("r1"));
        let sent = mocks
            .client
            .post(url)
            .header(header, "Bearer sk-secret-words");
        let answer = sent
            .body(request(&json!({})))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200);
        let echoed = answer
            .headers()
            .values()
            .any(|value| value.as_bytes().ends_with(b"secret-words"));
        assert!(
            !echoed
                && !answer
                    .text()
                    .await
                    .expect("a body")
                    .contains("secret-words")
        );
    }
    let journal = format!("{:?}", mocks.registry.finish("r1"));
    assert!(journal.contains("request_digest") && !journal.contains("secret-words"));
}
