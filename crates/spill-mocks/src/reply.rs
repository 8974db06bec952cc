//! OpenAI chat completion replies as bytes: JSON, server-sent events, errors.

use bytes::Bytes;
use serde_json::{Value, json};
use spill_tokens::TokenCounter;

use crate::error::BadRequest;
use crate::model::{Action, ToolCall};
use crate::request::View;

/// `created` of every reply: fixed, so that equal runs get equal bytes.
const CREATED: u64 = 1_750_000_000;
/// Bytes of text or arguments that one chunk of a stream carries at most.
const CHUNK_BYTES: usize = 256;

/// Tokens of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) completion_tokens: u64,
}

impl Usage {
    fn to_json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        })
    }
}

/// An answer of the simulated model, ready to be written.
#[derive(Debug)]
pub(crate) struct Completion {
    id: String,
    model: String,
    pub(crate) action: Action,
    is_cut: bool,
    pub(crate) usage: Usage,
    pub(crate) stream: bool,
    include_usage: bool,
}

impl Completion {
    /// Counts the answer's tokens, and cuts it where the request bounds it.
    pub(crate) fn new(
        id: u64,
        view: &View,
        action: Action,
        usage: Usage,
        tokens: &TokenCounter,
    ) -> Self {
        let (action, is_cut) = bounded(action, view.options.max_output_tokens, tokens);
        let completion_tokens = match &action {
            Action::Answer(text) => tokens.count(text),
            Action::Call(calls) => calls
                .iter()
                .map(|call| tokens.count(&call.name) + tokens.count(&call.arguments))
                .sum(),
        };
        Self {
            id: format!("chatcmpl-{id:016x}"),
            model: view.options.model.clone().unwrap_or_default(),
            action,
            is_cut,
            usage: Usage {
                completion_tokens,
                ..usage
            },
            stream: view.options.stream,
            include_usage: view.options.include_usage,
        }
    }

    /// The finish reason on the wire.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match &self.action {
            Action::Call(_) => "tool_calls",
            Action::Answer(_) if self.is_cut => "length",
            Action::Answer(_) => "stop",
        }
    }

    /// The reply as one JSON object.
    pub(crate) fn to_json(&self) -> Bytes {
        let (content, calls) = match &self.action {
            Action::Answer(text) => (json!(text), None),
            Action::Call(calls) => (Value::Null, Some(calls)),
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
        let reply = json!({
            "id": self.id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": self.finish_reason(),
            }],
            "usage": self.usage.to_json(),
            "service_tier": "default",
            "system_fingerprint": "fp_simulated",
        });
        reply.to_string().into()
    }

    /// The reply as server-sent events, one item for each.
    pub(crate) fn to_events(&self) -> Vec<Bytes> {
        let mut deltas = vec![json!({"role": "assistant", "content": null, "refusal": null})];
        match &self.action {
            Action::Answer(text) => {
                deltas[0]["content"] = json!("");
                deltas.extend(pieces(text).map(|piece| json!({"content": piece})));
            }
            Action::Call(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    deltas.extend(call_deltas(index, call));
                }
            }
        }
        let mut events: Vec<Bytes> = deltas.iter().map(|delta| self.chunk(delta, None)).collect();
        events.push(self.chunk(&json!({}), Some(self.finish_reason())));
        if self.include_usage {
            let mut last = self.envelope(&json!([]));
            last["usage"] = self.usage.to_json();
            events.push(event(&last.to_string()));
        }
        events.push(event("[DONE]"));
        events
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Bytes {
        let choices = json!([{
            "index": 0,
            "delta": delta,
            "logprobs": null,
            "finish_reason": finish_reason,
        }]);
        event(&self.envelope(&choices).to_string())
    }

    fn envelope(&self, choices: &Value) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.model,
            "service_tier": "default",
            "system_fingerprint": "fp_simulated",
            "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

fn event(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

/// Id and name first, then the arguments in pieces.
fn call_deltas(index: usize, call: &ToolCall) -> Vec<Value> {
    let mut first = tool_call(call);
    first["function"]["arguments"] = json!("");
    first["index"] = json!(index);
    let half = call.arguments.len().div_ceil(2).clamp(1, CHUNK_BYTES);
    let rest = cut(&call.arguments, half)
        .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
    std::iter::once(json!({"tool_calls": [first]}))
        .chain(rest)
        .collect()
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
        .flat_map(|line| cut(line, CHUNK_BYTES))
}

/// Pieces of about `len` bytes, cut between characters.
fn cut(mut text: &str, len: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = (len.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at))?;
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Keeps as many lines of an answer as `max` tokens allow, at least a part of the first.
fn bounded(action: Action, max: Option<u64>, tokens: &TokenCounter) -> (Action, bool) {
    let (Action::Answer(text), Some(max)) = (&action, max) else {
        return (action, false);
    };
    if tokens.count(text) <= max {
        return (action, false);
    }
    let mut kept = text.as_str();
    while tokens.count(kept) > max {
        let shorter = kept.rfind('\n').unwrap_or(kept.len() / 2);
        let end = (0..=shorter)
            .rev()
            .find(|at| kept.is_char_boundary(*at))
            .unwrap_or(0);
        kept = &kept[..end];
    }
    (Action::Answer(kept.to_owned()), true)
}

/// An error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    param: Option<&'static str>,
    message: String,
}

impl Refusal {
    pub(crate) fn invalid_request(error: &BadRequest) -> Self {
        Self {
            status: 400,
            code: "invalid_request",
            param: None,
            message: error.to_string(),
        }
    }

    pub(crate) fn context_length(window: u64, prompt: u64) -> Self {
        Self {
            status: 400,
            code: "context_length_exceeded",
            param: Some("messages"),
            message: format!(
                "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."
            ),
        }
    }

    /// A request that no script answers.
    pub(crate) fn unscripted(what: &str) -> Self {
        Self {
            status: 404,
            code: "unscripted_request",
            param: None,
            message: format!("the mock LLM server has no script for this request: {what}"),
        }
    }

    pub(crate) fn to_json(&self) -> Bytes {
        let error = json!({"error": {
            "message": self.message,
            "type": "invalid_request_error",
            "param": self.param,
            "code": self.code,
        }});
        error.to_string().into()
    }
}

/// The list of models: the one that a run simulates.
pub(crate) fn models(name: &str) -> Bytes {
    let list = json!({
        "object": "list",
        "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "spillgate"}],
    });
    list.to_string().into()
}
