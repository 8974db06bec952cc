//! What bounds prove of a limit.

use super::{Bounds, CONFIDENCE, sign_test};
use crate::rule::State;

/// The largest p-value that rejects.
const LEVEL: f64 = 1.0 - CONFIDENCE;

/// Whether a difference is proven to be above `-margin`, below it, or neither.
#[must_use]
pub fn not_below(bounds: Bounds, margin: f64) -> State {
    if bounds.lower > -margin {
        State::Holds
    } else if bounds.upper < -margin {
        State::Broken
    } else {
        State::NotProven
    }
}

/// Whether a value is proven to be at most `limit`, above it, or neither.
#[must_use]
pub fn not_above(bounds: Bounds, limit: f64) -> State {
    if bounds.upper <= limit {
        State::Holds
    } else if bounds.lower > limit {
        State::Broken
    } else {
        State::NotProven
    }
}

/// Values on both sides of a limit, and what their signs prove of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signs {
    /// Values below the limit.
    pub below: u64,
    /// Values above it.
    pub above: u64,
    /// All values; one on the limit is on neither side.
    pub n: u64,
    /// The p-value of the median being below the limit.
    pub p_value: f64,
    /// What it proves.
    pub state: State,
}

/// Whether the median of what `values` are drawn from is proven to be below `limit`.
#[must_use]
pub fn signs(values: &[f64], limit: f64) -> Signs {
    let n = values.len() as u64;
    let below = values.iter().filter(|value| **value < limit).count() as u64;
    let above = values.iter().filter(|value| **value > limit).count() as u64;
    let p_value = sign_test(below, n);
    let state = if p_value <= LEVEL {
        State::Holds
    } else if sign_test(above, n) <= LEVEL {
        State::Broken
    } else {
        State::NotProven
    };
    Signs {
        below,
        above,
        n,
        p_value,
        state,
    }
}
