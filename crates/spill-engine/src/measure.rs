//! Sizes and line counts of texts, each in one pass that builds nothing.

use std::ops::Add;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

impl Bytes {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The UTF-8 length of `text`.
    pub const fn of(text: &str) -> Self {
        Self(text.len() as u64)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Saturates, so that sums of hostile sizes stay sums.
impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The length of `text` as a JSON string, quotes included: what `serde_json::to_string(text)` would have.
///
/// `"`, `\`, backspace, tab, line feed, form feed and carriage return take two bytes, other controls below U+0020 six;
/// everything else, DEL and non-ASCII included, stands as it is (RFC 8259, section 7, shortest form).
pub fn serialised_size(text: &str) -> Bytes {
    Bytes(text.len() as u64 + 2 + escape_bytes(text.as_bytes()))
}

/// Counters side by side, one per byte of a row, so that the compiler can use vector registers.
const LANES: usize = 32;
/// A counter grows by at most 5 per row and is one byte wide.
const ROWS: usize = u8::MAX as usize / 5;

fn escape_bytes(bytes: &[u8]) -> u64 {
    let mut total = 0;
    for block in bytes.chunks(LANES * ROWS) {
        let mut lanes = [0_u8; LANES];
        let rows = block.chunks_exact(LANES);
        let rest = rows.remainder();
        for row in rows {
            for (lane, byte) in lanes.iter_mut().zip(row) {
                *lane += escape_cost(*byte);
            }
        }
        total += lanes.iter().copied().map(u64::from).sum::<u64>();
        total += rest
            .iter()
            .copied()
            .map(escape_cost)
            .map(u64::from)
            .sum::<u64>();
    }
    total
}

/// The bytes that `byte` takes in a JSON string beyond its own one. Free of branches.
#[inline]
fn escape_cost(byte: u8) -> u8 {
    let backslashed = u8::from((byte == b'"') | (byte == b'\\'));
    let control = u8::from(byte < 0x20).wrapping_neg() & 5;
    let short_control = u8::from((byte.wrapping_sub(8) < 6) & (byte != 11)).wrapping_neg() & 4;
    backslashed + control - short_control
}

/// Line feeds, plus one for a last line that none ends: `""` is 0, `"a"` and `"a\n"` are 1, `"a\n\nb"` is 3.
pub fn line_count(text: &str) -> u64 {
    let ended = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
    ended + u64::from(!text.is_empty() && !text.ends_with('\n'))
}
