//! What a reader asks for: its four forms, and their arguments as JSON.

use serde_json::{Map, Value};

use super::AskError;
use super::pointer::ItemRange;
use crate::stores::ByteRange;

/// Bytes shown on each side of a match when nothing else is asked for.
const USUAL_CONTEXT_BYTES: u64 = 80;

/// A question about one item. All offsets are bytes of the whole item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// These bytes.
    Bytes(ByteRange),
    /// These lines.
    Lines(LineAsk),
    /// Places that match.
    Search(SearchAsk),
    /// The value that a JSON Pointer names.
    Pointer(PointerAsk),
}

/// Which lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineAsk {
    /// The first one.
    pub first: FirstLine,
    /// How many at most.
    pub count: u64,
}

/// Where lines are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstLine {
    /// 1 is the first line.
    FromStart(u64),
    /// 1 is the last line.
    FromEnd(u64),
}

/// What to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchAsk {
    /// The text or pattern.
    pub pattern: Pattern,
    /// Bytes shown on each side of a match.
    pub context: u64,
    /// The first byte at which a match may start.
    pub from: u64,
    /// The most matches in one answer.
    pub most: Option<u64>,
}

/// A text or pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// These very bytes.
    Literal(String),
    /// A regular expression, matched in linear time; `^` and `$` match at lines.
    Regex(String),
}

/// Which value of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerAsk {
    /// The pointer (RFC 6901); empty for the whole text.
    pub pointer: String,
    /// Some elements of the array there.
    pub items: Option<ItemRange>,
    /// Goes on at this offset of the item inside the value.
    pub from: Option<u64>,
}

impl Ask {
    /// Reads an ask from arguments: `{offset, length}`, `{line, lines}` (a negative line counts from the end),
    /// `{search, regex, context, offset, limit}` or `{pointer, items: {first, count}, offset}`. Nothing at all asks for all
    /// bytes.
    ///
    /// # Errors
    /// [`AskError::Argument`] naming the argument that is not understood.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self, AskError> {
        let given = Given(arguments);
        let form: (&str, &[&str]) = if arguments.contains_key("search") {
            ("search", &["search", "regex", "context", "offset", "limit"])
        } else if arguments.contains_key("pointer") {
            ("pointer", &["pointer", "items", "offset"])
        } else if arguments.contains_key("line") || arguments.contains_key("lines") {
            ("line", &["line", "lines"])
        } else {
            ("offset", &["offset", "length"])
        };
        given.only(form.1)?;
        match form.0 {
            "search" => given.search(),
            "pointer" => given.pointer(),
            "line" => given.lines(),
            _ => Ok(Self::Bytes(ByteRange {
                offset: given.number("offset")?.unwrap_or(0),
                length: given.number("length")?.unwrap_or(u64::MAX),
            })),
        }
    }
}

struct Given<'a>(&'a Map<String, Value>);

impl Given<'_> {
    fn only(&self, known: &'static [&'static str]) -> Result<(), AskError> {
        let stray = self.0.keys().find(|key| !known.contains(&key.as_str()));
        stray.map_or(Ok(()), |stray| Err(bad(stray, known_list(known))))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, AskError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| bad(name, "a whole number, 0 or more".to_owned())),
        }
    }

    fn text(&self, name: &str) -> Result<String, AskError> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
            .ok_or_else(|| bad(name, "a text".to_owned()))
    }

    fn lines(&self) -> Result<Ask, AskError> {
        let first = match self.0.get("line") {
            None | Some(Value::Null) => FirstLine::FromStart(1),
            Some(value) => match (value.as_u64(), value.as_i64()) {
                (Some(line), _) => FirstLine::FromStart(line),
                (None, Some(line)) => FirstLine::FromEnd(line.unsigned_abs()),
                (None, None) => {
                    return Err(bad("line", "a whole number, not 0".to_owned()));
                }
            },
        };
        let count = self.number("lines")?.unwrap_or(u64::MAX);
        Ok(Ask::Lines(LineAsk { first, count }))
    }

    fn search(&self) -> Result<Ask, AskError> {
        let text = self.text("search")?;
        let pattern = match self.0.get("regex") {
            None | Some(Value::Null | Value::Bool(false)) => Pattern::Literal(text),
            Some(Value::Bool(true)) => Pattern::Regex(text),
            Some(_) => return Err(bad("regex", "true or false".to_owned())),
        };
        Ok(Ask::Search(SearchAsk {
            pattern,
            context: self.number("context")?.unwrap_or(USUAL_CONTEXT_BYTES),
            from: self.number("offset")?.unwrap_or(0),
            most: self.number("limit")?,
        }))
    }

    fn pointer(&self) -> Result<Ask, AskError> {
        let items = match self.0.get("items") {
            None | Some(Value::Null) => None,
            Some(Value::Object(items)) => {
                let given = Given(items);
                given.only(&["first", "count"])?;
                Some(ItemRange {
                    first: given.number("first")?.unwrap_or(0),
                    count: given.number("count")?.unwrap_or(u64::MAX),
                })
            }
            Some(_) => return Err(bad("items", "an object with first and count".to_owned())),
        };
        Ok(Ask::Pointer(PointerAsk {
            pointer: self.text("pointer")?,
            items,
            from: self.number("offset")?,
        }))
    }
}

fn known_list(known: &[&str]) -> String {
    format!("{} only", known.join(", "))
}

fn bad(name: &str, expected: String) -> AskError {
    AskError::Argument {
        name: name.chars().take(40).collect(),
        expected,
    }
}
