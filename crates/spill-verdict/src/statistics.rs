//! Intervals and tests by which a stochastic endpoint is judged.
//!
//! Every bound is one-sided at [`CONFIDENCE`], so a lower and an upper bound together enclose the
//! true value in 90 of 100 repetitions of the whole experiment. `docs/statistics.md` has what they
//! cover at small numbers of pairs, measured.

mod binomial;
mod bootstrap;
mod median;
mod proof;
mod proportion;

pub use binomial::{at_least, at_most, rate_upper_bound};
pub use bootstrap::{RESAMPLES, mean_bounds};
pub use median::{median_bounds, median_rank, sign_test};
pub use proof::{Signs, not_above, not_below, signs};
pub use proportion::{PairedCounts, difference_bounds, wilson};

/// The confidence of each one-sided bound.
pub const CONFIDENCE: f64 = 0.95;

/// The standard normal quantile at [`CONFIDENCE`].
pub const Z: f64 = 1.644_853_626_951_472_2;

/// A lower and an upper bound, each one-sided at [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The true value is above this.
    pub lower: f64,
    /// The true value is below this.
    pub upper: f64,
}
