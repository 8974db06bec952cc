//! Writes Anthropic messages: JSON, server-sent events, errors.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::{argument_pieces, named_event, pieces};
use crate::refusal::{Refusal, Wrong};
use crate::reply::{Completion, Finish, NamedCall, Said, Usage};

pub(in crate::dialect) fn finish_reason(completion: &Completion) -> &'static str {
    match completion.finish() {
        Finish::Calls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::Stop => "end_turn",
    }
}

fn usage(usage: Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.uncached_tokens(),
        "cache_creation_input_tokens": usage.written_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output_tokens,
        "output_tokens_details": null,
        "server_tool_use": null,
        "inference_geo": null,
        "service_tier": "standard",
    })
}

fn message(completion: &Completion, content: &Value, stop: Option<&str>, tokens: u64) -> Value {
    json!({
        "id": format!("msg_{:016x}", completion.id),
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "stop_details": null,
        "container": null,
        "usage": usage(completion.usage, tokens),
    })
}

pub(in crate::dialect) fn json(completion: &Completion) -> Bytes {
    let content = match &completion.said {
        Said::Answer(text) => json!([{"type": "text", "text": text, "citations": null}]),
        Said::Calls(calls) => calls.iter().map(whole_call).collect(),
        Said::Nothing => json!([]),
    };
    let stop = Some(finish_reason(completion));
    message(
        completion,
        &content,
        stop,
        completion.usage.completion_tokens,
    )
    .to_string()
    .into()
}

/// Arguments that are no JSON stand where a client finds what the model wrote.
fn whole_call(call: &NamedCall) -> Value {
    let written = || json!({"_written": call.arguments});
    let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| written());
    tool_use(call, &input)
}

fn tool_use(call: &NamedCall, input: &Value) -> Value {
    json!({
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": input,
        "caller": {"type": "direct"},
    })
}

fn event(kind: &str, mut fields: Value) -> Bytes {
    fields["type"] = json!(kind);
    named_event(kind, &fields.to_string())
}

pub(in crate::dialect) fn events(completion: &Completion) -> Vec<Bytes> {
    let begun = message(completion, &json!([]), None, 1);
    let mut events = vec![
        event("message_start", json!({"type": "", "message": begun})),
        event("ping", json!({"type": ""})),
    ];
    match &completion.said {
        Said::Answer(text) => {
            let deltas = pieces(text).map(|piece| json!({"type": "text_delta", "text": piece}));
            let begun = json!({"type": "text", "text": "", "citations": null});
            block_events(&mut events, 0, &begun, deltas);
        }
        Said::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                let deltas = argument_pieces(&call.arguments)
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
                block_events(&mut events, index, &tool_use(call, &json!({})), deltas);
            }
        }
        Said::Nothing => {}
    }
    let ended = json!({
        "type": "",
        "delta": {
            "stop_reason": finish_reason(completion),
            "stop_sequence": null,
            "stop_details": null,
            "container": null,
        },
        "usage": {
            "input_tokens": completion.usage.uncached_tokens(),
            "cache_creation_input_tokens": completion.usage.written_tokens,
            "cache_read_input_tokens": completion.usage.cached_tokens,
            "output_tokens": completion.usage.completion_tokens,
            "output_tokens_details": null,
            "server_tool_use": null,
        },
    });
    events.push(event("message_delta", ended));
    events.push(event("message_stop", json!({"type": ""})));
    events
}

fn block_events(
    events: &mut Vec<Bytes>,
    index: usize,
    begun: &Value,
    deltas: impl Iterator<Item = Value>,
) {
    let with = |name: &str, value: Value| {
        let mut fields = json!({"type": "", "index": index});
        fields[name] = value;
        fields
    };
    events.push(event(
        "content_block_start",
        with("content_block", begun.clone()),
    ));
    events.extend(deltas.map(|delta| event("content_block_delta", with("delta", delta))));
    let ended = json!({"type": "", "index": index});
    events.push(event("content_block_stop", ended));
}

pub(in crate::dialect) fn status(refusal: &Refusal) -> u16 {
    match refusal.wrong {
        Wrong::Overloaded => 529,
        Wrong::InvalidRequest
        | Wrong::ContextLength { .. }
        | Wrong::Unauthorized
        | Wrong::RateLimit { .. }
        | Wrong::ServerError
        | Wrong::Unscripted => refusal.status(),
    }
}

pub(in crate::dialect) fn refusal(refusal: &Refusal) -> Bytes {
    let said = |ours: &str| match refusal.message.as_str() {
        "" => ours.to_owned(),
        message => message.to_owned(),
    };
    let (kind, message) = match refusal.wrong {
        Wrong::InvalidRequest => ("invalid_request_error", said("invalid request")),
        Wrong::ContextLength { window, prompt } => (
            "invalid_request_error",
            format!("prompt is too long: {prompt} tokens > {window} maximum"),
        ),
        Wrong::Unauthorized => ("authentication_error", said("invalid x-api-key")),
        Wrong::RateLimit { .. } => (
            "rate_limit_error",
            said("This request would exceed your organization's rate limit."),
        ),
        Wrong::ServerError => ("api_error", said("Internal server error")),
        Wrong::Overloaded => ("overloaded_error", said("Overloaded")),
        Wrong::Unscripted => ("not_found_error", said("not found")),
    };
    let body = json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": REQUEST_ID,
    });
    body.to_string().into()
}

/// Every answer's request id: fixed, so that equal runs get equal bytes.
const REQUEST_ID: &str = "req_simulated";

/// The answer of `count_tokens`.
pub(crate) fn input_tokens(tokens: u64) -> Bytes {
    json!({"input_tokens": tokens}).to_string().into()
}

/// The list of models: the one that a run simulates.
pub(crate) fn list_models(name: &str) -> Bytes {
    let list = json!({
        "data": [{
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2025-06-15T15:06:40Z",
            "max_input_tokens": null,
            "max_tokens": null,
            "capabilities": null,
        }],
        "has_more": false,
        "first_id": name,
        "last_id": name,
    });
    list.to_string().into()
}
