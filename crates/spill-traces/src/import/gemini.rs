//! Gemini CLI sessions: one document with `messages`, or JSONL with a header and one message a line. Results stand within the
//! message that called; they are input of the next call. `resultDisplay` repeats them.

use std::collections::HashMap;

use serde_json::Value;

use super::{Importer, Out};
use crate::blocks;
use crate::builder::{Builder, CallHead};
use crate::json::{into_text, str_of, string_of, take, take_array, u64_of};
use crate::message::{NewMessage, ResultHead};
use crate::model::{Format, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;
use crate::usage::Usage;

#[derive(Default)]
pub(crate) struct Gemini {
    /// The id and the messages of a JSONL session.
    id: Option<String>,
    messages: Vec<(Value, Place)>,
    by_id: HashMap<String, usize>,
    is_lines: bool,
}

impl Importer for Gemini {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let id = string_of(&value, "sessionId");
        if value.get("messages").is_some() {
            let messages = take_array(&mut value, "messages");
            let placed = messages.into_iter().enumerate();
            let placed = placed.map(|(index, message)| (message, place.at_item(index)));
            return out.transcript(session(id, placed, place));
        }
        self.is_lines = true;
        if value.get("projectHash").is_some() {
            self.id = id;
        } else if value.get("type").is_some() {
            self.line(value, place, out);
        } else if value.get("$set").is_some() {
            out.left_out("session metadata");
        } else {
            out.problem(place, ProblemKind::Unknown, "record without a type");
        }
    }

    fn finish(&mut self, place: &Place, out: &mut Out<'_>) {
        if !self.is_lines {
            return;
        }
        self.by_id.clear();
        let messages = std::mem::take(&mut self.messages);
        out.transcript(session(self.id.take(), messages.into_iter(), place));
    }

    fn is_session(&self) -> bool {
        self.is_lines
    }
}

impl Gemini {
    /// A message is written again when it grows; the last one counts, in the first one's place.
    fn line(&mut self, value: Value, place: &Place, out: &mut Out<'_>) {
        let id = string_of(&value, "id");
        if let Some(index) = id.as_ref().and_then(|id| self.by_id.get(id)) {
            out.left_out("earlier states of a message");
            self.messages[*index].0 = value;
            return;
        }
        if let Some(id) = id {
            self.by_id.insert(id, self.messages.len());
        }
        self.messages.push((value, place.clone()));
    }
}

fn session(
    id: Option<String>,
    messages: impl Iterator<Item = (Value, Place)>,
    place: &Place,
) -> Builder {
    let mut builder = Builder::new(Format::GeminiCli, place);
    builder.transcript.id = id;
    for (message, place) in messages {
        step(&mut builder, message, &place);
    }
    builder
}

fn step(builder: &mut Builder, mut value: Value, place: &Place) {
    match str_of(&value, "type") {
        Some("user") => {
            let mut message = NewMessage::new(Role::User, place);
            let content = take(&mut value, "content").unwrap_or_default();
            let problems = &mut builder.transcript.problems;
            blocks::append(&mut message, Origin::User, content, problems);
            builder.push(message);
        }
        Some("gemini") => answer(builder, value, place),
        Some("info" | "error" | "warning") => builder.left_out("notices to the user"),
        other => {
            let detail = format!("message of type {other:?}");
            builder.problem(place, ProblemKind::Unknown, detail);
        }
    }
}

fn answer(builder: &mut Builder, mut value: Value, place: &Place) {
    let mut message = NewMessage::new(Role::Assistant, place);
    for thought in take_array(&mut value, "thoughts") {
        let part = |name| str_of(&thought, name).unwrap_or_default();
        let text = format!("{}\n{}", part("subject"), part("description"));
        message.text(Origin::Reasoning, text);
    }
    let content = take(&mut value, "content").unwrap_or_default();
    let problems = &mut builder.transcript.problems;
    blocks::append(&mut message, Origin::Assistant, content, problems);
    let mut results = Vec::new();
    for mut call in take_array(&mut value, "toolCalls") {
        let name = string_of(&call, "name").unwrap_or_default();
        let arguments = take(&mut call, "args").map(into_text).unwrap_or_default();
        message.tool_call(string_of(&call, "id"), name, arguments);
        results.push(call);
    }
    let head = CallHead {
        id: string_of(&value, "id"),
        model: string_of(&value, "model"),
        time: Timestamp::from_json(value.get("timestamp")),
        usage: value.get("tokens").and_then(usage),
        copied: false,
    };
    builder.answer(message, head);
    for call in results {
        result(builder, call, place);
    }
}

/// `input` includes `cached`; thoughts are output; what tools add to the prompt is input.
fn usage(tokens: &Value) -> Option<Usage> {
    let sum = |a: &str, b: &str| Some(u64_of(tokens, a)? + u64_of(tokens, b).unwrap_or(0));
    Usage::from_total(
        sum("input", "tool"),
        u64_of(tokens, "cached"),
        sum("output", "thoughts"),
    )
    .recorded()
}

fn result(builder: &mut Builder, mut call: Value, place: &Place) {
    let parts = take_array(&mut call, "result");
    if parts.is_empty() {
        return;
    }
    let mut message = NewMessage::new(Role::Tool, place);
    for mut part in parts {
        match take(&mut part, "functionResponse") {
            Some(mut response) => {
                let response = take(&mut response, "response").unwrap_or_default();
                message.text(Origin::ToolResult, response_text(response));
            }
            None => {
                let problems = &mut builder.transcript.problems;
                blocks::append(&mut message, Origin::ToolResult, part, problems);
            }
        }
    }
    let head = ResultHead {
        call_id: string_of(&call, "id"),
        tool: string_of(&call, "name"),
        is_error: str_of(&call, "status").map(|status| status != "success"),
        time: Timestamp::from_json(call.get("timestamp")),
        ..ResultHead::default()
    };
    message.close_result(0, head);
    builder.push(message);
}

/// `{output}` is the text; any other response is its JSON.
fn response_text(mut response: Value) -> String {
    let alone = response
        .as_object()
        .is_some_and(|members| members.len() == 1);
    match response.get_mut("output").map(Value::take) {
        Some(Value::String(text)) if alone => text,
        Some(output) => {
            response["output"] = output;
            response.to_string()
        }
        None => into_text(response),
    }
}
