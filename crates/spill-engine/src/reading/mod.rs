//! Reading back: bounded answers about stored items, by bytes, lines, search and JSON Pointer.
//!
//! Every answer has at most the cap's bytes, says which part of the item it is, and where the next one starts; pages joined
//! are the bytes asked for. Offsets are always bytes of the whole item, so a place named by one form can be read by another.

mod ask;
pub(crate) mod characters;
mod item;
mod lines;
mod log;
pub(crate) mod pointer;
mod search;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

pub use ask::{Ask, FirstLine, LineAsk, Pattern, PointerAsk, SearchAsk};
use item::Item;
pub use log::ReadCounts;
use log::ReadLog;
pub use pointer::ItemRange;
pub use search::Hit;

use crate::stores::{ItemKey, Millis, ReadFailure, Reader, SpillStore};

/// What the line before an answer's text may take.
const HEADER_BYTES: u64 = 256;

/// The most bytes of a rendered answer, its first line included: at least 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerCap(u64);

impl AnswerCap {
    /// The least cap.
    pub const MIN_BYTES: u64 = 1_024;

    /// Checks `bytes`; `None` below [`MIN_BYTES`](Self::MIN_BYTES).
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes < Self::MIN_BYTES {
            return None;
        }
        Some(Self(bytes))
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The most bytes of an item in one answer.
    pub const fn room(self) -> u64 {
        self.0 - HEADER_BYTES
    }
}

/// Why an ask has no answer. Its text is for the model: fact, limit and way out, and no content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The item cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// A length, count or pattern of nothing.
    #[error("this asks for nothing (give a length, count or text of 1 or more)")]
    Nothing,
    /// Lines are counted from 1.
    #[error("there is no line 0 (the first line is 1, the last one -1)")]
    LineZero,
    /// The line is behind the end.
    #[error(
        "out of range: line {line} is behind the end, the result has {lines} lines and no more (use a line from 1 to {lines}, or offset and length)"
    )]
    LinePastEnd {
        /// The line asked for.
        line: u64,
        /// Lines of the item.
        lines: u64,
    },
    /// The element is behind the array's end.
    #[error(
        "out of range: item {item} is behind the end, the array has {items} items and no more (the first is 0)"
    )]
    ItemPastEnd {
        /// The element asked for.
        item: u64,
        /// Elements of the array.
        items: u64,
    },
    /// The pattern is longer than a pattern may be.
    #[error(
        "the text to search for has {bytes} bytes, at most {most} are taken (search for a part of it)"
    )]
    PatternTooLong {
        /// Its bytes.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// The pattern is not a regular expression that can be matched in linear time.
    #[error(
        "the regular expression is not accepted: {0} (correct it, or search for a text with regex false)"
    )]
    Pattern(String),
    /// The pointer is not one.
    #[error(
        "{pointer:?} is not a JSON Pointer: empty, or steps that each begin with `/`, `~1` for a slash and `~0` for a tilde, at most 128"
    )]
    Pointer {
        /// Its start.
        pointer: String,
    },
    /// Nothing stands where the pointer points.
    #[error(
        "nothing is at {pointer:?}: step {step} leads nowhere (read its parent to see what is there)"
    )]
    NoSuchValue {
        /// Its start.
        pointer: String,
        /// The first step that fails, from 1.
        step: u64,
    },
    /// The item is no JSON text.
    #[error(
        "the result is not JSON: it ends being so at line {line}, column {column} (use offset and length, lines or search)"
    )]
    NotJson {
        /// The line, from 1.
        line: u64,
        /// The column, from 0.
        column: u64,
    },
    /// Elements are asked for where no array is.
    #[error("no array is there (leave items out)")]
    NotAnArray,
    /// The place to go on at is not inside the value.
    #[error("offset {offset} is outside the value, which has the bytes {start} to {end}")]
    OutsideValue {
        /// The offset asked for.
        offset: u64,
        /// The value's first byte.
        start: u64,
        /// Behind its last byte.
        end: u64,
    },
    /// An argument is not of the described form.
    #[error("argument {name:?} is not understood: expected {expected}")]
    Argument {
        /// The argument, cut to 40 characters.
        name: String,
        /// What may stand there.
        expected: String,
    },
}

/// What an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes.
    Bytes,
    /// Lines; the number of the first, if it was counted from the start.
    Lines(Option<u64>),
    /// Matches.
    Hits(Vec<Hit>),
    /// A JSON value with these bytes of the item, of which the answer has some.
    Value {
        /// Its first byte.
        start: u64,
        /// Behind its last byte.
        end: u64,
    },
}

/// A bounded answer. `Debug` of its content is for tests; do not log it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The item.
    pub key: ItemKey,
    /// What it is.
    pub part: Part,
    /// The first byte returned, moved to a character boundary; for matches, where the search began.
    pub offset: u64,
    /// Where to go on: `None` when nothing of what was asked for is left.
    pub next_offset: Option<u64>,
    /// Bytes of the whole item.
    pub size: u64,
    body: Vec<u8>,
}

/// The first line of a rendered answer, in wire order.
#[derive(Serialize)]
struct Header<'a> {
    reference: &'a str,
    part: &'static str,
    offset: u64,
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<[u64; 2]>,
    next_offset: Option<u64>,
    size_bytes: u64,
}

impl Answer {
    /// Exactly the item's bytes from `offset` on; for matches, the lines that show them.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The same as text; bytes that are no characters appear as U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The answer as the model sees it: one line of compact JSON that says which part it is, a line feed, the text. At most
    /// the cap's bytes.
    pub fn render(&self) -> String {
        let (part, line, matches, value) = match &self.part {
            Part::Bytes => ("bytes", None, None, None),
            Part::Lines(line) => ("lines", *line, None, None),
            Part::Hits(hits) => ("matches", None, Some(hits.len() as u64), None),
            Part::Value { start, end } => ("value", None, None, Some([*start, *end])),
        };
        let header = Header {
            reference: self.key.as_str(),
            part,
            offset: self.offset,
            length: self.body.len() as u64,
            line,
            matches,
            value,
            next_offset: self.next_offset,
            size_bytes: self.size,
        };
        let mut out = serde_json::to_string(&header).expect("texts and numbers have a JSON form");
        out.push('\n');
        out.push_str(&self.text());
        out
    }
}

/// Reads items of one store for one reader, and counts what is read again.
pub struct Reading<'a> {
    store: &'a dyn SpillStore,
    reader: Reader,
    cap: AnswerCap,
    log: Mutex<ReadLog>,
}

impl<'a> Reading<'a> {
    /// Starts with empty counts.
    pub fn new(store: &'a dyn SpillStore, reader: Reader, cap: AnswerCap) -> Self {
        Self {
            store,
            reader,
            cap,
            log: Mutex::default(),
        }
    }

    /// Answers `ask`.
    ///
    /// # Errors
    /// [`AskError`], an ordinary tool error.
    pub fn answer(&self, key: ItemKey, ask: &Ask, now: Millis) -> Result<Answer, AskError> {
        let answer = self.find(key, ask, now);
        let mut log = self.log();
        match &answer {
            Ok(answer) => log.note(key, answer.read()),
            Err(error) => log.note_failure(key, error),
        }
        answer
    }

    /// The sums so far.
    pub fn counts(&self) -> ReadCounts {
        self.log().counts
    }

    fn log(&self) -> MutexGuard<'_, ReadLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: ItemKey, ask: &Ask, now: Millis) -> Result<Answer, AskError> {
        let size = self.store.describe(key, &self.reader, now)?.size.get();
        let item = Item {
            store: self.store,
            key,
            reader: &self.reader,
            now,
            size,
        };
        match ask {
            Ask::Bytes(range) => {
                if range.length == 0 {
                    return Err(AskError::Nothing);
                }
                let wanted = range.within(crate::measure::Bytes::new(size))?;
                self.cut(&item, wanted, None, Part::Bytes)
            }
            Ask::Lines(ask) => {
                let (wanted, number) = lines::find(&item, *ask)?;
                self.cut(&item, wanted, None, Part::Lines(number))
            }
            Ask::Search(ask) => self.search(&item, ask),
            Ask::Pointer(ask) => self.value(&item, ask),
        }
    }

    /// As much of `wanted` as fits, from `from` on.
    fn cut(
        &self,
        item: &Item<'_>,
        wanted: std::ops::Range<u64>,
        from: Option<u64>,
        part: Part,
    ) -> Result<Answer, AskError> {
        let start = from.unwrap_or(wanted.start);
        let (offset, body) = item.characters(start..wanted.end, self.cap.room())?;
        let end = offset + body.len() as u64;
        // Bytes asked for go on to the item's end, other parts to their own.
        let last = match part {
            Part::Bytes => item.size,
            Part::Lines(_) | Part::Hits(_) | Part::Value { .. } => wanted.end,
        };
        Ok(Answer {
            key: item.key,
            part,
            offset,
            next_offset: (end < last).then_some(end),
            size: item.size,
            body,
        })
    }

    fn search(&self, item: &Item<'_>, ask: &SearchAsk) -> Result<Answer, AskError> {
        if ask.from > item.size {
            return Err(AskError::Read(ReadFailure::OutOfRange {
                offset: ask.from,
                size: item.size,
            }));
        }
        let room = usize::try_from(self.cap.room()).unwrap_or(usize::MAX);
        let found = search::find(item, ask, room)?;
        Ok(Answer {
            key: item.key,
            part: Part::Hits(found.hits),
            offset: ask.from,
            next_offset: found.next_offset,
            size: item.size,
            body: found.text.into_bytes(),
        })
    }

    fn value(&self, item: &Item<'_>, ask: &PointerAsk) -> Result<Answer, AskError> {
        let slice = item.slice(0..item.size)?;
        let value = pointer::find(slice.bytes(), &ask.pointer, ask.items)?;
        let (start, end) = (value.start, value.end);
        if let Some(offset) = ask.from.filter(|from| !(start..=end).contains(from)) {
            return Err(AskError::OutsideValue { offset, start, end });
        }
        self.cut(item, value, ask.from, Part::Value { start, end })
    }
}

impl Answer {
    /// The bytes of the item that the answer holds; for matches, none.
    fn read(&self) -> std::ops::Range<u64> {
        let bytes = match self.part {
            Part::Hits(_) => 0,
            Part::Bytes | Part::Lines(_) | Part::Value { .. } => self.body.len() as u64,
        };
        self.offset..self.offset + bytes
    }
}
