//! Message content as the APIs write it: a text, or a list of typed blocks.

use serde_json::Value;

use crate::json::{into_text, str_of, string_of, take};
use crate::message::{NewMessage, ResultHead};
use crate::model::Origin;
use crate::problem::{ProblemKind, Problems};

/// Appends `content` to the message. Blocks of an unknown type are reported and kept as their JSON.
pub(crate) fn append(
    message: &mut NewMessage,
    origin: Origin,
    content: Value,
    problems: &mut Problems,
) {
    match content {
        Value::Null => {}
        Value::String(text) => message.text(origin, text),
        Value::Array(blocks) => {
            for block in blocks {
                append_block(message, origin, block, problems);
            }
        }
        object @ Value::Object(_) => append_block(message, origin, object, problems),
        other @ (Value::Bool(_) | Value::Number(_)) => message.text(origin, other.to_string()),
    }
}

fn append_block(
    message: &mut NewMessage,
    origin: Origin,
    mut block: Value,
    problems: &mut Problems,
) {
    if let Value::String(text) = block {
        message.text(origin, text);
        return;
    }
    let kind = string_of(&block, "type").unwrap_or_default();
    match kind.as_str() {
        "text" | "input_text" | "output_text" | "summary_text" => {
            let text = take(&mut block, "text").or_else(|| take(&mut block, "content"));
            message.text(origin, into_text(text.unwrap_or_else(|| Value::from(""))));
        }
        "refusal" => append(
            message,
            origin,
            take(&mut block, "refusal").unwrap_or_default(),
            problems,
        ),
        "thinking" | "reasoning" | "redacted_thinking" => reasoning(message, block),
        "tool_use" | "tool_call" | "tool-call" | "server_tool_use" | "mcp_tool_use" => {
            append_call(message, block);
        }
        "tool_result"
        | "tool-result"
        | "tool_call_response"
        | "mcp_tool_result"
        | "web_search_tool_result" => append_result(message, block, problems),
        "image" | "image_url" | "input_image" | "document" | "file" | "audio" | "input_audio"
        | "video" | "blob" | "uri" | "container_upload" => {
            message.media(origin, longest_string(&block));
        }
        _ => unknown(message, origin, &kind, block, problems),
    }
}

/// A block without a type is a text when it has one (Gemini's parts).
fn unknown(
    message: &mut NewMessage,
    origin: Origin,
    kind: &str,
    mut block: Value,
    problems: &mut Problems,
) {
    if kind.is_empty()
        && let Some(text) = take(&mut block, "text")
    {
        message.text(origin, into_text(text));
        return;
    }
    problems.add(
        &message.place,
        ProblemKind::Unknown,
        format!("content block of type {kind:?}; its JSON is kept as text"),
    );
    message.text(origin, block.to_string());
}

fn reasoning(message: &mut NewMessage, mut block: Value) {
    for name in ["thinking", "reasoning", "text", "content"] {
        if let Some(text) = take(&mut block, name) {
            message.text(Origin::Reasoning, into_text(text));
            return;
        }
    }
    if let Some(hidden) = str_of(&block, "data") {
        message.media(Origin::Reasoning, hidden.len() as u64);
    }
}

fn append_call(message: &mut NewMessage, mut block: Value) {
    let id = string_of(&block, "id");
    let name = string_of(&block, "name").unwrap_or_default();
    let arguments = take(&mut block, "input").or_else(|| take(&mut block, "arguments"));
    message.tool_call(id, name, arguments.map(into_text).unwrap_or_default());
}

fn append_result(message: &mut NewMessage, mut block: Value, problems: &mut Problems) {
    let head = ResultHead {
        call_id: ["tool_use_id", "toolCallId", "tool_call_id", "id"]
            .iter()
            .find_map(|name| string_of(&block, name)),
        tool: string_of(&block, "name"),
        is_error: ["is_error", "isError"]
            .iter()
            .find_map(|name| block.get(*name)?.as_bool()),
        ..ResultHead::default()
    };
    let content = ["content", "result", "response"]
        .iter()
        .find_map(|name| take(&mut block, name));
    let start = message.pieces.len();
    if let Some(content) = content {
        result_content(message, content, problems);
    }
    message.close_result(start, head);
}

/// A result's content: blocks as blocks, any other object or array as its JSON.
pub(crate) fn result_content(message: &mut NewMessage, content: Value, problems: &mut Problems) {
    let blocks = content.as_array().is_some_and(|items| {
        items
            .iter()
            .all(|item| str_of(item, "type").is_some() || item.is_string())
    });
    match content {
        Value::Object(_) => message.text(Origin::ToolResult, content.to_string()),
        Value::Array(_) if !blocks => message.text(Origin::ToolResult, content.to_string()),
        other => append(message, Origin::ToolResult, other, problems),
    }
}

/// Bytes of the longest string anywhere in a block: an image's data, or else its address.
fn longest_string(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(longest_string).max().unwrap_or(0),
        Value::Object(members) => members.values().map(longest_string).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
