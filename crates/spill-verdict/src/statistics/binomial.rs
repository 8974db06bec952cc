//! Exact binomial tails as sums of terms taken from log-gamma, and what follows from them.

use super::CONFIDENCE;

/// The probability of exactly `k` successes in `n` trials of success probability `p`.
fn exactly(k: u64, n: u64, p: f64) -> f64 {
    let (k, n) = (k as f64, n as f64);
    // 0 · ln 0 is 0 here: a term without trials of a kind does not depend on their probability.
    let power = |count: f64, p: f64| if count == 0.0 { 0.0 } else { count * p.ln() };
    let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    (choose + power(k, p) + power(n - k, 1.0 - p)).exp()
}

/// The probability of at most `k` successes in `n` trials of success probability `p`.
#[must_use]
pub fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    (0..=k)
        .map(|i| exactly(i, n, p))
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// The probability of at least `k` successes in `n` trials of success probability `p`.
#[must_use]
pub fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    (k..=n)
        .map(|i| exactly(i, n, p))
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

/// The upper bound of a rate of which `k` events were seen in `n` trials (Clopper and Pearson 1934):
/// the rate at which so few events are just as likely as a bound may err.
///
/// Without any event it is `1 − 0.05^(1/n)`, about 3 / n. 1 where `n` is 0.
#[must_use]
pub fn rate_upper_bound(k: u64, n: u64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    // 60 halvings are below the spacing of doubles around any answer that matters.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(k, n, middle) > 1.0 - CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most, rate_upper_bound};

    fn check(what: &str, value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{what}: {value}");
    }

    // python3 -c "from scipy.stats import binom, beta; print(binom.cdf(19,30,.5), binom.cdf(4,5,.5),
    //   binom.cdf(3,60,.05), binom.sf(6,10,.3), beta.ppf(.95,1,60), beta.ppf(.95,4,27), beta.ppf(.95,10,1))"
    #[test]
    fn tails_and_bounds_are_those_of_tables() {
        check("19 of 30", at_most(19, 30, 0.5), 0.950_631_426_647_305_5);
        check("4 of 5", at_most(4, 5, 0.5), 0.968_75);
        check("3 of 60", at_most(3, 60, 0.05), 0.647_281_011_601_339_4);
        check("7 of 10", at_least(7, 10, 0.3), 0.010_592_078_4);
        check("0 of 60", rate_upper_bound(0, 60), 0.048_702_913_310_097_49);
        check("3 of 30", rate_upper_bound(3, 30), 0.238_597_857_293_250_92);
        check("9 of 10", rate_upper_bound(9, 10), 0.994_883_803_108_176_3);
    }

    #[test]
    fn the_ends_are_certain() {
        check("all", at_most(5, 5, 0.3), 1.0);
        check("none needed", at_least(0, 5, 0.3), 1.0);
        check("never", at_most(0, 5, 0.0), 1.0);
        check("always", at_least(5, 5, 1.0), 1.0);
        check("no trial", rate_upper_bound(0, 0), 1.0);
        check("only events", rate_upper_bound(4, 4), 1.0);
        // Thousands of trials neither overflow nor lose the sum.
        check("half of 20,001", at_most(10_000, 20_001, 0.5), 0.5);
    }
}
