//! Reads an OpenAI chat completion request.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Call, Message, OfferedTool, Options, Tools};
use crate::cursor::Cursor;
use crate::dialect::set_once;
use crate::error::BadRequest;
use crate::result::ToolText;

/// Reads a message in one pass when its content is a string or null, as nearly always.
pub(in crate::dialect) fn item(
    cursor: &mut Cursor<'_>,
    index: usize,
) -> Result<Message, BadRequest> {
    let at = cursor.at;
    match cursor.value() {
        Ok(wire) => message(wire, index),
        Err(_other) => {
            cursor.at = at;
            let raw: &RawValue = cursor.value()?;
            message(with_parts(raw.get(), index)?, index)
        }
    }
}

/// Reads one member of the request beside its messages.
pub(in crate::dialect) fn member(
    name: &str,
    cursor: &mut Cursor<'_>,
    options: &mut Options,
) -> Result<(), BadRequest> {
    match name {
        "model" => set_once(&mut options.model, cursor.value()?, "model")?,
        "tools" => {
            let raw: Option<&RawValue> = cursor.value()?;
            let tools = raw.map(|raw| tools(raw.get())).transpose()?;
            set_once(&mut options.tools, tools.map(Arc::new), "tools")?;
        }
        "stream" => options.stream = cursor.value::<Option<bool>>()?.unwrap_or(false),
        "stream_options" => {
            let asked: Option<StreamOptions> = cursor.value()?;
            options.include_usage = asked.is_some_and(|asked| asked.include_usage);
        }
        "tool_choice" => {
            let choice: &RawValue = cursor.value()?;
            options.tools_forbidden = choice.get() == "\"none\"";
        }
        "max_tokens" | "max_completion_tokens" => options.max_output_tokens = cursor.value()?,
        _ => {
            cursor.value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct WireMessage<'a, C> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(default)]
    content: Option<C>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize)]
struct WirePart {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct WireTool {
    function: WireToolFunction,
}

#[derive(Deserialize)]
struct WireToolFunction {
    name: String,
    #[serde(default)]
    parameters: Value,
}

/// Reads a message of any content; says what is wrong with one that is none.
fn with_parts(json: &str, index: usize) -> Result<WireMessage<'_, String>, BadRequest> {
    let bad = |message: String| BadRequest::Message {
        list: "messages",
        index,
        message,
    };
    let wire: WireMessage<'_, &RawValue> =
        serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
    let text = text_of(wire.content.map_or("null", RawValue::get))
        .map_err(|error| bad(format!("content: {error}")))?;
    Ok(WireMessage {
        role: wire.role,
        content: Some(text),
        tool_calls: wire.tool_calls,
        tool_call_id: wire.tool_call_id,
    })
}

fn message(wire: WireMessage<'_, String>, index: usize) -> Result<Message, BadRequest> {
    let bad = |message: String| BadRequest::Message {
        list: "messages",
        index,
        message,
    };
    let text = wire.content.unwrap_or_default();
    match &*wire.role {
        "system" | "developer" => Ok(Message::System(text)),
        "user" => Ok(Message::User(text)),
        "assistant" => Ok(Message::Assistant {
            text,
            calls: wire
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(call)
                .collect(),
        }),
        "tool" => Ok(Message::Tool {
            call_id: wire
                .tool_call_id
                .ok_or_else(|| bad("'tool_call_id' is missing".to_owned()))?,
            result: ToolText::parse(&text),
        }),
        role => Err(bad(format!(
            "'{role}' is not one of 'system', 'developer', 'user', 'assistant', 'tool'"
        ))),
    }
}

fn call(wire: WireCall) -> Call {
    Call::written(wire.id, wire.function.name, wire.function.arguments)
}

/// The text of a content: a string, null, or an array of parts of which the text parts count.
fn text_of(json: &str) -> serde_json::Result<String> {
    if json.starts_with('[') {
        let parts: Vec<WirePart> = serde_json::from_str(json)?;
        return Ok(parts.into_iter().filter_map(|part| part.text).collect());
    }
    Ok(serde_json::from_str::<Option<String>>(json)?.unwrap_or_default())
}

fn tools(json: &str) -> Result<Tools, BadRequest> {
    let wire: Vec<WireTool> =
        serde_json::from_str(json).map_err(|error| BadRequest::Tools(error.to_string()))?;
    Ok(Tools {
        json: json.to_owned(),
        offered: wire
            .into_iter()
            .map(|tool| OfferedTool::new(tool.function.name, tool.function.parameters))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_a_string_null_or_text_parts() {
        for (json, text) in [
            ("null", ""),
            ("\"a\\u00e9\"", "aé"),
            ("[]", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},{"type":"text","text":"b"}]"#,
                "ab",
            ),
        ] {
            assert_eq!(text_of(json).expect(json), text);
        }
    }
}
