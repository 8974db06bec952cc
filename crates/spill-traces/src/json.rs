//! Reading JSON that may be damaged.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::problem::{Place, ProblemKind, Problems};

/// Parses one value. Lone surrogates in escapes are replaced and reported; anything else that is wrong is one problem of
/// `kind` and `None`.
pub(crate) fn parse(
    text: &str,
    kind: ProblemKind,
    place: &Place,
    problems: &mut Problems,
) -> Option<Value> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    if let Some((repaired, replaced)) = repair_surrogates(text)
        && let Ok(value) = serde_json::from_str(&repaired)
    {
        let detail = format!("{replaced} halves of surrogate pairs replaced by U+FFFD");
        problems.add(place, ProblemKind::LoneSurrogate, detail);
        return Some(value);
    }
    problems.add(place, kind, describe(text, &error));
    None
}

/// A parse error in words, without any of the text.
pub(crate) fn describe(text: &str, error: &serde_json::Error) -> String {
    let nul = if text.contains('\0') {
        ", it holds NUL bytes"
    } else {
        ""
    };
    // The place of a problem tells the line. Within a line, a document's included that is one, the column is what is new.
    let words = error.to_string();
    let words = match words.rsplit_once(" at line ") {
        Some((words, _)) if error.line() == 1 && !text.trim_end().contains('\n') => {
            format!("{words} at column {}", error.column())
        }
        Some(_) | None => words,
    };
    format!("{words}{nul}")
}

/// The text with every lone surrogate escape replaced by `\ufffd`, and their number; `None` when there is none.
fn repair_surrogates(text: &str) -> Option<(String, usize)> {
    let mut bytes = text.as_bytes().to_vec();
    let mut replaced = 0;
    let mut at = 0;
    while let Some(step) = memchr::memchr(b'\\', bytes.get(at..)?) {
        let start = at + step;
        match surrogate(&bytes, start) {
            None => at = start + 2,
            Some(unit) => {
                let paired = unit < 0xDC00
                    && surrogate(&bytes, start + 6).is_some_and(|second| second >= 0xDC00);
                if paired {
                    at = start + 12;
                    continue;
                }
                bytes[start + 2..start + 6].copy_from_slice(b"fffd");
                replaced += 1;
                at = start + 6;
            }
        }
        if at >= bytes.len() {
            break;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    (replaced > 0).then_some((text, replaced))
}

/// The code unit of the `\uXXXX` escape at `start`, when it is half of a surrogate pair.
fn surrogate(bytes: &[u8], start: usize) -> Option<u16> {
    let escape = bytes.get(start..start + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..0xE000).contains(&unit).then_some(unit)
}

/// The members of an object, unparsed, in order.
pub(crate) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// `None` when the text is no object, or torn.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The member's JSON text; of several with one name the last one, as JSON parsers do.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let member = self.0.iter().rev().find(|(key, _)| key == name)?;
        Some(member.1.get())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The member as a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The elements of an array member, unparsed.
    pub(crate) fn elements(&self, name: &str) -> Option<Vec<&'a str>> {
        elements(self.get(name)?)
    }
}

/// The elements of an array, unparsed; `None` when the text is no array, or torn.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    let raw: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(raw.into_iter().map(RawValue::get).collect())
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(entry) = map.next_entry::<String, &RawValue>()? {
                    members.push(entry);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A string member.
pub(crate) fn str_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A string member, copied.
pub(crate) fn string_of(value: &Value, name: &str) -> Option<String> {
    str_of(value, name).map(str::to_owned)
}

/// A number member that is not negative. OTLP JSON writes 64-bit integers as strings: those too.
pub(crate) fn u64_of(value: &Value, name: &str) -> Option<u64> {
    let member = value.get(name)?;
    member
        .as_u64()
        .or_else(|| member.as_str().and_then(|text| text.parse().ok()))
}

/// Takes a member out; `None` for a missing one and for null.
pub(crate) fn take(value: &mut Value, name: &str) -> Option<Value> {
    let member = value.get_mut(name)?.take();
    (!member.is_null()).then_some(member)
}

/// Takes an array member out; empty when it is missing, null or no array.
pub(crate) fn take_array(value: &mut Value, name: &str) -> Vec<Value> {
    match take(value, name) {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    }
}

/// A string as it is, anything else as compact JSON.
pub(crate) fn into_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_repair(text: &str, expected: Option<(&str, usize)>) {
        let expected = expected.map(|(text, count)| (text.to_owned(), count));
        assert_eq!(repair_surrogates(text), expected, "{text}");
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        check_repair(r#""a""#, None);
        check_repair(r#""\ud83d\ude00""#, None);
        check_repair(r#""\ud83d""#, Some((r#""\ufffd""#, 1)));
        check_repair(r#""\ude00\uD83Dx""#, Some((r#""\ufffd\ufffdx""#, 2)));
        check_repair(
            r#""\ud83d\ud83d\ude00""#,
            Some((r#""\ufffd\ud83d\ude00""#, 1)),
        );
        check_repair(r#""\\ud83d""#, None);
        check_repair("\\", None);
        check_repair("", None);
    }
}
