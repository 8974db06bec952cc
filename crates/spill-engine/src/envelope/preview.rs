//! The preview inside an envelope, and the sentence about the whole.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::json;
use super::options::Form;
use super::payload::Payload;

/// Ends every text that was cut.
const CUT: &str = "... [truncated]";
/// Stands for an item whose contents are too much to walk.
const TOO_MUCH: &str = "[truncated]";
/// What every value but a text costs in the walk.
const UNIT_COST: usize = 8;

/// How much a preview shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Items of an array, keys of an object.
    pub(crate) items: usize,
    /// UTF-16 units of a text.
    pub(crate) chars: usize,
    /// Bytes of the whole preview as JSON.
    pub(crate) bytes: u64,
    pub(crate) form: Form,
}

/// The preview of `payload`; `None` when it has more bytes than it may.
pub(crate) fn preview(payload: Payload<'_>, extent: Extent) -> Option<Value> {
    let preview = match payload {
        Payload::Text(text) => cut(text, extent.chars),
        Payload::Bytes(bytes) => of_bytes(bytes, extent),
        Payload::Blocks(blocks) => {
            let shown = blocks.iter().map(|block| block.preview_value(extent.chars));
            items(shown, extent)?
        }
        Payload::Json(Value::Array(array)) => items(array.iter().map(Cow::Borrowed), extent)?,
        Payload::Json(Value::Object(map)) => {
            let shown = items(map.values().map(Cow::Borrowed), extent)?;
            fields(map, shown)
        }
        Payload::Json(Value::String(text)) => cut(text, extent.chars),
        Payload::Json(scalar) => scalar.clone(),
    };
    let bytes = json::text(&preview, extent.form).len() as u64;
    (bytes <= extent.bytes).then_some(preview)
}

/// Stops as soon as the bytes are used up, however many items are asked for.
fn items<'a>(all: impl Iterator<Item = Cow<'a, Value>>, extent: Extent) -> Option<Value> {
    let mut room = extent.bytes;
    let mut shown = Vec::new();
    for item in all.take(extent.items) {
        let item = capped(&item, extent);
        room = room.checked_sub(json::text(&item, extent.form).len() as u64)?;
        shown.push(item);
    }
    Some(Value::from(shown))
}

fn fields(map: &Map<String, Value>, shown: Value) -> Value {
    let Value::Array(shown) = shown else {
        return shown;
    };
    map.keys().cloned().zip(shown).collect()
}

/// An item no larger than a text of `extent.chars` units. The walk costs the units of every text and 8 for every other value,
/// containers included.
fn capped(value: &Value, extent: Extent) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => cut(text, extent.chars),
        Value::Array(_) | Value::Object(_) => {
            if left_after(value, extent.chars).is_none() {
                return Value::from(TOO_MUCH);
            }
            let text = json::text(value, extent.form);
            match first_units(&text, extent.chars) {
                Some(first) => Value::from(format!("{first}{CUT}")),
                None => value.clone(),
            }
        }
    }
}

/// What is left of `room` after a walk through `value`.
fn left_after(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::String(text) => {
            let units = text.chars().map(char::len_utf16);
            let mut left = room;
            for unit in units {
                left = left.checked_sub(unit)?;
            }
            Some(left)
        }
        Value::Array(items) => items
            .iter()
            .try_fold(room.checked_sub(UNIT_COST)?, |left, item| {
                left_after(item, left)
            }),
        Value::Object(map) => map
            .values()
            .try_fold(room.checked_sub(UNIT_COST)?, |left, item| {
                left_after(item, left)
            }),
        Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(UNIT_COST),
    }
}

fn cut(text: &str, units: usize) -> Value {
    match first_units(text, units) {
        Some(first) => Value::from(format!("{first}{CUT}")),
        None => Value::from(text),
    }
}

/// The first `units` UTF-16 units of a longer text, without half a surrogate pair; `None` when `text` is not longer.
fn first_units(text: &str, units: usize) -> Option<&str> {
    let mut seen = 0;
    let (end, _) = text.char_indices().find(|(_, char)| {
        seen += char.len_utf16();
        seen > units
    })?;
    Some(&text[..end])
}

fn of_bytes(bytes: &[u8], extent: Extent) -> Value {
    match extent.form {
        Form::Published => Value::from(format!("[binary: {} bytes]", bytes.len())),
        Form::Observed => (0..extent.items)
            .zip(bytes)
            .map(|(index, byte)| (index.to_string(), Value::from(*byte)))
            .collect(),
    }
}

/// How many items the envelope states: only an array and an object have any.
pub(crate) fn total_items(payload: Payload<'_>, form: Form) -> Option<usize> {
    match (payload, form) {
        (Payload::Json(Value::Array(items)), _) => Some(items.len()),
        (Payload::Json(Value::Object(map)), _) => Some(map.len()),
        (Payload::Blocks(blocks), _) => Some(blocks.len()),
        (Payload::Bytes(bytes), Form::Observed) => Some(bytes.len()),
        (Payload::Json(_) | Payload::Text(_) | Payload::Bytes(_), _) => None,
    }
}

/// One sentence about a payload of `size` serialised bytes.
pub(crate) fn summary(payload: Payload<'_>, size: u64, form: Form) -> String {
    let size = size_text(size);
    let items = total_items(payload, form).unwrap_or(0);
    match (payload, form) {
        (Payload::Json(Value::Array(_)) | Payload::Blocks(_), _) => {
            format!("Query returned {} items ({size})", thousands(items))
        }
        (Payload::Json(Value::Object(_)), _) | (Payload::Bytes(_), Form::Observed) => {
            format!("Object with {items} top-level fields ({size})")
        }
        (Payload::Text(_) | Payload::Json(Value::String(_)), _) => {
            format!("Text payload ({size})")
        }
        (Payload::Bytes(_), Form::Published) => format!("Binary payload ({size})"),
        (Payload::Json(_), _) => format!("Dataset payload ({size})"),
    }
}

/// `1023 B`, `1.3 KB`, `2.4 MB`: one decimal, ties away from zero; there is no larger unit.
fn size_text(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let (unit, name) = match bytes {
        0..KIB => return format!("{bytes} B"),
        KIB..MIB => (KIB, "KB"),
        MIB.. => (MIB, "MB"),
    };
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_ties_away_from_zero() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KB"),
            (1_280, "1.3 KB"),
            (2_304, "2.3 KB"),
            (1_048_575, "1024.0 KB"),
            (1_048_576, "1.0 MB"),
            (1_310_720, "1.3 MB"),
            (u64::MAX, "17592186044416.0 MB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn counts_have_commas() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(count), text);
        }
    }
}
