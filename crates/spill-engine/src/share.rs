//! How much of a policy's limit its replacements may take.

use serde_json::Value;

/// A share of a limit: above 0 and at most 1. It is held as the decimal number that was written, so that a share of a limit
/// is exact: 0.29 of 100 is 29.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewShare {
    digits: u64,
    /// How many of the digits stand behind the point.
    places: u32,
}

impl PreviewShare {
    /// All of the limit.
    pub const ALL: Self = Self {
        digits: 1,
        places: 0,
    };

    /// Checks `share`; `None` unless it is above 0 and at most 1.
    pub fn new(share: f64) -> Option<Self> {
        if share.is_nan() || share <= 0.0 || share > 1.0 {
            return None;
        }
        // The shortest digits that read back as this number, such as `2.9e-1`.
        let written = format!("{share:e}");
        let (mantissa, exponent) = written.split_once('e')?;
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let below_one: u32 = exponent.trim_start_matches('-').parse().ok()?;
        Some(Self {
            digits: format!("{whole}{part}").parse().ok()?,
            places: below_one + u32::try_from(part.len()).ok()?,
        })
    }

    /// The number.
    pub fn get(self) -> f64 {
        format!("{}e-{}", self.digits, self.places)
            .parse()
            .expect("digits with an exponent are a number")
    }

    /// This share of `limit`, rounded down.
    pub fn of(self, limit: u64) -> u64 {
        let whole = u128::from(limit) * u128::from(self.digits);
        // A power that is no `u128` is larger than any product of a limit and 17 digits.
        let part = 10_u128
            .checked_pow(self.places)
            .map_or(0, |power| whole / power);
        u64::try_from(part).expect("a share is no larger than its whole")
    }

    /// From JSON; `None` for what is no number above 0 and at most 1.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        value.as_f64().and_then(Self::new)
    }
}

impl Default for PreviewShare {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(share: f64, limit: u64, part: u64) {
        let share = PreviewShare::new(share).expect("a share");
        assert_eq!(share.of(limit), part);
    }

    #[test]
    fn a_share_is_exact_and_rounds_down() {
        check(1.0, u64::MAX, u64::MAX);
        check(0.5, 1, 0);
        check(0.5, 3, 1);
        check(0.29, 100, 29);
        check(0.7, 10, 7);
        check(
            0.999_999_999_999_999_9,
            u64::MAX,
            18_446_744_073_709_549_770,
        );
        check(f64::MIN_POSITIVE, u64::MAX, 0);
        check(5e-324, u64::MAX, 0);
        assert_eq!(PreviewShare::new(1.0), Some(PreviewShare::ALL));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for number in [0.0, -0.0, -0.5, 1.000_000_1, f64::INFINITY, f64::NAN] {
            assert_eq!(PreviewShare::new(number), None, "{number}");
        }
        for value in [Value::Null, "0.5".into(), 0.into(), 2.into(), true.into()] {
            assert_eq!(PreviewShare::from_json(&value), None, "{value}");
        }
        assert_eq!(PreviewShare::from_json(&1.into()), Some(PreviewShare::ALL));
    }

    proptest! {
        #[test]
        fn a_share_survives_and_never_passes_its_whole(share in 0.0..=1.0_f64, limit in any::<u64>()) {
            if let Some(held) = PreviewShare::new(share) {
                prop_assert_eq!(held.get().to_bits(), share.to_bits());
                prop_assert!(held.of(limit) <= limit);
            }
        }
    }
}
