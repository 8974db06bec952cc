//! How agents of others keep a result out of the prompt: they save it to a file of theirs, show a
//! part, and read the file with a tool of their own, by lines.
//!
//! Known are the words of Claude Code, OpenCode and Gemini CLI. Codex CLI only cuts: its marker
//! stands in the middle of the text, and nothing leads to the rest.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use spill_scenario::recorded_tool;

use crate::conversation::{Call, OfferedTool};
use crate::rules::Cuts;

/// A notice is looked for in this many bytes at each end.
const NOTICE_BYTES: usize = 2048;

/// How Gemini CLI begins the stub of an old result. It shows both ends of what stood there before, which can
/// be a notice of its own, cut in the middle of a path; the stub's own path is the last one.
const MASKED: &str = "<tool_output_masked>";

/// A result that an agent saved to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedFile {
    pub(crate) path: String,
    /// What it shows of the text, in order; each with which of its ends are cuts.
    pub(crate) shown: Vec<(String, Cuts)>,
}

impl SavedFile {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        static PATH: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?:[Ff]ull output (?:saved to|see|available at):|[Oo]utput has been saved to) ((?:/|[A-Za-z]:\\)[^\s<>]+)")
                .expect("the pattern is valid")
        });
        let start = &text[..text.floor_char_boundary(NOTICE_BYTES)];
        let end = &text[text.floor_char_boundary(text.len().saturating_sub(NOTICE_BYTES))..];
        let found = if text.starts_with(MASKED) {
            PATH.captures_iter(end).last()?
        } else {
            PATH.captures(start).or_else(|| PATH.captures(end))?
        };
        Some(Self {
            path: found[1].trim_end_matches('.').to_owned(),
            shown: shown_in(text),
        })
    }
}

fn shown_in(text: &str) -> Vec<(String, Cuts)> {
    static BETWEEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\n\n\.\.\. \[[\d,.]+ characters omitted\] \.\.\.\n\n").expect("valid")
    });
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\n\n\.\.\.\d+ (?:bytes|lines) truncated\.\.\.\n\n").expect("valid")
    });
    static PREVIEW: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"Preview \(first [^\n]*\):\n").expect("valid"));
    let cut = |start, end| Cuts { start, end };
    let head = |text: &str| vec![(text.to_owned(), cut(false, true))];
    if text.starts_with("Output too large. Showing first ") {
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        return match BETWEEN.find(body) {
            Some(gap) => vec![
                (body[..gap.start()].to_owned(), cut(false, true)),
                (body[gap.end()..].to_owned(), cut(true, false)),
            ],
            None => head(body),
        };
    }
    if let Some(label) = PREVIEW.find(text) {
        let body = &text[label.end()..];
        let body = body.split("\n</persisted-output>").next().unwrap_or(body);
        let body = body.trim_end().trim_end_matches("\n...");
        return head(&text_block(body).unwrap_or_else(|| body.to_owned()));
    }
    match BEFORE.find_iter(text).last() {
        Some(gap) => head(&text[..gap.start()]),
        None => Vec::new(),
    }
}

/// The text of a result that was saved as the JSON of its content blocks, pretty-printed: that of
/// the first block, as far as it is there. `None` for what is no such JSON.
fn text_block(json: &str) -> Option<String> {
    let written = json
        .trim_start()
        .strip_prefix('[')?
        .split_once("\"text\": \"")?
        .1;
    Some(json_text(written))
}

/// What stands in a line such as `"text": "…"`.
pub(crate) fn text_line(line: &str) -> Option<String> {
    let written = line.trim_start().strip_prefix("\"text\": \"")?;
    Some(json_text(written))
}

/// Undoes the escapes of a JSON string up to its quote, or as far as it goes.
fn json_text(written: &str) -> String {
    let bytes = written.as_bytes();
    let (mut end, mut at) = (0, 0);
    while at < bytes.len() && bytes[at] != b'"' {
        at += match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        // A cut escape is not read.
        if at <= bytes.len() {
            end = at;
        }
    }
    let end = written.floor_char_boundary(end);
    serde_json::from_str(&format!("\"{}\"", &written[..end])).unwrap_or_default()
}

/// The places where an agent cut a text without saying where the rest is.
pub(crate) fn cuts_in(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    static MARKER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"…\s?\d[\d,]* (?:tokens|chars|characters|bytes|lines) truncated\s?…")
            .expect("the pattern is valid")
    });
    // Looking for a rare character first is much the cheapest.
    let has_marker = text.contains(" truncated");
    let found = has_marker.then(|| MARKER.find_iter(text));
    found.into_iter().flatten().map(|marker| marker.range())
}

/// An agent's own tool that reads files by lines, from 1.
#[derive(Debug)]
pub(crate) struct FileReader<'v> {
    name: &'v str,
    path: &'static str,
    by: Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    /// `offset` and `limit`.
    Counted,
    /// `start_line` and `end_line`.
    FirstAndLast,
}

/// The names that such tools have for the file's path.
const PATHS: [&str; 3] = ["file_path", "filePath", "absolute_path"];

impl<'v> FileReader<'v> {
    pub(crate) fn of(offered: &'v [OfferedTool]) -> Option<Self> {
        offered.iter().find_map(Self::try_of)
    }

    fn try_of(tool: &'v OfferedTool) -> Option<Self> {
        let properties = tool.parameters.get("properties")?;
        let has = |name: &str| properties.get(name).is_some();
        let path = PATHS.into_iter().find(|path| has(path))?;
        let by = if has("offset") && has("limit") {
            Lines::Counted
        } else if has("start_line") && has("end_line") {
            Lines::FirstAndLast
        } else {
            return None;
        };
        // Tools that search or change files take a path and lines as well.
        let is_other = ["pattern", "content", "new_string", "newString"]
            .into_iter()
            .any(has);
        (!is_other).then_some(Self {
            name: &tool.name,
            path,
            by,
        })
    }

    /// Name and arguments of a call that reads `lines`, with a further argument that is set where one is given.
    pub(crate) fn call(
        &self,
        path: &str,
        lines: &std::ops::Range<u64>,
        also: Option<&str>,
    ) -> (String, String) {
        let mut arguments = serde_json::json!({ self.path: path });
        match self.by {
            Lines::Counted => {
                arguments["offset"] = lines.start.into();
                arguments["limit"] = (lines.end - lines.start).into();
            }
            Lines::FirstAndLast => {
                arguments["start_line"] = lines.start.into();
                arguments["end_line"] = (lines.end - 1).into();
            }
        }
        if let Some(also) = also {
            arguments[also] = true.into();
        }
        (self.name.to_owned(), arguments.to_string())
    }
}

/// The argument that a read refused for the file's size says would have it granted: Claude Code's `allow_large`.
pub(crate) fn insisting(refusal: &str) -> Option<&'static str> {
    const ARGUMENT: &str = "allow_large";
    refusal.contains("allow_large: true").then_some(ARGUMENT)
}

/// The file that a call of such a tool reads; a tool of a transcript reads none.
pub(crate) fn read_path(call: &Call) -> Option<&str> {
    if recorded_tool(&call.name).is_some() {
        return None;
    }
    PATHS.into_iter().find_map(|path| call.text(path))
}

/// The first line that such a call asks for, and how many.
pub(crate) fn asked_lines(call: &Call) -> (u64, Option<u64>) {
    let number = |name: &str| call.arguments.get(name).and_then(Value::as_u64);
    let first = number("offset")
        .or_else(|| number("start_line"))
        .unwrap_or(1);
    let last = number("end_line").map(|last| last.saturating_sub(first) + 1);
    (first.max(1), number("limit").or(last))
}

/// What such a call returned: lines, and how many the file has where that is said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileLines<'t> {
    pub(crate) lines: Vec<(u64, &'t str)>,
    pub(crate) total: Option<u64>,
}

impl<'t> FileLines<'t> {
    /// Reads an answer: numbered lines, or bare ones from `first` on.
    pub(crate) fn parse(text: &'t str, first: u64) -> Self {
        let lines = numbered(text);
        let lines = if lines.is_empty() {
            bare(text, first)
        } else {
            lines
        };
        Self {
            lines,
            total: total(text),
        }
    }
}

/// Lines such as `   12→text`, `12<tab>text` or `12: text`; what stands around them is not theirs.
fn numbered(text: &str) -> Vec<(u64, &str)> {
    let mut lines: Vec<(u64, &str)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let digits = trimmed.len()
            - trimmed
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let (number, rest) = trimmed.split_at(digits);
        let rest = ["→", "\t", ": ", "| "]
            .iter()
            .find_map(|mark| rest.strip_prefix(mark))
            .or_else(|| (rest == ":").then_some(""));
        let (Ok(number), Some(rest)) = (number.parse::<u64>(), rest) else {
            continue;
        };
        if lines.last().is_none_or(|(last, _)| number == last + 1) {
            lines.push((number, rest));
        }
    }
    lines
}

fn bare(text: &str, first: u64) -> Vec<(u64, &str)> {
    const BEHIND: &str = "--- FILE CONTENT (truncated) ---\n";
    static SHOWING: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"Status: Showing lines (\d+)-").expect("valid"));
    let start = &text[..text.floor_char_boundary(NOTICE_BYTES)];
    let (first, body) = match start.find(BEHIND) {
        Some(at) => {
            let said = SHOWING
                .captures(start)
                .and_then(|found| found[1].parse().ok());
            (said.unwrap_or(first), &text[at + BEHIND.len()..])
        }
        None => (first, text),
    };
    (first..).zip(body.lines()).collect()
}

fn total(text: &str) -> Option<u64> {
    static TOTAL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:End of file - total (\d+) lines|[Ss]howing lines \d+-\d+ of (\d+))")
            .expect("the pattern is valid")
    });
    let start = &text[..text.floor_char_boundary(NOTICE_BYTES)];
    let end = &text[text.floor_char_boundary(text.len().saturating_sub(NOTICE_BYTES))..];
    let found = TOTAL.captures(end).or_else(|| TOTAL.captures(start))?;
    found.get(1).or_else(|| found.get(2))?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, path: &str, shown: &[(&str, bool, bool)]) {
        let saved = SavedFile::parse(text).unwrap_or_else(|| panic!("a saved file: {text:?}"));
        let parts: Vec<_> = saved
            .shown
            .iter()
            .map(|(text, cuts)| (text.as_str(), cuts.start, cuts.end))
            .collect();
        assert_eq!((&*saved.path, &*parts), (path, shown), "{text:?}");
    }

    #[test]
    fn results_that_agents_saved_are_recognised() {
        check(
            "Error: result (314,572 characters) exceeds maximum allowed tokens. Output has been saved to /h/.claude/projects/p/tool-results/t-1.txt.\nFormat: Plain text",
            "/h/.claude/projects/p/tool-results/t-1.txt",
            &[],
        );
        check(
            "<persisted-output>\nOutput too large (302.3KB). Full output saved to: /h/t.txt\n\nPreview (first 2KB):\na\nb\n...\n</persisted-output>",
            "/h/t.txt",
            &[("a\nb", false, true)],
        );
        check(
            "<persisted-output>\nOutput too large (58.9KB). Full output saved to: /h/t.json\n\nPreview (first 2KB):\n[\n  {\n    \"type\": \"text\",\n    \"text\": \"a\\n\\\"b\\\n...\n</persisted-output>\n\n<system-reminder>\nx\n</system-reminder>",
            "/h/t.json",
            &[("a\n\"b", false, true)],
        );
        check(
            "a\nb\n\n...240 bytes truncated...\n\nThe tool call succeeded but the output was truncated. Full output saved to: /d/tool_1\nUse Grep to search the full content.",
            "/d/tool_1",
            &[("a\nb", false, true)],
        );
        check(
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/x.txt\na\nb\n\n... [1,200 characters omitted] ...\n\nc\nd",
            "/t/x.txt",
            &[("a\nb", false, true), ("c\nd", true, false)],
        );
        check(
            "<tool_output_masked>\nOutput too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/read__ca\n\n... [39,744 characters omitted] ...\n\nd\n\nOutput too large. Full output available at: /t/read_call_1_x.txt\n</tool_output_masked>",
            "/t/read_call_1_x.txt",
            &[],
        );
        for text in ["", "Full output saved to: nowhere", "saved to /a"] {
            assert_eq!(SavedFile::parse(text), None, "{text:?}");
        }
        let middle = format!("{0}Full output saved to: /a {0}", "x".repeat(3000));
        assert_eq!(SavedFile::parse(&middle), None);
    }

    #[test]
    fn a_text_within_json_is_read_as_far_as_it_goes() {
        let line = |line: &str| text_line(line).unwrap_or_default();
        assert_eq!(line(r#"    "text": "a\n\u00e9\"b","#), "a\né\"b");
        assert_eq!(line(r#""text": "a\u00e"#), "a");
        assert_eq!(line(r#""text": "aé\"#), "aé");
        assert_eq!(text_line(r#"  "type": "text","#), None);
    }

    #[test]
    fn a_cut_in_the_text_is_found() {
        let text = "a…12,000 tokens truncated…b …3 chars truncated… c";
        let found: Vec<_> = cuts_in(text).map(|range| &text[range]).collect();
        assert_eq!(found, ["…12,000 tokens truncated…", "…3 chars truncated…"]);
        assert_eq!(cuts_in("names are truncated when long").count(), 0);
    }

    #[test]
    fn the_tools_that_read_files_by_lines() {
        let tool = |name: &str, arguments: &[&str]| {
            let properties: serde_json::Map<_, _> = arguments
                .iter()
                .map(|argument| ((*argument).to_owned(), json!({})))
                .collect();
            OfferedTool::new(name.to_owned(), json!({"properties": properties}))
        };
        let offered = [
            tool("mcp__x__read_file", &["path"]),
            tool("Edit", &["file_path", "offset", "limit", "new_string"]),
            tool("Read", &["file_path", "offset", "limit"]),
        ];
        let reader = FileReader::of(&offered).expect("a reader");
        assert_eq!(
            reader.call("/a", &(5..8), None),
            (
                "Read".to_owned(),
                r#"{"file_path":"/a","offset":5,"limit":3}"#.to_owned()
            )
        );
        let offered = [tool("read_file", &["file_path", "start_line", "end_line"])];
        let reader = FileReader::of(&offered).expect("a reader");
        let (_, arguments) = reader.call("/a", &(5..8), None);
        assert_eq!(
            arguments,
            r#"{"file_path":"/a","start_line":5,"end_line":7}"#
        );
        assert!(FileReader::of(&offered[..0]).is_none());
        let call = Call::written(String::new(), String::new(), arguments);
        assert_eq!(
            (read_path(&call), asked_lines(&call)),
            (Some("/a"), (5, Some(3)))
        );
    }

    fn check_lines(text: &str, first: u64, lines: &[(u64, &str)], total: Option<u64>) {
        let read = FileLines::parse(text, first);
        assert_eq!((&*read.lines, read.total), (lines, total), "{text:?}");
    }

    #[test]
    fn answers_of_such_tools() {
        check_lines("     5→a\n     6→\n", 5, &[(5, "a"), (6, "")], None);
        check_lines("5\ta\n6\t b", 1, &[(5, "a"), (6, " b")], None);
        check_lines(
            "<path>/a</path>\n<content>\n9: a\n10: 1: b\n11:\n\n(End of file - total 11 lines)\n</content>",
            1,
            &[(9, "a"), (10, "1: b"), (11, "")],
            Some(11),
        );
        check_lines(
            "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 3-4 of 90 total lines.\nAction: To read more\n\n--- FILE CONTENT (truncated) ---\na\nb",
            1,
            &[(3, "a"), (4, "b")],
            Some(90),
        );
        check_lines("a\nb\n", 7, &[(7, "a"), (8, "b")], None);
        check_lines("", 7, &[], None);
    }
}
