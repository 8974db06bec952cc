//! Reads a Gemini `generateContent` request; model and streaming stand in its address.
//!
//! Calls need not have ids. Those without are told apart by name and place: the n-th response of a
//! name answers the n-th call of that name in the turn before.

use std::collections::HashMap;
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
struct Content {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default, alias = "function_call")]
    function_call: Option<FunctionCall>,
    #[serde(default, alias = "function_response")]
    function_response: Option<FunctionResponse>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
struct FunctionResponse {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    response: Value,
}

pub(in crate::dialect) fn item(
    cursor: &mut Cursor<'_>,
    index: usize,
) -> Result<Vec<(Message, bool)>, BadRequest> {
    let bad = |message: String| BadRequest::Message {
        list: "contents",
        index,
        message,
    };
    let raw: &RawValue = cursor.value()?;
    let content: Content =
        serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
    let messages = match content.role.as_deref() {
        Some("model") => vec![model(content.parts)],
        Some("user" | "function") | None => user(content.parts),
        Some(role) => return Err(bad(format!("'{role}' is not one of 'user', 'model'"))),
    };
    Ok(messages.into_iter().map(|one| (one, false)).collect())
}

/// Names for calls without an id.
#[derive(Default)]
struct Places(HashMap<String, u32>);

impl Places {
    fn id(&mut self, given: Option<String>, name: &str) -> String {
        let place = self.0.entry(name.to_owned()).or_default();
        *place += 1;
        given.unwrap_or_else(|| format!("{name}#{place}"))
    }
}

fn model(parts: Vec<Part>) -> Message {
    let mut places = Places::default();
    let mut said = String::new();
    let mut calls = Vec::new();
    for part in parts {
        said.push_str(part.text.as_deref().unwrap_or_default());
        if let Some(call) = part.function_call {
            let id = places.id(call.id, &call.name);
            calls.push(Call::parsed(id, call.name, call.args));
        }
    }
    Message::Assistant { text: said, calls }
}

fn user(parts: Vec<Part>) -> Vec<Message> {
    let mut places = Places::default();
    let mut said: Option<String> = None;
    let mut messages = Vec::new();
    for part in parts {
        if let Some(text) = part.text {
            said.get_or_insert_default().push_str(&text);
        }
        if let Some(FunctionResponse { id, name, response }) = part.function_response {
            messages.push(Message::Tool {
                call_id: places.id(id, &name),
                result: result(&response),
            });
        }
    }
    if messages.is_empty() {
        said.get_or_insert_default();
    }
    messages.extend(said.map(Message::User));
    messages
}

/// A response is an object of any shape; `output` and `error` are the names that the API suggests.
fn result(response: &Value) -> ToolText {
    if let Some(error) = response.get("error") {
        return ToolText::error(&text_of(error));
    }
    let text = ["output", "result", "content"]
        .iter()
        .find_map(|name| response.get(*name));
    ToolText::parse(&text_of(text.unwrap_or(response)))
}

fn text_of(value: &Value) -> String {
    let parts = |parts: &Vec<Value>| -> Option<String> {
        parts
            .iter()
            .map(|part| part.get("text").and_then(Value::as_str))
            .collect()
    };
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => parts(list).unwrap_or_else(|| value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(default, alias = "max_output_tokens")]
    max_output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    #[serde(default, alias = "function_calling_config")]
    function_calling_config: Option<FunctionCallingConfig>,
}

#[derive(Deserialize)]
struct FunctionCallingConfig {
    #[serde(default)]
    mode: Option<String>,
}

pub(in crate::dialect) fn member(
    name: &str,
    cursor: &mut Cursor<'_>,
    options: &mut Options,
) -> Result<(), BadRequest> {
    match name {
        "systemInstruction" | "system_instruction" => {
            let content: Content = cursor.value()?;
            let text: String = content
                .parts
                .into_iter()
                .filter_map(|part| part.text)
                .collect();
            set_once(
                &mut options.system,
                Some(Arc::from(text)),
                "systemInstruction",
            )?;
        }
        "tools" => {
            let raw: Option<&RawValue> = cursor.value()?;
            let tools = raw.map(|raw| tools(raw.get())).transpose()?;
            set_once(&mut options.tools, tools.map(Arc::new), "tools")?;
        }
        "generationConfig" | "generation_config" => {
            let config: Option<GenerationConfig> = cursor.value()?;
            options.max_output_tokens = config.and_then(|config| config.max_output_tokens);
        }
        "toolConfig" | "tool_config" => {
            let config: Option<ToolConfig> = cursor.value()?;
            let mode = config
                .and_then(|config| config.function_calling_config)
                .and_then(|config| config.mode);
            options.tools_forbidden = mode.as_deref() == Some("NONE");
        }
        _ => {
            cursor.value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTool {
    #[serde(default, alias = "function_declarations")]
    function_declarations: Vec<Declaration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration {
    name: String,
    #[serde(default)]
    parameters: Value,
    #[serde(default, alias = "parameters_json_schema")]
    parameters_json_schema: Value,
}

fn tools(json: &str) -> Result<Tools, BadRequest> {
    let wire: Vec<WireTool> =
        serde_json::from_str(json).map_err(|error| BadRequest::Tools(error.to_string()))?;
    let declared = wire.into_iter().flat_map(|tool| tool.function_declarations);
    let offered = declared
        .map(|one| {
            let schema = match one.parameters_json_schema {
                Value::Null => one.parameters,
                schema => schema,
            };
            OfferedTool::new(one.name, schema)
        })
        .collect();
    Ok(Tools {
        json: json.to_owned(),
        offered,
    })
}
