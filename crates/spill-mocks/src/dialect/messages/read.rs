//! Reads an Anthropic messages request.
//!
//! A message's blocks are told apart: each result of a tool is a message of its own, and the text
//! beside it is another. A block that carries `cache_control` ends a prefix to be cached.

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

#[derive(Deserialize)]
struct WireMessage<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    cache_control: Option<IgnoredAny>,
}

impl Block {
    fn text(text: String) -> Self {
        Self {
            kind: "text".to_owned(),
            text: Some(text),
            id: None,
            name: None,
            input: Value::Null,
            tool_use_id: None,
            content: Value::Null,
            is_error: None,
            cache_control: None,
        }
    }
}

/// A text, or a list of blocks.
fn blocks(json: &str) -> serde_json::Result<Vec<Block>> {
    if json.trim_start().starts_with('[') {
        serde_json::from_str(json)
    } else {
        Ok(vec![Block::text(serde_json::from_str(json)?)])
    }
}

pub(in crate::dialect) fn item(
    cursor: &mut Cursor<'_>,
    index: usize,
) -> Result<Vec<(Message, bool)>, BadRequest> {
    let bad = |message: String| BadRequest::Message {
        list: "messages",
        index,
        message,
    };
    let raw: &RawValue = cursor.value()?;
    let wire: WireMessage<'_> =
        serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
    let blocks = blocks(wire.content.get()).map_err(|error| bad(format!("content: {error}")))?;
    match &*wire.role {
        "assistant" => Ok(vec![assistant(blocks)]),
        "user" => user(blocks).map_err(bad),
        // Claude Code puts what it says of its surroundings behind the prompt, in this role.
        "system" => Ok(vec![system(blocks)]),
        role => Err(bad(format!(
            "'{role}' is not one of 'user', 'assistant', 'system'"
        ))),
    }
}

fn system(blocks: Vec<Block>) -> (Message, bool) {
    let is_marked = blocks.iter().any(|block| block.cache_control.is_some());
    let texts = blocks.into_iter().filter_map(|block| block.text);
    (Message::System(texts.collect()), is_marked)
}

fn assistant(blocks: Vec<Block>) -> (Message, bool) {
    let mut said = String::new();
    let mut calls = Vec::new();
    let mut is_marked = false;
    for block in blocks {
        is_marked |= block.cache_control.is_some();
        match (&*block.kind, block.id, block.name) {
            ("tool_use", Some(id), Some(name)) => calls.push(Call::parsed(id, name, block.input)),
            _ => said.push_str(block.text.as_deref().unwrap_or_default()),
        }
    }
    let message = Message::Assistant { text: said, calls };
    (message, is_marked)
}

/// Results of tools first, as the API asks for; the texts beside them are one message.
fn user(blocks: Vec<Block>) -> Result<Vec<(Message, bool)>, String> {
    let mut messages = Vec::new();
    let mut said: Option<(String, bool)> = None;
    for block in blocks {
        let is_marked = block.cache_control.is_some();
        if block.kind == "tool_result" {
            let text = text_of(&block.content);
            let result = if block.is_error == Some(true) {
                ToolText::error(&text)
            } else {
                ToolText::parse(&text)
            };
            let call_id = block
                .tool_use_id
                .ok_or_else(|| "'tool_use_id' is missing".to_owned())?;
            messages.push((Message::Tool { call_id, result }, is_marked));
        } else {
            let (text, marked) = said.get_or_insert_default();
            text.push_str(block.text.as_deref().unwrap_or_default());
            *marked |= is_marked;
        }
    }
    let said = match said {
        None if messages.is_empty() => Some((String::new(), false)),
        said => said,
    };
    messages.extend(said.map(|(text, is_marked)| (Message::User(text), is_marked)));
    Ok(messages)
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

pub(in crate::dialect) fn member(
    name: &str,
    cursor: &mut Cursor<'_>,
    options: &mut Options,
) -> Result<(), BadRequest> {
    match name {
        "model" => set_once(&mut options.model, cursor.value()?, "model")?,
        "system" => {
            let raw: &RawValue = cursor.value()?;
            let blocks = blocks(raw.get()).map_err(|error| cursor.malformed(&error.to_string()))?;
            options.marks_head |= blocks.iter().any(|block| block.cache_control.is_some());
            let text: String = blocks.into_iter().filter_map(|block| block.text).collect();
            set_once(&mut options.system, Some(Arc::from(text)), "system")?;
        }
        "tools" => {
            let raw: Option<&RawValue> = cursor.value()?;
            if let Some(raw) = raw {
                let (tools, is_marked) = tools(raw.get())?;
                options.marks_head |= is_marked;
                set_once(&mut options.tools, Some(Arc::new(tools)), "tools")?;
            }
        }
        "stream" => options.stream = cursor.value::<Option<bool>>()?.unwrap_or(false),
        "tool_choice" => {
            let choice: Option<WireChoice> = cursor.value()?;
            options.tools_forbidden = choice.is_some_and(|choice| choice.kind == "none");
        }
        "max_tokens" => options.max_output_tokens = cursor.value()?,
        "cache_control" => {
            options.marks_end |= cursor.value::<Option<IgnoredAny>>()?.is_some();
        }
        _ => {
            cursor.value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct WireChoice {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct WireTool {
    name: String,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    cache_control: Option<IgnoredAny>,
}

/// Tools with a schema; those that the provider runs itself have none.
fn tools(json: &str) -> Result<(Tools, bool), BadRequest> {
    let wire: Vec<WireTool> =
        serde_json::from_str(json).map_err(|error| BadRequest::Tools(error.to_string()))?;
    let is_marked = wire.iter().any(|tool| tool.cache_control.is_some());
    let offered = wire
        .into_iter()
        .filter_map(|tool| Some(OfferedTool::new(tool.name, tool.input_schema?)))
        .collect();
    let tools = Tools {
        json: json.to_owned(),
        offered,
    };
    Ok((tools, is_marked))
}
