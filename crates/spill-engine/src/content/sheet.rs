//! A preview while it is written: lines under a cap, clipped pieces, and the one marker for what is left out.

use std::ops::Range;

use super::{Place, payload};
use crate::reading::characters;

/// The longest piece of one row.
const ROW_BYTES: usize = 400;

/// The most that [`marker`] takes for content of `size` bytes, its line feed included.
pub(super) fn marker_bytes(size: usize) -> usize {
    marker(&(size..size), size).len() + 1
}

/// What every preview says about bytes that it leaves out.
pub(super) fn marker(left_out: &Range<usize>, size: usize) -> String {
    format!(
        "[bytes {} to {} of {size} not shown]",
        left_out.start, left_out.end
    )
}

pub(super) struct Sheet {
    pub(super) text: String,
    pub(super) places: Vec<Place>,
    /// Bytes between rows that are not worth a marker.
    pub(super) between: &'static [u8],
    cap: usize,
}

/// A line of a preview that stands for a place.
pub(super) struct Row {
    pub(super) label: String,
    pub(super) range: Range<usize>,
    pub(super) line: Option<u64>,
}

impl Row {
    /// What the row looks like in at most `room` bytes, its line feed included.
    fn render(&self, content: &[u8], room: usize) -> Option<String> {
        let mut out = format!("{} at {}: ", self.label, self.range.start);
        let room = room.min(ROW_BYTES).checked_sub(out.len() + 1)?;
        out.push_str(&clip(trimmed(&content[self.range.clone()]), room)?);
        out.push('\n');
        Some(out)
    }

    fn place(&self) -> Place {
        Place {
            offset: self.range.start as u64,
            length: self.range.len() as u64,
            line: self.line,
        }
    }
}

impl Sheet {
    /// A sheet with its first line, cut if even that is too long.
    pub(super) fn new(first: &str, cap: usize) -> Self {
        let mut sheet = Self {
            text: String::new(),
            places: Vec::new(),
            between: b" \t\r\n",
            cap,
        };
        if !sheet.line(first) {
            sheet.text = first[..first.floor_char_boundary(cap)].to_owned();
        }
        sheet
    }

    pub(super) fn left(&self) -> usize {
        self.cap - self.text.len()
    }

    /// False, and nothing changes, when it does not fit.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let fits = line.len() < self.left();
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// False, and nothing changes, when it does not fit.
    pub(super) fn row(&mut self, content: &[u8], row: &Row, most: usize) -> bool {
        let rendered = row.render(content, most.min(self.left()));
        let fits = rendered.is_some();
        if let Some(rendered) = rendered {
            self.text.push_str(&rendered);
            self.places.push(row.place());
        }
        fits
    }

    /// Rows from the front and from the back, the front with `share` hundredths of the room; what stands between is marked.
    pub(super) fn ends(
        &mut self,
        content: &[u8],
        front: impl Iterator<Item = Row>,
        back: impl Iterator<Item = Row>,
        share: usize,
    ) -> Range<usize> {
        let marked = marker_bytes(content.len());
        let room = self.left().saturating_sub(marked);
        let most = room / 3;
        let mut shown = self.front(content, front, room * share / 100, most);
        let room = self.left().saturating_sub(marked);
        let tail = self.back(content, back, &mut shown, room, most);
        if !shown.is_empty() {
            self.line(&marker(&shown, content.len()));
        }
        for (text, place) in tail.into_iter().rev() {
            self.text.push_str(&text);
            self.places.push(place);
        }
        shown
    }

    /// Writes rows from the front; what is left out so far.
    pub(super) fn front(
        &mut self,
        content: &[u8],
        rows: impl Iterator<Item = Row>,
        room: usize,
        most: usize,
    ) -> Range<usize> {
        let before = self.text.len();
        let mut end = None;
        for row in rows {
            let used = self.text.len() - before;
            if !self.row(content, &row, most.min(room - used)) {
                end.get_or_insert(row.range.start);
                return end.unwrap_or(0)..content.len();
            }
            end = Some(row.range.end);
            if self.text.len() - before >= room {
                break;
            }
        }
        end.unwrap_or(0)..content.len()
    }

    /// Renders rows from the back, the last one first, as long as they are left out so far.
    pub(super) fn back(
        &self,
        content: &[u8],
        rows: impl Iterator<Item = Row>,
        left_out: &mut Range<usize>,
        room: usize,
        most: usize,
    ) -> Vec<(String, Place)> {
        let mut used = 0;
        let mut tail = Vec::new();
        for row in rows {
            if row.range.start < left_out.start {
                break;
            }
            let Some(rendered) = row.render(content, most.min(room.saturating_sub(used))) else {
                break;
            };
            used += rendered.len();
            left_out.end = row.range.start;
            tail.push((rendered, row.place()));
        }
        let mut rest = content[left_out.clone()].iter();
        if rest.all(|byte| self.between.contains(byte)) {
            left_out.end = left_out.start;
        }
        tail
    }
}

/// A line without its end.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// `bytes` as one line of at most `room` bytes: line feeds escaped, what does not fit counted, payloads never cut. `None`
/// when there is no room even for the count.
pub(super) fn clip(bytes: &[u8], room: usize) -> Option<String> {
    let (whole, used) = payload::front(bytes, room);
    let whole = one_line(&whole);
    if used == bytes.len() && whole.len() <= room {
        return Some(whole);
    }
    let mut take = room.checked_sub(" [+18446744073709551615 bytes]".len())?;
    loop {
        let (shown, used) = payload::front(bytes, take);
        let shown = one_line(&shown);
        let out = format!("{shown} [+{} bytes]", bytes.len() - used);
        if out.len() <= room {
            return Some(out);
        }
        // Escapes took the room: each byte takes at most six.
        take /= 6;
    }
}

fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}' => out.extend(char.escape_unicode()),
            other => out.push(other),
        }
    }
    out
}

/// The first bytes of `bytes` as text of at most `room` bytes, and how many they are.
pub(super) fn text_front(bytes: &[u8], room: usize) -> (String, usize) {
    let take = |room: usize| characters::floor(bytes, room.min(bytes.len()));
    let end = take(room);
    let text = String::from_utf8_lossy(&bytes[..end]);
    if text.len() <= room {
        return (text.into_owned(), end);
    }
    let end = take(room / 3);
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), end)
}

/// The last bytes of `bytes` as text of at most `room` bytes, and where they start.
pub(super) fn text_back(bytes: &[u8], room: usize) -> (String, usize) {
    let take = |room: usize| characters::ceil(bytes, bytes.len() - room.min(bytes.len()));
    let start = take(room);
    let text = String::from_utf8_lossy(&bytes[start..]);
    if text.len() <= room {
        return (text.into_owned(), start);
    }
    let start = take(room / 3);
    (String::from_utf8_lossy(&bytes[start..]).into_owned(), start)
}
