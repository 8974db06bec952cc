//! SWE-agent `.traj`: one step of `trajectory` is one LLM call and its observation. Versions that record each step's `query`
//! say what was sent; of the others it is the history, though a history processor may have left old observations out.

use serde_json::Value;

use super::{Importer, Out};
use crate::builder::{Builder, CallHead};
use crate::chain::Chains;
use crate::chat;
use crate::json::{str_of, string_of, take, take_array, u64_of};
use crate::message::{NewMessage, ResultHead};
use crate::model::{Format, Missing, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::text::Text;
use crate::usage::Usage;

pub(crate) struct SweAgent;

impl Importer for SweAgent {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let steps = take_array(&mut value, "trajectory");
        let history = take_array(&mut value, "history");
        if steps.is_empty() {
            let detail = "no trajectory: what the calls were is not recorded";
            return out.problem(place, ProblemKind::BadField, detail);
        }
        let recorded = steps.iter().any(|step| step.get("query").is_some());
        if recorded {
            return with_queries(steps, &value, place, out);
        }
        let mut builder = Builder::new(Format::SweAgent, place);
        totals(&mut builder, &value);
        builder.missing(&[Missing::HistoryProcessor]);
        let mut history = History::of(history);
        for (index, message) in history.take_start().into_iter().enumerate() {
            let place = place.at_item(index);
            match chat::read(message, &place, &mut builder.transcript.problems) {
                Some(message) => builder.push(message),
                None => continue,
            };
        }
        let count = steps.len();
        for (index, step) in steps.into_iter().enumerate() {
            let place = place.at_item(index);
            let answer = answer(&step, &place);
            let seen = history.take_seen(answer.pieces.first().map_or("", |piece| &piece.text));
            let call = builder.answer(answer, CallHead::default());
            let observation = observation(step, seen, call, &place);
            if index + 1 == count {
                builder.park(observation);
            } else {
                builder.push(observation);
            }
        }
        out.transcript(builder);
    }

    fn finish(&mut self, _place: &Place, _out: &mut Out<'_>) {}

    fn is_session(&self) -> bool {
        false
    }
}

/// `total_cost` is that of a whole batch; the tokens are those of the instance.
fn totals(builder: &mut Builder, value: &Value) {
    let stats = value.get("info").and_then(|info| info.get("model_stats"));
    let Some(stats) = stats else { return };
    let sent = u64_of(stats, "tokens_sent");
    let received = u64_of(stats, "tokens_received");
    // All zero is what replayed and human demonstrations write: nothing was counted.
    if sent.unwrap_or(0) > 0 {
        builder.transcript.recorded_total = Usage::from_total(sent, None, received).recorded();
    }
}

fn answer(step: &Value, place: &Place) -> NewMessage {
    let mut message = NewMessage::new(Role::Assistant, place);
    let response = str_of(step, "response").unwrap_or_default();
    if response.is_empty() {
        for name in ["thought", "action"] {
            let text = str_of(step, name).unwrap_or_default();
            message.text(Origin::Assistant, text.to_owned());
        }
    } else {
        message.text(Origin::Assistant, response.to_owned());
    }
    message
}

/// The observation, within the message that showed it to the model when that is in the history.
fn observation(mut step: Value, seen: Option<String>, call: usize, place: &Place) -> NewMessage {
    let mut message = NewMessage::new(Role::User, place);
    let head = ResultHead {
        tool: tool_of(&step),
        asked_by: Some(call),
        ..ResultHead::default()
    };
    let observation = match take(&mut step, "observation") {
        Some(Value::String(text)) => text,
        Some(_) | None => String::new(),
    };
    let Some(seen) = seen else {
        message.result(head, observation);
        return message;
    };
    let start = seen.find(&observation);
    let seen = Text::from(seen);
    let Some(start) = start else {
        message.result(head, seen);
        return message;
    };
    let end = start + observation.len();
    let part = |range| {
        seen.slice(range)
            .expect("the bounds of a match are character bounds")
    };
    message.text(Origin::User, part(0..start));
    message.result(head, part(start..end));
    message.text(Origin::User, part(end..seen.len()));
    message
}

/// The first word of the action.
fn tool_of(step: &Value) -> Option<String> {
    let action = str_of(step, "action")?;
    action.split_whitespace().next().map(str::to_owned)
}

/// The recorded history, walked along with the steps.
struct History {
    messages: std::vec::IntoIter<Value>,
    /// An assistant message of the history that no step was found for yet.
    waiting: Option<Value>,
}

impl History {
    fn of(messages: Vec<Value>) -> Self {
        Self {
            messages: messages.into_iter(),
            waiting: None,
        }
    }

    /// All before the first answer that is no demonstration.
    fn take_start(&mut self) -> Vec<Value> {
        let mut start = Vec::new();
        for message in self.messages.by_ref() {
            let demo = message.get("is_demo").and_then(Value::as_bool) == Some(true);
            if str_of(&message, "role") == Some("assistant") && !demo {
                self.waiting = Some(message);
                break;
            }
            start.push(message);
        }
        start
    }

    /// What the model was shown after `response`, when the history goes on with just that.
    fn take_seen(&mut self, response: &str) -> Option<String> {
        let answer = self.waiting.take()?;
        if str_of(&answer, "content") != Some(response) {
            self.waiting = Some(answer);
            return None;
        }
        let shown = self.messages.next()?;
        if str_of(&shown, "role") == Some("assistant") {
            self.waiting = Some(shown);
            return None;
        }
        self.waiting = self.messages.next();
        string_of(&shown, "content")
    }
}

/// Steps that record their requests.
fn with_queries(steps: Vec<Value>, value: &Value, place: &Place, out: &mut Out<'_>) {
    let mut chains = Chains::new(Format::SweAgent);
    let mut last = None;
    for (index, mut step) in steps.into_iter().enumerate() {
        let place = place.at_item(index);
        let mut messages = Vec::new();
        for message in take_array(&mut step, "query") {
            messages.extend(query_message(message, &place, out));
        }
        if messages.is_empty() {
            out.problem(&place, ProblemKind::BadField, "step without a query");
            continue;
        }
        let ticket = chains.request(messages, CallHead::default(), &place);
        let mut answer = answer(&step, &place);
        for call in take_array(&mut step, "tool_calls") {
            let function = call.get("function").cloned().unwrap_or_default();
            let arguments = string_of(&function, "arguments").unwrap_or_default();
            let name = string_of(&function, "name").unwrap_or_default();
            answer.tool_call(string_of(&call, "id"), name, arguments);
        }
        chains.response(ticket, answer);
        last = Some((step, place));
    }
    if let Some((mut step, place)) = last {
        let head = ResultHead {
            tool: tool_of(&step),
            call_id: take_array(&mut step, "tool_call_ids")
                .first()
                .and_then(|id| id.as_str().map(str::to_owned)),
            ..ResultHead::default()
        };
        let mut message = NewMessage::new(Role::Tool, &place);
        let text = string_of(&step, "observation").unwrap_or_default();
        message.result(head, text);
        chains.park(message, |transcript| !transcript.calls.is_empty());
    }
    for (index, mut builder) in chains.into_builders().enumerate() {
        if index == 0 {
            totals(&mut builder, value);
        }
        out.transcript(builder);
    }
}

/// A message of a query. Observations are user messages, or tool messages with a list of call ids.
fn query_message(mut value: Value, place: &Place, out: &mut Out<'_>) -> Option<NewMessage> {
    let observation = str_of(&value, "message_type") == Some("observation");
    if let Some(id) = take_array(&mut value, "tool_call_ids").into_iter().next()
        && let Value::Object(members) = &mut value
    {
        members.insert("tool_call_id".to_owned(), id);
    }
    let mut message = chat::read(value, place, &mut out.problems)?;
    if observation && message.role == Role::User {
        message.close_result(0, ResultHead::default());
    }
    Some(message)
}
