//! Renders the summary that stands in the prompt for a stored result.

use serde::Serialize;

use crate::measure::{Measure, line_count, serialised_size};
use crate::read::READ_TOOL;
use crate::reference::Reference;
use crate::settings::Threshold;

/// No summary is longer: one byte below the lowest threshold.
pub const SUMMARY_LIMIT_BYTES: u64 = 4_095;

/// The longest head, and the longest tail, before encoding.
const END_BYTES: usize = 1_024;

/// Fields in wire order.
#[derive(Serialize)]
struct Summary<'a> {
    spilled: bool,
    spillover_ref: String,
    size_bytes: u64,
    lines: u64,
    structure: String,
    head: &'a str,
    tail: &'a str,
    how_to_read: String,
}

/// The summary of `text`, as compact JSON.
///
/// It is smaller than what it replaces in each sense at once: at most [`SUMMARY_LIMIT_BYTES`] long, shorter than `text`, and
/// shorter than what was measured when it is itself serialised as a JSON string (there a quote of the head takes four bytes). Head
/// and tail give way; they are whole characters, disjoint, and at most 1,024 bytes each. This holds for every text that
/// reaches the lowest threshold: 683 bytes at least, as an escape is at most six bytes long.
pub(crate) fn render(
    text: &str,
    measure: Measure,
    structure: String,
    reference: &Reference,
    cap: Threshold,
) -> String {
    let mut summary = Summary {
        spilled: true,
        spillover_ref: reference.to_string(),
        size_bytes: text.len() as u64,
        lines: measure.lines.unwrap_or_else(|| line_count(text)),
        structure,
        head: "",
        tail: "",
        how_to_read: how_to_read(cap),
    };
    let frame = encode(&summary);
    let limit = SUMMARY_LIMIT_BYTES.min((text.len() as u64).saturating_sub(1));
    let room = Room {
        encoded: limit.saturating_sub(frame.len() as u64),
        wire: measure
            .serialised
            .get()
            .saturating_sub(1)
            .saturating_sub(serialised_size(&frame).get()),
    };
    (summary.head, summary.tail) = ends(text, room);
    encode(&summary)
}

fn how_to_read(cap: Threshold) -> String {
    format!(
        "Only head and tail are shown. Call {READ_TOOL} with this spillover_ref and range {{offset, length}} in bytes, \
         at most {} per read.",
        cap.get()
    )
}

fn encode(summary: &Summary<'_>) -> String {
    let mut json = serde_json::to_string(summary)
        .expect("a struct of texts and numbers always has a JSON form");
    json.shrink_to_fit();
    json
}

/// What a piece of text may cost or does cost.
#[derive(Clone, Copy, Default)]
struct Room {
    /// Bytes in the summary.
    encoded: u64,
    /// Bytes of the summary when it is a JSON string itself.
    wire: u64,
}

impl Room {
    fn half(self) -> Self {
        Self {
            encoded: self.encoded / 2,
            wire: self.wire / 2,
        }
    }

    fn without(self, used: Self) -> Self {
        Self {
            encoded: self.encoded.saturating_sub(used.encoded),
            wire: self.wire.saturating_sub(used.wire),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            encoded: self.encoded + other.encoded,
            wire: self.wire + other.wire,
        }
    }

    fn holds(self, used: Self) -> bool {
        used.encoded <= self.encoded && used.wire <= self.wire
    }
}

/// Head and tail that fit `room` together: half each, and what one end leaves goes to the other.
fn ends(text: &str, room: Room) -> (&str, &str) {
    let (tail, tail_cost) = fitting_tail(text, room.half());
    let before = &text[..text.len() - tail.len()];
    let (head, head_cost) = fitting_head(before, room.without(tail_cost));
    let (tail, _) = fitting_tail(&text[head.len()..], room.without(head_cost));
    (head, tail)
}

/// The most of the start of `text` that fits into `room` and [`END_BYTES`], and what it costs.
fn fitting_head(text: &str, room: Room) -> (&str, Room) {
    let most = &text[..text.floor_char_boundary(END_BYTES)];
    whole(most, room).unwrap_or_else(|| {
        let (bytes, cost) = fitting(most.chars(), room);
        (&most[..bytes], cost)
    })
}

/// The same of its end.
fn fitting_tail(text: &str, room: Room) -> (&str, Room) {
    let most = &text[text.ceil_char_boundary(text.len().saturating_sub(END_BYTES))..];
    whole(most, room).unwrap_or_else(|| {
        let (bytes, cost) = fitting(most.chars().rev(), room);
        (&most[most.len() - bytes..], cost)
    })
}

/// The usual case, in which no character needs to be looked at twice.
fn whole(text: &str, room: Room) -> Option<(&str, Room)> {
    let cost = text
        .bytes()
        .map(cost_of_byte)
        .fold(Room::default(), Room::plus);
    room.holds(cost).then_some((text, cost))
}

/// How many bytes of `chars` fit into `room`, and what they cost.
fn fitting(chars: impl Iterator<Item = char>, room: Room) -> (usize, Room) {
    let (mut bytes, mut used) = (0, Room::default());
    for char in chars {
        let mut utf8 = [0; 4];
        let encoded = char.encode_utf8(&mut utf8);
        let next = encoded.bytes().map(cost_of_byte).fold(used, Room::plus);
        if !room.holds(next) {
            break;
        }
        bytes += encoded.len();
        used = next;
    }
    (bytes, used)
}

/// A character costs what its bytes cost.
fn cost_of_byte(byte: u8) -> Room {
    let (encoded, wire) = match byte {
        b'"' | b'\\' => (2, 4),
        8 | b'\t' | b'\n' | 12 | b'\r' => (2, 3),
        0..=0x1f => (6, 7),
        _ => (1, 1),
    };
    Room { encoded, wire }
}
