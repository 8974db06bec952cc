//! The step result as it is printed.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::{Map, Value};
use spill_engine::{SharedText, StepId, Usage, serialised_size};

use crate::{request::write_json, settings::EffectiveSettings};

/// What one step did; its JSON form is the step result with its published names.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// The job's step id.
    #[serde(serialize_with = "step_id")]
    pub step_id: StepId,
    /// How it ended, coarsely.
    pub status: StepStatus,
    /// How it ended, exactly.
    pub end_reason: EndReason,
    /// The caller's reason, when it was aborted.
    pub abort_reason: Option<String>,
    /// Iterations begun.
    pub iterations: u32,
    /// Whether the iteration limit ended it.
    pub hit_iteration_limit: bool,
    /// The model's answer; empty when there is none.
    pub final_answer: String,
    /// Tool calls with their original results, in order.
    pub tools_called: Vec<ToolCallRecord>,
    /// Token sums; null when a model call had no usage or none was answered.
    pub tokens_used: Option<TokensUsed>,
    /// Bytes of the status report: the compact JSON `{"toolsCalled":…,"finalAnswer":…}`.
    pub body_bytes: u64,
    /// Model calls that were answered.
    pub llm_calls: u32,
    /// Repeated model requests.
    pub llm_retries: u32,
    /// What the spill engine did.
    pub spill: SpillFigures,
    /// How long the step took, in milliseconds.
    pub duration_ms: f64,
    /// The settings in force.
    pub settings: EffectiveSettings,
    /// What went wrong, when something did.
    pub error: Option<String>,
}

/// How a step ended, coarsely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// With a non-empty answer.
    Completed,
    /// Without one.
    Failed,
    /// By its caller.
    Aborted,
    /// By its timeout.
    TimedOut,
}

/// How a step ended, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model answered.
    Answered,
    /// The model neither answered nor called a tool.
    EmptyAnswer,
    /// The iteration limit came first.
    IterationLimit,
    /// The request grew beyond the model's context window.
    ContextWindow,
    /// The step's timeout came first.
    Timeout,
    /// The caller aborted it.
    Aborted,
    /// The model server failed for good or sent something malformed.
    ModelError,
    /// The tool server is out of reach.
    ToolError,
}

impl EndReason {
    /// The coarse status that goes with the reason.
    #[must_use]
    pub fn status(self) -> StepStatus {
        match self {
            Self::Answered => StepStatus::Completed,
            Self::EmptyAnswer
            | Self::IterationLimit
            | Self::ContextWindow
            | Self::ModelError
            | Self::ToolError => StepStatus::Failed,
            Self::Timeout => StepStatus::TimedOut,
            Self::Aborted => StepStatus::Aborted,
        }
    }
}

/// One entry of `toolsCalled`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallRecord {
    /// A call with its original result, stored or not.
    Called {
        /// The tool's name as the model wrote it.
        name: String,
        /// The arguments; empty when the model's were malformed.
        arguments: Map<String, Value>,
        /// The original result.
        result: SharedText,
        /// Whether the result is an error.
        is_error: bool,
        /// The calls that a composite tool made; empty for any other.
        sub_calls: Vec<SubCallRecord>,
    },
    /// A read of a stored result: what was read, not its content.
    ReadBack {
        /// The read tool's name.
        name: String,
        /// The stored result as the model names it.
        spillover_ref: String,
        /// Bytes of the slice.
        bytes: u64,
    },
}

/// A call that a composite tool made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubCallRecord {
    /// The composite call's id and the number of this one, from 1: `i1c0:code:1`.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// What the composite tool got; under the inline-cap policy a copy within the cap.
    pub result: SharedText,
    /// Whether it is an error.
    pub is_error: bool,
}

impl Serialize for ToolCallRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Called {
                name,
                arguments,
                result,
                is_error,
                sub_calls,
            } => called(serializer, name, arguments, result, *is_error, sub_calls),
            Self::ReadBack {
                name,
                spillover_ref,
                bytes,
            } => {
                let mut entry = serializer.serialize_struct("ReadBack", 3)?;
                entry.serialize_field("name", name)?;
                entry.serialize_field("spilloverRef", spillover_ref)?;
                entry.serialize_field("bytes", bytes)?;
                entry.end()
            }
        }
    }
}

fn called<S: Serializer>(
    serializer: S,
    name: &str,
    arguments: &Map<String, Value>,
    result: &str,
    is_error: bool,
    sub_calls: &[SubCallRecord],
) -> Result<S::Ok, S::Error> {
    let fields = if sub_calls.is_empty() { 4 } else { 5 };
    let mut entry = serializer.serialize_struct("Called", fields)?;
    entry.serialize_field("name", name)?;
    entry.serialize_field("arguments", arguments)?;
    entry.serialize_field("result", result)?;
    entry.serialize_field("isError", &is_error)?;
    if !sub_calls.is_empty() {
        entry.serialize_field("subCalls", sub_calls)?;
    }
    entry.end()
}

impl ToolCallRecord {
    /// Bytes of the entry's compact JSON. The result is measured, not serialised.
    fn json_bytes(&self) -> u64 {
        let mut frame = Vec::new();
        match self {
            Self::Called {
                name,
                arguments,
                result,
                is_error,
                sub_calls,
            } => {
                called(
                    &mut serde_json::Serializer::new(&mut frame),
                    name,
                    arguments,
                    "",
                    *is_error,
                    sub_calls,
                )
                .expect("strings and JSON values serialise, memory does not fail");
                // The frame holds the two quotes of the result already.
                frame.len() as u64 - 2 + serialised_size(result).get()
            }
            Self::ReadBack { .. } => {
                write_json(&mut frame, self);
                frame.len() as u64
            }
        }
    }
}

/// Bytes of the compact JSON `{"toolsCalled":…,"finalAnswer":…}`, without building it.
pub(crate) fn body_bytes(tools_called: &[ToolCallRecord], final_answer: &str) -> u64 {
    let frame = br#"{"toolsCalled":[],"finalAnswer":}"#.len() as u64;
    let commas = (tools_called.len() as u64).saturating_sub(1);
    let entries: u64 = tools_called.iter().map(ToolCallRecord::json_bytes).sum();
    frame + commas + entries + serialised_size(final_answer).get()
}

/// Tokens in four disjoint buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokensUsed {
    /// Prompt tokens not read from a cache.
    pub uncached_input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache at a price of their own; this provider has none.
    pub cache_write: u64,
    /// Tokens of the answers.
    pub output: u64,
}

/// What the spill engine did in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpillFigures {
    /// Results stored.
    pub persisted: u64,
    /// The same by tool.
    pub persisted_by_tool: std::collections::BTreeMap<String, u64>,
    /// Bytes stored, summed up.
    pub persisted_bytes: u64,
    /// The most bytes held at one time.
    pub store_peak_bytes: u64,
    /// Successful reads.
    pub reads: u64,
    /// Those with a range.
    pub reads_with_range: u64,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Those of them that an earlier read had returned.
    pub reread_bytes: u64,
    /// Stored results read at least once.
    pub distinct_read: u64,
    /// Results that stayed inline for want of budget.
    pub over_budget: u64,
}

impl From<Usage> for SpillFigures {
    fn from(usage: Usage) -> Self {
        Self {
            persisted: usage.persisted,
            persisted_by_tool: usage.persisted_by_tool,
            persisted_bytes: usage.stored_bytes,
            store_peak_bytes: usage.peak_bytes,
            reads: usage.reads,
            reads_with_range: usage.reads_with_range,
            read_bytes: usage.read_bytes,
            reread_bytes: usage.reread_bytes,
            distinct_read: usage.distinct_read,
            over_budget: usage.over_budget,
        }
    }
}

fn step_id<S: Serializer>(id: &StepId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spill_engine::READ_TOOL;

    use super::*;

    fn called(result: &str) -> ToolCallRecord {
        let Value::Object(arguments) = json!({"path": "a\"b"}) else {
            unreachable!("an object literal");
        };
        ToolCallRecord::Called {
            name: "read_file".to_owned(),
            arguments,
            result: SharedText::from(result.to_owned()),
            is_error: false,
            sub_calls: Vec::new(),
        }
    }

    fn check_body_bytes(tools_called: &[ToolCallRecord], final_answer: &str) {
        let body = json!({"toolsCalled": tools_called, "finalAnswer": final_answer});
        let expected = serde_json::to_string(&body).expect("JSON").len() as u64;
        assert_eq!(body_bytes(tools_called, final_answer), expected);
    }

    #[test]
    fn body_bytes_are_those_of_the_serialised_report() {
        let read_back = ToolCallRecord::ReadBack {
            name: READ_TOOL.to_owned(),
            spillover_ref: "spillover://s/i1c0.json".to_owned(),
            bytes: 12,
        };
        check_body_bytes(&[], "");
        check_body_bytes(&[], "é\n\u{1}\"");
        check_body_bytes(&[called("")], "x");
        check_body_bytes(&[called("a\"\\\n\u{0}é😀\u{7f}"), read_back], "x");
    }

    #[test]
    fn entries_have_their_published_names() {
        assert_eq!(
            serde_json::to_string(&called("r")).expect("JSON"),
            r#"{"name":"read_file","arguments":{"path":"a\"b"},"result":"r","isError":false}"#
        );
    }
}
