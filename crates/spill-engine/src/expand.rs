//! Pass by reference: `{"$spill": "<reference>", "range"?, "pointer"?}` in a tool call's arguments becomes the stored data
//! before the call is dispatched, so that data flows from tool to tool without passing through the prompt.
//!
//! Off unless a tool is allowed by name, and bounded: what does not fit is refused, never cut.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::reading::{AskError, characters, pointer};
use crate::stores::{ByteRange, ReadFailure, Slice};

/// The key that marks a reference.
pub const SPILL_KEY: &str = "$spill";

/// The most references in one call.
const MOST_REFERENCES: usize = 16;
/// The deepest nesting looked at.
const MOST_DEPTH: usize = 128;

/// Which tools' arguments are expanded, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    tools: BTreeSet<String>,
    most_bytes: u64,
}

/// Arguments with stored data in place of references.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded {
    /// The arguments to dispatch.
    pub arguments: Value,
    /// References replaced.
    pub references: u64,
    /// Bytes of stored data put in.
    pub bytes: u64,
}

/// Why a call is not dispatched. An ordinary tool error for the model; it holds no content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The tool is not one whose arguments are expanded.
    #[error(
        "{SPILL_KEY} is not accepted by this tool (read the data and pass it, or use one of: {allowed})"
    )]
    NotAllowed {
        /// The tools that accept it.
        allowed: String,
    },
    /// The object is not of the described form.
    #[error("{place} is not understood: expected {expected}")]
    Form {
        /// Where.
        place: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The data is more than one call may take.
    #[error(
        "the stored data of this call has more than {most} bytes (give a range, or a pointer to a part)"
    )]
    TooLarge {
        /// The most bytes of one call.
        most: u64,
    },
    /// There are too many references.
    #[error("a call may have {MOST_REFERENCES} references at most")]
    TooMany,
    /// The arguments are nested too deeply to be searched.
    #[error("the arguments are nested more than {MOST_DEPTH} levels deep")]
    TooDeep,
    /// The data is not a text.
    #[error("the stored data is not UTF-8 text, so it cannot be an argument")]
    NotText,
    /// The data cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The pointer leads nowhere, or the data is not JSON.
    #[error(transparent)]
    Pointer(#[from] AskError),
}

/// Reads stored bytes by the reference that the model wrote.
pub type Fetch<'a> = dyn Fn(&str, ByteRange) -> Result<Slice, ReadFailure> + 'a;

impl Expansion {
    /// No tool: arguments pass untouched, whatever they hold.
    pub fn off() -> Self {
        Self::default()
    }

    /// These tools, each call with at most `most_bytes` of stored data.
    pub fn allowing<T: Into<String>>(tools: impl IntoIterator<Item = T>, most_bytes: u64) -> Self {
        Self {
            tools: tools.into_iter().map(Into::into).collect(),
            most_bytes,
        }
    }

    /// Expands the arguments of a call of `tool`. A reference alone becomes the stored text, as a string; with a pointer the
    /// JSON value there; with a range the text of these bytes (of the value, if there is a pointer too), cut inwards to whole
    /// characters.
    ///
    /// # Errors
    /// [`ExpandError`]; then nothing may be dispatched.
    pub fn expand(
        &self,
        tool: &str,
        arguments: Value,
        fetch: &Fetch<'_>,
    ) -> Result<Expanded, ExpandError> {
        let mut expanded = Expanded {
            arguments: Value::Null,
            references: 0,
            bytes: 0,
        };
        if self.tools.is_empty() {
            return Ok(Expanded {
                arguments,
                ..expanded
            });
        }
        let mut work = Work {
            expansion: self,
            allowed: self.tools.contains(tool),
            fetch,
            left: self.most_bytes,
            references: 0,
        };
        expanded.arguments = work.value(arguments, 0)?;
        expanded.references = work.references as u64;
        expanded.bytes = self.most_bytes - work.left;
        Ok(expanded)
    }
}

struct Work<'a> {
    expansion: &'a Expansion,
    allowed: bool,
    fetch: &'a Fetch<'a>,
    left: u64,
    references: usize,
}

impl Work<'_> {
    fn value(&mut self, value: Value, depth: usize) -> Result<Value, ExpandError> {
        if depth > MOST_DEPTH {
            return Err(ExpandError::TooDeep);
        }
        match value {
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.value(item, depth + 1))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            Value::Object(map) if map.contains_key(SPILL_KEY) => self.reference(&map),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| Ok((key, self.value(item, depth + 1)?)))
                .collect::<Result<Map<_, _>, ExpandError>>()
                .map(Value::Object),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Ok(other)
            }
        }
    }

    fn reference(&mut self, map: &Map<String, Value>) -> Result<Value, ExpandError> {
        if !self.allowed {
            let tools: Vec<&str> = self.expansion.tools.iter().map(String::as_str).collect();
            let allowed = tools.join(", ");
            return Err(ExpandError::NotAllowed { allowed });
        }
        self.references += 1;
        if self.references > MOST_REFERENCES {
            return Err(ExpandError::TooMany);
        }
        let wanted = Wanted::of(map)?;
        match (wanted.pointer, wanted.range) {
            (None, range) => self.text(wanted.reference, range.unwrap_or(ByteRange::ALL)),
            (Some(at), range) => self.value_at(wanted.reference, at, range),
        }
    }

    fn text(&mut self, reference: &str, range: ByteRange) -> Result<Value, ExpandError> {
        let size = (self.fetch)(
            reference,
            ByteRange {
                offset: 0,
                length: 0,
            },
        )?
        .size;
        let wanted = range.within(size)?;
        self.take(wanted.end - wanted.start)?;
        // The bytes around tell where characters begin.
        let from = wanted.start.saturating_sub(characters::REACH);
        let length = (wanted.end - from).saturating_add(characters::REACH);
        let slice = (self.fetch)(
            reference,
            ByteRange {
                offset: from,
                length,
            },
        )?;
        let place = |position: u64| {
            usize::try_from(position - from).expect("a position inside bytes in memory")
        };
        inside(slice.bytes(), place(wanted.start)..place(wanted.end))
    }

    fn value_at(
        &mut self,
        reference: &str,
        at: &str,
        range: Option<ByteRange>,
    ) -> Result<Value, ExpandError> {
        let slice = (self.fetch)(reference, ByteRange::ALL)?;
        let bytes = slice.bytes();
        let found = pointer::find(bytes, at, None)?;
        let place =
            |position: u64| usize::try_from(position).expect("a position inside bytes in memory");
        let value = &bytes[place(found.start)..place(found.end)];
        let Some(range) = range else {
            self.take(value.len() as u64)?;
            return serde_json::from_slice(value).map_err(|_| ExpandError::TooDeep);
        };
        let wanted = range.within(crate::measure::Bytes::new(value.len() as u64))?;
        self.take(wanted.end - wanted.start)?;
        inside(value, place(wanted.start)..place(wanted.end))
    }

    fn take(&mut self, bytes: u64) -> Result<(), ExpandError> {
        let most = self.expansion.most_bytes;
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(ExpandError::TooLarge { most })?;
        Ok(())
    }
}

fn inside(bytes: &[u8], wanted: std::ops::Range<usize>) -> Result<Value, ExpandError> {
    let start = characters::ceil(bytes, wanted.start);
    let end = characters::floor(bytes, wanted.end).max(start);
    let text = str::from_utf8(&bytes[start..end]).map_err(|_| ExpandError::NotText)?;
    Ok(Value::from(text))
}

/// A marked object, taken apart.
struct Wanted<'a> {
    reference: &'a str,
    pointer: Option<&'a str>,
    range: Option<ByteRange>,
}

impl<'a> Wanted<'a> {
    fn of(map: &'a Map<String, Value>) -> Result<Self, ExpandError> {
        let mut wanted = Self {
            reference: "",
            pointer: None,
            range: None,
        };
        for (key, value) in map {
            match key.as_str() {
                SPILL_KEY => {
                    wanted.reference = value
                        .as_str()
                        .ok_or_else(|| form(SPILL_KEY, "a reference from a notice"))?;
                }
                "pointer" => {
                    let pointer = value.as_str();
                    wanted.pointer =
                        Some(pointer.ok_or_else(|| form("pointer", "a JSON Pointer"))?);
                }
                "range" => wanted.range = Some(range(value)?),
                stray => {
                    return Err(form(stray, "$spill, range and pointer only"));
                }
            }
        }
        Ok(wanted)
    }
}

fn range(value: &Value) -> Result<ByteRange, ExpandError> {
    let bad = || {
        form(
            "range",
            "an object with offset and length, whole numbers of bytes",
        )
    };
    let map = value.as_object().ok_or_else(bad)?;
    let mut range = ByteRange::ALL;
    for (key, value) in map {
        let number = value.as_u64().ok_or_else(bad)?;
        match key.as_str() {
            "offset" => range.offset = number,
            "length" => range.length = number,
            _ => return Err(bad()),
        }
    }
    Ok(range)
}

fn form(place: &str, expected: &'static str) -> ExpandError {
    let place = place.chars().take(40).collect();
    ExpandError::Form { place, expected }
}
