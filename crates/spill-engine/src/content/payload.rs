//! Encoded payloads inside texts: `data:` URIs and long runs of base64. They are shown as a placeholder or not at all.

use std::ops::Range;

use super::sheet::{text_back, text_front};
use crate::reading::characters;

/// A run of this many characters without a break is a payload, if it has capital and small letters and digits.
const RUN_BYTES: usize = 1_024;
/// A `data:` URI of fewer bytes is left as it is.
const URI_BYTES: usize = 128;
/// How far back the head of a `data:` URI may stand before its data.
const URI_HEAD_BYTES: usize = 128;

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// The payload that holds or follows `at` closest, if its data starts before `end`.
fn next(bytes: &[u8], at: usize, end: usize) -> Option<Range<usize>> {
    let mut from = run_start(bytes, at);
    while from < end {
        let start = from + bytes[from..].iter().position(|byte| is_base64(*byte))?;
        if start >= end {
            return None;
        }
        if let Some(payload) = payload_at(bytes, start).filter(|payload| payload.end > at) {
            return Some(payload);
        }
        // What is no payload need not be followed beyond where anybody looks.
        from = run_end(&bytes[..end.min(bytes.len())], start);
    }
    None
}

/// The payload whose data starts at `start`, with the head of its `data:` URI.
fn payload_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let sample = &bytes[start..bytes.len().min(start + RUN_BYTES)];
    let sample = &sample[..run_end(sample, 0)];
    if let Some(head) = uri_head(bytes, start)
        && sample.len() >= URI_BYTES
    {
        return Some(head..run_end(bytes, start));
    }
    let mixed = sample.len() == RUN_BYTES
        && sample.iter().any(u8::is_ascii_uppercase)
        && sample.iter().any(u8::is_ascii_lowercase)
        && sample.iter().any(u8::is_ascii_digit);
    mixed.then(|| start..run_end(bytes, start))
}

fn run_end(bytes: &[u8], start: usize) -> usize {
    let length = bytes[start..].iter().position(|byte| !is_base64(*byte));
    length.map_or(bytes.len(), |length| start + length)
}

/// Where `data:…;base64,` starts, if that ends at `data`.
fn uri_head(bytes: &[u8], data: usize) -> Option<usize> {
    let before = &bytes[data.saturating_sub(URI_HEAD_BYTES)..data];
    let head = before.strip_suffix(b";base64,")?;
    let start = memchr::memmem::rfind(head, b"data:")?;
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'<>()".contains(byte);
    let whole = head[start..].iter().all(plain);
    whole.then(|| data - before.len() + start)
}

/// The start of the run around `at`.
fn run_start(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    let back = bytes[..at].iter().rev().position(|byte| !is_base64(*byte));
    back.map_or(0, |back| at - back)
}

fn placeholder(bytes: &[u8], payload: &Range<usize>) -> String {
    let head = &bytes[payload.start..payload.end.min(payload.start + URI_HEAD_BYTES)];
    let media_type = head
        .strip_prefix(b"data:")
        .and_then(|rest| rest.split(|byte| *byte == b';').next())
        .map_or_else(|| "base64".into(), String::from_utf8_lossy);
    format!("[{media_type}, {} bytes encoded]", payload.len())
}

/// The start of `bytes` in at most `room` bytes, payloads as placeholders, and how many bytes it stands for.
pub(super) fn front(bytes: &[u8], room: usize) -> (String, usize) {
    let mut out = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let left = room - out.len();
        let window = bytes.len().min(at + left + URI_HEAD_BYTES);
        let payload = next(bytes, at, window).filter(|payload| payload.start >= at);
        let plain = payload
            .as_ref()
            .map_or(bytes.len(), |payload| payload.start);
        let (text, used) = text_front(&bytes[at..plain], left);
        out.push_str(&text);
        at += used;
        let Some(payload) = payload.filter(|payload| payload.start == at) else {
            break;
        };
        let shown = placeholder(bytes, &payload);
        if shown.len() > room - out.len() {
            break;
        }
        out.push_str(&shown);
        at = payload.end;
    }
    (out, at)
}

/// The end of `bytes[from..]` in at most `room` bytes, payloads as placeholders, and where it starts.
pub(super) fn back(bytes: &[u8], from: usize, room: usize) -> (String, usize) {
    // Nothing before is looked at, so nothing before is shown, whatever room placeholders save.
    let from = characters::ceil(bytes, bytes.len().saturating_sub(room).max(from));
    let mut payloads = Vec::new();
    let mut at = from;
    while let Some(payload) = next(bytes, at, bytes.len()) {
        at = payload.end;
        payloads.push(payload);
    }
    let mut pieces = Vec::new();
    let (mut end, mut left) = (bytes.len(), room);
    loop {
        let payload = payloads.pop();
        let plain = payload
            .as_ref()
            .map_or(from, |payload| payload.end.max(from));
        let (text, start) = text_back(&bytes[plain.min(end)..end], left);
        let reached = start == 0;
        end = plain.min(end) + start;
        left -= text.len();
        pieces.push(text);
        let Some(payload) = payload.filter(|payload| reached && payload.start >= from) else {
            break;
        };
        let shown = placeholder(bytes, &payload);
        if shown.len() > left {
            break;
        }
        left -= shown.len();
        end = payload.start;
        pieces.push(shown);
    }
    pieces.reverse();
    (pieces.concat(), end)
}

/// The whole content, if it is one `data:` URI.
pub(super) fn whole_uri(content: &[u8]) -> Option<String> {
    let trimmed = content.trim_ascii();
    let start = trimmed.starts_with(b"data:").then_some(0)?;
    let payload = next(trimmed, start, trimmed.len())?;
    let media_type = &trimmed[5..payload.len().min(5 + URI_HEAD_BYTES)];
    let media_type = media_type.split(|byte| *byte == b';').next()?;
    let whole = payload == (0..trimmed.len());
    whole.then(|| String::from_utf8_lossy(media_type).into_owned())
}
