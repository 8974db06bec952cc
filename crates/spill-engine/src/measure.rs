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
    Measure::of(text).serialised
}

/// Line feeds, plus one for a last line that none ends: `""` is 0, `"a"` and `"a\n"` are 1, `"a\n\nb"` is 3.
pub fn line_count(text: &str) -> u64 {
    lines_of(
        text,
        memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64,
    )
}

fn lines_of(text: &str, line_feeds: u64) -> u64 {
    line_feeds + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// What a look at a text finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    /// [`serialised_size`].
    pub(crate) serialised: Bytes,
    /// [`line_count`], where the pass told.
    pub(crate) lines: Option<u64>,
}

impl Measure {
    /// `text` is its own JSON form: constant time.
    pub(crate) const fn of_json(text: &str) -> Self {
        Self {
            serialised: Bytes::of(text),
            lines: None,
        }
    }

    /// The most that a text of this length can take as a JSON string: six bytes for each of its own, and the quotes.
    pub(crate) const fn at_most(text: &str) -> Bytes {
        Bytes((text.len() as u64).saturating_mul(6).saturating_add(2))
    }

    /// One pass over a text that is to become a JSON string.
    pub(crate) fn of(text: &str) -> Self {
        // With the widest registers that the processor has.
        let Counts {
            line_feeds,
            escape_bytes,
        } = pulp::Arch::new().dispatch(Counting(text.as_bytes()));
        Self {
            serialised: Bytes(text.len() as u64 + 2 + escape_bytes),
            lines: Some(lines_of(text, line_feeds)),
        }
    }
}

/// Counters side by side, one per byte of a row, so that the compiler can use vector registers.
const LANES: usize = 128;
/// A counter grows by at most 1 per row and is one byte wide.
const ROWS: usize = 128;

#[derive(Default)]
struct Counts {
    line_feeds: u64,
    escape_bytes: u64,
}

/// Counts over these bytes. Everything that it calls is inlined, so that it is compiled for those registers.
struct Counting<'a>(&'a [u8]);

impl pulp::NullaryFnOnce for Counting<'_> {
    type Output = Counts;

    #[inline(always)]
    fn call(self) -> Counts {
        let mut counts = Counts::default();
        for block in self.0.chunks(LANES * ROWS) {
            let [line_feeds, controls, backslashed] = block_counts(block);
            // In most texts the only controls are line feeds, in most others tabs and carriage returns too: two bytes each.
            let long = if controls == line_feeds || controls == line_feeds + blanks(block) {
                0
            } else {
                long_controls(block)
            };
            counts.line_feeds += line_feeds;
            counts.escape_bytes += backslashed + controls + 4 * long;
        }
        counts
    }
}

/// Line feeds, controls (line feeds among them), and what a backslash goes before though it is no control.
#[inline(always)]
fn block_counts(block: &[u8]) -> [u64; 3] {
    let line_feed = |byte: u8| u8::from(byte == b'\n');
    let control = |byte: u8| u8::from(byte < 0x20);
    let backslashed = |byte: u8| u8::from((byte == b'"') | (byte == b'\\'));
    let mut lanes = [[0_u8; LANES]; 3];
    let (rows, rest) = block.as_chunks::<LANES>();
    for row in rows {
        count_row(&mut lanes[0], row, line_feed);
        count_row(&mut lanes[1], row, control);
        count_row(&mut lanes[2], row, backslashed);
    }
    let [a, b, c] = lanes.each_ref().map(sum);
    [
        a + sum_of(rest, line_feed),
        b + sum_of(rest, control),
        c + sum_of(rest, backslashed),
    ]
}

/// Tabs and carriage returns.
#[inline(always)]
fn blanks(block: &[u8]) -> u64 {
    count(block, |byte| u8::from((byte == b'\t') | (byte == b'\r')))
}

/// Controls that take six bytes.
#[inline(always)]
fn long_controls(block: &[u8]) -> u64 {
    count(block, |byte| {
        let short = (byte.wrapping_sub(8) < 6) & (byte != 11);
        u8::from((byte < 0x20) & !short)
    })
}

#[inline(always)]
fn count(block: &[u8], counts: impl Fn(u8) -> u8 + Copy) -> u64 {
    let mut lanes = [0_u8; LANES];
    let (rows, rest) = block.as_chunks::<LANES>();
    for row in rows {
        count_row(&mut lanes, row, counts);
    }
    sum(&lanes) + sum_of(rest, counts)
}

#[inline(always)]
fn count_row(lanes: &mut [u8; LANES], row: &[u8; LANES], counts: impl Fn(u8) -> u8) {
    for (lane, byte) in lanes.iter_mut().zip(row) {
        *lane += counts(*byte);
    }
}

#[inline(always)]
fn sum(lanes: &[u8; LANES]) -> u64 {
    lanes.iter().copied().map(u64::from).sum()
}

#[inline(always)]
fn sum_of(rest: &[u8], counts: impl Fn(u8) -> u8) -> u64 {
    rest.iter().map(|byte| u64::from(counts(*byte))).sum()
}
