//! Text: its head and its tail, with the marker between them.

use super::Place;
use super::payload;
use super::sheet::{Sheet, marker, marker_bytes};

/// The head's share of the room, in hundredths; the tail has the rest, where totals and failures stand.
const HEAD_SHARE: usize = 60;

pub(super) fn preview(content: &[u8], cap: usize) -> Sheet {
    let lines = memchr::memchr_iter(b'\n', content).count()
        + usize::from(content.last().is_some_and(|byte| *byte != b'\n'));
    let first = format!("text, {} bytes, {lines} lines", content.len());
    let mut sheet = Sheet::new(&first, cap);
    let (whole, used) = payload::front(content, sheet.left());
    if used == content.len() {
        sheet.text.push_str(&whole);
        sheet.places.push(place(0, content.len()));
        return sheet;
    }
    let room = sheet.left().saturating_sub(marker_bytes(content.len()) + 1);
    let (head, end) = payload::front(content, room * HEAD_SHARE / 100);
    let (tail, start) = payload::back(content, end, room - head.len());
    if head.is_empty() && tail.is_empty() {
        sheet.line(&marker(&(0..content.len()), content.len()));
        return sheet;
    }
    sheet.text.push_str(&head);
    sheet.text.push('\n');
    sheet.places.push(place(0, end));
    if start > end {
        sheet.line(&marker(&(end..start), content.len()));
        sheet.places.push(place(start, content.len()));
    }
    sheet.text.push_str(&tail);
    sheet
}

fn place(start: usize, end: usize) -> Place {
    Place {
        offset: start as u64,
        length: (end - start) as u64,
        line: None,
    }
}
