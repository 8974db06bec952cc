//! A preview of rows: lines or members of a stored text, each behind a label and the byte where it stands.

use std::sync::LazyLock;

use regex::Regex;

/// A part of a stored text that a preview shows, at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    pub(crate) text: String,
    /// Whether it is whole lines, however the text around it goes on.
    pub(crate) is_lines: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.text.len() as u64)
    }
}

static ROW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(.+?) at (\d+): (.*)$").expect("the pattern is valid"));
static CLIPPED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r" \[\+\d+ bytes\]$").expect("the pattern is valid"));

/// Whether a text is a preview of rows of `size` bytes: its first line says so.
pub(crate) fn announces_rows(shown: &str, size: u64) -> bool {
    let said = format!(", {size} bytes");
    shown
        .lines()
        .next()
        .and_then(|first| first.split_once(&said))
        .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with([',', ';']))
}

/// The rows of such a preview, joined where nothing but a line feed or comma stands between them. What a row writes
/// with a backslash may stand differently in the text, so that such a row is left out.
pub(crate) fn blocks(shown: &str, size: u64) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    if shown.starts_with("JSON array") && size > 0 {
        blocks.push(Block {
            offset: 0,
            text: "[".to_owned(),
            is_lines: false,
        });
    }
    for row in shown.lines().filter_map(row) {
        if row.end() > size || blocks.last().is_some_and(|last| row.offset < last.end()) {
            continue;
        }
        match blocks.last_mut() {
            Some(last) => match between(last, &row) {
                Some(separator) => {
                    last.text.push_str(separator);
                    last.text.push_str(&row.text);
                    last.is_lines &= row.is_lines;
                }
                None => blocks.push(row),
            },
            None => blocks.push(row),
        }
    }
    blocks
}

fn row(line: &str) -> Option<Block> {
    let found = ROW.captures(line)?;
    let (label, text) = (&found[1], &found[3]);
    if text.contains('\\') {
        return None;
    }
    let is_line = label == "header" || label.starts_with("line ");
    let clipped = CLIPPED.find(text).map(|found| found.start());
    Some(Block {
        offset: found[2].parse().ok()?,
        text: text[..clipped.unwrap_or(text.len())].to_owned(),
        is_lines: is_line && clipped.is_none(),
    })
}

/// What stands between two rows, as far as their places tell.
fn between(last: &Block, next: &Block) -> Option<&'static str> {
    match (next.offset - last.end(), last.is_lines && next.is_lines) {
        (0, _) => Some(""),
        (1, true) => Some("\n"),
        (2, true) => Some("\r\n"),
        (1, false) if last.text.ends_with(['}', ']']) => Some(","),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: &str, size: u64, expected: &[(u64, &str, bool)]) {
        assert!(announces_rows(shown, size), "{shown:?}");
        let found = blocks(shown, size);
        let found: Vec<_> = found
            .iter()
            .map(|block| (block.offset, &*block.text, block.is_lines))
            .collect();
        assert_eq!(found, expected, "{shown:?}");
    }

    #[test]
    fn rows_that_touch_are_one_block() {
        check(
            "CSV, 90 bytes, 9 rows below the header\nheader at 0: id,n\nline 2 at 5: 0,\"a\"\nline 3 at 11: 1 [+8 bytes]\n[bytes 20 to 80 of 90 not shown]\nline 9 at 80: x at 5: y",
            90,
            &[
                (0, "id,n\n0,\"a\"", true),
                (11, "1", false),
                (80, "x at 5: y", true),
            ],
        );
        check(
            "log, 30 bytes, 3 lines\nline 1 at 0: a\nline 2 at 3: b",
            30,
            &[(0, "a\r\nb", true)],
        );
        check(
            "JSON array of 9 items, 99 bytes; the first has the keys id\n0, object of 1 keys, at 1: {\"id\":0}\n1, object of 1 keys, at 10: {\"id\":1}\n8, object of 1 keys, at 90: {\"a\":\"\\n\"}",
            99,
            &[(0, "[{\"id\":0},{\"id\":1}", false)],
        );
        check("JSON array of 0 items, 2 bytes", 2, &[(0, "[", false)]);
        check(
            "diff of 1 files, +1 -0 lines, 20 bytes\na (+1 -0) at 0; @@ -1 +1 @@ at 9",
            20,
            &[],
        );
        // Places that cannot be.
        check(
            "log, 9 bytes\nline 1 at 8: ab\nline 2 at 4: c\nline 3 at 2: d",
            9,
            &[(4, "c", true)],
        );
    }

    #[test]
    fn other_texts_announce_no_rows() {
        assert!(!announces_rows("", 0));
        assert!(!announces_rows("CSV, 90 bytes, 9 rows", 91));
        assert!(!announces_rows("a text, 90 bytes long", 90));
        assert!(!announces_rows("one\nCSV, 90 bytes", 90));
    }
}
