//! OpenAI chat completions.

mod read;
mod write;

pub(super) use read::{item, member};
pub(crate) use write::models;
pub(super) use write::{events, finish_reason, json, refusal};
