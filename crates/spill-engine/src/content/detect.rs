//! What content is, from its media type and its first bytes.

use std::sync::LazyLock;

use regex::bytes::Regex;
use serde_json::value::RawValue;

use super::ContentKind;
use super::payload;
use super::rows::lines;
use crate::reading::characters;

/// How much of the start decides.
const LOOKED_AT: usize = 8 << 10;

static LOG_LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]|\[?\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\b)")
        .expect("a fixed pattern")
});

/// What `content` is. The media type, where it says something, counts first; bytes that are no text are binary whatever it
/// says. Looks at the first 8 KiB only, and for JSON at both ends.
pub fn detect_content(content: &[u8], media_type: Option<&str>) -> ContentKind {
    let start = &content[..characters::floor(content, LOOKED_AT.min(content.len()))];
    if is_binary(start) {
        return ContentKind::Binary;
    }
    if let Some(kind) = media_type.and_then(of_media_type) {
        return kind;
    }
    of_bytes(content, start)
}

fn of_media_type(media_type: &str) -> Option<ContentKind> {
    let essence = media_type.split(';').next().unwrap_or_default();
    match essence.trim().to_ascii_lowercase().as_str() {
        "application/json" => Some(ContentKind::Json),
        "application/x-ndjson" | "application/jsonl" | "application/json-lines" => {
            Some(ContentKind::JsonLines)
        }
        "text/csv" => Some(ContentKind::Csv),
        "text/x-diff" | "text/x-patch" => Some(ContentKind::Diff),
        _ => None,
    }
}

fn of_bytes(content: &[u8], start: &[u8]) -> ContentKind {
    if content.trim_ascii_start().starts_with(b"data:") && payload::whole_uri(content).is_some() {
        return ContentKind::DataUri;
    }
    if is_json_lines(content, start) {
        return ContentKind::JsonLines;
    }
    let trimmed = content.trim_ascii();
    if let (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) = (trimmed.first(), trimmed.last()) {
        return ContentKind::Json;
    }
    if is_diff(start) {
        return ContentKind::Diff;
    }
    if is_log(start) {
        return ContentKind::Log;
    }
    if is_csv(start) {
        return ContentKind::Csv;
    }
    ContentKind::Text
}

/// A NUL, or more than a tenth of bytes that are no characters.
fn is_binary(start: &[u8]) -> bool {
    if memchr::memchr(0, start).is_some() {
        return true;
    }
    let bad: usize = start.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    bad * 10 > start.len()
}

/// The first two lines are each an object or array.
fn is_json_lines(content: &[u8], start: &[u8]) -> bool {
    let mut whole = lines(content)
        .take_while(|line| line.end <= start.len())
        .map(|line| content[line].trim_ascii());
    let is_value = |line: &[u8]| {
        matches!(line.first(), Some(b'{' | b'['))
            && serde_json::from_slice::<&RawValue>(line).is_ok()
    };
    whole.next().is_some_and(is_value) && whole.next().is_some_and(is_value)
}

fn is_diff(start: &[u8]) -> bool {
    let mut begun = false;
    for line in lines(start) {
        let line = &start[line];
        if line.starts_with(b"diff --git ") {
            return true;
        }
        if begun && line.starts_with(b"+++ ") {
            return true;
        }
        begun = line.starts_with(b"--- ");
    }
    false
}

/// Half of the first twenty lines begin with a time or a level.
fn is_log(start: &[u8]) -> bool {
    let first: Vec<&[u8]> = lines(start).take(20).map(|line| &start[line]).collect();
    let like = first.iter().filter(|line| LOG_LINE.is_match(line)).count();
    first.len() >= 2 && like * 2 >= first.len()
}

/// The first lines, three at least, have equally many of one separator.
fn is_csv(start: &[u8]) -> bool {
    let mut first: Vec<&[u8]> = lines(start).take(11).map(|line| &start[line]).collect();
    if first.len() > 3 {
        first.pop();
    }
    first.len() >= 3
        && [b',', b';', b'\t', b'|'].iter().any(|separator| {
            let fields = |line: &[u8]| separators(line, *separator);
            let header = fields(first[0]);
            header > 0 && first.iter().all(|line| fields(line) == header)
        })
}

/// Separators outside quotes.
fn separators(line: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let counted = line.iter().filter(|byte| {
        quoted ^= **byte == b'"';
        !quoted && **byte == separator
    });
    counted.count()
}
