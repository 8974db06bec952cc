//! Planned faults of a tool's result: what it says in place of the result, and how it arrives.

use std::sync::Arc;

use spill_scenario::ToolFault;

use crate::faults::Delivery;
use crate::tools::ResultText;

/// A picture of one pixel, as base64.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A line that a result is made longer with; no reading rule finds anything in it.
const FILLER: &str = "this line is filler and says nothing at all\\n";
/// A character of four bytes, none of which JSON escapes.
const WIDE: &str = "\u{1f980}";

/// What a spoilt tool call answers.
#[derive(Debug)]
pub(crate) enum Spoilt {
    /// This result.
    Result(ResultText),
    /// An error result with this message.
    Error(&'static str),
    /// A picture, as a content block.
    Picture(&'static str),
    /// The result, in a response of this status and content type with this body.
    Http {
        status: u16,
        kind: &'static str,
        body: &'static str,
    },
}

/// Says what comes of `result` under `fault`, and how it arrives.
pub(crate) fn spoil(fault: ToolFault, result: ResultText) -> (Spoilt, Delivery) {
    let whole = |spoilt| (spoilt, Delivery::Whole);
    let delivered = |delivery| (Spoilt::Result(result.clone()), delivery);
    match fault {
        ToolFault::ErrorResult => whole(Spoilt::Error("the tool failed on purpose")),
        ToolFault::Slow { delay_ms } => delivered(Delivery::Late { delay_ms }),
        ToolFault::Timeout { delay_ms } => delivered(Delivery::Held { delay_ms }),
        ToolFault::Cut => delivered(Delivery::Cut),
        ToolFault::MalformedJson => delivered(Delivery::Garbled),
        ToolFault::WrongContentType => whole(Spoilt::Http {
            status: 200,
            kind: "text/html",
            body: "<!doctype html><title>Not what you asked for</title>",
        }),
        ToolFault::HttpError { status } => whole(Spoilt::Http {
            status,
            kind: "text/plain",
            body: "the tool server failed on purpose",
        }),
        ToolFault::ResultBytes { bytes } => whole(Spoilt::Result(longer(&result, bytes, FILLER))),
        ToolFault::OneLineJson { bytes } => whole(Spoilt::Result(one_line(bytes))),
        ToolFault::MultiByte { bytes } => whole(Spoilt::Result(longer(&result, bytes, WIDE))),
        ToolFault::LoneSurrogate => whole(Spoilt::Result(with(&result, "\\ud83e"))),
        ToolFault::Nul => whole(Spoilt::Result(with(&result, "\\u0000"))),
        ToolFault::Binary => whole(Spoilt::Picture(PICTURE)),
    }
}

/// The result with an escape before its end.
fn with(result: &ResultText, escape: &str) -> ResultText {
    let json = &result.json[..result.json.len() - 1];
    ResultText {
        json: Arc::from(format!("{json}{escape}\"")),
        bytes: result.bytes + 1,
    }
}

/// The result and as much of `filler` as makes its JSON `bytes` long; a longer one stays as it is.
/// What is left over of `filler` is filled with `x`.
fn longer(result: &ResultText, bytes: u64, filler: &str) -> ResultText {
    let room = bytes.saturating_sub(result.json.len() as u64);
    let count = room / filler.len() as u64;
    let rest = room % filler.len() as u64;
    let mut json = result.json[..result.json.len() - 1].to_owned();
    let plain = |count: u64| usize::try_from(count).unwrap_or(0);
    json.push_str(&"x".repeat(plain(rest)));
    json.push_str(&filler.repeat(plain(count)));
    json.push('"');
    let line_feeds = if filler == FILLER { count } else { 0 };
    ResultText {
        json: Arc::from(json),
        bytes: result.bytes + room - line_feeds,
    }
}

/// A JSON array of numbers in one line, whose own JSON has `bytes` bytes.
fn one_line(bytes: u64) -> ResultText {
    let room = bytes.saturating_sub(2).max(3);
    let mut text = String::from("[");
    let mut number = 0_u64;
    while (text.len() as u64) + 8 < room {
        text.push_str(&format!("{},", number % 9));
        number += 1;
    }
    while (text.len() as u64) + 1 < room {
        text.push('1');
    }
    text.push(']');
    ResultText {
        bytes: text.len() as u64,
        json: Arc::from(format!("\"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::result_text;

    fn check_size(fault: ToolFault, bytes: usize) {
        let (Spoilt::Result(spoilt), Delivery::Whole) = spoil(fault, result_text("a\n\"é\""))
        else {
            panic!("a result: {fault:?}");
        };
        assert_eq!(spoilt.json.len(), bytes, "{fault:?}");
        let text: String = serde_json::from_str(&spoilt.json).expect("a string");
        assert_eq!(text.len() as u64, spoilt.bytes, "{fault:?}");
        let again = serde_json::to_string(&text).expect("JSON");
        assert_eq!(again.len(), bytes, "{fault:?}");
    }

    #[test]
    fn results_are_made_exactly_as_long_as_asked() {
        for bytes in [100, 131_071, 131_072, 131_073] {
            let asked = bytes as u64;
            check_size(ToolFault::ResultBytes { bytes: asked }, bytes);
            check_size(ToolFault::OneLineJson { bytes: asked }, bytes);
            check_size(ToolFault::MultiByte { bytes: asked }, bytes);
        }
    }

    #[test]
    fn half_a_character_is_no_text_and_a_nul_is() {
        let json = |fault| match spoil(fault, result_text("ab")).0 {
            Spoilt::Result(text) => text.json,
            other => panic!("a result: {other:?}"),
        };
        assert_eq!(&*json(ToolFault::LoneSurrogate), r#""ab\ud83e""#);
        let nul: String = serde_json::from_str(&json(ToolFault::Nul)).expect("a string");
        assert_eq!(nul, "ab\0");
    }
}
