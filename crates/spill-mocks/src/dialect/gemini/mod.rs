//! Gemini `generateContent`.

mod read;
mod write;

pub(super) use read::{item, member};
pub(super) use write::{events, finish_reason, json, refusal};
pub(crate) use write::{list_models, total_tokens};
