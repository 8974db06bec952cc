//! The built-in subject: one agentic step as a library.
//!
//! A step asks a model for an answer, runs the tools that the model calls, sends their results
//! back, and repeats until the model answers or a limit ends it. The loop talks to the world
//! through two small ports, [`ModelPort`] and [`ToolPort`]; [`OpenAiChat`] and [`McpTools`] are
//! their clients. What leaves the prompt and what may be read back is decided by
//! [`spill_engine`]; the loop only carries it out.
//!
//! Start with [`run_job()`] (clients included) or [`run_step`] (your own ports).
//!
//! What this crate does not do: it does not print, read the environment or write files, and no
//! log line of it holds arguments, result content or model text at any level. Its dependencies
//! log whole messages at their most verbose levels: install [`is_own_log`] as the filter.

mod abort;
mod calls;
mod delimit;
mod job;
mod logs;
mod mcp;
mod offer;
mod openai;
mod ports;
mod reply;
mod request;
mod result;
mod retry;
mod run_job;
mod step;
mod tally;
mod tool_http;
mod turn;

pub use abort::{AbortHandle, AbortSignal, abort_pair};
pub use delimit::{Delimited, undo_delimited};
pub use job::{ApiKey, JobError, StepJob};
pub use logs::{is_own_log, log_setting_warnings};
pub use mcp::McpTools;
pub use openai::OpenAiChat;
pub use ports::{
    ModelFailure, ModelPort, ModelReply, ToolCall, ToolFailure, ToolPort, ToolSpec, Usage,
};
pub use request::ChatRequest;
pub use result::{
    EffectiveSettings, EndReason, SpillFigures, StepResult, StepStatus, TokensUsed, ToolCallRecord,
};
pub use retry::RetryPolicy;
pub use run_job::{ClientError, http_client, run_job};
pub use step::{run_step, run_step_in};
