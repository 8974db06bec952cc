//! Contents of lines: JSON lines, CSV and logs.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;
use serde_json::value::RawValue;

use super::sheet::{Row, Sheet, marker, marker_bytes};

/// A line that tells of a failure.
static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i-u)\b(?:errors?|fatal|panic(?:ked)?|exception|critical|traceback|fail(?:ed|ure|ures)?)\b")
        .expect("a fixed pattern")
});

/// The ranges of lines, line feeds included, from the front.
pub(super) fn lines(content: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = content.get(at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |feed| feed + 1);
        at += length;
        Some(at - length..at)
    })
}

fn lines_back(content: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut end = content.len();
    std::iter::from_fn(move || {
        let inside = content.get(..end.checked_sub(1)?)?;
        let start = memchr::memrchr(b'\n', inside).map_or(0, |feed| feed + 1);
        let line = start..end;
        end = start;
        Some(line)
    })
}

fn count_lines(content: &[u8]) -> u64 {
    let feeds = memchr::memchr_iter(b'\n', content).count() as u64;
    feeds + u64::from(content.last().is_some_and(|byte| *byte != b'\n'))
}

fn row(number: u64, range: Range<usize>) -> Row {
    Row {
        label: format!("line {number}"),
        range,
        line: Some(number),
    }
}

fn front(content: &[u8]) -> impl Iterator<Item = Row> {
    (1..)
        .zip(lines(content))
        .map(|(number, range)| row(number, range))
}

fn back(content: &[u8], count: u64) -> impl Iterator<Item = Row> {
    (0..)
        .zip(lines_back(content))
        .map(move |(place, range)| row(count - place, range))
}

pub(super) fn json_lines(content: &[u8], cap: usize) -> Option<Sheet> {
    let first = lines(content).next()?;
    serde_json::from_slice::<&RawValue>(&content[first]).ok()?;
    let count = count_lines(content);
    let said = format!("JSON lines, {} bytes, {count} lines", content.len());
    let mut sheet = Sheet::new(&said, cap);
    sheet.ends(content, front(content), back(content, count), 60);
    Some(sheet)
}

pub(super) fn csv(content: &[u8], cap: usize) -> Option<Sheet> {
    let header = lines(content).next()?;
    let (rows, quoted_feeds) = count_rows(content);
    let said = format!(
        "CSV, {} bytes, {} rows below the header",
        content.len(),
        rows.saturating_sub(1)
    );
    let mut sheet = Sheet::new(&said, cap);
    let most = sheet.left() / 2;
    let names = Row {
        label: "header".to_owned(),
        range: header,
        line: Some(1),
    };
    sheet.row(content, &names, most);
    if quoted_feeds {
        sheet.line("(fields hold line feeds: lines are not rows)");
    }
    let count = count_lines(content);
    sheet.ends(content, front(content).skip(1), back(content, count), 60);
    Some(sheet)
}

/// Rows, and whether a quoted field holds a line feed.
fn count_rows(content: &[u8]) -> (u64, bool) {
    let (mut rows, mut quoted, mut feeds_in_quotes) = (0, false, false);
    for at in memchr::memchr2_iter(b'"', b'\n', content) {
        match content[at] {
            b'"' => quoted = !quoted,
            _ if quoted => feeds_in_quotes = true,
            _ => rows += 1,
        }
    }
    let open = content.last().is_some_and(|byte| *byte != b'\n');
    (rows + u64::from(open || quoted), feeds_in_quotes)
}

pub(super) fn log(content: &[u8], cap: usize) -> Option<Sheet> {
    let count = count_lines(content);
    if count == 0 {
        return None;
    }
    let failures = FailureLines::count(content);
    let said = format!(
        "log, {} bytes, {count} lines, {failures} of them with errors",
        content.len()
    );
    let mut sheet = Sheet::new(&said, cap);
    let room = sheet.left().saturating_sub(marker_bytes(content.len()));
    let most = room / 3;
    let mut left_out = sheet.front(content, front(content), room / 4, most);
    let tail = sheet.back(content, back(content, count), &mut left_out, room / 3, most);
    if !left_out.is_empty() {
        sheet.line(&marker(&left_out, content.len()));
        let kept: usize = tail.iter().map(|(text, _)| text.len()).sum();
        let mut room = sheet.left().saturating_sub(kept);
        let failing = FailureLines::new(content)
            .filter(|row| row.range.start >= left_out.start && row.range.end <= left_out.end);
        for failure in failing {
            let before = sheet.text.len();
            if !sheet.row(content, &failure, room.min(most)) {
                break;
            }
            room -= sheet.text.len() - before;
        }
    }
    for (text, place) in tail.into_iter().rev() {
        sheet.text.push_str(&text);
        sheet.places.push(place);
    }
    Some(sheet)
}

/// Lines that tell of a failure, with their numbers.
struct FailureLines<'a> {
    content: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> FailureLines<'a> {
    fn new(content: &'a [u8]) -> Self {
        Self {
            content,
            at: 0,
            line: 1,
        }
    }

    fn count(content: &'a [u8]) -> u64 {
        Self::new(content).count() as u64
    }
}

impl Iterator for FailureLines<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let found = FAILURE.find_at(self.content, self.at)?;
        let passed = &self.content[self.at..found.start()];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        let start = memchr::memrchr(b'\n', &self.content[..found.start()]).map_or(0, |at| at + 1);
        let rest = &self.content[found.end()..];
        let end = memchr::memchr(b'\n', rest).map_or(self.content.len(), |at| found.end() + at + 1);
        let failing = row(self.line, start..end);
        self.line += u64::from(self.content[end - 1] == b'\n');
        self.at = end;
        Some(failing)
    }
}
