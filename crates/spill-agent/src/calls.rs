//! The tool calls of one iteration: what to do with each, and what comes of it.

use std::collections::HashSet;

use serde_json::{Map, Value};
use spill_engine::{CallId, PromptText, READ_TOOL, SharedText, StepSpill, ToolResult};

use crate::{
    offer::Offer,
    ports::{ModelFailure, ToolCall, ToolFailure, ToolPort},
    result::ToolCallRecord,
};

/// Characters of a tool name that are repeated to the model.
const SHOWN_NAME_CHARS: usize = 64;

/// One call until its result is assembled.
pub(crate) struct Pending {
    name: String,
    arguments: Map<String, Value>,
    action: Action,
    outcome: Option<Result<ToolResult, ToolFailure>>,
}

enum Action {
    /// Ask the tool server.
    Call,
    /// Read a stored result back.
    Read,
    /// Tell the model why not.
    Refuse(String),
}

/// What the prompt gets for one call.
pub(crate) struct Settled {
    pub(crate) prompt: PromptText,
    pub(crate) is_error: bool,
}

/// Refuses calls that cannot be told apart: their results would answer the wrong one.
pub(crate) fn check_calls(calls: &[ToolCall]) -> Result<(), ModelFailure> {
    let mut ids = HashSet::with_capacity(calls.len());
    for (call, index) in calls.iter().zip(0_usize..) {
        if call.id.is_empty() {
            return Err(ModelFailure::Malformed(format!(
                "tool call {index} has an empty id"
            )));
        }
        if !ids.insert(call.id.as_str()) {
            return Err(ModelFailure::Malformed(format!(
                "tool call {index} repeats the id of an earlier one"
            )));
        }
    }
    Ok(())
}

/// Decides what to do with a call; nothing the model writes is an error of the step.
pub(crate) fn plan(call: &ToolCall, offer: &Offer, read_tool_offered: bool) -> Pending {
    let parsed = parse_arguments(&call.arguments);
    let is_read = read_tool_offered && call.name == READ_TOOL;
    let action = if !is_read && !offer.knows(&call.name) {
        Action::Refuse(unknown_tool(&call.name, offer, read_tool_offered))
    } else if let Err(error) = &parsed {
        Action::Refuse(format!(
            "the arguments are not a JSON object: {error} (call again with one JSON object)"
        ))
    } else if is_read {
        Action::Read
    } else {
        Action::Call
    };
    Pending {
        name: call.name.clone(),
        arguments: parsed.unwrap_or_default(),
        action,
        outcome: None,
    }
}

/// Some servers send nothing for a call without arguments.
fn parse_arguments(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text)
}

fn unknown_tool(name: &str, offer: &Offer, read_tool_offered: bool) -> String {
    let shown: String = name.chars().take(SHOWN_NAME_CHARS).collect();
    let mut offered: Vec<&str> = offer.names().iter().map(String::as_str).collect();
    if read_tool_offered {
        offered.push(READ_TOOL);
    }
    format!(
        "there is no tool {shown:?} (call one of: {})",
        offered.join(", ")
    )
}

impl Pending {
    /// Asks the tool server, if it is to be asked, and keeps the outcome.
    pub(crate) async fn run<T: ToolPort>(&mut self, tools: &T) {
        match &self.action {
            Action::Call => self.outcome = Some(tools.call(&self.name, &self.arguments).await),
            Action::Read | Action::Refuse(_) => {}
        }
    }

    /// The failure after which the step cannot go on.
    pub(crate) fn lost(&self) -> Option<ToolFailure> {
        match &self.outcome {
            Some(Err(failure @ ToolFailure::Unreachable(_))) => Some(failure.clone()),
            Some(Err(ToolFailure::Call(_)) | Ok(_)) | None => None,
        }
    }
}

/// Turns a call that is back into its record and its prompt text; `None` when it is not back.
pub(crate) fn settle(
    pending: Pending,
    call: CallId,
    spill: &StepSpill,
) -> Option<(ToolCallRecord, Settled)> {
    let Pending {
        name,
        arguments,
        action,
        outcome,
    } = pending;
    let result = match (action, outcome) {
        (Action::Read, _) => return Some(settle_read(arguments, call, spill)),
        (Action::Refuse(why), _) => {
            tracing::info!(call = %call, "Tool call refused");
            return Some(failed(name, arguments, why));
        }
        (Action::Call, None) => return None,
        (Action::Call, Some(Ok(result))) => result,
        (Action::Call, Some(Err(failure))) => ToolResult::error(failure.to_string()),
    };
    let admitted = spill.admit(call, &name, result);
    tracing::info!(
        call = %call,
        tool = %name,
        bytes = admitted.record_text.len(),
        measured_bytes = admitted.measured.map(spill_engine::Bytes::get),
        placement = ?admitted.placement,
        is_error = admitted.is_error,
        "Tool result received"
    );
    let record = ToolCallRecord::Called {
        name,
        arguments,
        result: admitted.record_text,
        is_error: admitted.is_error,
    };
    let settled = Settled {
        prompt: admitted.prompt,
        is_error: admitted.is_error,
    };
    Some((record, settled))
}

/// A successful read is recorded by reference and size; a failed one like any failed call.
fn settle_read(
    arguments: Map<String, Value>,
    call: CallId,
    spill: &StepSpill,
) -> (ToolCallRecord, Settled) {
    let arguments = Value::Object(arguments);
    match spill.read(&arguments) {
        Ok(answer) => {
            tracing::info!(
                call = %call,
                spillover_ref = %answer.reference,
                offset = answer.offset,
                bytes = answer.bytes(),
                "Stored result read"
            );
            let settled = Settled {
                prompt: PromptText::Inline(answer.render().into()),
                is_error: false,
            };
            let record = ToolCallRecord::ReadBack {
                name: READ_TOOL,
                bytes: answer.bytes(),
                spillover_ref: answer.reference,
            };
            (record, settled)
        }
        Err(error) => {
            tracing::info!(call = %call, "Read of a stored result refused");
            let arguments = match arguments {
                Value::Object(arguments) => arguments,
                _ => Map::new(),
            };
            failed(READ_TOOL.to_owned(), arguments, error.to_string())
        }
    }
}

fn failed(name: String, arguments: Map<String, Value>, why: String) -> (ToolCallRecord, Settled) {
    let text = SharedText::from(why);
    let record = ToolCallRecord::Called {
        name,
        arguments,
        result: text.clone(),
        is_error: true,
    };
    let settled = Settled {
        prompt: PromptText::Inline(text),
        is_error: true,
    };
    (record, settled)
}
