//! Finds a text or a pattern and shows each place with what stands around it.

use std::fmt::Write as _;
use std::ops::Range;

use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use super::item::Item;
use super::{AskError, Pattern, SearchAsk, characters};

/// The largest compiled pattern. Matching is linear in the text whatever the pattern is.
const PATTERN_BYTES: usize = 1 << 20;
/// The longest text or pattern to search for.
const ASKED_BYTES: usize = 4_096;
/// Most bytes shown on each side of a match.
pub(super) const MOST_CONTEXT_BYTES: u64 = 2_000;

/// One place where the pattern matches. Offsets are bytes of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The first byte of the match.
    pub offset: u64,
    /// Bytes of the match.
    pub length: u64,
    /// The line, from 1, on which the match starts.
    pub line: u64,
    /// Where the excerpt starts.
    pub excerpt_offset: u64,
    /// The match and what stands around it on its line, cut to the context asked for and to the room there is.
    pub excerpt: String,
}

impl Hit {
    /// Where, and the excerpt; one line unless the match itself has line feeds.
    fn render(&self, out: &mut String) {
        write!(out, "@{} line {}: ", self.offset, self.line)
            .expect("writing to a String cannot fail");
        out.push_str(&self.excerpt);
        out.push('\n');
    }
}

enum Searcher<'a> {
    Literal(Box<Finder<'a>>),
    Regex(Regex),
}

impl Searcher<'_> {
    fn new(pattern: &Pattern) -> Result<Searcher<'_>, AskError> {
        let text = match pattern {
            Pattern::Literal(text) | Pattern::Regex(text) => text,
        };
        if text.is_empty() {
            return Err(AskError::Nothing);
        }
        if text.len() > ASKED_BYTES {
            return Err(AskError::PatternTooLong {
                bytes: text.len() as u64,
                most: ASKED_BYTES as u64,
            });
        }
        match pattern {
            Pattern::Literal(text) => Ok(Searcher::Literal(Box::new(Finder::new(text)))),
            Pattern::Regex(text) => RegexBuilder::new(text)
                .multi_line(true)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES)
                .build()
                .map(Searcher::Regex)
                .map_err(|error| AskError::Pattern(first_line(&error.to_string()))),
        }
    }

    fn next(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        match self {
            Self::Literal(finder) => finder
                .find(bytes.get(from..)?)
                .map(|at| from + at..from + at + finder.needle().len()),
            Self::Regex(regex) => regex.find_at(bytes, from).map(|found| found.range()),
        }
    }
}

/// What is shown, and where the next hit starts if there is one more.
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    pub(super) text: String,
    pub(super) next_offset: Option<u64>,
}

/// All hits from the position asked for on that fit `room`; at least one if there is any.
pub(super) fn find(item: &Item<'_>, ask: &SearchAsk, room: usize) -> Result<Found, AskError> {
    let searcher = Searcher::new(&ask.pattern)?;
    let slice = item.slice(0..item.size)?;
    let bytes = slice.bytes();
    let mut from = usize::try_from(ask.from.min(item.size)).expect("inside bytes in memory");
    let mut lines = LineNumbers { at: 0, line: 1 };
    let mut found = Found {
        hits: Vec::new(),
        text: String::new(),
        next_offset: None,
    };
    while from <= bytes.len()
        && let Some(place) = searcher.next(bytes, from)
    {
        let line = lines.at(bytes, place.start);
        let hit = show(bytes, &place, line, ask.context, room);
        let before = found.text.len();
        hit.render(&mut found.text);
        let full = ask.most.is_some_and(|most| found.hits.len() as u64 >= most);
        if found.text.len() > room || full {
            found.text.truncate(before);
            found.next_offset = Some(place.start as u64);
            break;
        }
        // An empty match moves on by one byte.
        from = place.end.max(place.start + 1);
        found.hits.push(hit);
    }
    Ok(found)
}

/// Counts lines as far as the last hit, never twice.
struct LineNumbers {
    at: usize,
    line: u64,
}

impl LineNumbers {
    fn at(&mut self, bytes: &[u8], position: usize) -> u64 {
        let passed = bytes.get(self.at..position).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.at = self.at.max(position);
        self.line
    }
}

fn show(bytes: &[u8], place: &Range<usize>, line: u64, context: u64, room: usize) -> Hit {
    // What the words before the excerpt take at most, and the line feed.
    let room = room.saturating_sub(64);
    // Three bytes each, where bytes are no characters.
    let shown = room / 3;
    let context = usize::try_from(context.min(MOST_CONTEXT_BYTES)).expect("a small number");
    let around = context.min(shown.saturating_sub(place.len()) / 2);
    let window = place.start.saturating_sub(around)..place.end.saturating_add(around);
    let before = &bytes[window.start..place.start];
    let start = memchr::memrchr(b'\n', before).map_or(window.start, |feed| window.start + feed + 1);
    let after = &bytes[place.end..window.end.min(bytes.len())];
    let end = memchr::memchr(b'\n', after).map_or(place.end + after.len(), |feed| place.end + feed);
    let end = end.min(start + shown);
    let start = characters::ceil(bytes, start);
    let end = characters::floor(bytes, end).max(start);
    Hit {
        offset: place.start as u64,
        length: place.len() as u64,
        line,
        excerpt_offset: start as u64,
        excerpt: String::from_utf8_lossy(&bytes[start..end]).into_owned(),
    }
}

/// The last line of a pattern error says what is wrong; the lines before repeat the pattern.
fn first_line(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    let said = last.strip_prefix("error: ").unwrap_or(last);
    said.chars().take(200).collect()
}
