//! What stands in the prompt for a stored result, as a model recognises it: by its text alone.
//!
//! Three forms are known. A *summary* is a JSON object with `spillover_ref`, head and tail. A *notice* is the last
//! line of a text that was cut: how much is left out, and where the whole is. An *envelope* is a JSON object with
//! `resourceUri` and a preview. A text that says that it was cut and names no reference is none of them.

use serde::Deserialize;
use serde_json::Value;

use crate::rows_preview::{Block, announces_rows, blocks};

/// A longer summary is not looked for.
const SUMMARY_LIMIT: usize = 64 * 1024;
/// A notice is looked for in this many bytes at the end.
const NOTICE_LIMIT: usize = 8 * 1024;
/// Glued ends shorter than this together are read as a head only.
const GLUED_LIMIT: usize = 1024;
/// Around the middle of glued ends nobody can say which end a byte belongs to: the cut is between characters.
const GLUED_MARGIN: usize = 4;
/// How an envelope's preview ends a text that it cut, and what it puts in place of a value.
const CUT: &str = "[truncated]";
const CUT_TEXT: &str = "... [truncated]";
const NOT_SHOWN: [&str; 3] = [CUT, "[unserializable]", "[preview omitted]"];

/// What a preview looks like, and so which tool reads the stored result back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Summary,
    Notice,
    Envelope,
}

/// What a preview says about the stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preview {
    pub(crate) kind: Kind,
    pub(crate) reference: String,
    /// Bytes of the stored text. Where a notice leaves open whether a line feed was shown, it is off by one.
    pub(crate) size: u64,
    /// Lines of the stored text, where they are stated.
    lines: Option<u64>,
    /// What it shows of the start.
    pub(crate) head: String,
    /// What it shows of the end.
    pub(crate) tail: String,
    /// What it shows between, in order.
    pub(crate) rows: Vec<Block>,
}

impl Preview {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let start = text.trim_start();
        let found = if start.starts_with("{\"_spillover\"") {
            envelope(start)
        } else if start.starts_with('{') {
            summary(text)
        } else {
            None
        };
        found
            .or_else(|| notice(text))
            .filter(|found| (found.head.len() + found.tail.len()) as u64 <= found.size)
    }

    /// Lines of a stored text of `size` bytes: as stated, else by the mean line in view.
    pub(crate) fn lines(&self, size: u64) -> u64 {
        if let Some(lines) = self.lines {
            return lines;
        }
        let shown = [self.head.as_bytes(), self.tail.as_bytes()];
        let bytes = shown.iter().map(|end| end.len() as u64).sum::<u64>();
        let feeds = shown
            .iter()
            .map(|end| memchr::memchr_iter(b'\n', end).count() as u64);
        let lines = u128::from(feeds.sum::<u64>()) * u128::from(size) / u128::from(bytes.max(1));
        u64::try_from(lines).unwrap_or(u64::MAX)
    }
}

#[derive(Deserialize)]
struct Summary {
    spilled: bool,
    spillover_ref: String,
    size_bytes: u64,
    #[serde(default)]
    lines: u64,
    #[serde(default)]
    head: String,
    #[serde(default)]
    tail: String,
}

fn summary(text: &str) -> Option<Preview> {
    if text.len() > SUMMARY_LIMIT || !text.contains("\"spillover_ref\"") {
        return None;
    }
    let summary: Summary = serde_json::from_str(text).ok()?;
    summary.spilled.then_some(Preview {
        kind: Kind::Summary,
        reference: summary.spillover_ref,
        size: summary.size_bytes,
        lines: Some(summary.lines),
        head: summary.head,
        tail: summary.tail,
        rows: Vec::new(),
    })
}

/// Ends of a text or rows of it, and as the last line
/// `(Omitted N bytes. Full formatted result stored at: REFERENCE. HINT)`, of rows `(Shown in parts, N bytes. …)`.
fn notice(text: &str) -> Option<Preview> {
    const PARTS: &str = "(Shown in parts, ";
    const OMITTED: &str = "(Omitted ";
    // Few texts end like one, and every inline result is asked.
    if !text.ends_with(')') {
        return None;
    }
    let from = text.floor_char_boundary(text.len().saturating_sub(NOTICE_LIMIT));
    let last = |start| text[from..].rfind(start).map(|at| from + at);
    let at = last(OMITTED).max(last(PARTS))?;
    let in_parts = text[at..].starts_with(PARTS);
    let start = if in_parts { PARTS } else { OMITTED };
    let notice = text[at..].strip_prefix(start)?.strip_suffix(')')?;
    let kept = match at {
        0 => "",
        _ => text[..at].strip_suffix("\n\n")?,
    };
    let (count, rest) = notice.split_once(" bytes. Full formatted result stored at: ")?;
    let count: u64 = count.parse().ok()?;
    let (kept, said_first) = without_first_line(kept, count);
    let reference = match said_first {
        Some(reference) if rest.starts_with(reference) => reference,
        Some(_) | None => rest
            .split_once(". ")
            .map_or_else(|| rest.strip_suffix('.'), |(reference, _)| Some(reference))?,
    };
    if in_parts {
        return Some(of_rows(Kind::Notice, reference, count, kept));
    }
    let omitted = count;
    let (head, tail, shown) = ends(kept, omitted);
    Some(Preview {
        kind: Kind::Notice,
        reference: reference.to_owned(),
        size: omitted.checked_add(shown as u64)?,
        lines: None,
        head: head.to_owned(),
        tail: tail.to_owned(),
        rows: Vec::new(),
    })
}

/// A preview of rows: what stands at the start is the head, what reaches the end the tail.
fn of_rows(kind: Kind, reference: &str, size: u64, shown: &str) -> Preview {
    let mut rows = blocks(shown, size);
    let head = match rows.first() {
        Some(first) if first.offset == 0 => rows.remove(0).text,
        Some(_) | None => String::new(),
    };
    let reaches_end = |row: &Block| row.offset + row.text.len() as u64 == size;
    let tail = rows.pop_if(|last| reaches_end(last));
    Preview {
        kind,
        reference: reference.to_owned(),
        size,
        lines: None,
        head,
        tail: tail.map(|row| row.text).unwrap_or_default(),
        rows,
    }
}

/// A first line that says the same as the notice, and the reference that it names.
fn without_first_line(kept: &str, omitted: u64) -> (&str, Option<&str>) {
    let said = kept.split_once('\n').and_then(|(line, rest)| {
        let rest_of_line = line.strip_prefix(&format!(
            "({omitted} bytes are left out below; the whole is at "
        ))?;
        Some((rest, rest_of_line.strip_suffix(')')?))
    });
    said.map_or((kept, None), |(rest, reference)| (rest, Some(reference)))
}

/// The two ends and the bytes that are theirs. A marker shows where the cut is; without one it is taken to be in the
/// middle, and what stands near it belongs to neither end.
fn ends(kept: &str, omitted: u64) -> (&str, &str, usize) {
    let marker = format!("\n[... {omitted} bytes left out ...]\n");
    if let Some(at) = kept.find(&marker) {
        let tail = &kept[at + marker.len()..];
        // The line feed before the marker is the head's own when the head was cut at a line.
        let last_line = kept[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let at_line = last_line > 0 && last_line * 2 >= at;
        let head = &kept[..at + usize::from(at_line)];
        return (head, tail, head.len() + tail.len());
    }
    if kept.len() < GLUED_LIMIT {
        return (
            &kept[..kept.floor_char_boundary(kept.len() / 3)],
            "",
            kept.len(),
        );
    }
    let middle = kept.len() / 2;
    let head = &kept[..kept.floor_char_boundary(middle - GLUED_MARGIN)];
    let tail = &kept[kept.ceil_char_boundary(middle + GLUED_MARGIN)..];
    (head, tail, kept.len())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(rename = "_spillover")]
    spillover: bool,
    resource_uri: String,
    mime_type: String,
    size_bytes: u64,
    #[serde(default)]
    preview: Value,
}

fn envelope(text: &str) -> Option<Preview> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    if let ("text/plain", Value::String(shown)) = (&*envelope.mime_type, &envelope.preview)
        && !shown.ends_with(CUT_TEXT)
        && announces_rows(shown, envelope.size_bytes)
    {
        let (uri, size) = (&envelope.resource_uri, envelope.size_bytes);
        return envelope
            .spillover
            .then(|| of_rows(Kind::Envelope, uri, size, shown));
    }
    let head = match (&*envelope.mime_type, &envelope.preview) {
        ("text/plain", Value::String(shown)) if !NOT_SHOWN.contains(&shown.as_str()) => {
            shown.strip_suffix(CUT_TEXT).unwrap_or(shown).to_owned()
        }
        ("application/json", shown) => start_of_json(shown),
        _ => String::new(),
    };
    envelope.spillover.then_some(Preview {
        kind: Kind::Envelope,
        reference: envelope.resource_uri,
        size: envelope.size_bytes,
        lines: None,
        head,
        tail: String::new(),
        rows: Vec::new(),
    })
}

/// The start of the compact JSON whose first items a preview shows: as far as they are whole.
fn start_of_json(shown: &Value) -> String {
    let joined = |open: char, items: Vec<String>| format!("{open}{}", items.join(","));
    match shown {
        Value::Array(items) => {
            let whole = items.iter().take_while(|item| !is_cut(item));
            joined('[', whole.map(Value::to_string).collect())
        }
        Value::Object(fields) => {
            let whole = fields.iter().take_while(|(_, value)| !is_cut(value));
            let field =
                |(key, value): (&String, &Value)| format!("{}:{value}", Value::from(key.as_str()));
            joined('{', whole.map(field).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::new(),
    }
}

fn is_cut(value: &Value) -> bool {
    match value {
        Value::String(text) => text.ends_with(CUT_TEXT) || NOT_SHOWN.contains(&text.as_str()),
        Value::Array(items) => items.iter().any(is_cut),
        Value::Object(fields) => fields.values().any(is_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
