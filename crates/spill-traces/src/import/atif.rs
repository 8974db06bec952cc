//! Harbor ATIF trajectories: steps of a source each, with observations within the step that called.

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

pub(crate) struct Atif;

impl Importer for Atif {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(value) = out.parse(text, place) else {
            return;
        };
        match value {
            Value::Array(trajectories) => {
                for (index, trajectory) in trajectories.into_iter().enumerate() {
                    trajectory_of(trajectory, None, &place.at_item(index), out);
                }
            }
            trajectory => trajectory_of(trajectory, None, place, out),
        }
    }

    fn finish(&mut self, _place: &Place, _out: &mut Out<'_>) {}

    fn is_session(&self) -> bool {
        false
    }
}

fn trajectory_of(mut value: Value, parent: Option<String>, place: &Place, out: &mut Out<'_>) {
    let mut builder = Builder::new(Format::Atif, place);
    let id = string_of(&value, "trajectory_id").or_else(|| string_of(&value, "session_id"));
    builder.transcript.id.clone_from(&id);
    builder.parent(parent, None);
    let mut agent = take(&mut value, "agent").unwrap_or_default();
    let model = string_of(&agent, "model_name");
    if let Some(tools) = take(&mut agent, "tool_definitions") {
        let mut message = NewMessage::new(Role::System, place);
        message.text(Origin::ToolSchemas, tools.to_string());
        builder.push(message);
    }
    for step in take_array(&mut value, "steps") {
        self::step(&mut builder, step, model.as_deref(), place);
    }
    if let Some(totals) = take(&mut value, "final_metrics") {
        builder.transcript.recorded_total = Usage::from_total(
            u64_of(&totals, "total_prompt_tokens"),
            u64_of(&totals, "total_cached_tokens"),
            u64_of(&totals, "total_completion_tokens"),
        )
        .recorded();
    }
    out.transcript(builder);
    for child in take_array(&mut value, "subagent_trajectories") {
        trajectory_of(child, id.clone(), place, out);
    }
}

fn step(builder: &mut Builder, mut step: Value, model: Option<&str>, place: &Place) {
    let role = match str_of(&step, "source") {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("agent") => Role::Assistant,
        other => {
            let detail = format!("step of source {other:?}");
            return builder.problem(place, ProblemKind::Unknown, detail);
        }
    };
    let mut message = NewMessage::new(role, place);
    message.time = Timestamp::from_json(step.get("timestamp"));
    if let Some(Value::String(text)) = take(&mut step, "reasoning_content") {
        message.text(Origin::Reasoning, text);
    }
    let content = take(&mut step, "message").unwrap_or_default();
    let origin = message.origin();
    blocks::append(
        &mut message,
        origin,
        content,
        &mut builder.transcript.problems,
    );
    let calls = take_array(&mut step, "tool_calls");
    let only_call = match calls.as_slice() {
        [call] => string_of(call, "tool_call_id"),
        _ => None,
    };
    for mut call in calls {
        let name = string_of(&call, "function_name").unwrap_or_default();
        let arguments = take(&mut call, "arguments")
            .map(into_text)
            .unwrap_or_default();
        message.tool_call(string_of(&call, "tool_call_id"), name, arguments);
    }
    let asked_by = add(builder, message, &step, model, place);
    let mut observation = take(&mut step, "observation").unwrap_or_default();
    for result in take_array(&mut observation, "results") {
        self::result(builder, result, only_call.clone(), asked_by, place);
    }
}

/// Adds a step's message; an agent's step is a call unless it says that it made none. The call's index.
fn add(
    builder: &mut Builder,
    message: NewMessage,
    step: &Value,
    model: Option<&str>,
    place: &Place,
) -> Option<usize> {
    let calls = u64_of(step, "llm_call_count").unwrap_or(1);
    if message.role != Role::Assistant || calls == 0 {
        if message.role == Role::Assistant {
            builder.left_out("agent steps without an LLM call");
        }
        builder.push(message);
        return None;
    }
    if calls > 1 {
        let detail = format!("{calls} LLM calls in one step; they are counted as one");
        builder.problem(place, ProblemKind::Pairing, detail);
    }
    let metrics = step.get("metrics");
    let count = |name| metrics.and_then(|metrics| u64_of(metrics, name));
    let head = CallHead {
        id: None,
        model: string_of(step, "model_name").or_else(|| model.map(str::to_owned)),
        time: message.time,
        usage: Usage::from_total(
            count("prompt_tokens"),
            count("cached_tokens"),
            count("completion_tokens"),
        )
        .recorded(),
        copied: step.get("is_copied_context").and_then(Value::as_bool) == Some(true),
    };
    Some(builder.answer(message, head))
}

fn result(
    builder: &mut Builder,
    mut result: Value,
    only_call: Option<String>,
    asked_by: Option<usize>,
    place: &Place,
) {
    let mut message = NewMessage::new(Role::Tool, place);
    let content = take(&mut result, "content").unwrap_or_default();
    blocks::result_content(&mut message, content, &mut builder.transcript.problems);
    let head = ResultHead {
        call_id: string_of(&result, "source_call_id").or(only_call),
        asked_by,
        ..ResultHead::default()
    };
    message.close_result(0, head);
    builder.push(message);
}
