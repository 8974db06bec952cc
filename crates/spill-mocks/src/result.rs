//! A tool result as it stands in the prompt: its frame, its text, and what the text is.

use std::sync::{LazyLock, OnceLock};

use regex::Regex;

use crate::preview::Preview;
use crate::rules::Cuts;
use crate::saved::{SavedFile, cuts_in};
use crate::seen::{Listed, listed};
use crate::slice::Slice;

const OPEN: &str = "<tool-result>\n";
const OPEN_ERROR: &str = "<tool-result error=\"true\">\n";
const CLOSE: &str = "\n</tool-result>";
const ESCAPED_CLOSE: &str = "<\\/tool-result";
const PLAIN_CLOSE: &str = "</tool-result";

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
    /// What stands in place of a result that the agent saved to a file.
    Saved(SavedFile),
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
    /// A tool message that says by itself that it is an error.
    pub(crate) fn error(content: &str) -> Self {
        let parsed = Self::parse(content);
        match parsed.form {
            Form::Whole | Form::Slice(_) => Self {
                form: Form::Error,
                ..parsed
            },
            Form::Error | Form::Preview(_) | Form::Saved(_) => parsed,
        }
    }

    /// Takes a tool message's content apart.
    pub(crate) fn parse(content: &str) -> Self {
        let (open, close, inner) = framed(content);
        let (text, escaped) = if inner.contains(ESCAPED_CLOSE) {
            let plain = inner.replace(ESCAPED_CLOSE, PLAIN_CLOSE);
            (plain, Some(inner.to_owned()))
        } else {
            (inner.to_owned(), None)
        };
        let saved = || SavedFile::parse(&text).filter(|_| open.is_empty());
        let form = if open == OPEN_ERROR {
            Form::Error
        } else if let Some(saved) = saved() {
            Form::Saved(saved)
        } else if open.is_empty() && looks_like_error(&text) {
            Form::Error
        } else if let Some(preview) = Preview::parse(&text) {
            Form::Preview(preview)
        } else if let Some(slice) = Slice::parse(&text) {
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
            Form::Whole => hunks_in(&self.text).collect(),
            Form::Error | Form::Saved(_) => Vec::new(),
            Form::Preview(preview) => hunks_in(&preview.head)
                .chain(hunks_in(&preview.tail))
                .collect(),
            Form::Slice(slice) => hunks_in(slice.text(&self.text)).collect(),
        })
    }

    /// The visible parts of a whole result: one, or what is left of it around an agent's cuts.
    pub(crate) fn parts(&self) -> Vec<(&str, Cuts)> {
        let mut parts = Vec::new();
        let mut start = 0;
        for cut in cuts_in(&self.text) {
            let cuts = Cuts {
                start: start > 0,
                end: true,
            };
            parts.push((&self.text[start..cut.start], cuts));
            start = cut.end;
        }
        let cuts = Cuts {
            start: start > 0,
            end: false,
        };
        parts.push((&self.text[start..], cuts));
        parts
    }

    /// Whether the agent cut the text and said nothing of where the rest is.
    pub(crate) fn is_cut(&self) -> bool {
        cuts_in(&self.text).next().is_some()
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

/// Hunks that a text names, in order.
pub(crate) fn hunks_in(text: &str) -> impl Iterator<Item = Hunk> + '_ {
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

    /// The name of the form that a text has, alone and between delimiters.
    fn check_form(text: &str, expected: &str) {
        let name = |form: &Form| match form {
            Form::Whole => "whole",
            Form::Error => "error",
            Form::Preview(_) => "preview",
            Form::Slice(_) => "slice",
            Form::Saved(_) => "saved",
        };
        assert_eq!(name(&ToolText::parse(text).form), expected, "{text:?}");
        let framed = format!("{OPEN}{text}{CLOSE}");
        if expected != "error" {
            assert_eq!(name(&ToolText::parse(&framed).form), expected, "{framed:?}");
        }
    }

    #[test]
    fn previews_slices_and_errors_are_recognised() {
        check_form("", "whole");
        check_form("{\"spilled\":true}", "whole");
        check_form("Error: no such file", "error");
        check_form(
            r#"{"spilled":true,"spillover_ref":"r","size_bytes":9,"lines":2,"head":"a\n","tail":"é"}"#,
            "preview",
        );
        check_form(
            "a\n\n(Omitted 9 bytes. Full formatted result stored at: /a.)",
            "preview",
        );
        check_form("a\n\n(Omitted 9 bytes.)", "whole");
        check_form(
            r#"{"_spillover":true,"resourceUri":"u","mimeType":"text/plain","sizeBytes":9}"#,
            "preview",
        );
        check_form(r#"{"spillover_ref":"r","offset":4,"length":3}"#, "slice");
        check_form(r#"{"contents":[{"uri":"u","text":"x"}]}"#, "slice");
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

    #[test]
    fn hunks_in_view_of_a_stored_diff_are_those_of_its_ends_and_slices() {
        let lines = |text: &str| -> Vec<_> {
            let text = ToolText::parse(text);
            text.hunks().iter().map(|hunk| hunk.first_line).collect()
        };
        let notice = "(Omitted 9 bytes. Full formatted result stored at: /a.)";
        let ends = "@@ -1 +1 @@\n[... 9 bytes left out ...]\n@@ -8 +8 @@";
        assert_eq!(lines(&format!("{ends}\n\n{notice}")), [1, 8]);
        let slice = r#"{"contents":[{"uri":"u","text":"\n@@ -5 +5 @@\n"}]}"#;
        assert_eq!(lines(slice), [5]);
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
