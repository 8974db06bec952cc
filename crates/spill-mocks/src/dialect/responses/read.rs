//! Reads an OpenAI responses request.
//!
//! Each item is a message: what the model said and each of its calls stand in items of their own.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Call, Message, OfferedTool, Options, Tools, qualified};
use crate::cursor::Cursor;
use crate::dialect::set_once;
use crate::error::BadRequest;
use crate::result::ToolText;

#[derive(Deserialize)]
struct WireItem {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    output: Value,
}

pub(in crate::dialect) fn item(
    cursor: &mut Cursor<'_>,
    index: usize,
) -> Result<Message, BadRequest> {
    let bad = |message: String| BadRequest::Message {
        list: "input",
        index,
        message,
    };
    let raw: &RawValue = cursor.value()?;
    let wire: WireItem = serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
    match wire.kind.as_deref().unwrap_or("message") {
        "message" => message(&wire).map_err(bad),
        "function_call" | "custom_tool_call" => {
            let call_id = wire
                .call_id
                .ok_or_else(|| bad("'call_id' is missing".to_owned()))?;
            let name = wire
                .name
                .ok_or_else(|| bad("'name' is missing".to_owned()))?;
            let name = qualified(wire.namespace.as_deref(), &name);
            let arguments = wire.arguments.or(wire.input).unwrap_or_default();
            Ok(Message::Assistant {
                text: String::new(),
                calls: vec![Call::written(call_id, name, arguments)],
            })
        }
        "function_call_output" | "custom_tool_call_output" => Ok(Message::Tool {
            call_id: wire
                .call_id
                .ok_or_else(|| bad("'call_id' is missing".to_owned()))?,
            result: ToolText::parse(&text_of(&wire.output, "\n").map_err(bad)?),
        }),
        // What else a model says: reasoning, calls of tools that the provider runs itself.
        _ => Ok(Message::Assistant {
            text: String::new(),
            calls: Vec::new(),
        }),
    }
}

fn message(wire: &WireItem) -> Result<Message, String> {
    let text = text_of(&wire.content, "")?;
    match wire.role.as_deref() {
        Some("system" | "developer") => Ok(Message::System(text)),
        Some("user") => Ok(Message::User(text)),
        Some("assistant") => Ok(Message::Assistant {
            text,
            calls: Vec::new(),
        }),
        Some(role) => Err(format!(
            "'{role}' is not one of 'system', 'developer', 'user', 'assistant'"
        )),
        None => Err("'role' is missing".to_owned()),
    }
}

/// A text, or the text parts of a list with `between` between them; null is no text. A client may put a
/// heading of its own into a part before a result.
fn text_of(content: &Value, between: &str) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str));
            Ok(texts.collect::<Vec<_>>().join(between))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("content is neither a text nor a list".to_owned())
        }
    }
}

pub(in crate::dialect) fn member(
    name: &str,
    cursor: &mut Cursor<'_>,
    options: &mut Options,
) -> Result<(), BadRequest> {
    match name {
        "model" => set_once(&mut options.model, cursor.value()?, "model")?,
        "instructions" => {
            let text: Option<String> = cursor.value()?;
            set_once(&mut options.system, text.map(Arc::from), "instructions")?;
        }
        "tools" => {
            let raw: Option<&RawValue> = cursor.value()?;
            let tools = raw.map(|raw| tools(raw.get())).transpose()?;
            set_once(&mut options.tools, tools.map(Arc::new), "tools")?;
        }
        "stream" => options.stream = cursor.value::<Option<bool>>()?.unwrap_or(false),
        "tool_choice" => {
            let choice: &RawValue = cursor.value()?;
            options.tools_forbidden = choice.get() == "\"none\"";
        }
        "max_output_tokens" => options.max_output_tokens = cursor.value()?,
        "previous_response_id" => stateless(cursor, "previous_response_id")?,
        "conversation" => stateless(cursor, "conversation")?,
        _ => {
            cursor.value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

/// What was said before stands in the request or nowhere.
fn stateless(cursor: &mut Cursor<'_>, name: &'static str) -> Result<(), BadRequest> {
    match cursor.value::<Option<IgnoredAny>>()? {
        Some(_) => Err(BadRequest::Stateful(name)),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
struct WireTool {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    parameters: Value,
    #[serde(default)]
    tools: Vec<WireTool>,
}

/// Functions, alone and in namespaces; tools that the provider runs itself are not offered.
fn tools(json: &str) -> Result<Tools, BadRequest> {
    let wire: Vec<WireTool> =
        serde_json::from_str(json).map_err(|error| BadRequest::Tools(error.to_string()))?;
    let mut offered = Vec::new();
    for tool in wire {
        match tool.kind.as_str() {
            "function" => offered.push(OfferedTool::new(tool.name, tool.parameters)),
            "namespace" => {
                let functions = tool.tools.into_iter().filter(|one| one.kind == "function");
                offered.extend(
                    functions.map(|one| OfferedTool::within(&tool.name, &one.name, one.parameters)),
                );
            }
            _ => {}
        }
    }
    Ok(Tools {
        json: json.to_owned(),
        offered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let mut cursor = Cursor {
            body: json.as_bytes(),
            at: 0,
        };
        let read = match item(&mut cursor, 0).expect(json) {
            Message::System(text) | Message::User(text) => text,
            Message::Assistant { text, calls } => {
                let calls = calls
                    .iter()
                    .map(|call| format!("{} {}", call.name, call.json));
                text + &calls.collect::<String>()
            }
            Message::Tool { call_id, result } => format!("{call_id}: {}", result.text),
        };
        assert_eq!(read, expected, "{json}");
    }

    #[test]
    fn items_are_messages() {
        check(r#"{"role":"user","content":"a"}"#, "a");
        check(
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}"#,
            "ab",
        );
        check(
            r#"{"type":"function_call","call_id":"1","namespace":"mcp__x__","name":"read","arguments":"{}"}"#,
            "mcp__x__read {}",
        );
        check(
            r#"{"type":"function_call_output","call_id":"1","output":"a"}"#,
            "1: a",
        );
        check(
            r#"{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"Output:"},{"type":"input_text","text":"a"}]}"#,
            "1: Output:\na",
        );
        check(r#"{"type":"reasoning","summary":[]}"#, "");
    }
}
