//! The read tool: its schema, its arguments, and what a range of a stored text is.

use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::reference::Reference;
use crate::settings::Threshold;
use crate::shared_text::SharedText;

/// The name of the read tool. Its own results are never stored.
pub const READ_TOOL: &str = "clerum__spillover_read";

/// The read tool's description and the JSON schema of its arguments; the same for every execution.
pub fn read_tool_schema() -> (&'static str, Value) {
    let description = "Reads a stored tool result back. Give the spillover_ref of a summary and, for a result larger than one \
                       read, a range in bytes of the stored text; the summary names the most bytes per read. The answer's \
                       first line is JSON with the offsets returned and next_offset (null at the end); the text follows.";
    let schema = json!({
        "type": "object",
        "properties": {
            "spillover_ref": {"type": "string", "description": "The spillover_ref exactly as the summary gives it."},
            "range": {
                "type": "object",
                "description": "Which bytes to return. Without it the whole result, if it fits one read.",
                "properties": {
                    "offset": {"type": "integer", "minimum": 0, "description": "First byte, from 0; default 0."},
                    "length": {"type": "integer", "minimum": 1, "description": "Number of bytes; default: up to the end."}
                },
                "additionalProperties": false
            }
        },
        "required": ["spillover_ref"],
        "additionalProperties": false
    });
    (description, schema)
}

/// Why a read was refused. An ordinary tool error: it never ends the step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Malformed, of another step or execution, unknown, or released: deliberately one and the same.
    #[error(
        "not found: this step execution stores no result under that spillover_ref (copy a spillover_ref from a summary in this \
         conversation exactly, or call the original tool again; repeating this call will not help)"
    )]
    NotFound,
    /// No length was given and what is left is more than one read may return.
    #[error(
        "{rest} bytes from offset {offset} are more than one read returns: the result has {size} bytes, a read is limited to \
         {cap} (give range {{\"offset\":{offset},\"length\":{cap}}} and go on at next_offset)"
    )]
    TooLarge {
        /// First byte asked for.
        offset: u64,
        /// Bytes from there to the end.
        rest: u64,
        /// Bytes of the stored text.
        size: u64,
        /// The most bytes per read.
        cap: u64,
    },
    /// The range is longer than one read may return.
    #[error(
        "range.length {length} is more than one read returns: a read is limited to {cap} bytes, the result has {size} (ask for \
         {cap} or less and go on at next_offset)"
    )]
    RangeTooLong {
        /// The length asked for.
        length: u64,
        /// Bytes of the stored text.
        size: u64,
        /// The most bytes per read.
        cap: u64,
    },
    /// The range has length 0.
    #[error(
        "range.length is 0, which reads nothing: the result has {size} bytes (ask for 1 to {cap})"
    )]
    EmptyRange {
        /// Bytes of the stored text.
        size: u64,
        /// The most bytes per read.
        cap: u64,
    },
    /// The range starts behind the end.
    #[error(
        "range.offset {offset} is behind the end: the result has {size} bytes (use an offset from 0 to {size})"
    )]
    PastEnd {
        /// The offset asked for.
        offset: u64,
        /// Bytes of the stored text.
        size: u64,
    },
    /// The range is not of the described form.
    #[error(
        "{place} is not understood: expected {expected}; the result has {size} bytes, a read is limited to {cap} (call again \
         with {{\"spillover_ref\":…,\"range\":{{\"offset\":0,\"length\":{cap}}}}})"
    )]
    BadArguments {
        /// Where in the arguments.
        place: String,
        /// What may stand there.
        expected: &'static str,
        /// Bytes of the stored text.
        size: u64,
        /// The most bytes per read.
        cap: u64,
    },
}

/// A slice of a stored text. Holds the shared text, copies nothing until rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Which result it is from.
    pub reference: Reference,
    /// The first byte returned, moved to a character boundary.
    pub offset: u64,
    /// Where the next slice starts; `None` when this one reaches the end.
    pub next_offset: Option<u64>,
    /// Bytes of the whole stored text.
    pub size: u64,
    text: SharedText,
    slice: Range<usize>,
}

impl ReadAnswer {
    /// The slice.
    pub fn text(&self) -> &str {
        &self.text[self.slice.clone()]
    }

    /// Bytes of the slice.
    pub fn bytes(&self) -> u64 {
        self.slice.len() as u64
    }

    /// The answer as the model sees it: one line of compact JSON with reference, offsets and sizes, a line feed, the slice.
    pub fn render(&self) -> String {
        let next = self
            .next_offset
            .map_or_else(|| "null".to_owned(), |next| next.to_string());
        let mut answer = format!(
            "{{\"spillover_ref\":\"{}\",\"offset\":{},\"length\":{},\"next_offset\":{next},\"size_bytes\":{}}}\n",
            self.reference,
            self.offset,
            self.bytes(),
            self.size
        );
        answer.reserve_exact(self.slice.len());
        answer.push_str(self.text());
        answer
    }
}

/// The reference that the arguments name; everything that is none is "not found".
pub(crate) fn reference_in(arguments: &Value) -> Option<Reference> {
    arguments.get("spillover_ref")?.as_str()?.parse().ok()
}

/// A range as asked for. Without offset and length it is no range at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    offset: Option<u64>,
    length: Option<u64>,
}

impl Asked {
    pub(crate) fn is_range(self) -> bool {
        self != Self::default()
    }
}

/// A stored text and the most bytes one read of it returns.
pub(crate) struct Readable<'a> {
    pub(crate) text: &'a SharedText,
    pub(crate) cap: Threshold,
}

impl Readable<'_> {
    /// Takes the range out of arguments whose reference is known to be good.
    pub(crate) fn asked(&self, arguments: &Value) -> Result<Asked, ReadError> {
        let known = |key: &str| matches!(key, "spillover_ref" | "range");
        if let Some(stray) = arguments
            .as_object()
            .and_then(|map| map.keys().find(|key| !known(key)))
        {
            return Err(self.bad(
                &format!("argument {}", shown(stray)),
                "spillover_ref and range only",
            ));
        }
        match arguments.get("range") {
            None | Some(Value::Null) => Ok(Asked::default()),
            Some(Value::Object(range)) => self.asked_range(range),
            Some(_) => Err(self.bad("range", "an object with offset and length")),
        }
    }

    fn asked_range(&self, range: &Map<String, Value>) -> Result<Asked, ReadError> {
        let mut asked = Asked::default();
        for (key, value) in range {
            let field = match key.as_str() {
                "offset" => &mut asked.offset,
                "length" => &mut asked.length,
                stray => {
                    return Err(
                        self.bad(&format!("range.{}", shown(stray)), "offset and length only")
                    );
                }
            };
            if value.is_null() {
                continue;
            }
            let number = value.as_u64().ok_or_else(|| {
                self.bad(
                    &format!("range.{key}"),
                    "a whole number of bytes, 0 or more",
                )
            })?;
            *field = Some(number);
        }
        Ok(asked)
    }

    /// Cuts the slice out. An end inside a character moves: the start forward, the end back. A range too short for the
    /// character at its start returns that character whole, so that going on at `next_offset` always advances.
    pub(crate) fn answer(
        &self,
        reference: Reference,
        asked: Asked,
    ) -> Result<ReadAnswer, ReadError> {
        let (size, cap) = (self.text.len() as u64, self.cap.get());
        let offset = asked.offset.unwrap_or(0);
        if asked.length == Some(0) {
            return Err(ReadError::EmptyRange { size, cap });
        }
        if let Some(length) = asked.length.filter(|length| *length > cap) {
            return Err(ReadError::RangeTooLong { length, size, cap });
        }
        if offset > size {
            return Err(ReadError::PastEnd { offset, size });
        }
        let rest = size - offset;
        if asked.length.is_none() && rest > cap {
            return Err(ReadError::TooLarge {
                offset,
                rest,
                size,
                cap,
            });
        }
        let end = offset + asked.length.unwrap_or(rest).min(rest);
        let slice = whole_characters(self.text, within(offset), within(end));
        Ok(ReadAnswer {
            reference,
            offset: slice.start as u64,
            next_offset: (slice.end < self.text.len()).then_some(slice.end as u64),
            size,
            text: self.text.clone(),
            slice,
        })
    }

    fn bad(&self, place: &str, expected: &'static str) -> ReadError {
        let (size, cap) = (self.text.len() as u64, self.cap.get());
        ReadError::BadArguments {
            place: place.to_owned(),
            expected,
            size,
            cap,
        }
    }
}

/// Both positions lie in the text, so they are a `usize`.
fn within(position: u64) -> usize {
    usize::try_from(position).expect("a position inside a text in memory")
}

fn whole_characters(text: &str, start: usize, end: usize) -> Range<usize> {
    let start = text.ceil_char_boundary(start);
    let end = text.floor_char_boundary(end);
    if start < end {
        return start..end;
    }
    let one = text[start..].chars().next().map_or(0, char::len_utf8);
    start..start + one
}

/// A name from the model, short enough to be repeated to it.
fn shown(name: &str) -> String {
    format!("{:?}", name.chars().take(40).collect::<String>())
}
