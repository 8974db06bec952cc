//! A tool result as it arrives, and the one string that stands for it.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::hint;
use crate::measure::{Bytes, Measure};

/// One content block of a tool result. `Debug` shows sizes, not content.
#[derive(Clone, PartialEq, Eq)]
pub enum Block {
    /// A text block.
    Text(String),
    /// Any other content block, verbatim.
    Other(Value),
}

impl fmt::Debug for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(out, "Text({} bytes)", text.len()),
            Self::Other(_) => out.write_str("Other(..)"),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                map.end()
            }
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

/// What a tool call returned. `Debug` shows sizes, not content.
#[derive(Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The content blocks, in order.
    pub blocks: Vec<Block>,
    /// Structured content; used only when there is no block at all.
    pub structured: Option<Value>,
    /// The tool says that it failed. Such results are treated by size like any other.
    pub is_error: bool,
}

impl ToolResult {
    /// A successful result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            blocks: vec![Block::Text(text.into())],
            ..Self::default()
        }
    }

    /// A failed result of one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolResult")
            .field("blocks", &self.blocks)
            .field("structured", &self.structured.as_ref().map(|_| ".."))
            .field("is_error", &self.is_error)
            .finish()
    }
}

/// What the result string was made from; decides how it is measured and what the structure hint can name.
pub(crate) enum Source {
    /// The only text block, moved.
    Text,
    /// The compact JSON of these blocks.
    Blocks(Vec<Block>),
    /// The compact JSON of this value.
    Structured(Value),
}

impl Source {
    /// The size that threshold and budget see: a text as a JSON string, JSON as it is.
    pub(crate) fn measured(&self, text: &str) -> Measure {
        match self {
            Self::Text => Measure::of(text),
            Self::Blocks(_) | Self::Structured(_) => Measure::of_json(text),
        }
    }

    /// The most that [`measured`](Self::measured) can find; for what costs nothing to measure, no bound.
    pub(crate) fn at_most(&self, text: &str) -> Bytes {
        match self {
            Self::Text => Measure::at_most(text),
            Self::Blocks(_) | Self::Structured(_) => Bytes::new(u64::MAX),
        }
    }

    pub(crate) fn structure_hint(&self, text: &str) -> String {
        match self {
            Self::Text => hint::of_text(text).to_owned(),
            Self::Blocks(blocks) => hint::of_blocks(blocks),
            Self::Structured(value) => hint::of_value(value),
        }
    }
}

/// The result string: the text when there is exactly one text block, else the compact JSON of the content array; with no
/// block at all, the compact JSON of the structured content if there is some.
pub(crate) fn result_string(mut blocks: Vec<Block>, structured: Option<Value>) -> (String, Source) {
    if blocks.len() == 1 {
        match blocks.remove(0) {
            Block::Text(text) => return (text, Source::Text),
            other @ Block::Other(_) => blocks.push(other),
        }
    }
    match structured {
        Some(value) if blocks.is_empty() => (compact(&value), Source::Structured(value)),
        _ => (compact(&blocks), Source::Blocks(blocks)),
    }
}

/// The prompt's form of several blocks: the compact JSON of the content array.
pub(crate) fn content_json(blocks: &[Block]) -> String {
    compact(&blocks)
}

/// Exact capacity: this string lives as long as the step.
fn compact(value: &impl Serialize) -> String {
    let mut json =
        serde_json::to_string(value).expect("values with string keys always have a JSON form");
    json.shrink_to_fit();
    json
}
