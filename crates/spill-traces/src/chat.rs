//! One message as chat completions, Anthropic messages and Inspect write it.

use serde_json::Value;

use crate::blocks;
use crate::json::{into_text, string_of, take, take_array, u64_of};
use crate::message::{NewMessage, ResultHead};
use crate::model::{Origin, Role};
use crate::problem::{Place, ProblemKind, Problems};
use crate::time::Timestamp;
use crate::usage::Usage;

/// Reads a message; `None`, with a problem, when it has no role that is known.
pub(crate) fn read(mut value: Value, place: &Place, problems: &mut Problems) -> Option<NewMessage> {
    let role = match value.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user" | "human") => Role::User,
        Some("assistant" | "ai" | "model") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        Some(other) => {
            problems.add(
                place,
                ProblemKind::Unknown,
                format!("message role {other:?}"),
            );
            return None;
        }
        None => {
            problems.add(place, ProblemKind::BadField, "message without a role");
            return None;
        }
    };
    let mut message = NewMessage::new(role, place);
    message.time = Timestamp::from_json(value.get("timestamp"));
    match role {
        Role::Tool => tool(&mut message, value, problems),
        Role::Assistant => assistant(&mut message, &mut value, problems),
        Role::System | Role::User => {
            let content = take(&mut value, "content").unwrap_or_default();
            let origin = message.origin();
            blocks::append(&mut message, origin, content, problems);
        }
    }
    Some(message)
}

fn assistant(message: &mut NewMessage, value: &mut Value, problems: &mut Problems) {
    for name in ["reasoning_content", "reasoning"] {
        if let Some(Value::String(text)) = take(value, name) {
            message.text(Origin::Reasoning, text);
            break;
        }
    }
    let content = take(value, "content").unwrap_or_default();
    blocks::append(message, Origin::Assistant, content, problems);
    if let Some(Value::String(text)) = take(value, "refusal") {
        message.text(Origin::Assistant, text);
    }
    for call in take_array(value, "tool_calls") {
        tool_call(message, call, problems);
    }
    if let Some(call) = take(value, "function_call") {
        tool_call(message, call, problems);
    }
}

/// The shapes: `{id, function: {name, arguments}}`, `{id, name, arguments}` (tau2), `{id, function: "name", arguments}`
/// (Inspect), `{name, arguments}` (the old function call).
fn tool_call(message: &mut NewMessage, mut call: Value, problems: &mut Problems) {
    let id = string_of(&call, "id");
    let mut function = match take(&mut call, "function") {
        Some(Value::String(name)) => {
            let arguments = take(&mut call, "arguments")
                .map(into_text)
                .unwrap_or_default();
            message.tool_call(id, name, arguments);
            return;
        }
        Some(function) => function,
        None => call,
    };
    let Some(name) = string_of(&function, "name") else {
        let detail = "tool call without a name";
        problems.add(&message.place, ProblemKind::BadField, detail);
        return;
    };
    let arguments = take(&mut function, "arguments")
        .map(into_text)
        .unwrap_or_default();
    message.tool_call(id, name, arguments);
}

fn tool(message: &mut NewMessage, mut value: Value, problems: &mut Problems) {
    let is_error = match take(&mut value, "error") {
        Some(Value::Bool(error)) => Some(error),
        Some(_) => Some(true),
        None => None,
    };
    let head = ResultHead {
        call_id: string_of(&value, "tool_call_id").or_else(|| string_of(&value, "id")),
        tool: string_of(&value, "name").or_else(|| string_of(&value, "function")),
        is_error,
        ..ResultHead::default()
    };
    let content = take(&mut value, "content").unwrap_or_default();
    let start = message.pieces.len();
    blocks::result_content(message, content, problems);
    message.close_result(start, head);
}

/// The `usage` object of chat completions (cached tokens are part of the prompt's) or of Anthropic (disjoint).
pub(crate) fn usage(value: &Value) -> Option<Usage> {
    let written = u64_of(value, "cache_creation_input_tokens");
    let read = u64_of(value, "cache_read_input_tokens");
    if value.get("prompt_tokens").is_none() && value.get("input_tokens").is_some() {
        let details = value.get("input_tokens_details");
        let output = u64_of(value, "output_tokens");
        let input = u64_of(value, "input_tokens");
        return match details.and_then(|details| u64_of(details, "cached_tokens")) {
            Some(cached) => Usage::from_total(input, Some(cached), output),
            None => Usage::from_parts(input, read, written, output),
        }
        .recorded();
    }
    let details = value.get("prompt_tokens_details");
    let cached = details
        .and_then(|details| u64_of(details, "cached_tokens"))
        .or_else(|| u64_of(value, "prompt_cache_hit_tokens"));
    Usage::from_total(
        u64_of(value, "prompt_tokens"),
        cached,
        u64_of(value, "completion_tokens"),
    )
    .recorded()
}
