//! The three settings of the workflow-step policy: defaults, bounds, and what happens to a bad value.

use std::fmt;

/// Switches the policy on or off.
pub const ENABLED_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED";
/// Sets the [`Threshold`] in bytes.
pub const THRESHOLD_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD";
/// Sets the [`Budget`] in bytes.
pub const BUDGET_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_BUDGET_BYTES";

/// The shipped default of [`ENABLED_VAR`].
pub const DEFAULT_ENABLED: Switch = Switch::On;
/// The shipped default of [`THRESHOLD_VAR`]: 128 KiB.
pub const DEFAULT_THRESHOLD_BYTES: u64 = 131_072;
/// The lowest accepted threshold.
pub const MIN_THRESHOLD_BYTES: u64 = 4_096;
/// The highest accepted threshold: 1 MiB.
pub const MAX_THRESHOLD_BYTES: u64 = 1_048_576;
/// The shipped default of [`BUDGET_VAR`]: 16 MiB.
pub const DEFAULT_BUDGET_BYTES: u64 = 16_777_216;
/// The lowest accepted budget: 1 MiB.
pub const MIN_BUDGET_BYTES: u64 = 1_048_576;
/// The highest accepted budget: 256 MiB.
pub const MAX_BUDGET_BYTES: u64 = 268_435_456;

/// Whether the policy does anything at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Results are measured and may be stored.
    On,
    /// Nothing is measured, stored or counted.
    Off,
}

impl Switch {
    /// True when on.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::On => "true",
            Self::Off => "false",
        })
    }
}

/// Results of at least this many serialised bytes leave the prompt (`>=`: the equal case spills), and one read returns at
/// most as many. Always within [`MIN_THRESHOLD_BYTES`]`..=`[`MAX_THRESHOLD_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(u64);

impl Threshold {
    /// Checks `bytes` against the bounds; both ends are accepted.
    ///
    /// # Errors
    /// [`OutOfBounds`] outside of them.
    pub const fn new(bytes: u64) -> Result<Self, OutOfBounds> {
        match within(bytes, MIN_THRESHOLD_BYTES, MAX_THRESHOLD_BYTES) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) => Err(error),
        }
    }

    /// The threshold in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The most serialised bytes that one step execution stores (the equal case still fits). Always within
/// [`MIN_BUDGET_BYTES`]`..=`[`MAX_BUDGET_BYTES`]; it may be lower than a single result, which then stays in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(u64);

impl Budget {
    /// Checks `bytes` against the bounds; both ends are accepted.
    ///
    /// # Errors
    /// [`OutOfBounds`] outside of them.
    pub const fn new(bytes: u64) -> Result<Self, OutOfBounds> {
        match within(bytes, MIN_BUDGET_BYTES, MAX_BUDGET_BYTES) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(error) => Err(error),
        }
    }

    /// The budget in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A number of bytes outside the accepted range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes is outside the accepted range (use {min} to {max})")]
pub struct OutOfBounds {
    /// What was asked for.
    pub bytes: u64,
    /// The lowest accepted value.
    pub min: u64,
    /// The highest accepted value.
    pub max: u64,
}

const fn within(bytes: u64, min: u64, max: u64) -> Result<u64, OutOfBounds> {
    if bytes < min || bytes > max {
        return Err(OutOfBounds { bytes, min, max });
    }
    Ok(bytes)
}

/// What one step execution runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The kill switch.
    pub enabled: Switch,
    /// From which size on a result is stored.
    pub threshold: Threshold,
    /// How much one execution may store.
    pub budget: Budget,
}

impl Settings {
    /// The shipped defaults.
    pub const DEFAULT: Self = Self {
        enabled: DEFAULT_ENABLED,
        threshold: Threshold(DEFAULT_THRESHOLD_BYTES),
        budget: Budget(DEFAULT_BUDGET_BYTES),
    };

    /// Takes the three variables from `lookup`, which is asked for these three names and no other.
    ///
    /// A value that is unset or blank means the default. A value that is not understood or out of bounds means the default
    /// too, never the nearest bound, and adds one warning. Blanks around a value are ignored; numbers are plain ASCII digits.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<SettingWarning>) {
        let mut warnings = Vec::new();
        let settings = Self {
            enabled: take(
                &lookup,
                ENABLED_VAR,
                Self::DEFAULT.enabled,
                parse_switch,
                &mut warnings,
            ),
            threshold: take(
                &lookup,
                THRESHOLD_VAR,
                Self::DEFAULT.threshold,
                parse_threshold,
                &mut warnings,
            ),
            budget: take(
                &lookup,
                BUDGET_VAR,
                Self::DEFAULT.budget,
                parse_budget,
                &mut warnings,
            ),
        };
        (settings, warnings)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A rejected value: which variable, what it was, what is used in its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{variable} is {value:?}, which is not {expected}; using the default {default} (correct or unset {variable})"
)]
pub struct SettingWarning {
    /// The name of the variable.
    pub variable: &'static str,
    /// The rejected value, cut to 64 characters.
    pub value: String,
    /// What would have been accepted.
    pub expected: String,
    /// The default that is used, as it would be written in the variable.
    pub default: String,
}

const SHOWN_VALUE_CHARS: usize = 64;

/// A setting as text: how it reads in a variable, and what is accepted there.
trait Setting: Copy {
    fn written(self) -> String;
    fn expected() -> String;
}

impl Setting for Switch {
    fn written(self) -> String {
        self.to_string()
    }
    fn expected() -> String {
        "true, false, 1 or 0".to_owned()
    }
}

impl Setting for Threshold {
    fn written(self) -> String {
        self.0.to_string()
    }
    fn expected() -> String {
        format!("a whole number from {MIN_THRESHOLD_BYTES} to {MAX_THRESHOLD_BYTES}")
    }
}

impl Setting for Budget {
    fn written(self) -> String {
        self.0.to_string()
    }
    fn expected() -> String {
        format!("a whole number from {MIN_BUDGET_BYTES} to {MAX_BUDGET_BYTES}")
    }
}

fn take<T: Setting>(
    lookup: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    default: T,
    parse: fn(&str) -> Option<T>,
    warnings: &mut Vec<SettingWarning>,
) -> T {
    let Some(raw) = lookup(variable) else {
        return default;
    };
    let value = raw.trim();
    if value.is_empty() {
        return default;
    }
    parse(value).unwrap_or_else(|| {
        warnings.push(SettingWarning {
            variable,
            value: value.chars().take(SHOWN_VALUE_CHARS).collect(),
            expected: T::expected(),
            default: default.written(),
        });
        default
    })
}

fn parse_switch(value: &str) -> Option<Switch> {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    if is("true") || is("1") {
        return Some(Switch::On);
    }
    (is("false") || is("0")).then_some(Switch::Off)
}

fn parse_threshold(value: &str) -> Option<Threshold> {
    Threshold::new(digits(value)?).ok()
}

fn parse_budget(value: &str) -> Option<Budget> {
    Budget::new(digits(value)?).ok()
}

/// `u64::from_str` alone would take a leading `+`.
fn digits(value: &str) -> Option<u64> {
    value
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| value.parse().ok())?
}
