use std::ops::{Add, AddAssign, Sub};

use spill_tokens::TokenCounter;

/// Bytes and tokens of the same text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Tokens as counted, which is not always what a provider counts.
    pub tokens: u64,
}

impl Size {
    pub(crate) fn of(text: &str, counter: &TokenCounter) -> Self {
        Self {
            bytes: text.len() as u64,
            tokens: counter.count(text),
        }
    }

    /// Bytes and tokens that `self` has more than `less`; negative where it has fewer.
    #[must_use]
    pub fn over(self, less: Self) -> (i64, i64) {
        let signed = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
        (
            signed(self.bytes) - signed(less.bytes),
            signed(self.tokens) - signed(less.tokens),
        )
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            tokens: self.tokens + other.tokens,
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// At least nothing.
impl Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
}
