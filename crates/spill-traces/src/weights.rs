//! Sizes of messages and contexts, in bytes or in tokens.

use std::ops::{Add, AddAssign, Index, IndexMut, Sub};

use crate::model::{Call, Origin, Transcript};

/// One figure per origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByOrigin([u64; Origin::ALL.len()]);

impl ByOrigin {
    /// The sum over all origins.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<Origin> for ByOrigin {
    type Output = u64;

    fn index(&self, origin: Origin) -> &u64 {
        &self.0[origin as usize]
    }
}

impl IndexMut<Origin> for ByOrigin {
    fn index_mut(&mut self, origin: Origin) -> &mut u64 {
        &mut self.0[origin as usize]
    }
}

impl AddAssign for ByOrigin {
    fn add_assign(&mut self, other: Self) {
        for (sum, addend) in self.0.iter_mut().zip(other.0) {
            *sum += addend;
        }
    }
}

impl Add for ByOrigin {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for ByOrigin {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        for (rest, taken) in self.0.iter_mut().zip(other.0) {
            *rest -= taken;
        }
        self
    }
}

/// The weight of every message of a transcript, summed up so that a context of any length costs one subtraction per range.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The sum of all messages before each index, and of all.
    before: Vec<ByOrigin>,
}

impl Weights {
    /// Weighs each piece once. `weigh` gets a piece's text, and a tool call's name on its own; media weigh nothing.
    pub fn of(transcript: &Transcript, weigh: &mut dyn FnMut(&str) -> u64) -> Self {
        let mut sum = ByOrigin::default();
        let mut before = Vec::with_capacity(transcript.messages.len() + 1);
        before.push(sum);
        for message in &transcript.messages {
            for piece in &message.pieces {
                sum[piece.origin] += weigh(&piece.text);
                if let Some(name) = &piece.name {
                    sum[piece.origin] += weigh(name);
                }
            }
            before.push(sum);
        }
        Self { before }
    }

    /// The weight of one message.
    ///
    /// # Panics
    ///
    /// When the transcript has no such message.
    #[must_use]
    pub fn message(&self, index: usize) -> ByOrigin {
        self.before[index + 1] - self.before[index]
    }

    /// The weight of what was sent with a call.
    ///
    /// # Panics
    ///
    /// When the call is of another transcript.
    #[must_use]
    pub fn context(&self, call: &Call) -> ByOrigin {
        let ranges = call.context.ranges().iter();
        ranges.fold(ByOrigin::default(), |sum, range| {
            sum + (self.before[range.end] - self.before[range.start])
        })
    }

    /// The weight of all messages, each once.
    #[must_use]
    pub fn total(&self) -> ByOrigin {
        self.before.last().copied().unwrap_or_default()
    }
}
