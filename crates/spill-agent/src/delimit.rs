//! The delimiters between which a tool result stands in the prompt.

use std::{borrow::Cow, fmt};

use memchr::memmem;
use serde::{Serialize, Serializer};

const CLOSING: &str = "</tool-result";
const ESCAPED: &str = "<\\/tool-result";

/// A result text between `<tool-result>` and `</tool-result>`, rendered without a copy of it.
///
/// Every `</tool-result` inside the text is written `<\/tool-result`, so that no result can
/// close the delimiter. An error result opens with `<tool-result error="true">`.
#[derive(Clone, Copy, Debug)]
pub struct Delimited<'a> {
    /// The text to enclose.
    pub text: &'a str,
    /// Whether the tool flagged the result as an error.
    pub is_error: bool,
}

impl fmt::Display for Delimited<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_error {
            "<tool-result error=\"true\">\n"
        } else {
            "<tool-result>\n"
        })?;
        let mut written = 0;
        for at in memmem::find_iter(self.text.as_bytes(), CLOSING) {
            out.write_str(&self.text[written..at])?;
            out.write_str(ESCAPED)?;
            written = at + CLOSING.len();
        }
        out.write_str(&self.text[written..])?;
        out.write_str("\n</tool-result>")
    }
}

impl Serialize for Delimited<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Takes the text back out of its delimiters; `None` when `content` is not delimited.
#[must_use]
pub fn undo_delimited(content: &str) -> Option<Cow<'_, str>> {
    let inner = content
        .strip_prefix("<tool-result>\n")
        .or_else(|| content.strip_prefix("<tool-result error=\"true\">\n"))?
        .strip_suffix("\n</tool-result>")?;
    Some(if inner.contains(ESCAPED) {
        Cow::Owned(inner.replace(ESCAPED, CLOSING))
    } else {
        Cow::Borrowed(inner)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_round_trip(text: &str, delimited: &str) {
        let rendered = Delimited {
            text,
            is_error: false,
        }
        .to_string();
        assert_eq!(rendered, delimited);
        assert_eq!(undo_delimited(&rendered).as_deref(), Some(text));
        let json = serde_json::to_string(&Delimited {
            text,
            is_error: false,
        })
        .expect("a string");
        let read: String = serde_json::from_str(&json).expect("a JSON string");
        assert_eq!(read, rendered);
    }

    #[test]
    fn no_text_closes_its_delimiter() {
        check_round_trip("", "<tool-result>\n\n</tool-result>");
        check_round_trip("plain\n", "<tool-result>\nplain\n\n</tool-result>");
        check_round_trip(
            "a</tool-result>b",
            "<tool-result>\na<\\/tool-result>b\n</tool-result>",
        );
        check_round_trip(
            "</tool-result</tool-result >",
            "<tool-result>\n<\\/tool-result<\\/tool-result >\n</tool-result>",
        );
        check_round_trip("é\u{0}\"\\", "<tool-result>\né\u{0}\"\\\n</tool-result>");
    }

    #[test]
    fn an_error_says_so_in_its_opening() {
        let rendered = Delimited {
            text: "no",
            is_error: true,
        }
        .to_string();
        assert_eq!(rendered, "<tool-result error=\"true\">\nno\n</tool-result>");
        assert_eq!(undo_delimited(&rendered).as_deref(), Some("no"));
    }

    #[test]
    fn text_without_delimiters_is_not_undone() {
        assert_eq!(undo_delimited("<tool-result>\nx"), None);
        assert_eq!(undo_delimited("x"), None);
    }
}
