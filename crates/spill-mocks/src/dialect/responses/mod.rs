//! OpenAI responses.

mod read;
mod write;

pub(super) use read::{item, member};
pub(super) use write::{error_event, events, finish_reason, json};
