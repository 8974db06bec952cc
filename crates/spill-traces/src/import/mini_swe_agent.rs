//! mini-swe-agent `.traj.json`: chat-completions messages with an `extra` each. What the model saw is `content`; the whole
//! output is `extra.raw_output` and is kept beside it. Old files are a bare list, with results as user messages.

use serde_json::Value;

use super::{Importer, Out};
use crate::builder::{Builder, CallHead};
use crate::chat;
use crate::json::{str_of, string_of, take, take_array};
use crate::message::{NewMessage, ResultHead};
use crate::model::{Completeness, Format, Role};
use crate::problem::{Place, ProblemKind};
use crate::text::Text;
use crate::time::Timestamp;

pub(crate) struct MiniSweAgent;

impl Importer for MiniSweAgent {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let mut builder = Builder::new(Format::MiniSweAgent, place);
        let messages = match value {
            Value::Array(messages) => messages,
            _ => {
                builder.transcript.id = string_of(&value, "instance_id");
                take_array(&mut value, "messages")
            }
        };
        for (index, message) in messages.into_iter().enumerate() {
            step(&mut builder, message, &place.at_item(index));
        }
        out.transcript(builder);
    }

    fn finish(&mut self, _place: &Place, _out: &mut Out<'_>) {}

    fn is_session(&self) -> bool {
        false
    }
}

fn step(builder: &mut Builder, mut value: Value, place: &Place) {
    let mut extra = take(&mut value, "extra").unwrap_or_default();
    match str_of(&value, "role") {
        Some("exit") => return builder.left_out("exit message, not sent"),
        Some("user") if is_result(builder, &value) => return old_result(builder, value, place),
        _ => {}
    }
    let time = Timestamp::from_json(extra.get("timestamp"));
    let Some(mut message) = chat::read(value, place, &mut builder.transcript.problems) else {
        return;
    };
    match message.role {
        Role::Assistant => {
            let response = take(&mut extra, "response").unwrap_or_default();
            let head = CallHead {
                id: string_of(&response, "id"),
                model: string_of(&response, "model"),
                time,
                usage: response.get("usage").and_then(chat::usage),
                copied: false,
            };
            builder.answer(message, head);
        }
        Role::Tool => {
            complete(&mut message, &mut extra, time, place, builder);
            builder.push(message);
        }
        Role::System | Role::User => {
            if message.is_empty() {
                builder.left_out("empty message");
            } else {
                builder.push(message);
            }
        }
    }
}

/// Adds what `extra` knows of a result.
fn complete(
    message: &mut NewMessage,
    extra: &mut Value,
    time: Option<Timestamp>,
    place: &Place,
    builder: &mut Builder,
) {
    let raw = take(extra, "raw_output");
    let failed = str_of(extra, "exception_info").map(|info| !info.is_empty());
    let Some(result) = message.results.last_mut() else {
        return;
    };
    result.head.time = time;
    result.head.is_error = failed;
    match raw {
        Some(Value::String(raw)) => {
            let shown = &message.pieces[result.pieces.clone()];
            let is_whole = shown.iter().any(|piece| piece.text.contains(raw.trim()));
            result.completeness = if is_whole {
                Completeness::AsRecorded
            } else {
                Completeness::Cut {
                    original_bytes: Some(raw.len() as u64),
                }
            };
            let raw = Text::from(raw);
            result.head.uncut = Some(raw);
        }
        Some(_) => builder.problem(place, ProblemKind::BadField, "raw_output is no string"),
        None => {}
    }
}

/// In old files, what the environment answered has one of these forms; other user messages correct the model's format.
fn is_result(builder: &Builder, value: &Value) -> bool {
    let content = str_of(value, "content").unwrap_or_default();
    !builder.transcript.calls.is_empty()
        && (content.starts_with("<returncode>")
            || content.starts_with("Observation:")
            || content.contains("<output>"))
}

fn old_result(builder: &mut Builder, mut value: Value, place: &Place) {
    let Some(Value::String(text)) = take(&mut value, "content") else {
        return;
    };
    let mut message = NewMessage::new(Role::User, place);
    let head = ResultHead {
        tool: Some("bash".to_owned()),
        asked_by: builder.transcript.calls.len().checked_sub(1),
        ..ResultHead::default()
    };
    message.result(head, text);
    builder.push(message);
}
