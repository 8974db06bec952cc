//! The tool calls of one iteration: what to do with each, and what comes of it.

use std::collections::HashSet;

use serde_json::{Map, Value};
use spill_engine::{CallId, SharedText, ToolResult};

use crate::{
    log_copies::Copy,
    offer::Offer,
    ports::{ModelFailure, ToolAnswer, ToolCall, ToolFailure, ToolPort},
    read_tools::{ReadBack, ReadKind, ReadTool},
    result::{SubCallRecord, ToolCallRecord},
    seen::Seen,
    session::Session,
    stored::Limit,
    sub_calls::SubCall,
};

/// Characters of a tool name that are repeated to the model.
const SHOWN_NAME_CHARS: usize = 64;

/// One call until its result is assembled.
pub(crate) struct Pending {
    call: CallId,
    name: String,
    arguments: Map<String, Value>,
    action: Action,
    outcome: Option<Outcome>,
}

enum Action {
    /// Ask the tool server.
    Call,
    /// Read a stored result back.
    Read(ReadKind),
    /// Tell the model why not.
    Refuse(String),
}

enum Outcome {
    /// The server has answered.
    Back(Result<ToolAnswer, ToolFailure>),
    /// The answer's result has been through the policy.
    Seen(Seen, ToolAnswer),
    /// A read tool has answered.
    Read(Result<ReadBack, String>),
}

/// A call that is back.
pub(crate) struct Settled {
    /// What the prompt gets.
    pub(crate) prompt: SharedText,
    pub(crate) is_error: bool,
    /// What it would take at most in the prompt if it were replaced; `None` when it must stay.
    pub(crate) replaced_bytes: Option<u64>,
    /// Its result once more, where the bound of a turn may have to replace it.
    pub(crate) again: Option<Again>,
}

/// A result with what shaping it takes.
pub(crate) struct Again {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) result: ToolResult,
}

/// What comes of one call.
pub(crate) struct Done {
    pub(crate) record: ToolCallRecord,
    pub(crate) settled: Settled,
    /// The copies to make for the record.
    pub(crate) copies: Vec<Copy>,
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

/// Decides what to do with a call; nothing the model writes is an error of the step. `offered`
/// are the read tools on offer.
pub(crate) fn plan(id: CallId, call: &ToolCall, offer: &Offer, offered: &[ReadTool]) -> Pending {
    let parsed = parse_arguments(&call.arguments);
    let read_tool = offered.iter().find(|tool| tool.name == call.name);
    let action = if read_tool.is_none() && !offer.knows(&call.name) {
        Action::Refuse(unknown_tool(&call.name, offer, offered))
    } else if let Err(error) = &parsed {
        Action::Refuse(format!(
            "the arguments are not a JSON object: {error} (call again with one JSON object)"
        ))
    } else if let Some(tool) = read_tool {
        Action::Read(tool.kind)
    } else {
        Action::Call
    };
    Pending {
        call: id,
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

fn unknown_tool(name: &str, offer: &Offer, offered: &[ReadTool]) -> String {
    let shown: String = name.chars().take(SHOWN_NAME_CHARS).collect();
    let read_tools = offered.iter().map(|tool| &tool.name);
    let names: Vec<&str> = offer
        .names()
        .iter()
        .chain(read_tools)
        .map(String::as_str)
        .collect();
    format!(
        "there is no tool {shown:?} (call one of: {})",
        names.join(", ")
    )
}

impl Pending {
    /// Asks the tool server, if it is to be asked, and keeps the outcome.
    pub(crate) async fn run<T: ToolPort>(&mut self, tools: &T, session: &Session) {
        if !matches!(self.action, Action::Call) {
            return;
        }
        let answer = if session.expands() {
            let (tool, arguments) = (self.name.clone(), self.arguments.clone());
            let expanded = session.work(move |session| session.expand(&tool, arguments));
            match expanded.await {
                Ok(passed) => {
                    if passed.references > 0 {
                        tracing::info!(
                            call = %self.call,
                            references = passed.references,
                            bytes = passed.bytes,
                            "Stored data passed by reference"
                        );
                    }
                    tools.call(&self.name, &passed.arguments).await
                }
                Err(why) => {
                    self.action = Action::Refuse(why);
                    return;
                }
            }
        } else {
            tools.call(&self.name, &self.arguments).await
        };
        self.outcome = Some(Outcome::Back(answer));
    }

    /// The failure after which the step cannot go on.
    pub(crate) fn lost(&self) -> Option<ToolFailure> {
        match &self.outcome {
            Some(Outcome::Back(Err(failure @ ToolFailure::Unreachable(_)))) => {
                Some(failure.clone())
            }
            Some(_) | None => None,
        }
    }

    /// Does beside the loop what may wait for files. The answer stays here meanwhile: a step that
    /// is cut off still records it.
    pub(crate) async fn work_out(&mut self, session: &Session) {
        match (&self.action, &self.outcome) {
            (Action::Read(kind), None) => {
                let (kind, arguments) = (*kind, self.arguments.clone());
                let read = session.work(move |session| session.read(kind, arguments));
                self.outcome = Some(Outcome::Read(read.await));
            }
            (Action::Call, Some(Outcome::Back(Ok(answer)))) => {
                let (call, tool) = (self.call, self.name.clone());
                let (arguments, result) = (self.arguments.clone(), answer.result.clone());
                let seen = session.work(move |session| {
                    session.shape(call, &tool, &arguments, Limit::Usual, result)
                });
                let seen = seen.await;
                if let Some(Outcome::Back(Ok(answer))) = self.outcome.take() {
                    self.outcome = Some(Outcome::Seen(seen, answer));
                }
            }
            (Action::Call | Action::Read(_) | Action::Refuse(_), _) => {}
        }
    }

    /// Turns a call that is back into its record and its prompt text; `None` when it is not back.
    pub(crate) fn settle(self, session: &Session) -> Option<Done> {
        let Self {
            call,
            name,
            arguments,
            action,
            outcome,
        } = self;
        let (answer, seen) = match (action, outcome) {
            (Action::Read(_), Some(Outcome::Read(read))) => {
                return Some(settle_read(call, name, arguments, read));
            }
            (Action::Read(kind), _) => {
                let read = session.read(kind, arguments.clone());
                return Some(settle_read(call, name, arguments, read));
            }
            (Action::Refuse(why), _) => {
                tracing::info!(call = %call, "Tool call refused");
                return Some(failed(name, arguments, why));
            }
            (Action::Call, None | Some(Outcome::Read(_))) => return None,
            (Action::Call, Some(Outcome::Seen(seen, answer))) => (answer, Some(seen)),
            (Action::Call, Some(Outcome::Back(Ok(answer)))) => (answer, None),
            (Action::Call, Some(Outcome::Back(Err(failure)))) => {
                (ToolResult::error(failure.to_string()).into(), None)
            }
        };
        let ToolAnswer { result, sub_calls } = answer;
        let again = session.turn_bytes().is_some().then(|| Again {
            call,
            tool: name.clone(),
            arguments: arguments.clone(),
            result: result.clone(),
        });
        let seen =
            seen.unwrap_or_else(|| session.shape(call, &name, &arguments, Limit::Usual, result));
        if let Some(warning) = seen.placed.warning() {
            session.warn(warning);
        }
        tracing::info!(
            call = %call,
            tool = %name,
            bytes = seen.record_text.len(),
            measured_bytes = seen.measured,
            placement = ?seen.placed,
            is_error = seen.is_error,
            "Tool result received"
        );
        let (sub_calls, copies) = record_sub_calls(call, sub_calls, session);
        Some(Done {
            settled: Settled {
                replaced_bytes: again.as_ref().and_then(|_| session.replaced_bytes(&seen)),
                prompt: seen.prompt,
                is_error: seen.is_error,
                again,
            },
            record: ToolCallRecord::Called {
                name,
                arguments,
                result: seen.record_text,
                is_error: seen.is_error,
                sub_calls,
            },
            copies,
        })
    }
}

/// The record of a composite tool's own calls. The policy sees each of them, and leaves it whole.
fn record_sub_calls(
    call: CallId,
    sub_calls: Vec<SubCall>,
    session: &Session,
) -> (Vec<SubCallRecord>, Vec<Copy>) {
    let mut records = Vec::with_capacity(sub_calls.len());
    let mut copies = Vec::new();
    for (sub_call, number) in sub_calls.into_iter().zip(1..) {
        let SubCall {
            tool,
            arguments,
            result,
        } = sub_call;
        let is_error = result.is_error;
        let text = session.nested(call, number, &tool, &arguments, result);
        if session.bounds_log_copy(&text) {
            copies.push(Copy {
                call,
                number,
                tool: tool.clone(),
                text: text.clone(),
                is_error,
            });
        }
        records.push(SubCallRecord {
            id: format!("{call}:code:{number}"),
            name: tool,
            arguments,
            result: text,
            is_error,
        });
    }
    (records, copies)
}

/// A successful read is recorded by reference and size; a failed one like any failed call.
fn settle_read(
    call: CallId,
    name: String,
    arguments: Map<String, Value>,
    read: Result<ReadBack, String>,
) -> Done {
    match read {
        Ok(answer) => {
            tracing::info!(
                call = %call,
                spillover_ref = %answer.reference,
                offset = answer.offset,
                bytes = answer.bytes,
                "Stored result read"
            );
            let record = ToolCallRecord::ReadBack {
                name,
                spillover_ref: answer.reference,
                bytes: answer.bytes,
            };
            Done::new(record, answer.text.into(), false)
        }
        Err(why) => {
            tracing::info!(call = %call, "Read of a stored result refused");
            failed(name, arguments, why)
        }
    }
}

fn failed(name: String, arguments: Map<String, Value>, why: String) -> Done {
    let text = SharedText::from(why);
    let record = ToolCallRecord::Called {
        name,
        arguments,
        result: text.clone(),
        is_error: true,
        sub_calls: Vec::new(),
    };
    Done::new(record, text, true)
}

impl Done {
    /// What must stay in the prompt as it is.
    fn new(record: ToolCallRecord, prompt: SharedText, is_error: bool) -> Self {
        Self {
            record,
            settled: Settled {
                prompt,
                is_error,
                replaced_bytes: None,
                again: None,
            },
            copies: Vec::new(),
        }
    }
}
