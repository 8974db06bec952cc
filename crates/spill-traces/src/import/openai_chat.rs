//! OpenAI chat-completions messages: one conversation as an array or as `{messages: […]}`, several as JSONL or as an array,
//! one message a line, tau-bench results (`[{task_id, traj}]`) and tau2 results (`{simulations: [{messages}]}`).

use serde_json::Value;

use super::{Importer, Out};
use crate::builder::{Builder, CallHead};
use crate::chat;
use crate::json::{Members, elements, str_of, string_of, take, take_array};
use crate::message::NewMessage;
use crate::model::{Format, Origin, Role};
use crate::problem::{Place, ProblemKind};

#[derive(Default)]
pub(crate) struct OpenAiChat {
    /// The conversation of a file that has one message a line.
    lines: Option<Builder>,
}

/// Which of the dialects a conversation is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Plain,
    /// Users have tools of their own, and the first assistant message is canned.
    Tau2,
}

impl Importer for OpenAiChat {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(items) = elements(text) else {
            return self.item(text, place, out);
        };
        let is_message = |item: &&str| Members::of(item).is_some_and(|m| m.has("role"));
        if items.first().is_some_and(is_message) {
            let builder = conversation(&items, Dialect::Plain, place, out);
            return out.transcript(builder);
        }
        for (index, item) in items.into_iter().enumerate() {
            self.item(item, &place.at_item(index), out);
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

impl OpenAiChat {
    fn item(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(members) = Members::of(text) else {
            out.parse(text, place);
            return;
        };
        if let Some(simulations) = members.elements("simulations") {
            return tau2(&members, &simulations, place, out);
        }
        let messages = members
            .elements("messages")
            .or_else(|| members.elements("traj"));
        if let Some(messages) = messages {
            let mut builder = conversation(&messages, Dialect::Plain, place, out);
            builder.transcript.id = ["id", "conversation_id", "task_id"]
                .iter()
                .find_map(|name| members.get(name))
                .map(|id| id.trim_matches('"').to_owned());
            if let Some(model) = members.string("model") {
                for call in &mut builder.transcript.calls {
                    call.model.get_or_insert_with(|| model.clone().into_owned());
                }
            }
            return out.transcript(builder);
        }
        let Some(value) = out.parse(text, place) else {
            return;
        };
        if value.get("role").is_none() {
            let detail = "neither a conversation nor a message";
            return out.problem(place, ProblemKind::NotRecognised, detail);
        }
        let builder = self
            .lines
            .get_or_insert_with(|| Builder::new(Format::OpenAiChat, place));
        step(builder, value, Dialect::Plain, place);
    }
}

fn tau2(members: &Members<'_>, simulations: &[&str], place: &Place, out: &mut Out<'_>) {
    let info = members.get("info").and_then(|info| out.parse(info, place));
    let model = info
        .as_ref()
        .and_then(|info| string_of(info.get("agent_info")?, "llm"));
    for (index, simulation) in simulations.iter().enumerate() {
        let place = place.at_item(index);
        let Some(simulation) = Members::of(simulation) else {
            out.parse(simulation, &place);
            continue;
        };
        let Some(messages) = simulation.elements("messages") else {
            out.problem(&place, ProblemKind::BadField, "simulation without messages");
            continue;
        };
        let mut builder = conversation(&messages, Dialect::Tau2, &place, out);
        builder.transcript.id = simulation.string("id").map(std::borrow::Cow::into_owned);
        for call in &mut builder.transcript.calls {
            call.model.clone_from(&model);
        }
        out.transcript(builder);
    }
}

fn conversation(messages: &[&str], dialect: Dialect, place: &Place, out: &mut Out<'_>) -> Builder {
    let mut builder = Builder::new(Format::OpenAiChat, place);
    for (index, message) in messages.iter().enumerate() {
        let place = if place.item.is_some() {
            place.clone()
        } else {
            place.at_item(index)
        };
        if let Some(value) = out.parse(message, &place) {
            step(&mut builder, value, dialect, &place);
        }
    }
    builder
}

/// Takes the next message of a conversation.
fn step(builder: &mut Builder, mut value: Value, dialect: Dialect, place: &Place) {
    let wrapped = take_array(&mut value, "tool_messages");
    if !wrapped.is_empty() {
        for message in wrapped {
            step(builder, message, dialect, place);
        }
        return;
    }
    let role = str_of(&value, "role").unwrap_or_default();
    if dialect == Dialect::Tau2 {
        if role == "tool" && str_of(&value, "requestor") == Some("user") {
            return builder.left_out("tool results of the simulated user");
        }
        if role == "user" && take(&mut value, "tool_calls").is_some() {
            builder.left_out("tool calls of the simulated user");
        }
    }
    let usage = take(&mut value, "usage");
    let head = CallHead {
        id: string_of(&value, "id"),
        model: string_of(&value, "model"),
        usage: usage.as_ref().and_then(chat::usage),
        ..CallHead::default()
    };
    let tools = take(&mut value, "tools");
    let Some(message) = chat::read(value, place, &mut builder.transcript.problems) else {
        return;
    };
    if let Some(tools) = tools {
        let mut schemas = NewMessage::new(Role::System, place);
        schemas.text(Origin::ToolSchemas, tools.to_string());
        builder.push(schemas);
    }
    match message.role {
        Role::Assistant => {
            let canned = dialect == Dialect::Tau2
                && head.usage.is_none()
                && builder.transcript.messages.is_empty();
            if canned {
                builder.left_out("canned greeting, not a call");
                builder.push(message);
            } else {
                let time = message.time;
                builder.answer(message, CallHead { time, ..head });
            }
        }
        Role::System | Role::User | Role::Tool => {
            if message.is_empty() {
                builder.left_out("empty message");
            } else {
                builder.push(message);
            }
        }
    }
}
