//! The structure hint of a summary: the top-level JSON type, with counts and key names where the value is parsed already.

use serde_json::Value;

use crate::result::Block;

const SHOWN_KEYS: usize = 10;
const SHOWN_KEY_CHARS: usize = 40;

/// A text is never parsed: its first byte that is no JSON white space decides.
pub(crate) fn of_text(text: &str) -> &'static str {
    let first = text
        .bytes()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    match first {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        _ => "text",
    }
}

/// The hint for the content array of these blocks.
pub(crate) fn of_blocks(blocks: &[Block]) -> String {
    let first = blocks.first().map(|block| match block {
        Block::Text(_) => "object(type, text)".to_owned(),
        Block::Other(value) => of_element(value),
    });
    of_array(blocks.len(), first)
}

/// The hint for a parsed value.
pub(crate) fn of_value(value: &Value) -> String {
    match value {
        Value::Object(map) => format!("object({}: {})", counted(map.len(), "key"), key_list(map)),
        Value::Array(items) => of_array(items.len(), items.first().map(of_element)),
        Value::String(text) => format!("string({})", counted(text.chars().count(), "char")),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

fn of_array(len: usize, first: Option<String>) -> String {
    let count = counted(len, "item");
    first.map_or_else(
        || format!("array({count})"),
        |first| format!("array({count}; first: {first})"),
    )
}

/// An element is named without its counts, but an object with its keys.
fn of_element(value: &Value) -> String {
    match value {
        Value::Object(map) => format!("object({})", key_list(map)),
        Value::Array(_) => "array".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

fn key_list(map: &serde_json::Map<String, Value>) -> String {
    let mut names: Vec<String> = map
        .keys()
        .take(SHOWN_KEYS)
        .map(|key| key.chars().take(SHOWN_KEY_CHARS).collect())
        .collect();
    if map.len() > SHOWN_KEYS {
        names.push(format!("+{} more", map.len() - SHOWN_KEYS));
    }
    names.join(", ")
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
