//! Bounds of a median by order statistics, and the sign test.

use super::binomial::{at_least, at_most};
use super::{Bounds, CONFIDENCE};

/// The smallest rank (from 1) whose order statistic is an upper bound of the median in `n` values:
/// the probability that at most `rank − 1` of `n` values lie below the median reaches the
/// confidence. `None` below 5 values, where no rank does.
#[must_use]
pub fn median_rank(n: u64) -> Option<u64> {
    (1..=n).find(|rank| at_most(rank - 1, n, 0.5) >= CONFIDENCE)
}

/// Bounds of the median of what `values` are drawn from; `None` below 5 values or where one is not
/// finite.
#[must_use]
pub fn median_bounds(values: &[f64]) -> Option<Bounds> {
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let rank = usize::try_from(median_rank(values.len() as u64)?).ok()?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Bounds {
        lower: sorted[sorted.len() - rank],
        upper: sorted[rank - 1],
    })
}

/// The probability of at least `agreeing` of `n` values on one side of a limit if the median lay on
/// it (one-sided sign test; a value on the limit does not agree).
#[must_use]
pub fn sign_test(agreeing: u64, n: u64) -> f64 {
    at_least(agreeing, n, 0.5)
}

#[cfg(test)]
mod tests {
    use super::{Bounds, median_bounds, median_rank, sign_test};

    #[test]
    fn ranks_are_those_of_exact_tables() {
        for n in 0..5 {
            assert_eq!(median_rank(n), None, "{n} values reach 95 % in no way");
        }
        for (n, rank) in [
            (5, 5),
            (8, 7),
            (10, 9),
            (20, 15),
            (30, 20),
            (60, 37),
            (100, 59),
        ] {
            assert_eq!(median_rank(n), Some(rank), "of {n}");
        }
    }

    #[test]
    fn a_bound_is_one_of_the_values() {
        let values: Vec<f64> = (1..=30).rev().map(f64::from).collect();
        let bounds = Bounds {
            lower: 11.0,
            upper: 20.0,
        };
        assert_eq!(median_bounds(&values), Some(bounds));
        assert_eq!(median_bounds(&[1.0; 4]), None);
        assert_eq!(median_bounds(&[1.0, 1.0, 1.0, 1.0, f64::NAN]), None);
    }

    #[test]
    fn five_of_five_reject_and_four_of_five_do_not() {
        assert!((sign_test(5, 5) - 0.031_25).abs() < 1e-12);
        assert!(sign_test(4, 5) > 0.05);
        assert!((sign_test(0, 0) - 1.0).abs() < 1e-12);
    }
}
