//! DeepSeek Harness `session.jsonl`: one event a line. Streaming chunks and `tool/call` repeat the messages.

use std::collections::HashMap;

use serde_json::Value;

use super::{Importer, Out};
use crate::blocks;
use crate::builder::{Builder, CallHead};
use crate::json::{str_of, string_of, take, u64_of};
use crate::message::{NewMessage, ResultHead};
use crate::model::{BoundaryKind, Format, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::spans::Spans;
use crate::time::Timestamp;
use crate::usage::Usage;

/// Kinds of events, up to the slash, that are bookkeeping.
const BOOKKEEPING: &[&str] = &[
    "agent",
    "turn",
    "step",
    "session",
    "subagent",
    "approval",
    "sandbox",
    "permission",
    "command",
    "todo",
    "plan",
    "tool-workflow",
];

#[derive(Default)]
pub(crate) struct DeepSeek {
    builder: Option<Builder>,
    model: Option<String>,
    /// The number of the next event.
    next: u64,
    /// The message of each event that has one.
    messages: HashMap<usize, u64>,
    /// The message of the request header, which stands before all others.
    header: Option<usize>,
    /// True within the events that a fork copied from its parent.
    is_seed: bool,
}

impl Importer for DeepSeek {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let kind = string_of(&value, "type").unwrap_or_default();
        if kind == "session" {
            return self.session(&value, place, out);
        }
        let number = u64_of(&value, "seq").unwrap_or(self.next);
        self.next = number + 1;
        let time = Timestamp::from_json(value.get("time"));
        let data = take(&mut value, "data").unwrap_or_default();
        let replaces = value.get("surfaceOp").and_then(replaced);
        self.builder
            .get_or_insert_with(|| Builder::new(Format::DeepSeekHarness, place));
        let pushed = match kind.as_str() {
            "user/message" => Some(self.user(data, replaces, place, out)),
            "assistant/message" => self.assistant(data, time, place, out),
            "tool/result" => Some(self.result(data, time, place, out)),
            "request/header" | "request/header-delta" => {
                self.request_header(data, place);
                None
            }
            "session/end-seed" => {
                self.is_seed = false;
                None
            }
            other => {
                bookkeeping(other, place, out);
                None
            }
        };
        if let Some(message) = pushed {
            self.messages.insert(message, number);
        }
    }

    fn finish(&mut self, _place: &Place, out: &mut Out<'_>) {
        if let Some(builder) = self.builder.take()
            && !builder.is_empty()
        {
            out.transcript(builder);
        }
    }

    fn is_session(&self) -> bool {
        true
    }
}

fn bookkeeping(kind: &str, place: &Place, out: &mut Out<'_>) {
    let family = kind.split('/').next().unwrap_or_default();
    if kind == "assistant/chunk" || kind.ends_with("-chunks") {
        out.left_out("streaming chunks, duplicates of messages");
    } else if kind == "tool/call" || kind.starts_with("tool/code-dispatch") {
        out.left_out("tool call events, duplicates of messages");
    } else if BOOKKEEPING.contains(&family) || kind == "request/context" {
        out.left_out("bookkeeping events");
    } else {
        out.problem(
            place,
            ProblemKind::Unknown,
            format!("event of type {kind:?}"),
        );
    }
}

/// The numbers of the events that a surface operation replaces.
fn replaced(operation: &Value) -> Option<(u64, u64)> {
    (str_of(operation, "op") == Some("replace"))
        .then(|| Some((u64_of(operation, "start")?, u64_of(operation, "end")?)))?
}

impl DeepSeek {
    fn builder(&mut self) -> &mut Builder {
        self.builder.as_mut().expect("a record makes one first")
    }

    /// Several sessions in one file follow each other.
    fn session(&mut self, value: &Value, place: &Place, out: &mut Out<'_>) {
        self.finish(place, out);
        let mut builder = Builder::new(Format::DeepSeekHarness, place);
        builder.transcript.id = string_of(value, "id");
        builder.parent(string_of(value, "parentSession"), None);
        *self = Self {
            builder: Some(builder),
            is_seed: u64_of(value, "seedLength").unwrap_or(0) > 0,
            ..Self::default()
        };
    }

    fn user(
        &mut self,
        mut data: Value,
        replaces: Option<(u64, u64)>,
        place: &Place,
        out: &mut Out<'_>,
    ) -> usize {
        let mut message = NewMessage::new(Role::User, place);
        let content = take(&mut data, "content").unwrap_or_default();
        blocks::append(&mut message, Origin::User, content, &mut out.problems);
        let Some((start, end)) = replaces else {
            return self.builder().push(message);
        };
        let compacts = data
            .get("source")
            .and_then(|source| str_of(source, "plugin"));
        let kind = if compacts == Some("compact") {
            BoundaryKind::Compaction
        } else {
            BoundaryKind::Edit
        };
        let index = self.builder().park(message);
        let mut live = Spans::default();
        let mut placed = false;
        let before = self.builder().live.clone();
        for message in before.iter() {
            match self.messages.get(&message) {
                Some(number) if (start..=end).contains(number) => {
                    if !placed {
                        live.push(index);
                        placed = true;
                    }
                }
                Some(_) | None => live.push(message),
            }
        }
        if !placed {
            live.push(index);
        }
        self.builder().boundary(kind, live);
        index
    }

    fn assistant(
        &mut self,
        mut data: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) -> Option<usize> {
        let usage = take(&mut data, "usage");
        // Older files have the message's fields in the event itself.
        let mut message = take(&mut data, "message").unwrap_or(data);
        let mut answer = NewMessage::new(Role::Assistant, place);
        let content = take(&mut message, "content").unwrap_or_default();
        blocks::append(&mut answer, Origin::Assistant, content, &mut out.problems);
        let source = message.get("source");
        let head = CallHead {
            id: string_of(&message, "id"),
            model: source
                .and_then(|source| string_of(source, "model"))
                .or_else(|| self.model.clone()),
            time,
            usage: usage.as_ref().and_then(tokens),
            copied: self.is_seed,
        };
        let builder = self.builder();
        let call = builder.answer(answer, head);
        builder.transcript.calls[call].answer
    }

    fn result(
        &mut self,
        mut data: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) -> usize {
        let mut message = NewMessage::new(Role::Tool, place);
        message.time = time;
        if let Some(mut newer) = take(&mut data, "message") {
            let content = take(&mut newer, "content").unwrap_or_default();
            blocks::append(&mut message, Origin::ToolResult, content, &mut out.problems);
        } else {
            let content = take(&mut data, "content").unwrap_or_default();
            blocks::append(&mut message, Origin::ToolResult, content, &mut out.problems);
            if message.results.is_empty() {
                let head = ResultHead {
                    call_id: string_of(&data, "callId"),
                    is_error: data.get("isError").and_then(Value::as_bool),
                    ..ResultHead::default()
                };
                message.close_result(0, head);
            }
        }
        self.builder().push(message)
    }

    /// System prompt and tools. Snapshots have placeholders in braces in their place: those are not recorded.
    fn request_header(&mut self, mut data: Value, place: &Place) {
        let mut header = take(&mut data, "header").unwrap_or(data);
        let model = header
            .get("config")
            .and_then(|config| string_of(config, "model"));
        self.model = model.or(self.model.take());
        let mut message = NewMessage::new(Role::System, place);
        let parts = [("system", Origin::System), ("tools", Origin::ToolSchemas)];
        for (name, origin) in parts {
            match take(&mut header, name) {
                Some(Value::String(text)) if text.starts_with("{{") => {}
                Some(Value::String(text)) => message.text(origin, text),
                Some(other) => message.text(origin, other.to_string()),
                None => {}
            }
        }
        if message.is_empty() {
            return;
        }
        let before = self.header;
        let builder = self.builder();
        let index = builder.park(message);
        let rest: Vec<usize> = builder
            .live
            .iter()
            .filter(|at| Some(*at) != before)
            .collect();
        builder.live = std::iter::once(index).chain(rest).collect();
        self.header = Some(index);
    }
}

/// The cached part stands beside the input, not in it.
fn tokens(usage: &Value) -> Option<Usage> {
    Usage::from_parts(
        u64_of(usage, "inputTokens"),
        u64_of(usage, "cacheReadTokens"),
        u64_of(usage, "cacheWriteTokens"),
        u64_of(usage, "outputTokens"),
    )
    .recorded()
}
