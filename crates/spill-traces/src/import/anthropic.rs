//! Anthropic messages: `{system, messages, tools, model}`, a bare array of messages, one of either a line, and single messages
//! a line. An assistant message that came from the API carries `id`, `model` and `usage`.

use serde_json::Value;

use super::{Importer, Out};
use crate::blocks;
use crate::builder::{Builder, CallHead};
use crate::chat;
use crate::json::{string_of, take, take_array};
use crate::message::NewMessage;
use crate::model::{Format, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;

#[derive(Default)]
pub(crate) struct Anthropic {
    /// The conversation of a file that has one message a line.
    lines: Option<Builder>,
}

impl Importer for Anthropic {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(value) = out.parse(text, place) else {
            return;
        };
        match value {
            Value::Array(messages) => {
                let mut builder = Builder::new(Format::AnthropicMessages, place);
                for (index, message) in messages.into_iter().enumerate() {
                    step(&mut builder, message, &place.at_item(index));
                }
                out.transcript(builder);
            }
            object if object.get("messages").is_some() => {
                out.transcript(conversation(object, place));
            }
            object if object.get("role").is_some() => {
                let builder = self
                    .lines
                    .get_or_insert_with(|| Builder::new(Format::AnthropicMessages, place));
                step(builder, object, place);
            }
            _ => {
                let detail = "neither a conversation nor a message";
                out.problem(place, ProblemKind::NotRecognised, detail);
            }
        }
    }

    fn finish(&mut self, _place: &Place, out: &mut Out<'_>) {
        if let Some(builder) = self.lines.take() {
            out.transcript(builder);
        }
    }

    fn is_session(&self) -> bool {
        self.lines.is_some()
    }
}

fn conversation(mut value: Value, place: &Place) -> Builder {
    let mut builder = Builder::new(Format::AnthropicMessages, place);
    builder.transcript.id = string_of(&value, "id");
    let model = string_of(&value, "model");
    for message in preamble(&mut value, place, &mut builder) {
        builder.push(message);
    }
    for (index, message) in take_array(&mut value, "messages").into_iter().enumerate() {
        step(&mut builder, message, &place.at_item(index));
    }
    for call in &mut builder.transcript.calls {
        if call.model.is_none() {
            call.model.clone_from(&model);
        }
    }
    builder
}

/// The tool schemas and the system prompt that stand beside the messages, as messages.
fn preamble(value: &mut Value, place: &Place, builder: &mut Builder) -> Vec<NewMessage> {
    let mut system = NewMessage::new(Role::System, place);
    if let Some(tools) = take(value, "tools") {
        system.text(Origin::ToolSchemas, tools.to_string());
    }
    if let Some(prompt) = take(value, "system") {
        let problems = &mut builder.transcript.problems;
        blocks::append(&mut system, Origin::System, prompt, problems);
    }
    if system.is_empty() {
        Vec::new()
    } else {
        vec![system]
    }
}

fn step(builder: &mut Builder, value: Value, place: &Place) {
    let head = CallHead {
        id: string_of(&value, "id"),
        model: string_of(&value, "model"),
        time: Timestamp::from_json(value.get("timestamp")),
        usage: value.get("usage").and_then(chat::usage),
        copied: false,
    };
    let Some(message) = chat::read(value, place, &mut builder.transcript.problems) else {
        return;
    };
    match message.role {
        Role::Assistant => {
            builder.answer(message, head);
        }
        Role::System | Role::User | Role::Tool => {
            builder.push(message);
        }
    }
}
