use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::call::PromptTokens;

/// What a million tokens of each model cost: a file that a person wrote, and what it says.
///
/// It decides nothing: no rule reads it. A run folder keeps it verbatim, so that the same folder
/// renders to the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    pub(crate) models: BTreeMap<String, ModelPrices>,
    /// The file as it was written, comments included.
    pub(crate) text: String,
}

impl Prices {
    /// The prices of `model`, spelled exactly as the table does; `None` where it has none.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<&ModelPrices> {
        self.models.get(model)
    }

    /// All models that have prices, by name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &ModelPrices)> {
        self.models.iter().map(|(name, prices)| (&**name, prices))
    }

    /// The file as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What a million tokens of one model cost, by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPrices {
    pub(crate) currency: String,
    pub(crate) uncached_input: Price,
    pub(crate) cache_read: Price,
    pub(crate) cache_write: Price,
    pub(crate) output: Price,
}

impl ModelPrices {
    /// The currency of all its prices, such as `USD`.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// Prices of uncached input, cache reads, cache writes and output, in this order.
    #[must_use]
    pub fn by_bucket(&self) -> [Price; 4] {
        [
            self.uncached_input,
            self.cache_read,
            self.cache_write,
            self.output,
        ]
    }

    /// What `tokens` cost. Exact: nothing is rounded.
    #[must_use]
    pub fn cost(&self, tokens: PromptTokens) -> Cost {
        Cost {
            uncached_input: self.uncached_input.of(tokens.uncached_input_tokens),
            cache_read: self.cache_read.of(tokens.cache_read_tokens),
            cache_write: self.cache_write.of(tokens.cache_write_tokens),
            output: self.output.of(tokens.output_tokens),
        }
    }
}

/// The price of a million tokens, in millionths of the currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price(pub(crate) u64);

impl Price {
    fn of(self, tokens: u64) -> Money {
        // A millionth of the currency for a million tokens is 10⁻¹² of it for one.
        Money(u128::from(self.0) * u128::from(tokens))
    }
}

impl fmt::Display for Price {
    /// The price of a million tokens as an exact decimal, such as `0.3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of(1_000_000).fmt(f)
    }
}

/// An exact amount of money, in 10⁻¹² of its currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u128);

impl Money {
    const UNIT: u128 = 1_000_000_000_000;

    /// Reads a decimal such as `12.5`, of at most 12 digits behind the point; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 12 || whole.len() > 18 {
            return None;
        }
        let whole: u128 = whole.parse().ok()?;
        let rest: u128 = format!("{decimals:0<12}").parse().ok()?;
        Some(Self(whole * Self::UNIT + rest))
    }

    /// The amount in its currency, for medians and charts.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::UNIT as f64
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    /// An exact decimal without trailing zeros, such as `0.000315`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Self::UNIT, self.0 % Self::UNIT);
        let decimals = format!("{rest:012}");
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            decimals => write!(f, "{whole}.{decimals}"),
        }
    }
}

/// What some tokens cost, by bucket; the buckets are disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Input that was neither read from nor written to a prompt cache.
    pub uncached_input: Money,
    /// Input read from a prompt cache.
    pub cache_read: Money,
    /// Input written to a prompt cache.
    pub cache_write: Money,
    /// Output.
    pub output: Money,
}

impl Cost {
    /// All four together.
    #[must_use]
    pub fn total(self) -> Money {
        self.uncached_input + self.cache_read + self.cache_write + self.output
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = Self {
            uncached_input: self.uncached_input + other.uncached_input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
        };
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        let mut sum = Self::default();
        costs.for_each(|cost| sum += cost);
        sum
    }
}
