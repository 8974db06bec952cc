use hdrhistogram::Histogram;

/// Percentiles of step durations, in the order that tables show them.
pub(crate) const PERCENTILES: [u8; 4] = [50, 90, 95, 99];

/// How percentiles are taken, for people.
pub(crate) const DEFINITION: &str = "Steps that succeeded only. A percentile is the smallest \
    recorded duration that at least that share of the sample does not exceed (hdrhistogram, whole \
    microseconds, three significant digits); it is left out where the sample is too small to have \
    a value beyond it.";

/// Durations of the steps of one cell that succeeded.
#[derive(Debug)]
pub(crate) struct Durations {
    micros: Histogram<u64>,
}

impl Durations {
    /// Collects durations in milliseconds; values that are not finite or negative are left out.
    pub(crate) fn collect(durations_ms: impl IntoIterator<Item = f64>) -> Self {
        let mut micros = Histogram::new(3).expect("three significant digits are within 0 to 5");
        for duration in durations_ms {
            let value = duration * 1_000.0;
            if value.is_finite() && (0.0..1e15).contains(&value) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "rounded, and within 0 and 1e15"
                )]
                let value = value.round() as u64;
                micros.record(value).expect("the histogram resizes itself");
            }
        }
        Self { micros }
    }

    /// Number of durations.
    pub(crate) fn n(&self) -> u64 {
        self.micros.len()
    }

    /// The percentile in milliseconds; `None` when fewer than one value in the sample lies beyond.
    pub(crate) fn percentile_ms(&self, percentile: u8) -> Option<f64> {
        let beyond = u64::from(100 - percentile) * self.n();
        (beyond >= 100)
            .then(|| self.millis(self.micros.value_at_quantile(f64::from(percentile) / 100.0)))
    }

    /// Shortest and longest, in milliseconds.
    pub(crate) fn range_ms(&self) -> Option<(f64, f64)> {
        (self.n() > 0).then(|| {
            (
                self.millis(self.micros.min()),
                self.millis(self.micros.max()),
            )
        })
    }

    /// The histogram names a bucket by its highest value; its lowest one is never above what was
    /// recorded.
    fn millis(&self, micros: u64) -> f64 {
        self.micros.lowest_equivalent(micros) as f64 / 1_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::Durations;

    #[track_caller]
    fn check(n: u32, percentile: u8, expected: Option<f64>) {
        let durations = Durations::collect((1..=n).map(f64::from));
        let found = durations.percentile_ms(percentile);
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!(
                    (found - expected).abs() <= expected / 500.0,
                    "{found} is not {expected}"
                );
            }
            (found, expected) => assert_eq!(found, expected, "p{percentile} of {n}"),
        }
    }

    /// Known fault 78: OpenHFT/JLBH #37.
    #[test]
    fn a_percentile_needs_a_sample_that_reaches_beyond_it() {
        check(0, 50, None);
        check(1, 50, None);
        check(2, 50, Some(1.0));
        check(9, 90, None);
        check(10, 90, Some(9.0));
        check(19, 95, None);
        check(20, 95, Some(19.0));
        check(99, 99, None);
        check(100, 99, Some(99.0));
    }

    #[test]
    fn what_is_no_duration_is_left_out() {
        let durations = Durations::collect([f64::NAN, f64::INFINITY, -1.0, 2.0]);
        assert_eq!(durations.n(), 1);
        assert_eq!(Durations::collect([]).range_ms(), None);
        assert_eq!(Durations::collect([0.0, 1.5]).range_ms(), Some((0.0, 1.5)));
    }
}
