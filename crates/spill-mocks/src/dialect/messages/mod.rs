//! Anthropic messages.

mod read;
mod write;

pub(super) use read::{item, member};
pub(super) use write::{events, finish_reason, json, refusal, status};
pub(crate) use write::{input_tokens, list_models};
