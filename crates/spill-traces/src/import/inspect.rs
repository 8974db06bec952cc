//! Inspect AI logs: one JSON document with `samples`, or (in `.eval` archives) one document a sample. The model events say what
//! was sent; the final `messages` miss forks and sub-agents, and serve only where there are no events.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Importer, Out};
use crate::builder::{Builder, CallHead};
use crate::chain::Chains;
use crate::chat;
use crate::json::{Members, str_of, string_of, take, take_array, u64_of};
use crate::message::NewMessage;
use crate::model::{Format, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;
use crate::usage::Usage;

pub(crate) struct Inspect;

impl Importer for Inspect {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(members) = Members::of(text) else {
            out.parse(text, place);
            return;
        };
        if members.has("events") {
            return sample(text, place, out);
        }
        match members.elements("samples") {
            Some(samples) => {
                for (index, text) in samples.into_iter().enumerate() {
                    sample(text, &place.at_item(index), out);
                }
            }
            None => out.problem(place, ProblemKind::Empty, "a log without samples"),
        }
    }

    fn finish(&mut self, _place: &Place, _out: &mut Out<'_>) {}

    fn is_session(&self) -> bool {
        false
    }
}

/// What a sample's events refer to.
struct Pools {
    attachments: Map<String, Value>,
    messages: Vec<Value>,
}

fn sample(text: &str, place: &Place, out: &mut Out<'_>) {
    let Some(mut value) = out.parse(text, place) else {
        return;
    };
    let mut pooled = take(&mut value, "events_data").unwrap_or_default();
    let mut pool = take_array(&mut value, "message_pool");
    pool.extend(take_array(&mut pooled, "messages"));
    let pools = Pools {
        attachments: match take(&mut value, "attachments") {
            Some(Value::Object(attachments)) => attachments,
            Some(_) | None => Map::new(),
        },
        messages: pool,
    };
    let mut reader = Sample {
        chains: Chains::new(Format::Inspect),
        pools,
        scorers: HashSet::new(),
        place,
    };
    for event in take_array(&mut value, "events") {
        reader.event(event, out);
    }
    let messages = take_array(&mut value, "messages");
    let id = value
        .get("id")
        .map(|id| id.to_string().trim_matches('"').to_owned());
    let Sample {
        mut chains, pools, ..
    } = reader;
    if chains.is_empty() {
        return from_messages(messages, &pools, id, place, out);
    }
    park_unsent(messages, &pools, &mut chains, place, out);
    for (index, mut builder) in chains.into_builders().enumerate() {
        if index == 0 {
            builder.transcript.id.clone_from(&id);
            builder.transcript.recorded_total = total(value.get("model_usage"));
        } else {
            builder.transcript.id = id.as_ref().map(|id| format!("{id}/{index}"));
            builder.parent(id.clone(), None);
        }
        out.transcript(builder);
    }
}

struct Sample<'a> {
    chains: Chains,
    pools: Pools,
    /// Spans of scorers, and spans within them.
    scorers: HashSet<String>,
    place: &'a Place,
}

impl Sample<'_> {
    fn event(&mut self, mut event: Value, out: &mut Out<'_>) {
        match str_of(&event, "event") {
            Some("span_begin") => self.span(&event),
            Some("model") => {
                let scored = str_of(&event, "span_id").is_some_and(|id| self.scorers.contains(id));
                if scored {
                    out.left_out("model calls of scorers");
                } else {
                    self.model(event, out);
                }
            }
            Some("tool" | "subtask") => {
                for nested in take_array(&mut event, "events") {
                    self.event(nested, out);
                }
            }
            _ => {}
        }
    }

    fn span(&mut self, event: &Value) {
        let parent = str_of(event, "parent_id");
        let is_scorer = matches!(str_of(event, "type"), Some("scorer" | "scorers"))
            || parent.is_some_and(|id| self.scorers.contains(id));
        if is_scorer && let Some(id) = string_of(event, "id") {
            self.scorers.insert(id);
        }
    }

    fn model(&mut self, mut event: Value, out: &mut Out<'_>) {
        let mut messages = Vec::new();
        if let Some(mut tools) = take(&mut event, "tools")
            && tools.as_array().is_some_and(|tools| !tools.is_empty())
        {
            resolve(&mut tools, &self.pools, self.place, out);
            let mut message = NewMessage::new(Role::System, self.place);
            message.text(Origin::ToolSchemas, tools.to_string());
            messages.push(message);
        }
        for mut message in self.input(&mut event, out) {
            resolve(&mut message, &self.pools, self.place, out);
            messages.extend(chat::read(message, self.place, &mut out.problems));
        }
        let mut output = take(&mut event, "output").unwrap_or_default();
        let head = CallHead {
            id: string_of(&event, "uuid"),
            model: string_of(&output, "model").or_else(|| string_of(&event, "model")),
            time: Timestamp::from_json(event.get("timestamp")),
            usage: output.get("usage").and_then(usage),
            copied: false,
        };
        let ticket = self.chains.request(messages, head, self.place);
        let choice = take_array(&mut output, "choices").into_iter().next();
        if let Some(mut message) = choice.and_then(|mut choice| take(&mut choice, "message")) {
            resolve(&mut message, &self.pools, self.place, out);
            if let Some(answer) = chat::read(message, self.place, &mut out.problems) {
                self.chains.response(ticket, answer);
            }
        }
    }

    /// The messages of a call: written out, or ranges of the pool.
    fn input(&self, event: &mut Value, out: &mut Out<'_>) -> Vec<Value> {
        let mut input = take_array(event, "input");
        for range in take_array(event, "input_refs") {
            let bound = |at: usize| usize::try_from(range.get(at)?.as_u64()?).ok();
            let found = bound(0)
                .zip(bound(1))
                .and_then(|(a, b)| self.pools.messages.get(a..b));
            match found {
                Some(messages) => input.extend(messages.iter().cloned()),
                None => {
                    let detail = "a reference into the message pool that leads nowhere";
                    out.problem(self.place, ProblemKind::BrokenReference, detail);
                }
            }
        }
        input
    }
}

/// Puts attachments in the place of their references.
fn resolve(value: &mut Value, pools: &Pools, place: &Place, out: &mut Out<'_>) {
    match value {
        Value::String(text) => {
            let Some(hash) = text.strip_prefix("attachment://") else {
                return;
            };
            match pools.attachments.get(hash) {
                Some(attached) => *value = attached.clone(),
                None => {
                    let detail = format!("the attachment {hash} is not in the log");
                    out.problem(place, ProblemKind::BrokenReference, detail);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                resolve(item, pools, place, out);
            }
        }
        Value::Object(members) => {
            for (_, member) in members.iter_mut() {
                resolve(member, pools, place, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether the input includes its cached part differs by provider; the recorded total tells.
fn usage(usage: &Value) -> Option<Usage> {
    let count = |name| u64_of(usage, name);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let read = count("input_tokens_cache_read");
    let written = count("input_tokens_cache_write");
    let apart = count("total_tokens").is_some_and(|total| {
        total > input.unwrap_or(0) + output.unwrap_or(0) && read.or(written).is_some()
    });
    if apart {
        return Usage::from_parts(input, read, written, output).recorded();
    }
    Usage::from_total(input, read, output).recorded()
}

fn total(by_model: Option<&Value>) -> Option<Usage> {
    let mut sum = Usage::default();
    for model in by_model?.as_object()?.values() {
        sum += usage(model).unwrap_or_default();
    }
    sum.recorded()
}

/// Results that came after the last call stand in the final messages alone.
fn park_unsent(
    messages: Vec<Value>,
    pools: &Pools,
    chains: &mut Chains,
    place: &Place,
    out: &mut Out<'_>,
) {
    for mut message in messages {
        let id = match str_of(&message, "role") {
            Some("tool") => string_of(&message, "tool_call_id"),
            _ => None,
        };
        let Some(id) = id else { continue };
        let known =
            |t: &crate::Transcript| t.results.iter().any(|r| r.call_id.as_ref() == Some(&id));
        if chains.any(known) {
            continue;
        }
        resolve(&mut message, pools, place, out);
        if let Some(message) = chat::read(message, place, &mut out.problems) {
            chains.park(message, |transcript| {
                let mut pieces = transcript.messages.iter().flat_map(|m| &m.pieces);
                pieces.any(|piece| piece.call_id.as_ref() == Some(&id))
            });
        }
    }
}

/// A sample without model events: every assistant message is a call.
fn from_messages(
    messages: Vec<Value>,
    pools: &Pools,
    id: Option<String>,
    place: &Place,
    out: &mut Out<'_>,
) {
    let mut builder = Builder::new(Format::Inspect, place);
    builder.transcript.id = id;
    for mut message in messages {
        resolve(&mut message, pools, place, out);
        let model = string_of(&message, "model");
        let Some(message) = chat::read(message, place, &mut out.problems) else {
            continue;
        };
        if message.role == Role::Assistant {
            let head = CallHead {
                model,
                ..CallHead::default()
            };
            builder.answer(message, head);
        } else {
            builder.push(message);
        }
    }
    out.transcript(builder);
}
