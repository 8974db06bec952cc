//! Which results a model used: answers that repeat a part of them, word for word.
//!
//! Results are known by windows of [`WINDOW`] bytes at every [`STRIDE`]th place. An answer is looked at in every place, so a
//! run of `WINDOW + STRIDE - 1` bytes of a result is always found, and one shorter than `WINDOW` never is. Windows with few
//! different bytes (rulers, indentation) say nothing and are left out, and so are those that the model had written before it
//! was shown the result. Of a tool call's arguments, the texts in the JSON are looked at, as they are without escapes.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::requests::Requests;
use crate::model::{Origin, Transcript};

/// Bytes that must be the same in a row.
pub(crate) const WINDOW: usize = 32;
/// Places of a result that are looked for.
pub(crate) const STRIDE: usize = 16;
/// A window of fewer different bytes says nothing.
const DISTINCT: u32 = 10;
/// Places that are kept of one result.
const MOST_PLACES: usize = 1_024;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// For each result, where it was repeated: the request whose answer did, and the place in the result.
pub(crate) struct Overlaps(Vec<Vec<(usize, usize)>>);

impl Overlaps {
    /// `texts` are the results' texts; short ones may be left out by being empty.
    pub(crate) fn of(transcript: &Transcript, requests: &Requests, texts: &[&str]) -> Self {
        let windows = Windows::of(texts);
        let mut found = Self(vec![Vec::new(); texts.len()]);
        if windows.entries.is_empty() {
            return found;
        }
        let mut own: HashSet<(usize, usize)> = HashSet::new();
        for (place, request) in requests.list.iter().enumerate() {
            let Some(answer) = transcript.calls[request.call].answer else {
                continue;
            };
            for piece in &transcript.messages[answer].pieces {
                let mut look = |text: &str| {
                    windows.each_in(text.as_bytes(), texts, |result, at| {
                        let message = transcript.results[result].message;
                        let sent = requests.first_sent[message];
                        let places = &mut found.0[result];
                        if sent.is_none_or(|first| place < first) {
                            own.insert((result, at));
                        } else if places.len() < MOST_PLACES && !own.contains(&(result, at)) {
                            places.push((place, at));
                        }
                    });
                };
                match piece.origin {
                    Origin::ToolCall => each_text(&piece.text, &mut look),
                    Origin::Assistant
                    | Origin::Reasoning
                    | Origin::System
                    | Origin::ToolSchemas
                    | Origin::User
                    | Origin::ToolResult => look(&piece.text),
                }
            }
        }
        found
    }

    /// The first request whose answer repeats something within `hidden` of a result.
    pub(crate) fn first_use(&self, result: usize, hidden: &Range<usize>) -> Option<usize> {
        let places = self.0[result].iter();
        let within = |at: usize| hidden.start <= at && at + WINDOW <= hidden.end;
        places.filter(|(_, at)| within(*at)).map(|(p, _)| *p).min()
    }
}

/// The texts in a call's arguments; the arguments themselves where they are no JSON.
fn each_text(arguments: &str, look: &mut impl FnMut(&str)) {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => each_string(&value, look),
        Err(_) => look(arguments),
    }
}

fn each_string(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| each_string(item, look)),
        Value::Object(members) => members.values().for_each(|item| each_string(item, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Windows of results by their hash.
struct Windows {
    /// Hash, result, place; sorted.
    entries: Vec<(u64, usize, usize)>,
    /// A bit for each hash that is there.
    bits: Vec<u64>,
}

impl Windows {
    fn of(texts: &[&str]) -> Self {
        let mut entries = Vec::new();
        for (result, text) in texts.iter().enumerate() {
            let bytes = text.as_bytes();
            for at in (0..bytes.len().saturating_sub(WINDOW - 1)).step_by(STRIDE) {
                let window = &bytes[at..at + WINDOW];
                if says_something(window) {
                    entries.push((hash(window), result, at));
                }
            }
        }
        entries.sort_unstable();
        let mut windows = Self {
            bits: vec![0; (entries.len() / 4).next_power_of_two()],
            entries,
        };
        for index in 0..windows.entries.len() {
            let (word, bit) = windows.bit(windows.entries[index].0);
            windows.bits[word] |= bit;
        }
        windows
    }

    fn bit(&self, hash: u64) -> (usize, u64) {
        let mixed = (hash ^ (hash >> 29)).wrapping_mul(FACTOR) >> 20;
        let word = usize::try_from(mixed >> 6).unwrap_or(0) & (self.bits.len() - 1);
        (word, 1 << (mixed & 63))
    }

    /// Calls `found` with result and place of every window that stands in `bytes`.
    fn each_in(&self, bytes: &[u8], texts: &[&str], mut found: impl FnMut(usize, usize)) {
        if bytes.len() < WINDOW {
            return;
        }
        let top = (0..WINDOW - 1).fold(1_u64, |power, _| power.wrapping_mul(FACTOR));
        let mut rolling = hash(&bytes[..WINDOW]);
        for at in 0.. {
            let (word, bit) = self.bit(rolling);
            if self.bits[word] & bit != 0 {
                let from = self.entries.partition_point(|(hash, ..)| *hash < rolling);
                let same = self.entries[from..].iter();
                for (_, result, place) in same.take_while(|(hash, ..)| *hash == rolling) {
                    let window = &texts[*result].as_bytes()[*place..*place + WINDOW];
                    if window == &bytes[at..at + WINDOW] {
                        found(*result, *place);
                    }
                }
            }
            let Some(next) = bytes.get(at + WINDOW) else {
                return;
            };
            let without = rolling.wrapping_sub(term(bytes[at]).wrapping_mul(top));
            rolling = without.wrapping_mul(FACTOR).wrapping_add(term(*next));
        }
    }
}

fn term(byte: u8) -> u64 {
    u64::from(byte) + 1
}

fn hash(window: &[u8]) -> u64 {
    window.iter().fold(0, |hash: u64, byte| {
        hash.wrapping_mul(FACTOR).wrapping_add(term(*byte))
    })
}

/// Whether a window has enough different bytes.
fn says_something(window: &[u8]) -> bool {
    let mut seen = [0_u64; 4];
    for byte in window {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|bits| bits.count_ones()).sum::<u32>() >= DISTINCT
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pub fn settle(ledger: &Ledger, window: Window) -> Result<Settled, Error> {\n    \
                        ledger.entries_within(window).try_fold(Settled::default(), Settled::with)\n}\n";

    fn hits(text: &str, answer: &str) -> Vec<usize> {
        let mut found = Vec::new();
        Windows::of(&[text]).each_in(answer.as_bytes(), &[text], |_, at| found.push(at));
        found
    }

    #[test]
    fn every_run_of_47_bytes_is_found_and_none_of_31() {
        for start in 0..TEXT.len() - 47 {
            let answer = format!("I wrote: {} ...", &TEXT[start..start + 47]);
            assert!(!hits(TEXT, &answer).is_empty(), "{start}");
            let answer = format!("I wrote: {}\u{1}", &TEXT[start..start + 31]);
            assert_eq!(hits(TEXT, &answer), [0_usize; 0], "{start}");
        }
    }

    #[test]
    fn rulers_say_nothing() {
        let ruler = "-".repeat(200);
        assert_eq!(hits(&ruler, &ruler), [0_usize; 0]);
        let spaces = " ".repeat(100) + "x";
        assert_eq!(hits(&spaces, &spaces), [0_usize; 0]);
    }

    #[test]
    fn arguments_are_looked_at_without_escapes() {
        let arguments = serde_json::json!({"edits": [{"new": TEXT}], "n": 1}).to_string();
        let mut texts = Vec::new();
        each_text(&arguments, &mut |text: &str| texts.push(text.to_owned()));
        assert_eq!(texts, [TEXT]);
        texts.clear();
        each_text("ls -l", &mut |text: &str| texts.push(text.to_owned()));
        assert_eq!(texts, ["ls -l"]);
    }
}
