//! Codex rollout JSONL: `{timestamp, type, payload}` lines, or bare response items in old files. `event_msg` lines repeat the
//! items; of them only the token counts are read.

use serde_json::Value;

use super::{Importer, Out};
use crate::blocks;
use crate::builder::{Builder, CallHead};
use crate::json::{into_text, str_of, string_of, take, take_array, u64_of};
use crate::message::{NewMessage, ResultHead};
use crate::model::{BoundaryKind, Format, Missing, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::spans::Spans;
use crate::time::Timestamp;
use crate::usage::Usage;

#[derive(Default)]
pub(crate) struct Codex {
    builder: Option<Builder>,
    /// The answer that is being read.
    open: Option<NewMessage>,
    model: Option<String>,
    last_total: Option<Value>,
}

impl Importer for Codex {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        self.builder
            .get_or_insert_with(|| Builder::new(Format::CodexRollout, place));
        let time = Timestamp::from_json(value.get("timestamp"));
        match take(&mut value, "payload") {
            Some(payload) => {
                let kind = string_of(&value, "type").unwrap_or_default();
                self.line(&kind, payload, time, place, out);
            }
            None if value.get("record_type").is_some() => out.left_out("state records"),
            None if value.get("type").is_none() && value.get("instructions").is_some() => {
                self.meta(value, place);
            }
            None => self.item(value, time, place, out),
        }
    }

    fn finish(&mut self, _place: &Place, out: &mut Out<'_>) {
        self.close();
        if let Some(builder) = self.builder.take() {
            out.transcript(builder);
        }
    }

    fn is_session(&self) -> bool {
        true
    }
}

impl Codex {
    fn builder(&mut self) -> &mut Builder {
        self.builder.as_mut().expect("a record makes one first")
    }

    fn line(
        &mut self,
        kind: &str,
        payload: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) {
        match kind {
            "session_meta" => self.meta(payload, place),
            "turn_context" => self.model = string_of(&payload, "model").or(self.model.take()),
            "response_item" => self.item(payload, time, place, out),
            "event_msg" => self.event(&payload, place, out),
            "compacted" => self.compacted(payload, time, place, out),
            other => out.problem(
                place,
                ProblemKind::Unknown,
                format!("line of type {other:?}"),
            ),
        }
    }

    fn meta(&mut self, mut payload: Value, place: &Place) {
        let parent = string_of(&payload, "forked_from_id").or_else(|| {
            let spawn = payload.pointer("/source/subagent/thread_spawn")?;
            string_of(spawn, "parent_thread_id")
        });
        let id = string_of(&payload, "id");
        let mut message = NewMessage::new(Role::System, place);
        for name in ["instructions", "base_instructions"] {
            match take(&mut payload, name) {
                Some(Value::String(text)) => message.text(Origin::System, text),
                Some(mut object) => {
                    let text = take(&mut object, "text").map(into_text);
                    message.text(Origin::System, text.unwrap_or_default());
                }
                None => {}
            }
        }
        let builder = self.builder();
        builder.transcript.id = id.or(builder.transcript.id.take());
        builder.parent(parent, None);
        if !message.is_empty() {
            builder.push(message);
        }
    }

    fn item(&mut self, mut item: Value, time: Option<Timestamp>, place: &Place, out: &mut Out<'_>) {
        match str_of(&item, "type").unwrap_or_default() {
            "message" if str_of(&item, "role") == Some("assistant") => {
                let content = take(&mut item, "content").unwrap_or_default();
                let answer = self.open(time, place);
                blocks::append(answer, Origin::Assistant, content, &mut out.problems);
            }
            "message" => self.input(item, place, out),
            "reasoning" => reasoning(self.open(time, place), item),
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call"
            | "tool_search_call" => {
                let id = string_of(&item, "call_id").or_else(|| string_of(&item, "id"));
                let name = string_of(&item, "name").or_else(|| string_of(&item, "type"));
                let arguments = ["arguments", "input", "action"]
                    .iter()
                    .find_map(|name| take(&mut item, name));
                let arguments = arguments.map(into_text).unwrap_or_default();
                let answer = self.open(time, place);
                answer.tool_call(id, name.unwrap_or_default(), arguments);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(item, time, place, out);
            }
            "ghost_snapshot" | "compaction_trigger" => out.left_out("snapshots"),
            other => {
                let detail = format!("response item of type {other:?}");
                out.problem(place, ProblemKind::Unknown, detail);
            }
        }
    }

    fn input(&mut self, item: Value, place: &Place, out: &mut Out<'_>) {
        self.close();
        if let Some(message) = crate::chat::read(item, place, &mut out.problems) {
            self.builder().push(message);
        }
    }

    fn output(
        &mut self,
        mut item: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) {
        self.close();
        let mut message = NewMessage::new(Role::Tool, place);
        let output = take(&mut item, "output").unwrap_or_default();
        blocks::result_content(&mut message, output, &mut out.problems);
        let head = ResultHead {
            call_id: string_of(&item, "call_id"),
            time,
            ..ResultHead::default()
        };
        message.close_result(0, head);
        self.builder().push(message);
    }

    /// The answer that is being read; a new one when none is.
    fn open(&mut self, time: Option<Timestamp>, place: &Place) -> &mut NewMessage {
        let answer = self
            .open
            .get_or_insert_with(|| NewMessage::new(Role::Assistant, place));
        answer.time = time.or(answer.time);
        answer
    }

    fn close(&mut self) {
        if let Some(answer) = self.open.take() {
            let head = CallHead {
                model: self.model.clone(),
                time: answer.time,
                ..CallHead::default()
            };
            self.builder().answer(answer, head);
        }
    }

    fn event(&mut self, payload: &Value, place: &Place, out: &mut Out<'_>) {
        match str_of(payload, "type") {
            Some("token_count") => self.tokens(payload, place, out),
            Some("thread_rolled_back") => {
                self.builder().missing(&[Missing::ContextAfterCompaction]);
                let detail = "turns were rolled back; they are still taken for context";
                out.problem(place, ProblemKind::Unknown, detail);
            }
            _ => out.left_out("event messages, duplicates of items"),
        }
    }

    /// The totals grow with each call, and the same ones are written several times.
    fn tokens(&mut self, payload: &Value, place: &Place, out: &mut Out<'_>) {
        let Some(info) = payload.get("info").filter(|info| !info.is_null()) else {
            return out.left_out("token counts without figures");
        };
        let Some(total) = info.get("total_token_usage") else {
            return out.problem(place, ProblemKind::BadField, "token count without totals");
        };
        if self.last_total.as_ref() == Some(total) {
            return out.left_out("repeated token counts");
        }
        let usage = difference(self.last_total.as_ref(), total)
            .or_else(|| info.get("last_token_usage").map(of_tokens));
        self.last_total = Some(total.clone());
        self.close();
        let call = self.builder().transcript.calls.last_mut();
        match call.filter(|call| call.usage.is_none()) {
            Some(call) => call.usage = usage.and_then(Usage::recorded),
            None => {
                let detail = "new totals without a new call";
                out.problem(place, ProblemKind::Pairing, detail);
            }
        }
    }

    fn compacted(
        &mut self,
        mut payload: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) {
        self.close();
        let builder = self.builder();
        // The instructions are no part of the history that is replaced.
        let messages = &builder.transcript.messages;
        let kept = builder
            .live
            .iter()
            .filter(|at| messages[*at].role == Role::System);
        let kept: Spans = kept.collect();
        builder.boundary(BoundaryKind::Compaction, kept);
        let replacement = take_array(&mut payload, "replacement_history");
        if replacement.is_empty() {
            builder.missing(&[Missing::ContextAfterCompaction]);
            let mut message = NewMessage::new(Role::User, place);
            message.text(
                Origin::User,
                string_of(&payload, "message").unwrap_or_default(),
            );
            builder.push(message);
            return;
        }
        for item in replacement {
            let is_answer = str_of(&item, "role") == Some("assistant")
                || str_of(&item, "type").is_some_and(|kind| kind.ends_with("call"));
            self.item(item, time, place, out);
            // What stands in the replacement is context; it was no call.
            if is_answer && let Some(answer) = self.open.take() {
                self.builder().push(answer);
            }
        }
    }
}

fn reasoning(answer: &mut NewMessage, mut item: Value) {
    for name in ["summary", "content"] {
        for mut part in take_array(&mut item, name) {
            let text = take(&mut part, "text").map(into_text);
            answer.text(Origin::Reasoning, text.unwrap_or_default());
        }
    }
    if let Some(hidden) = str_of(&item, "encrypted_content") {
        answer.media(Origin::Reasoning, hidden.len() as u64);
    }
}

/// Cached input is part of the input, reasoning part of the output.
fn of_tokens(tokens: &Value) -> Usage {
    Usage::from_total(
        u64_of(tokens, "input_tokens"),
        u64_of(tokens, "cached_input_tokens"),
        u64_of(tokens, "output_tokens"),
    )
}

/// What the totals grew by; `None` when one shrank.
fn difference(before: Option<&Value>, after: &Value) -> Option<Usage> {
    let before = before.map(of_tokens).unwrap_or_default();
    let after = of_tokens(after);
    let grown = |after: Option<u64>, before: Option<u64>| match after {
        Some(after) => after.checked_sub(before.unwrap_or(0)).map(Some),
        None => Some(None),
    };
    Some(Usage::from_total(
        grown(after.input_tokens, before.input_tokens)?,
        grown(after.cache_read_tokens, before.cache_read_tokens)?,
        grown(after.output_tokens, before.output_tokens)?,
    ))
}
