//! Points in time as recorded.

use jiff::civil;
use serde_json::Value;

/// Microseconds since 1970-01-01T00:00:00Z. A recorded local time without an offset is read as if it were UTC, so only
/// differences within one transcript mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn as_microseconds(self) -> i64 {
        self.0
    }

    /// From an ISO 8601 text, or from seconds or milliseconds since 1970 as a number (above 10^11 they are milliseconds).
    pub(crate) fn from_json(value: Option<&Value>) -> Option<Self> {
        match value? {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::from_seconds(number.as_f64()?),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// From nanoseconds since 1970, as OTLP JSON writes them: a decimal string or a number.
    pub(crate) fn from_nanoseconds(value: Option<&Value>) -> Option<Self> {
        let nanoseconds = match value? {
            Value::String(text) => text.parse::<i64>().ok()?,
            other => other.as_i64()?,
        };
        (nanoseconds > 0).then_some(Self(nanoseconds / 1_000))
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Some(Self(time.as_microsecond()));
        }
        let local = text.parse::<civil::DateTime>().ok()?;
        let time = jiff::tz::Offset::UTC.to_timestamp(local).ok()?;
        Some(Self(time.as_microsecond()))
    }

    fn from_seconds(number: f64) -> Option<Self> {
        let seconds = if number > 1e11 { number / 1e3 } else { number };
        let time = jiff::Timestamp::UNIX_EPOCH
            .checked_add(jiff::SignedDuration::try_from_secs_f64(seconds).ok()?)
            .ok()?;
        (seconds > 0.0).then_some(Self(time.as_microsecond()))
    }
}
