//! Writes Gemini replies: JSON, server-sent events, errors.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::{data_event, pieces};
use crate::refusal::{Refusal, Wrong};
use crate::reply::{Completion, Finish, NamedCall, Said};

pub(in crate::dialect) fn finish_reason(completion: &Completion) -> &'static str {
    match completion.finish() {
        Finish::Calls | Finish::Stop => "STOP",
        Finish::Length => "MAX_TOKENS",
    }
}

fn response(completion: &Completion, parts: &Value, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let usage = completion.usage;
    let mut metadata = json!({"promptTokenCount": usage.prompt_tokens});
    if usage.cached_tokens > 0 {
        metadata["cachedContentTokenCount"] = json!(usage.cached_tokens);
    }
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
        metadata["candidatesTokenCount"] = json!(usage.completion_tokens);
        metadata["totalTokenCount"] = json!(usage.total_tokens());
    } else {
        metadata["totalTokenCount"] = json!(usage.prompt_tokens);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": metadata,
        "modelVersion": completion.model,
        "responseId": format!("{:016x}", completion.id),
    })
}

fn call_part(call: &NamedCall) -> Value {
    let args: Value = serde_json::from_str(&call.arguments)
        .unwrap_or_else(|_| json!({"_written": call.arguments}));
    json!({"functionCall": {"id": call.id, "name": call.name, "args": args}})
}

pub(in crate::dialect) fn json(completion: &Completion) -> Bytes {
    let parts: Value = match &completion.said {
        Said::Answer(text) => json!([{"text": text}]),
        Said::Calls(calls) => calls.iter().map(call_part).collect(),
        Said::Nothing => Value::Null,
    };
    let mut reply = response(completion, &parts, Some(finish_reason(completion)));
    if parts.is_null() {
        reply["candidates"] = json!([]);
    }
    reply.to_string().into()
}

pub(in crate::dialect) fn events(completion: &Completion) -> Vec<Bytes> {
    let parts: Vec<Value> = match &completion.said {
        Said::Answer(text) if text.is_empty() => vec![json!({"text": ""})],
        Said::Answer(text) => pieces(text).map(|piece| json!({"text": piece})).collect(),
        Said::Calls(calls) => calls.iter().map(call_part).collect(),
        Said::Nothing => return vec![data_event(&json!({"candidates": []}).to_string())],
    };
    let last = parts.len().saturating_sub(1);
    let events = parts.iter().enumerate().map(|(index, part)| {
        let reason = (index == last).then(|| finish_reason(completion));
        data_event(&response(completion, &json!([part]), reason).to_string())
    });
    events.collect()
}

pub(in crate::dialect) fn refusal(refusal: &Refusal) -> Bytes {
    let said = |ours: &str| match refusal.message.as_str() {
        "" => ours.to_owned(),
        message => message.to_owned(),
    };
    let (status, message) = match refusal.wrong {
        Wrong::InvalidRequest => ("INVALID_ARGUMENT", said("invalid request")),
        Wrong::ContextLength { window, prompt } => (
            "INVALID_ARGUMENT",
            format!(
                "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
            ),
        ),
        Wrong::Unauthorized => ("UNAUTHENTICATED", said("API key not valid.")),
        Wrong::RateLimit { .. } => (
            "RESOURCE_EXHAUSTED",
            said("You exceeded your current quota."),
        ),
        Wrong::ServerError => ("INTERNAL", said("An internal error has occurred.")),
        Wrong::Overloaded => ("UNAVAILABLE", said("The model is overloaded.")),
        Wrong::Unscripted => ("NOT_FOUND", said("not found")),
    };
    let mut error = json!({"code": refusal.status(), "message": message, "status": status});
    if let Wrong::RateLimit {
        retry_after_ms: Some(wait),
    } = refusal.wrong
    {
        error["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}.{:03}s", wait / 1000, wait % 1000),
        }]);
    }
    json!({"error": error}).to_string().into()
}

/// The answer of `countTokens`.
pub(crate) fn total_tokens(tokens: u64) -> Bytes {
    json!({"totalTokens": tokens}).to_string().into()
}

/// The list of models: the one that a run simulates.
pub(crate) fn list_models(name: &str, window: u64) -> Bytes {
    let list = json!({"models": [{
        "name": format!("models/{name}"),
        "version": "001",
        "displayName": name,
        "inputTokenLimit": window,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }]});
    list.to_string().into()
}
