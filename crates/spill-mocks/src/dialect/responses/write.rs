//! Writes OpenAI responses: JSON and server-sent events. Errors are those of chat completions.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::dialect::{CREATED, argument_pieces, chat, named_event, pieces};
use crate::refusal::Refusal;
use crate::reply::{Completion, Finish, NamedCall, Said, Usage};

pub(in crate::dialect) fn finish_reason(completion: &Completion) -> &'static str {
    match completion.finish() {
        Finish::Calls | Finish::Stop => "completed",
        Finish::Length => "incomplete",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens(),
    })
}

/// The response object; `usage` and what is not known yet are left out, not null.
fn response(completion: &Completion, status: &str, output: &Value) -> Value {
    let is_cut = status == "incomplete";
    let details = is_cut.then(|| json!({"reason": "max_output_tokens"}));
    let mut response = json!({
        "id": format!("resp_{:016x}", completion.id),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": details,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "model": completion.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "service_tier": "default",
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
    });
    if status != "in_progress" {
        response["usage"] = usage(completion.usage);
    }
    response
}

/// The output items as they are once whole.
fn output(completion: &Completion) -> Vec<Value> {
    let status = finish_reason(completion);
    match &completion.said {
        Said::Answer(text) => vec![message_item(completion, status, &json!([part(text)]))],
        Said::Calls(calls) => calls
            .iter()
            .map(|call| call_item(call, "completed", &call.arguments))
            .collect(),
        Said::Nothing => Vec::new(),
    }
}

fn message_item(completion: &Completion, status: &str, content: &Value) -> Value {
    json!({
        "type": "message",
        "id": format!("msg_{:016x}", completion.id),
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn call_item(call: &NamedCall, status: &str, arguments: &str) -> Value {
    let mut item = json!({
        "type": "function_call",
        "id": item_id(call),
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": status,
    });
    if let Some(namespace) = &call.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

fn item_id(call: &NamedCall) -> String {
    format!("fc_{}", call.id.trim_start_matches("call_"))
}

pub(in crate::dialect) fn json(completion: &Completion) -> Bytes {
    let output = json!(output(completion));
    response(completion, finish_reason(completion), &output)
        .to_string()
        .into()
}

/// Events numbered in order.
#[derive(Default)]
struct Events {
    written: Vec<Bytes>,
}

impl Events {
    fn add(&mut self, kind: &str, fields: &Value) {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(kind));
        event.insert("sequence_number".to_owned(), json!(self.written.len()));
        if let Value::Object(fields) = fields {
            event.extend(fields.clone());
        }
        self.written
            .push(named_event(kind, &Value::Object(event).to_string()));
    }
}

pub(in crate::dialect) fn events(completion: &Completion) -> Vec<Bytes> {
    let mut events = Events::default();
    let begun = json!({"response": response(completion, "in_progress", &json!([]))});
    events.add("response.created", &begun);
    events.add("response.in_progress", &begun);
    match &completion.said {
        Said::Answer(text) => answer_events(&mut events, completion, text),
        Said::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                call_events(&mut events, index, call);
            }
        }
        Said::Nothing => {}
    }
    let status = finish_reason(completion);
    let whole = response(completion, status, &json!(output(completion)));
    events.add(&format!("response.{status}"), &json!({"response": whole}));
    events.written
}

fn answer_events(events: &mut Events, completion: &Completion, text: &str) {
    let id = format!("msg_{:016x}", completion.id);
    let begun = message_item(completion, "in_progress", &json!([]));
    let at = json!({"item_id": id, "output_index": 0, "content_index": 0});
    let with = |name: &str, value: Value| {
        let mut fields = at.clone();
        fields[name] = value;
        fields
    };
    events.add(
        "response.output_item.added",
        &json!({"output_index": 0, "item": begun}),
    );
    events.add("response.content_part.added", &with("part", part("")));
    for piece in pieces(text) {
        let mut delta = with("delta", json!(piece));
        delta["logprobs"] = json!([]);
        events.add("response.output_text.delta", &delta);
    }
    let mut done = with("text", json!(text));
    done["logprobs"] = json!([]);
    events.add("response.output_text.done", &done);
    events.add("response.content_part.done", &with("part", part(text)));
    let whole = message_item(completion, finish_reason(completion), &json!([part(text)]));
    events.add(
        "response.output_item.done",
        &json!({"output_index": 0, "item": whole}),
    );
}

fn call_events(events: &mut Events, index: usize, call: &NamedCall) {
    let begun = call_item(call, "in_progress", "");
    events.add(
        "response.output_item.added",
        &json!({"output_index": index, "item": begun}),
    );
    let id = item_id(call);
    for piece in argument_pieces(&call.arguments) {
        events.add(
            "response.function_call_arguments.delta",
            &json!({"item_id": id, "output_index": index, "delta": piece}),
        );
    }
    events.add(
        "response.function_call_arguments.done",
        &json!({
            "item_id": id,
            "output_index": index,
            "name": call.name,
            "arguments": call.arguments,
        }),
    );
    let whole = call_item(call, "completed", &call.arguments);
    events.add(
        "response.output_item.done",
        &json!({"output_index": index, "item": whole}),
    );
}

/// An error after the stream has begun.
pub(in crate::dialect) fn error_event(refusal: &Refusal) -> Bytes {
    let body: Value = serde_json::from_slice(&chat::refusal(refusal, "input")).unwrap_or_default();
    let error = &body["error"];
    let event = json!({
        "type": "error",
        "sequence_number": 2,
        "code": error["code"],
        "message": error["message"],
        "param": error["param"],
    });
    named_event("error", &event.to_string())
}
