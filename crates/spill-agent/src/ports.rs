//! What the step loop needs from a model and from a tool server, and nothing more.

use std::future::Future;

use serde_json::{Map, Value};
use spill_engine::ToolResult;
use thiserror::Error;

use crate::{request::ChatRequest, sub_calls::SubCall};

/// Answers one chat request.
pub trait ModelPort: Sync {
    /// Sends the request and waits for the whole answer, repeating passing failures within the
    /// port's own bound.
    fn complete(
        &self,
        request: &ChatRequest,
    ) -> impl Future<Output = Result<ModelReply, ModelFailure>> + Send;

    /// How many requests were repetitions so far, also while a call is in flight.
    fn retries(&self) -> u32;
}

/// Lists and calls tools.
pub trait ToolPort: Sync {
    /// The tools on offer, in the server's order.
    fn list(&self) -> impl Future<Output = Result<Vec<ToolSpec>, ToolFailure>> + Send;

    /// Calls one tool; several calls may be in flight at once.
    fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> impl Future<Output = Result<ToolAnswer, ToolFailure>> + Send;
}

/// What a tool call brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolAnswer {
    /// The result, for the model.
    pub result: ToolResult,
    /// The calls that a composite tool made meanwhile, for the record.
    pub sub_calls: Vec<SubCall>,
}

impl From<ToolResult> for ToolAnswer {
    fn from(result: ToolResult) -> Self {
        Self {
            result,
            sub_calls: Vec::new(),
        }
    }
}

/// One answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// The text; the final answer when there are no tool calls.
    pub content: Option<String>,
    /// The tool calls, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// What the provider counted; `None` when it sent nothing.
    pub usage: Option<Usage>,
}

/// One tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: JSON text that may be malformed.
    pub arguments: String,
}

/// Tokens of one model call as the provider counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens, those read from the provider's cache included.
    pub prompt_tokens: u64,
    /// Prompt tokens read from the provider's cache; at most `prompt_tokens`.
    pub cached_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// One tool on offer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: String,
    /// What it does, when the server says so.
    pub description: Option<String>,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// Why a model call brought no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelFailure {
    /// The request is longer than the model's context window.
    #[error("request exceeds the context window: {message}")]
    ContextWindow {
        /// The provider's own words.
        message: String,
    },
    /// The provider refuses the request; repeating it would not help.
    #[error("model server answered {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The provider's own words, or nothing.
        message: String,
    },
    /// Passing failures did not pass within the bound.
    #[error("model call failed {attempts} times, last: {last} (raise `maxRetries` to wait longer)")]
    Exhausted {
        /// Requests sent.
        attempts: u32,
        /// What the last one met.
        last: String,
    },
    /// The provider asks for a longer wait than the bound allows.
    #[error(
        "model server asks to wait {asked_ms} ms, the limit is {limit_ms} ms (run again later)"
    )]
    AskedTooLongWait {
        /// The wait asked for.
        asked_ms: u64,
        /// The longest wait accepted.
        limit_ms: u64,
    },
    /// The answer is not what the protocol promises.
    #[error("model server's answer is malformed: {0}")]
    Malformed(String),
}

/// Why a tool call, or the list of tools, brought nothing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolFailure {
    /// This one call failed; the model is told and may go on.
    #[error("tool call failed: {0}")]
    Call(String),
    /// The tool server is out of reach; the step cannot go on.
    #[error("tool server is out of reach: {0}")]
    Unreachable(String),
}
