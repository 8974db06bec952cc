//! The simulated model and the mock servers that a run talks to.
//!
//! A [`MockRun`] says what the servers know of a run: the input's texts, the model's figures and a
//! seed; never its configuration, never a fact. A [`Registry`] maps run ids to runs and journals
//! what comes in; [`LlmServer`] speaks OpenAI chat completions, [`ToolServer`] speaks MCP.
//!
//! The simulated model ([`respond`]) is faithful to information: it decides from the request alone
//! and reports a finding only when the text that carries it stands in the messages. It recognises a
//! stored result as a model does, by the preview's text and the offered tools' schemas. Every
//! choice is a hash of seed, scenario, turn and purpose, so equal requests have equal answers. The
//! one state on the server is the prompt cache; it changes the reported usage and nothing else.
//!
//! In place of the simulated model, the LLM server can forward to a real endpoint ([`Upstream`]): the
//! same addresses, the same journal, and the endpoint's own usage in it.
//!
//! The work for a request grows with what is new in it: messages that the request before began
//! with too are recognised by comparing bytes ([`Work`] counts the rest).
//!
//! This crate measures and judges nothing.

mod answer;
mod composite;
mod conversation;
mod cursor;
mod cuttable;
mod deliver;
mod dialect;
mod error;
mod facts;
mod faults;
mod filed;
mod forward;
mod journal;
mod latency;
mod llm_routes;
mod llm_server;
mod mcp;
mod memory;
mod misled;
mod model;
mod preview;
mod ranges;
mod readback;
mod reader;
mod record_rules;
mod recorded;
mod refusal;
mod registry;
mod reply;
mod request;
mod result;
mod rows_preview;
mod rules;
mod run;
mod saved;
mod seen;
mod served_size;
mod slice;
mod state;
mod tool_faults;
mod tool_server;
mod tools;
mod usage;

#[cfg(test)]
mod testing;

pub use error::BadRequest;
pub use facts::derive_facts;
pub use forward::{
    Attempt, BilledTokens, Endpoint, EndpointApi, EndpointError, EndpointKey, Gate, KeyError,
    Upstream, UpstreamError, UpstreamOptions,
};
pub use journal::{
    ContextBytes, Journal, LlmCallEntry, Lost, NewResult, ResultForm, ToolCallEntry,
};
pub use llm_server::LlmServer;
pub use model::{Action, ToolCall, respond};
pub use registry::{Registry, Work};
pub use request::View;
pub use run::MockRun;
pub use tool_server::ToolServer;
pub use usage::{CACHE_BLOCK_TOKENS, CACHE_MINIMUM_TOKENS, MESSAGE_TOKENS, PRIMING_TOKENS};
