//! A tool result as it stands in the prompt: its frame, its text, and what the text is.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;
use serde::Deserialize;

use crate::seen::{Listed, listed};

const OPEN: &str = "<tool-result>\n";
const OPEN_ERROR: &str = "<tool-result error=\"true\">\n";
const CLOSE: &str = "\n</tool-result>";
const ESCAPED_CLOSE: &str = "<\\/tool-result";
const PLAIN_CLOSE: &str = "</tool-result";
/// No preview is longer; a longer text is not searched for one.
const PREVIEW_LIMIT: usize = 64 * 1024;

/// A tool result between its delimiters, or without any where a client uses none.
#[derive(Debug)]
pub(crate) struct ToolText {
    /// The opening delimiter, empty without one.
    pub(crate) open: &'static str,
    /// The closing delimiter, empty without one.
    pub(crate) close: &'static str,
    /// The text between them, escapes undone.
    pub(crate) text: String,
    /// The text as it stands in the prompt, where it has escapes.
    escaped: Option<String>,
    /// What the text is, taken by itself.
    pub(crate) form: Form,
    hunks: OnceLock<Vec<Hunk>>,
    listed: OnceLock<Vec<Listed>>,
    marker: OnceLock<bool>,
}

/// What a result's text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The result itself.
    Whole,
    /// An error.
    Error,
    /// The preview of a stored result.
    Preview(Preview),
    /// A slice of a stored result.
    Slice(Slice),
}

/// What a preview says about the stored result.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Preview {
    spilled: bool,
    #[serde(rename = "spillover_ref")]
    pub(crate) reference: String,
    #[serde(rename = "size_bytes")]
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) lines: u64,
    #[serde(default)]
    pub(crate) head: String,
    #[serde(default)]
    pub(crate) tail: String,
}

/// Where a slice sits in the stored text, and where its bytes sit in the result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) reference: String,
    pub(crate) offset: u64,
    pub(crate) body: Range<usize>,
}

#[derive(Deserialize)]
struct SliceHeader {
    spillover_ref: String,
    offset: u64,
    #[serde(rename = "length")]
    _length: u64,
}

/// The lines of the new file that a hunk of a diff covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// First line, from 1 (0 when the hunk leaves no line).
    pub(crate) first_line: u64,
    /// How many.
    pub(crate) lines: u64,
}

impl ToolText {
    /// Takes a tool message's content apart.
    pub(crate) fn parse(content: &str) -> Self {
        let (open, close, inner) = framed(content);
        let (text, escaped) = if inner.contains(ESCAPED_CLOSE) {
            let plain = inner.replace(ESCAPED_CLOSE, PLAIN_CLOSE);
            (plain, Some(inner.to_owned()))
        } else {
            (inner.to_owned(), None)
        };
        let form = if open == OPEN_ERROR || (open.is_empty() && looks_like_error(&text)) {
            Form::Error
        } else if let Some(preview) = preview(&text) {
            Form::Preview(preview)
        } else if let Some(slice) = slice(&text) {
            Form::Slice(slice)
        } else {
            Form::Whole
        };
        Self {
            open,
            close,
            text,
            escaped,
            form,
            hunks: OnceLock::new(),
            listed: OnceLock::new(),
            marker: OnceLock::new(),
        }
    }

    /// The text as it stands in the prompt.
    pub(crate) fn in_prompt(&self) -> &str {
        self.escaped.as_deref().unwrap_or(&self.text)
    }

    /// Bytes of the message's content, delimiters included.
    pub(crate) fn content_bytes(&self) -> usize {
        self.open.len() + self.in_prompt().len() + self.close.len()
    }

    /// Hunks that the visible part of a diff names, in order; computed once.
    pub(crate) fn hunks(&self) -> &[Hunk] {
        self.hunks.get_or_init(|| match &self.form {
            Form::Whole => hunks(&self.text).collect(),
            Form::Error => Vec::new(),
            Form::Preview(preview) => hunks(&preview.head).chain(hunks(&preview.tail)).collect(),
            Form::Slice(slice) => hunks(&self.text[slice.body.clone()]).collect(),
        })
    }

    /// What the text lists, if it is the list tool's result; computed once.
    pub(crate) fn listed(&self) -> &[Listed] {
        self.listed.get_or_init(|| listed(&self.text))
    }

    /// Says whether someone cut the text: it has a truncation marker, and is shorter than `stated`
    /// where the size is known.
    pub(crate) fn is_truncated(&self, stated: Option<u64>) -> bool {
        if stated.is_some_and(|stated| self.text.len() as u64 >= stated) {
            return false;
        }
        *self.marker.get_or_init(|| has_marker(&self.text))
    }
}

fn framed(content: &str) -> (&'static str, &'static str, &str) {
    for open in [OPEN, OPEN_ERROR] {
        let inner = content
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(CLOSE));
        if let Some(inner) = inner {
            return (open, CLOSE, inner);
        }
    }
    ("", "", content)
}

fn looks_like_error(text: &str) -> bool {
    ["Error:", "error:", "MCP error", "{\"error\""]
        .iter()
        .any(|start| text.starts_with(start))
}

fn preview(text: &str) -> Option<Preview> {
    if text.len() > PREVIEW_LIMIT
        || !text.trim_start().starts_with('{')
        || !text.contains("\"spillover_ref\"")
    {
        return None;
    }
    let preview: Preview = serde_json::from_str(text).ok()?;
    let shown = (preview.head.len() + preview.tail.len()) as u64;
    (preview.spilled && shown <= preview.size).then_some(preview)
}

fn slice(text: &str) -> Option<Slice> {
    if !text.starts_with("{\"spillover_ref\"") {
        return None;
    }
    let end = memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    let header: SliceHeader = serde_json::from_str(&text[..end]).ok()?;
    let start = text.len().min(end + 1);
    Some(Slice {
        reference: header.spillover_ref,
        offset: header.offset,
        body: start..text.len(),
    })
}

fn hunks(text: &str) -> impl Iterator<Item = Hunk> + '_ {
    static HEADER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@").expect("the pattern is valid")
    });
    HEADER.captures_iter(text).filter_map(|found| {
        let first_line = found[1].parse().ok()?;
        let lines = found.get(2).map_or(Some(1), |n| n.as_str().parse().ok())?;
        Some(Hunk { first_line, lines })
    })
}

/// Looks for a line that says how much was cut, or that is in brackets and says that it was.
fn has_marker(text: &str) -> bool {
    static MARKER: LazyLock<Regex> = LazyLock::new(|| {
        let cut = "(?:truncated|omitted|elided|clipped)";
        Regex::new(&format!(
            r"(?im)^[^\w\n]*[\[<(…][^\n]{{0,200}}\b{cut}\b|\b\d[\d,]* (?:more )?(?:bytes|chars|characters|lines|tokens|KB|KiB)[^\n]{{0,20}} {cut}\b|\b{cut}\b[^\n]{{0,20}} \d[\d,]* (?:bytes|chars|characters|lines|tokens|KB|KiB)"
        ))
        .expect("the pattern is valid")
    });
    MARKER.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_frame(content: &str, open: &str, text: &str) {
        let parsed = ToolText::parse(content);
        assert_eq!(parsed.open, open, "{content:?}");
        assert_eq!(parsed.text, text, "{content:?}");
        assert_eq!(parsed.content_bytes(), content.len(), "{content:?}");
    }

    #[test]
    fn delimiters_and_escapes_are_undone() {
        check_frame("<tool-result>\nabc\n</tool-result>", OPEN, "abc");
        check_frame("<tool-result>\n\n</tool-result>", OPEN, "");
        check_frame("<tool-result>\na\n\n</tool-result>", OPEN, "a\n");
        check_frame(
            "<tool-result>\nx <\\/tool-result> y\n</tool-result>",
            OPEN,
            "x </tool-result> y",
        );
        check_frame("plain", "", "plain");
        check_frame("<tool-result>\nno end", "", "<tool-result>\nno end");
        check_frame(
            "<tool-result error=\"true\">\nno\n</tool-result>",
            OPEN_ERROR,
            "no",
        );
    }

    fn check_form(text: &str, form: Form) {
        assert_eq!(ToolText::parse(text).form, form, "{text:?}");
        let framed = format!("{OPEN}{text}{CLOSE}");
        if form != Form::Error {
            assert_eq!(ToolText::parse(&framed).form, form, "{framed:?}");
        }
    }

    #[test]
    fn previews_slices_and_errors_are_recognised() {
        check_form("", Form::Whole);
        check_form("{\"spilled\":true}", Form::Whole);
        check_form("{\"spilled\":true,\"spillover_ref\":7}", Form::Whole);
        check_form(
            "{\"spilled\":true,\"spillover_ref\":\"r\",\"size_bytes\":1,\"head\":\"ab\"}",
            Form::Whole,
        );
        check_form("Error: no such file", Form::Error);
        check_form(
            r#"{"spilled":true,"spillover_ref":"r","size_bytes":9,"lines":2,"structure":"text","head":"a\n","tail":"é","how_to_read":"x"}"#,
            Form::Preview(Preview {
                spilled: true,
                reference: "r".to_owned(),
                size: 9,
                lines: 2,
                head: "a\n".to_owned(),
                tail: "é".to_owned(),
            }),
        );
        let header =
            r#"{"spillover_ref":"r","offset":4,"length":3,"next_offset":null,"size_bytes":7}"#;
        check_form(
            &format!("{header}\nx\ny"),
            Form::Slice(Slice {
                reference: "r".to_owned(),
                offset: 4,
                body: header.len() + 1..header.len() + 4,
            }),
        );
    }

    #[test]
    fn hunks_of_a_diff_are_its_new_lines() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,4 +10,7 @@ fn f()\n+ @@ -1 +1 @@\n@@ -3 +99 @@\n";
        let lines: Vec<_> = ToolText::parse(diff)
            .hunks()
            .iter()
            .map(|hunk| (hunk.first_line, hunk.lines))
            .collect();
        assert_eq!(lines, [(10, 7), (99, 1)]);
    }

    fn check_truncated(text: &str, stated: Option<u64>, expected: bool) {
        assert_eq!(
            ToolText::parse(text).is_truncated(stated),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn truncation_needs_a_marker_and_a_text_that_is_too_short() {
        check_truncated("abc", None, false);
        check_truncated("abc", Some(10), false);
        check_truncated("a\n[truncated]", None, true);
        check_truncated("a\n[truncated]", Some(13), false);
        check_truncated("a\n[truncated]", Some(14), true);
        check_truncated("a\n... 1,200 bytes truncated ...\nb", None, true);
        check_truncated("a\n… truncated 300 lines", None, true);
        check_truncated("names are truncated when long", None, false);
    }
}
