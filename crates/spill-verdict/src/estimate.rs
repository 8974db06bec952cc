/// The median of `values`: the middle one, or the mean of the two middle ones of an even count.
///
/// `None` for no values, and when any value is not finite.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    })
}

/// `part / whole`; `None` when there is no whole.
#[must_use]
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `candidate / control`; `None` when either is missing or the result would not be finite.
#[must_use]
pub fn ratio(candidate: Option<f64>, control: Option<f64>) -> Option<f64> {
    let value = candidate? / control?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::{median, ratio, share};

    fn check_median(values: &[f64], expected: Option<f64>) {
        assert_eq!(median(values), expected, "median of {values:?}");
    }

    #[test]
    fn a_median_is_a_middle_value_or_the_mean_of_two() {
        check_median(&[], None);
        check_median(&[7.0], Some(7.0));
        check_median(&[3.0, 1.0], Some(2.0));
        check_median(&[9.0, 1.0, 5.0], Some(5.0));
        check_median(&[4.0, 1.0, 3.0, 2.0], Some(2.5));
        check_median(&[1.0, f64::NAN], None);
        check_median(&[1.0, f64::INFINITY], None);
        check_median(&[f64::MAX, f64::MAX], Some(f64::MAX));
    }

    /// Known fault 76: bird-bench/mini_dev #47.
    /// Known fault 92: AndreaBozzo/dataprof PR #629.
    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(share(0, 0), None);
        assert_eq!(share(0, 4), Some(0.0));
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(ratio(Some(0.0), Some(0.0)), None);
        assert_eq!(ratio(None, Some(1.0)), None);
        assert_eq!(ratio(Some(110.0), Some(100.0)), Some(1.1));
    }
}
