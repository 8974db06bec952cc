//! The built-in subject: one agentic step as a library.
//!
//! A step asks a model for an answer, runs the tools that the model calls, sends their results
//! back, and repeats until the model answers or a limit ends it. The loop talks to the world
//! through two small ports, [`ModelPort`] and [`ToolPort`]; [`OpenAiChat`] and [`McpTools`] are
//! their clients. What leaves the prompt and what may be read back is decided by
//! [`spill_engine`]; the loop only carries it out.
//!
//! Start with [`run_job()`] (clients included) or [`run_step`] (your own ports); [`run_executions()`] runs
//! many executions of one step at once, as a host does.
//!
//! A [`Session`] holds one step's results under the policy of its [`SpillSettings`]: it says what
//! stands in prompt and record, offers the read tools that a notice names, answers them, and lets
//! everything go at every ending.
//!
//! What this crate does not do: it does not print or read the environment, it writes no file but
//! those of a file store in the directory that its settings name, and no log line of it holds
//! arguments, result content or model text at any level. Its dependencies log whole messages at
//! their most verbose levels: install [`is_own_log`] as the filter.

mod abort;
mod calls;
mod counts;
mod delimit;
mod executions;
mod job;
mod log_copies;
mod logs;
mod mcp;
mod offer;
mod open_store;
mod openai;
mod ports;
mod read_tools;
mod reply;
mod request;
mod result;
mod retry;
mod run_job;
mod seen;
mod session;
mod settings;
mod step;
mod stored;
mod sub_calls;
mod sweep;
mod tally;
mod tool_http;
mod turn;
mod turn_bound;

pub use abort::{AbortHandle, AbortSignal, abort_pair};
pub use delimit::{Delimited, undo_delimited};
pub use executions::{EXECUTION_PLACEHOLDER, run_executions};
pub use job::{ApiKey, JobError, StepJob};
pub use logs::{is_own_log, log_setting_warnings};
pub use mcp::McpTools;
pub use openai::OpenAiChat;
pub use ports::{
    ModelFailure, ModelPort, ModelReply, ToolAnswer, ToolCall, ToolFailure, ToolPort, ToolSpec,
    Usage,
};
pub use request::ChatRequest;
pub use result::{
    EndReason, SpillFigures, StepResult, StepStatus, SubCallRecord, TokensUsed, ToolCallRecord,
};
pub use retry::RetryPolicy;
pub use run_job::{ClientError, http_client, run_job};
pub use session::Session;
pub use settings::{
    EXPAND_TOOLS_VAR, EffectiveSettings, OPTIONS_VAR, POLICY_VAR, PolicySettings, STORE_DIR_VAR,
    STORE_SEED_VAR, STORE_VAR, SettingsError, SpillSettings, StoreSettings, TURN_BYTES_VAR,
};
pub use step::{run_step, run_step_in};
pub use sub_calls::{SUB_CALLS_KEY, SubCall};
