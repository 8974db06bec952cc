//! Writes OpenAI chat completion replies: JSON, server-sent events, errors.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::{CREATED, argument_pieces, data_event, pieces};
use crate::refusal::{Refusal, Wrong};
use crate::reply::{Completion, Finish, NamedCall, Said, Usage};

pub(in crate::dialect) fn finish_reason(completion: &Completion) -> &'static str {
    match completion.finish() {
        Finish::Calls => "tool_calls",
        Finish::Length => "length",
        Finish::Stop => "stop",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn id(completion: &Completion) -> String {
    format!("chatcmpl-{:016x}", completion.id)
}

pub(in crate::dialect) fn json(completion: &Completion) -> Bytes {
    let (content, calls) = match &completion.said {
        Said::Answer(text) => (json!(text), None),
        Said::Calls(calls) => (Value::Null, Some(calls)),
        Said::Nothing => (Value::Null, None),
    };
    let mut message = json!({
        "role": "assistant",
        "content": content,
        "refusal": null,
        "annotations": [],
    });
    if let Some(calls) = calls {
        message["tool_calls"] = calls.iter().map(tool_call).collect();
    }
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": finish_reason(completion),
    });
    let choices = match &completion.said {
        Said::Answer(_) | Said::Calls(_) => vec![choice],
        Said::Nothing => Vec::new(),
    };
    let reply = json!({
        "id": id(completion),
        "object": "chat.completion",
        "created": CREATED,
        "model": completion.model,
        "choices": choices,
        "usage": usage(completion.usage),
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
    });
    reply.to_string().into()
}

pub(in crate::dialect) fn events(completion: &Completion) -> Vec<Bytes> {
    let mut deltas = vec![json!({"role": "assistant", "content": null, "refusal": null})];
    match &completion.said {
        Said::Answer(text) => {
            deltas[0]["content"] = json!("");
            deltas.extend(pieces(text).map(|piece| json!({"content": piece})));
        }
        Said::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                deltas.extend(call_deltas(index, call));
            }
        }
        Said::Nothing => return vec![data_event("[DONE]")],
    }
    let mut events: Vec<Bytes> = deltas
        .iter()
        .map(|delta| chunk(completion, delta, None))
        .collect();
    events.push(chunk(
        completion,
        &json!({}),
        Some(finish_reason(completion)),
    ));
    if completion.include_usage {
        let mut last = envelope(completion, &json!([]));
        last["usage"] = usage(completion.usage);
        events.push(data_event(&last.to_string()));
    }
    events.push(data_event("[DONE]"));
    events
}

fn chunk(completion: &Completion, delta: &Value, finish_reason: Option<&str>) -> Bytes {
    let choices = json!([{
        "index": 0,
        "delta": delta,
        "logprobs": null,
        "finish_reason": finish_reason,
    }]);
    data_event(&envelope(completion, &choices).to_string())
}

fn envelope(completion: &Completion, choices: &Value) -> Value {
    let mut chunk = json!({
        "id": id(completion),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": completion.model,
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
        "choices": choices,
    });
    if completion.include_usage {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn tool_call(call: &NamedCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

/// Id and name first, then the arguments in pieces.
fn call_deltas(index: usize, call: &NamedCall) -> Vec<Value> {
    let mut first = tool_call(call);
    first["function"]["arguments"] = json!("");
    first["index"] = json!(index);
    let rest = argument_pieces(&call.arguments)
        .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
    std::iter::once(json!({"tool_calls": [first]}))
        .chain(rest)
        .collect()
}

/// The error object of both OpenAI dialects; `list` is the member that holds the conversation.
pub(in crate::dialect) fn refusal(refusal: &Refusal, list: &str) -> Bytes {
    let said = |ours: &str| match refusal.message.as_str() {
        "" => ours.to_owned(),
        message => message.to_owned(),
    };
    let (kind, param, message) = match refusal.wrong {
        Wrong::InvalidRequest | Wrong::Unscripted => ("invalid_request_error", None, said("")),
        Wrong::ContextLength { window, prompt } => (
            "invalid_request_error",
            Some(list),
            format!(
                "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."
            ),
        ),
        Wrong::Unauthorized => (
            "invalid_request_error",
            None,
            said("Incorrect API key provided."),
        ),
        Wrong::RateLimit { .. } => ("requests", None, said("Rate limit reached for requests.")),
        Wrong::ServerError => (
            "server_error",
            None,
            said("The server had an error while processing your request."),
        ),
        Wrong::Overloaded => (
            "server_error",
            None,
            said("The engine is currently overloaded, please try again later."),
        ),
    };
    let code = match refusal.wrong {
        Wrong::ServerError | Wrong::Overloaded => None,
        Wrong::InvalidRequest
        | Wrong::ContextLength { .. }
        | Wrong::Unauthorized
        | Wrong::RateLimit { .. }
        | Wrong::Unscripted => Some(refusal.code()),
    };
    let error = json!({"error": {
        "message": message,
        "type": kind,
        "param": param,
        "code": code,
    }});
    error.to_string().into()
}

/// The list of models: the one that a run simulates.
pub(crate) fn models(name: &str) -> Bytes {
    let list = json!({
        "object": "list",
        "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "spillgate"}],
    });
    list.to_string().into()
}
