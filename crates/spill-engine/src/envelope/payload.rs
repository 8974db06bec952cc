//! What a tool returned, as the envelope sees it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::json;
use super::options::Form;
use crate::result::{Block, content_json};
use crate::shared_text::SharedText;

/// A result to be measured. `Debug` is not implemented, since it would show content.
#[derive(Clone, Copy)]
pub enum Payload<'a> {
    /// A text: measured and stored as it is.
    Text(&'a SharedText),
    /// Bytes: measured and stored as base64.
    Bytes(&'a [u8]),
    /// Several content blocks: measured and stored as compact JSON.
    Blocks(&'a [Block]),
    /// A value: measured and stored as compact JSON, but a string as the text that it is.
    Json(&'a Value),
}

/// A payload as it is stored.
pub(crate) struct Serialised {
    pub(crate) text: SharedText,
    pub(crate) media_type: &'static str,
}

impl Payload<'_> {
    pub(crate) fn serialise(self, form: Form) -> Serialised {
        let (text, media_type) = match self {
            Self::Text(text) => (text.clone(), TEXT),
            Self::Json(Value::String(text)) => (text.clone().into(), TEXT),
            Self::Bytes(bytes) => (STANDARD.encode(bytes).into(), BINARY),
            Self::Blocks(blocks) => (content_json(blocks).into(), JSON),
            Self::Json(value) => (json::text(value, form).into(), JSON),
        };
        Serialised { text, media_type }
    }
}

pub(crate) const TEXT: &str = "text/plain";
pub(crate) const JSON: &str = "application/json";
pub(crate) const BINARY: &str = "application/octet-stream";

impl Block {
    /// The block as an item of a preview that keeps `units` UTF-16 units; a longer text is not copied whole.
    pub(crate) fn preview_value(&self, units: usize) -> Cow<'_, Value> {
        match self {
            Self::Other(value) => Cow::Borrowed(value),
            Self::Text(text) => {
                let most = text.floor_char_boundary(units.saturating_mul(3).saturating_add(4));
                Cow::Owned(json!({"type": "text", "text": text[..most]}))
            }
        }
    }
}
