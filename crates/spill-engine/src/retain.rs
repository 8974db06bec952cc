//! Retention of what arrives piece by piece: the ends of a byte stream, the first items of a list.
//!
//! Both keep what fits, count the rest and say exactly how much is missing. They hold no more than they keep (a stream: its
//! head, its tail and one chunk), so a result may be retained while it is still arriving.

use std::fmt;

use serde_json::Value;

/// Which bytes of a stream are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The first bytes.
    Head {
        /// How many at most.
        max_bytes: usize,
    },
    /// The last bytes.
    Tail {
        /// How many at most.
        max_bytes: usize,
    },
    /// The first and the last bytes.
    HeadTail {
        /// How many at most from the start.
        head_bytes: usize,
        /// How many at most from the end.
        tail_bytes: usize,
    },
}

impl Strategy {
    /// From JSON: `{"kind": "head" | "tail", "maxBytes"}` or `{"kind": "headTail", "headBytes", "tailBytes"}`.
    ///
    /// # Errors
    /// [`BudgetError`] names the budget that is not a whole number from 0, or the kind.
    pub fn from_json(strategy: &Value) -> Result<Self, BudgetError> {
        let bytes = |field| budget(field, &strategy[field]);
        match strategy["kind"].as_str() {
            Some("head") => Ok(Self::Head {
                max_bytes: bytes("maxBytes")?,
            }),
            Some("tail") => Ok(Self::Tail {
                max_bytes: bytes("maxBytes")?,
            }),
            Some("headTail") => Ok(Self::HeadTail {
                head_bytes: bytes("headBytes")?,
                tail_bytes: bytes("tailBytes")?,
            }),
            Some(_) | None => Err(BudgetError::Kind),
        }
    }

    fn budgets(self) -> (usize, usize) {
        match self {
            Self::Head { max_bytes } => (max_bytes, 0),
            Self::Tail { max_bytes } => (0, max_bytes),
            Self::HeadTail {
                head_bytes,
                tail_bytes,
            } => (head_bytes, tail_bytes),
        }
    }
}

/// A budget that cannot be kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// Negative, fractional, or no number.
    #[error("{0} must be a non-negative integer")]
    Number(&'static str),
    /// No known kind of strategy.
    #[error("kind must be head, tail or headTail")]
    Kind,
}

/// The budget called `field`, such as `maxItems`.
///
/// # Errors
/// [`BudgetError::Number`] when `value` is not a whole number from 0.
pub fn budget(field: &'static str, value: &Value) -> Result<usize, BudgetError> {
    let number = whole_number(value).ok_or(BudgetError::Number(field))?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

/// A whole number from 0, also when it is written `2.0` or `1e3`.
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let whole = number.fract() == 0.0 && (0.0..=2e19).contains(&number);
        whole.then(|| format!("{number:.0}").parse().ok())?
    })
}

/// What one push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// This push left nothing out. In a tail, a push whose own bytes are kept is `false` when it drove older ones out.
    pub kept: bool,
    /// Something has been left out so far.
    pub truncated: bool,
}

/// How much is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omitted {
    /// Nothing.
    None,
    /// Exactly so much.
    Exact(u64),
    /// More, by an unknown amount.
    Unknown,
}

impl Omitted {
    fn of(count: u64) -> Self {
        if count == 0 {
            Self::None
        } else {
            Self::Exact(count)
        }
    }

    /// The sentence for it, empty for [`Omitted::None`]: `Omitted 3 items.`, `More lines were omitted.`
    pub fn wording(self, unit: &str) -> String {
        match self {
            Self::None => String::new(),
            Self::Exact(count) => format!("Omitted {count} {unit}."),
            Self::Unknown => format!("More {unit} were omitted."),
        }
    }
}

/// Joins the halves of a notice that say something, by one space.
pub fn notice(omission: &str, hint: &str) -> String {
    let said = [omission, hint].into_iter().filter(|half| !half.is_empty());
    said.collect::<Vec<_>>().join(" ")
}

/// What was kept of a stream.
#[derive(Clone, PartialEq, Eq)]
pub struct Retained {
    /// The kept bytes as text. Bytes that are no UTF-8 read U+FFFD, so it can be longer than the budget; for valid UTF-8 it
    /// never is. A byte order mark is text like any other.
    pub text: String,
    /// Where the tail starts in `text`; `None` when nothing is left out between.
    pub cut: Option<usize>,
    /// Bytes of the stream that `text` does not show.
    pub omitted: Omitted,
}

impl Retained {
    /// True when something is left out.
    pub fn truncated(&self) -> bool {
        self.omitted != Omitted::None
    }
}

/// Shows sizes, not content.
impl fmt::Debug for Retained {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Retained({} bytes, omitted {:?})",
            self.text.len(),
            self.omitted
        )
    }
}

/// Keeps the ends of a byte stream. A character that arrives in two chunks is whole; one that the cut runs through is left
/// out on both sides.
pub struct TextRetainer {
    head_bytes: usize,
    tail_bytes: usize,
    head: Vec<u8>,
    /// The last bytes after the head: between `tail_bytes` and twice that, cut back when more.
    tail: Vec<u8>,
    total: u64,
}

impl TextRetainer {
    /// Keeps nothing yet.
    pub fn new(strategy: Strategy) -> Self {
        let (head_bytes, tail_bytes) = strategy.budgets();
        Self {
            head_bytes,
            tail_bytes,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
        }
    }

    /// Takes the next chunk, cut anywhere.
    pub fn push(&mut self, chunk: impl AsRef<[u8]>) -> Pushed {
        let chunk = chunk.as_ref();
        let gap = self.gap();
        self.total += chunk.len() as u64;
        let (first, rest) = chunk.split_at(chunk.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(first);
        self.push_tail(rest);
        Pushed {
            kept: self.gap() == gap,
            truncated: self.gap() > 0,
        }
    }

    /// Bytes so far.
    pub fn seen(&self) -> u64 {
        self.total
    }

    /// True while nothing is left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.gap() == 0
    }

    /// The bytes kept so far of the start and of the end, cut anywhere.
    pub(crate) fn ends(&self) -> (Vec<u8>, Vec<u8>) {
        let tail = self.tail.len().saturating_sub(self.tail_bytes);
        (self.head.clone(), self.tail[tail..].to_vec())
    }

    /// What is kept of everything pushed.
    pub fn finish(mut self) -> Retained {
        let gap = self.gap();
        self.tail
            .drain(..self.tail.len().saturating_sub(self.tail_bytes));
        if gap == 0 {
            self.head.append(&mut self.tail);
            return Retained {
                text: lossy(&self.head),
                cut: None,
                omitted: Omitted::None,
            };
        }
        let head = whole_head(&self.head);
        let tail = whole_tail(&self.tail);
        let mut text = lossy(head);
        let cut = text.len();
        text.push_str(&String::from_utf8_lossy(tail));
        Retained {
            text,
            cut: Some(cut),
            omitted: Omitted::of(self.total - (head.len() + tail.len()) as u64),
        }
    }

    fn push_tail(&mut self, rest: &[u8]) {
        if rest.len() >= self.tail_bytes {
            self.tail.clear();
            self.tail
                .extend_from_slice(&rest[rest.len() - self.tail_bytes..]);
            return;
        }
        self.tail.extend_from_slice(rest);
        if self.tail.len() >= self.tail_bytes.saturating_mul(2) {
            self.tail.drain(..self.tail.len() - self.tail_bytes);
        }
    }

    /// Bytes between what is kept of the start and of the end, before any trimming to whole characters.
    fn gap(&self) -> u64 {
        let kept = self.head.len() + self.tail.len().min(self.tail_bytes);
        self.total - kept as u64
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Without an incomplete sequence at its end. Bytes that start no sequence stay: they are invalid, not incomplete.
fn whole_head(bytes: &[u8]) -> &[u8] {
    let back = bytes
        .iter()
        .rev()
        .take(3)
        .take_while(|byte| is_continuation(**byte))
        .count();
    let Some(lead) = (bytes.len() - back).checked_sub(1) else {
        return bytes;
    };
    let expected = match bytes[lead] {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        0xf8.. => return bytes,
    };
    if back + 1 < expected {
        &bytes[..lead]
    } else {
        bytes
    }
}

/// Without the continuation bytes at its start, invalid ones too.
fn whole_tail(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !is_continuation(*byte));
    &bytes[start.unwrap_or(bytes.len())..]
}

/// Keeps the first items of a list and counts the others.
pub struct ItemRetainer<T> {
    max_items: usize,
    items: Vec<T>,
    seen: u64,
}

/// What was kept of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedItems<T> {
    /// The first items.
    pub items: Vec<T>,
    /// How many there were.
    pub seen: u64,
    /// How many are missing.
    pub omitted: Omitted,
}

impl<T> RetainedItems<T> {
    /// True when some are left out.
    pub fn truncated(&self) -> bool {
        self.omitted != Omitted::None
    }
}

impl<T> ItemRetainer<T> {
    /// Keeps the first `max_items`.
    pub fn new(max_items: usize) -> Self {
        Self {
            max_items,
            items: Vec::new(),
            seen: 0,
        }
    }

    /// Takes the next item.
    pub fn push(&mut self, item: T) -> Pushed {
        self.seen += 1;
        let kept = self.items.len() < self.max_items;
        if kept {
            self.items.push(item);
        }
        Pushed {
            kept,
            truncated: self.seen > self.items.len() as u64,
        }
    }

    /// What is kept of everything pushed.
    pub fn finish(self) -> RetainedItems<T> {
        let omitted = Omitted::of(self.seen - self.items.len() as u64);
        RetainedItems {
            items: self.items,
            seen: self.seen,
            omitted,
        }
    }
}
