//! Compact JSON, in the form of this machine or of JavaScript.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Map, Serializer, Value};

use super::options::Form;

/// The compact JSON of `value`.
pub(crate) fn text(value: &impl Serialize, form: Form) -> String {
    let mut json = match form {
        Form::Published => serde_json::to_string(value),
        Form::Observed => {
            let mut bytes = Vec::new();
            value
                .serialize(&mut Serializer::with_formatter(&mut bytes, JsNumbers))
                .map(|()| String::from_utf8(bytes).expect("JSON is UTF-8"))
        }
    }
    .expect("values with string keys always have a JSON form");
    json.shrink_to_fit();
    json
}

/// Writes numbers as JavaScript does: `1.0` is `1`, `-0.0` is `0`, from 10^21 on and below 10^-6 with an exponent.
struct JsNumbers;

impl Formatter for JsNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(js_number(value).as_bytes())
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        CompactFormatter.write_f32(out, value)
    }
}

/// ECMAScript, `Number::toString`, radix 10: the shortest digits that read back, laid out by the exponent.
fn js_number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest
        .split_once('e')
        .expect("the exponent form has an exponent");
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().expect("an f64 has a small exponent");
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", layout(&digits, exponent))
}

fn layout(digits: &str, exponent: i32) -> String {
    let count = i32::try_from(digits.len()).expect("at most 17 digits");
    let point = exponent + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if (count..=21).contains(&point) {
        return format!("{digits}{}", zeros(point - count));
    }
    if (1..=21).contains(&point) {
        let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or(0));
        return format!("{whole}.{part}");
    }
    if (-5..=0).contains(&point) {
        return format!("0.{}{digits}", zeros(-point));
    }
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{first}{dot}{rest}e{exponent:+}")
}

/// The value with its keys in JavaScript's order, at every depth: integer-like ones first, ascending, then as inserted.
pub(crate) fn js_ordered(value: &Value) -> Cow<'_, Value> {
    if is_ordered(value) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(match value {
        Value::Array(items) => items
            .iter()
            .map(|item| js_ordered(item).into_owned())
            .collect(),
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort_by_key(|key| array_index(key).unwrap_or(u64::MAX));
            let ordered: Map<String, Value> = keys
                .into_iter()
                .map(|key| (key.clone(), js_ordered(&map[key]).into_owned()))
                .collect();
            Value::Object(ordered)
        }
        scalar => scalar.clone(),
    })
}

fn is_ordered(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_ordered),
        Value::Object(map) => {
            let index = |key: &String| array_index(key).unwrap_or(u64::MAX);
            map.keys().is_sorted_by_key(index) && map.values().all(is_ordered)
        }
        _ => true,
    }
}

/// The number that `key` is the only spelling of, up to 2^32 - 2.
fn array_index(key: &str) -> Option<u64> {
    let canonical = key == "0" || (!key.starts_with('0') && key.len() <= 10);
    let digits = canonical && key.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| key.parse().ok())??;
    (number < u64::from(u32::MAX)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_in_javascript() {
        for (number, written) in [
            (1.0, "1"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(js_number(number), written);
        }
    }

    #[test]
    fn integer_like_keys_come_first() {
        let order = |json: &str| {
            let value: Value = serde_json::from_str(json).expect("JSON");
            js_ordered(&value).to_string()
        };
        assert_eq!(
            order(r#"{"b":1,"10":2,"2":{"a":0,"0":1},"a":3,"01":4,"-1":5}"#),
            r#"{"2":{"0":1,"a":0},"10":2,"b":1,"a":3,"01":4,"-1":5}"#
        );
        assert_eq!(
            order(r#"{"4294967295":1,"4294967294":2}"#),
            r#"{"4294967294":2,"4294967295":1}"#
        );
        assert_eq!(
            order(r#"{"a":1,"4294967295":2}"#),
            r#"{"a":1,"4294967295":2}"#
        );
        assert_eq!(order(r#"[[{"a":1,"0":2}],3]"#), r#"[[{"0":2,"a":1}],3]"#);
    }
}
