//! Spans of OTLP JSON and their attributes.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::Out;
use crate::json::{str_of, string_of, take, take_array};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;

/// One span.
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) start: Option<Timestamp>,
    pub(crate) place: Place,
    attributes: HashMap<String, Value>,
}

/// What a span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Model,
    Tool,
    Agent,
    Other,
}

/// All spans of an export, in its order.
pub(crate) fn spans_of(mut document: Value, place: &Place, out: &mut Out<'_>) -> Vec<Span> {
    let mut spans = Vec::new();
    for mut resource in either(&mut document, "resourceSpans", "resource_spans") {
        for mut scope in either(&mut resource, "scopeSpans", "scope_spans") {
            for span in take_array(&mut scope, "spans") {
                let place = place.at_item(spans.len());
                spans.extend(read(span, &place, out));
            }
        }
    }
    spans
}

fn either(value: &mut Value, name: &str, other: &str) -> Vec<Value> {
    let found = take_array(value, name);
    if found.is_empty() {
        take_array(value, other)
    } else {
        found
    }
}

fn read(mut span: Value, place: &Place, out: &mut Out<'_>) -> Option<Span> {
    let Some(trace) = string_of(&span, "traceId").or_else(|| string_of(&span, "trace_id")) else {
        out.problem(place, ProblemKind::BadField, "span without a trace id");
        return None;
    };
    let legacy = take_array(&mut span, "events")
        .iter()
        .filter_map(|event| str_of(event, "name"))
        .any(|name| name.starts_with("gen_ai.") && name.ends_with(".message"));
    if legacy {
        let detail = "messages as span events (an older convention) are not read";
        out.problem(place, ProblemKind::Unknown, detail);
    }
    let start = span.get("startTimeUnixNano");
    let start = Timestamp::from_nanoseconds(start.or_else(|| span.get("start_time_unix_nano")));
    let attributes = take_array(&mut span, "attributes")
        .into_iter()
        .filter_map(|mut attribute| {
            let key = string_of(&attribute, "key")?;
            Some((key, plain(take(&mut attribute, "value")?)))
        })
        .collect();
    Some(Span {
        trace,
        start,
        place: place.clone(),
        attributes,
    })
}

/// An OTLP value as a plain one. 64-bit integers are strings there.
fn plain(mut value: Value) -> Value {
    let Value::Object(members) = &mut value else {
        return value;
    };
    let Some((kind, inner)) = members.iter_mut().next() else {
        return Value::Null;
    };
    let kind = kind.clone();
    let mut inner = inner.take();
    match kind.as_str() {
        "intValue" => match inner.as_str().map(str::parse::<i64>) {
            Some(Ok(number)) => Value::from(number),
            Some(Err(_)) | None => inner,
        },
        "arrayValue" => take_array(&mut inner, "values")
            .into_iter()
            .map(plain)
            .collect(),
        "kvlistValue" => {
            let mut object = Map::new();
            for mut entry in take_array(&mut inner, "values") {
                if let Some(key) = string_of(&entry, "key") {
                    object.insert(key, plain(take(&mut entry, "value").unwrap_or_default()));
                }
            }
            Value::Object(object)
        }
        _ => inner,
    }
}

impl Span {
    pub(crate) fn kind(&self) -> SpanKind {
        let text = |name| self.attributes.get(name).and_then(Value::as_str);
        match (
            text("gen_ai.operation.name"),
            text("openinference.span.kind"),
        ) {
            (Some("chat" | "text_completion" | "generate_content"), _) | (_, Some("LLM")) => {
                SpanKind::Model
            }
            (Some("execute_tool"), _) | (_, Some("TOOL")) => SpanKind::Tool,
            (Some("invoke_agent" | "create_agent"), _) | (_, Some("AGENT")) => SpanKind::Agent,
            _ => SpanKind::Other,
        }
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.attributes.get(name)?.as_str().map(str::to_owned)
    }

    pub(crate) fn take_string(&mut self, name: &str) -> Option<String> {
        match self.attributes.remove(name)? {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.attributes.get(name)?.as_u64()
    }

    /// An attribute that holds JSON as a string, or is structured itself.
    pub(crate) fn json(&mut self, name: &str, out: &mut Out<'_>) -> Option<Value> {
        match self.attributes.remove(name)? {
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(value) => Some(value),
                Err(error) => {
                    let detail = format!("{name} is cut or no JSON: {error}");
                    out.problem(&self.place, ProblemKind::BadField, detail);
                    None
                }
            },
            other => Some(other),
        }
    }

    /// The tools that were offered.
    pub(crate) fn tool_schemas(&mut self) -> Vec<String> {
        if let Some(text) = self.take_string("gen_ai.tool.definitions") {
            return vec![text];
        }
        (0..)
            .map_while(|index| {
                let name = format!("llm.tools.{index}.tool.json_schema");
                self.take_string(&name)
            })
            .collect()
    }

    /// Messages, in the shape of chat completions: from the GenAI attribute, or from the flattened keys of OpenInference.
    pub(crate) fn messages(&mut self, genai: &str, flat: &str, out: &mut Out<'_>) -> Vec<Value> {
        match self.json(genai, out) {
            Some(Value::Array(mut messages)) => {
                for message in &mut messages {
                    if let Some(parts) = take(message, "parts") {
                        message["content"] = parts;
                    }
                }
                messages
            }
            Some(_) => {
                let detail = format!("{genai} is no array");
                out.problem(&self.place, ProblemKind::BadField, detail);
                Vec::new()
            }
            None => self.flat_messages(flat),
        }
    }

    fn flat_messages(&mut self, prefix: &str) -> Vec<Value> {
        let mut messages: BTreeMap<usize, BTreeMap<String, Value>> = BTreeMap::new();
        for (key, value) in &mut self.attributes {
            let rest = key
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('.'));
            let Some((index, field)) = rest.and_then(|rest| rest.split_once(".message.")) else {
                continue;
            };
            if let Ok(index) = index.parse() {
                let fields = messages.entry(index).or_default();
                fields.insert(field.to_owned(), value.take());
            }
        }
        messages.into_values().map(unflatten).collect()
    }
}

/// One message from its fields, like `tool_calls.0.tool_call.function.name`.
fn unflatten(mut fields: BTreeMap<String, Value>) -> Value {
    let mut message = json!({"role": fields.remove("role")});
    let parts: Vec<Value> = (0..)
        .map_while(|index| {
            let text = fields.remove(&format!("contents.{index}.message_content.text"))?;
            Some(json!({"type": "text", "text": text}))
        })
        .collect();
    // `content` repeats the only text of `contents`.
    message["content"] = match fields.remove("content") {
        Some(content) => content,
        None => Value::from(parts),
    };
    if let Some(id) = fields.remove("tool_call_id") {
        message["tool_call_id"] = id;
    }
    if let Some(name) = fields.remove("name") {
        message["name"] = name;
    }
    let calls: Vec<Value> = (0..)
        .map_while(|index| {
            let key = |field: &str| format!("tool_calls.{index}.tool_call.{field}");
            let name = fields.remove(&key("function.name"))?;
            Some(json!({
                "id": fields.remove(&key("id")),
                "name": name,
                "arguments": fields.remove(&key("function.arguments")),
            }))
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = Value::from(calls);
    }
    message
}
