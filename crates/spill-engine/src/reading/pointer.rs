//! Finds the bytes of a value inside a JSON text by its JSON Pointer (RFC 6901), without building values.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::AskError;

/// The longest pointer, in steps.
const STEPS: usize = 128;

/// Which elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRange {
    /// The first element, from 0.
    pub first: u64,
    /// How many at most.
    pub count: u64,
}

/// The bytes of the value at `pointer`, or of some elements of the array there (from the first byte of the first to the last
/// byte of the last, commas between them included).
pub(crate) fn find(
    json: &[u8],
    pointer: &str,
    items: Option<ItemRange>,
) -> Result<Range<u64>, AskError> {
    let whole: &RawValue = serde_json::from_slice(json).map_err(|error| AskError::NotJson {
        line: error.line() as u64,
        column: error.column() as u64,
    })?;
    let base = json.as_ptr().addr();
    let mut value = whole.get();
    for (place, step) in steps(pointer)?.iter().enumerate() {
        value = child(value, step).ok_or_else(|| AskError::NoSuchValue {
            pointer: shown(pointer),
            step: place as u64 + 1,
        })?;
    }
    let start = value.as_ptr().addr() - base;
    let inside = match items {
        None => 0..value.len(),
        Some(items) => elements(value, items)?,
    };
    Ok((start + inside.start) as u64..(start + inside.end) as u64)
}

fn steps(pointer: &str) -> Result<Vec<String>, AskError> {
    let bad = || AskError::Pointer {
        pointer: shown(pointer),
    };
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let steps: Option<Vec<String>> = pointer
        .strip_prefix('/')
        .ok_or_else(bad)?
        .split('/')
        .map(unescaped)
        .collect();
    steps.filter(|steps| steps.len() <= STEPS).ok_or_else(bad)
}

/// `~1` is a slash, `~0` a tilde, any other tilde a mistake.
fn unescaped(step: &str) -> Option<String> {
    let mut out = String::with_capacity(step.len());
    let mut chars = step.chars();
    while let Some(char) = chars.next() {
        out.push(match char {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

/// An index without sign or leading zeros.
fn index(step: &str) -> Option<u64> {
    let plain = step == "0" || !step.starts_with(['0', '+']);
    if plain { step.parse().ok() } else { None }
}

fn child<'a>(json: &'a str, step: &str) -> Option<&'a str> {
    let mut from = serde_json::Deserializer::from_str(json);
    let found = match json.as_bytes().first()? {
        b'{' => from.deserialize_map(Key(step)),
        b'[' => from.deserialize_seq(Nth(index(step)?)),
        _ => return None,
    };
    found.ok()?.map(RawValue::get)
}

/// The value of a key; of the last one, if it stands there twice, as parsers do.
struct Key<'s>(&'s str);

impl<'a> Visitor<'a> for Key<'_> {
    type Value = Option<&'a RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(name) = map.next_key_seed(Name)? {
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A key, borrowed where it has no escapes.
struct Name;

impl<'a> DeserializeSeed<'a> for Name {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Name {
    type Value = Cow<'a, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, name: &'a str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

struct Nth(u64);

impl<'a> Visitor<'a> for Nth {
    type Value = Option<&'a RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let mut found = None;
        let mut place = 0;
        while place < self.0 && seq.next_element::<IgnoredAny>()?.is_some() {
            place += 1;
        }
        if place == self.0 {
            found = seq.next_element()?;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// The positions, in `json`, of the elements asked for.
fn elements(json: &str, items: ItemRange) -> Result<Range<usize>, AskError> {
    let mut from = serde_json::Deserializer::from_str(json);
    let (ends, length) = from
        .deserialize_seq(Span(items))
        .map_err(|_| AskError::NotAnArray)?;
    let base = json.as_ptr().addr();
    match ends {
        _ if items.count == 0 => Err(AskError::Nothing),
        Some((first, last)) => {
            let end = last.as_ptr().addr() - base + last.len();
            Ok(first.as_ptr().addr() - base..end)
        }
        None => Err(AskError::ItemPastEnd {
            item: items.first,
            items: length,
        }),
    }
}

struct Span(ItemRange);

impl<'a> Visitor<'a> for Span {
    type Value = (Option<(&'a str, &'a str)>, u64);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let behind = self.0.first.saturating_add(self.0.count);
        let mut ends: Option<(&str, &str)> = None;
        let mut place = 0;
        loop {
            if place >= self.0.first && place < behind {
                let Some(element) = seq.next_element::<&RawValue>()? else {
                    break;
                };
                let element = element.get();
                ends = Some((ends.map_or(element, |(first, _)| first), element));
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            place += 1;
        }
        Ok((ends, place))
    }
}

fn shown(pointer: &str) -> String {
    pointer.chars().take(100).collect()
}
