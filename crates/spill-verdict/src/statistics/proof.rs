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

#[cfg(test)]
mod tests {
    use super::{not_above, not_below, signs};
    use crate::rule::State::{Broken, Holds, NotProven};
    use crate::statistics::Bounds;

    #[test]
    fn a_bound_on_the_margin_proves_neither_side() {
        let of = |lower, upper| not_below(Bounds { lower, upper }, 0.25);
        assert_eq!(of(-0.125, 0.5), Holds);
        assert_eq!(of(-0.25, 0.5), NotProven);
        assert_eq!(of(-0.5, -0.25), NotProven);
        assert_eq!(of(-0.5, -0.375), Broken);
    }

    #[test]
    fn a_bound_on_a_limit_keeps_it() {
        let of = |lower, upper| not_above(Bounds { lower, upper }, 1.5);
        assert_eq!(of(1.0, 1.5), Holds);
        assert_eq!(of(1.0, 1.75), NotProven);
        assert_eq!(of(1.5, 1.75), NotProven);
        assert_eq!(of(1.625, 1.75), Broken);
    }

    #[test]
    fn a_value_on_the_limit_is_on_neither_side() {
        let found = signs(&[1.0, 1.0, 0.5, 2.0, 3.0], 1.0);
        assert_eq!((found.below, found.above, found.n), (1, 2, 5));
        assert_eq!(found.state, NotProven);
        assert_eq!(signs(&[0.5; 5], 1.0).state, Holds);
        assert_eq!(signs(&[1.0; 5], 1.0).state, NotProven);
        assert_eq!(signs(&[1.5; 5], 1.0).state, Broken);
    }
}
