//! Bounds of a mean of paired differences by resampling the pairs.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{Bounds, CONFIDENCE};

/// Resamples of each bootstrap.
pub const RESAMPLES: usize = 4_000;

/// Bounds of the mean of what `differences` are drawn from: quantiles of the means of
/// [`RESAMPLES`] resamples of them (percentile bootstrap), drawn by ChaCha8 from `seed`. `None`
/// without any difference.
///
/// A quantile is the value at rank ⌈share × [`RESAMPLES`]⌉ of the sorted means, from below for the
/// lower bound and from above for the upper one. Equal seeds and values give equal bounds.
#[must_use]
pub fn mean_bounds(differences: &[f64], seed: u64) -> Option<Bounds> {
    if differences.is_empty() || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let n = differences.len() as u64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sum: f64 = (0..n).map(|_| differences[below(&mut random, n)]).sum();
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a small count"
    )]
    let rank = ((1.0 - CONFIDENCE) * RESAMPLES as f64).ceil() as usize;
    Some(Bounds {
        lower: means[rank - 1],
        upper: means[RESAMPLES - rank],
    })
}

/// An index below `n` without a preference for low ones (Lemire 2019, without his last
/// rejection: 32 of the 64 bits more than a count of pairs needs make the bias immeasurable).
fn below(random: &mut ChaCha8Rng, n: u64) -> usize {
    let wide = u128::from(random.next_u64()) * u128::from(n);
    usize::try_from(wide >> 64).expect("an index below a length")
}

#[cfg(test)]
mod tests {
    use super::mean_bounds;

    #[test]
    fn equal_seeds_draw_equal_bounds_and_others_do_not() {
        let values: Vec<f64> = (0..30).map(|i| f64::from(i % 7) / 7.0).collect();
        assert_eq!(mean_bounds(&values, 1), mean_bounds(&values, 1));
        assert_ne!(mean_bounds(&values, 1), mean_bounds(&values, 2));
    }

    #[test]
    fn bounds_enclose_the_mean_as_a_normal_interval_does() {
        // 0 and 1 alternating: mean 0.5, standard error 0.5 / √100, so 0.5 ± 1.645 × 0.05.
        let values: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let bounds = mean_bounds(&values, 7).expect("there are values");
        assert!((bounds.lower - 0.418).abs() < 0.015, "{bounds:?}");
        assert!((bounds.upper - 0.582).abs() < 0.015, "{bounds:?}");
    }

    #[test]
    fn differences_that_are_all_equal_leave_no_width() {
        let bounds = mean_bounds(&[-0.25; 9], 3).expect("there are values");
        assert!((bounds.lower + 0.25).abs() < 1e-12 && (bounds.upper + 0.25).abs() < 1e-12);
        assert_eq!(mean_bounds(&[], 3), None);
    }

    #[test]
    fn differences_turned_round_have_their_bounds_turned_round() {
        let values: Vec<f64> = (1..=25).map(|i| f64::from(i).sqrt() - 3.0).collect();
        let turned: Vec<f64> = values.iter().map(|value| -value).collect();
        let bounds = mean_bounds(&values, 5).expect("there are values");
        let other = mean_bounds(&turned, 5).expect("there are values");
        assert_eq!((bounds.lower, bounds.upper), (-other.upper, -other.lower));
    }
}
