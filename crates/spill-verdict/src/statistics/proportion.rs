//! Bounds of success rates and of the difference of two of them seen in pairs.

use super::{Bounds, Z};

/// How pairs ended under both arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedCounts {
    /// Both succeeded.
    pub both: u64,
    /// The candidate alone succeeded.
    pub gained: u64,
    /// The control alone succeeded.
    pub lost: u64,
    /// Neither succeeded.
    pub neither: u64,
}

/// Bounds of a rate (Wilson 1927, without continuity correction). `None` without any trial.
#[must_use]
pub fn wilson(successes: u64, n: u64) -> Option<Bounds> {
    wilson_at(successes, n, Z)
}

fn wilson_at(successes: u64, n: u64, z: f64) -> Option<Bounds> {
    if n == 0 {
        return None;
    }
    let (n, share, z2) = (n as f64, successes as f64 / n as f64, z * z);
    let middle = share + z2 / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    Some(Bounds {
        lower: ((middle - half) / scale).max(0.0),
        upper: ((middle + half) / scale).min(1.0),
    })
}

/// Bounds of the candidate's rate less the control's (Newcombe 1998, paired data, method 10).
/// `None` without any pair.
///
/// The bounds of both rates are squared and added, less what the correlation of the pairs takes
/// away; the numerator of a positive correlation is corrected by half the number of pairs and not
/// below 0.
#[must_use]
pub fn difference_bounds(counts: PairedCounts) -> Option<Bounds> {
    difference_at(counts, Z)
}

fn difference_at(counts: PairedCounts, z: f64) -> Option<Bounds> {
    let PairedCounts {
        both,
        gained,
        lost,
        neither,
    } = counts;
    let n = both + gained + lost + neither;
    let (on, off) = (both + gained, both + lost);
    let (on_bounds, off_bounds) = (wilson_at(on, n, z)?, wilson_at(off, n, z)?);
    let whole = n as f64;
    let (p_on, p_off) = (on as f64 / whole, off as f64 / whole);
    let phi = correlation(counts);
    let (on_low, on_high) = (p_on - on_bounds.lower, on_bounds.upper - p_on);
    let (off_low, off_high) = (p_off - off_bounds.lower, off_bounds.upper - p_off);
    let spread = |a: f64, b: f64| (a * a - 2.0 * phi * a * b + b * b).max(0.0).sqrt();
    let difference = p_on - p_off;
    Some(Bounds {
        lower: difference - spread(on_low, off_high),
        upper: difference + spread(on_high, off_low),
    })
}

/// Newcombe's corrected phi of a table of pairs; 0 where a margin is empty.
fn correlation(counts: PairedCounts) -> f64 {
    let [a, b, c, d] = [counts.both, counts.gained, counts.lost, counts.neither].map(|n| n as f64);
    let margins = (a + b) * (c + d) * (a + c) * (b + d);
    if margins == 0.0 {
        return 0.0;
    }
    let n = a + b + c + d;
    let product = a * d - b * c;
    let corrected = product.min(0.0) + (product - n / 2.0).max(0.0);
    corrected / margins.sqrt()
}

#[cfg(test)]
mod tests {
    use super::{PairedCounts, difference_at, difference_bounds, wilson};

    fn check_wilson(successes: u64, n: u64, lower: f64, upper: f64) {
        let bounds = wilson(successes, n).expect("there are trials");
        assert!(
            (bounds.lower - lower).abs() < 5e-10 && (bounds.upper - upper).abs() < 5e-10,
            "{successes} of {n}: {bounds:?}"
        );
    }

    // python3 -c "from statsmodels.stats.proportion import proportion_confint as p
    //   for k, n in [(30,30),(0,10),(81,263),(7,10)]: print(p(k, n, alpha=.1, method='wilson'))"
    #[test]
    fn rates_have_wilsons_bounds() {
        check_wilson(30, 30, 0.917_275_691_9, 1.0);
        check_wilson(0, 10, 0.0, 0.212_941_970_1);
        check_wilson(81, 263, 0.263_313_617_2, 0.356_566_349_6);
        check_wilson(7, 10, 0.441_699_795_9, 0.873_123_416_1);
        assert_eq!(wilson(0, 0), None);
    }

    fn check_difference(table: [u64; 4], lower: f64, upper: f64) {
        let [both, gained, lost, neither] = table;
        let counts = PairedCounts {
            both,
            gained,
            lost,
            neither,
        };
        let bounds = difference_bounds(counts).expect("there are pairs");
        assert!(
            (bounds.lower - lower).abs() < 5e-5 && (bounds.upper - upper).abs() < 5e-5,
            "{table:?}: {bounds:?}"
        );
    }

    #[test]
    fn equal_arms_without_a_failure_are_bounded_by_the_number_of_pairs() {
        // 10 points are in reach at 30 pairs; 5 points need 60.
        check_difference([30, 0, 0, 0], -0.0827, 0.0827);
        check_difference([60, 0, 0, 0], -0.0431, 0.0431);
    }

    #[track_caller]
    fn check_published([both, gained, lost, neither]: [u64; 4], bounds: [f64; 2], places: i32) {
        let counts = PairedCounts {
            both,
            gained,
            lost,
            neither,
        };
        let found = difference_at(counts, 1.959_963_985).expect("there are pairs");
        let half = 0.5 * 10_f64.powi(-places);
        assert!(
            (found.lower - bounds[0]).abs() <= half && (found.upper - bounds[1]).abs() <= half,
            "{counts:?}: {found:?}"
        );
    }

    // Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions
    // based on paired data", method 10 at 1.96; then the two examples of Fagerland, Lydersen and
    // Laake 2017, "Statistical Analysis of Contingency Tables", chapter 8.
    #[test]
    fn published_examples_come_out() {
        check_published([36, 12, 2, 0], [0.0569, 0.3404], 4);
        check_published([1, 1, 7, 12], [-0.507, -0.026], 3);
        check_published([59, 6, 16, 80], [-0.119, -0.005], 3);
    }

    /// Counting failures instead of successes turns the difference round.
    #[test]
    fn failures_have_the_bounds_of_successes_turned_round() {
        for [both, gained, lost, neither] in [[20, 3, 1, 6], [9, 5, 2, 31], [2, 9, 7, 3]] {
            let of = |both, gained, lost, neither| {
                let counts = PairedCounts {
                    both,
                    gained,
                    lost,
                    neither,
                };
                difference_bounds(counts).expect("there are pairs")
            };
            let (won, failed) = (
                of(both, gained, lost, neither),
                of(neither, lost, gained, both),
            );
            assert!(
                (won.lower + failed.upper).abs() < 1e-12
                    && (won.upper + failed.lower).abs() < 1e-12,
                "{won:?} {failed:?}"
            );
        }
    }

    #[test]
    fn arms_that_swap_swap_their_bounds() {
        let counts = PairedCounts {
            both: 36,
            gained: 12,
            lost: 2,
            neither: 0,
        };
        let swapped = PairedCounts {
            gained: counts.lost,
            lost: counts.gained,
            ..counts
        };
        let (a, b) = (
            difference_bounds(counts).expect("there are pairs"),
            difference_bounds(swapped).expect("there are pairs"),
        );
        assert!((a.lower + b.upper).abs() < 1e-12 && (a.upper + b.lower).abs() < 1e-12);
        assert!(a.lower > 0.0 && b.upper < 0.0, "{a:?} {b:?}");
        assert_eq!(difference_bounds(PairedCounts::default()), None);
    }
}
