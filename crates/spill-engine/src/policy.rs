//! Decides where a result goes.

use crate::measure::Bytes;
use crate::settings::{Settings, Switch};

/// What is to be done with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays in the prompt: the policy is off, or the result is below the threshold.
    Inline,
    /// It would be stored, but the budget has no room: it stays in the prompt.
    InlineOverBudget,
    /// It is stored and replaced by a summary.
    Store,
}

/// Decides where a result of `size` goes while `stored` bytes are stored already; both are serialised sizes. Total: it never
/// fails and does nothing.
#[must_use]
pub fn decide(size: Bytes, stored: Bytes, settings: &Settings) -> Decision {
    match settings.enabled {
        Switch::Off => Decision::Inline,
        Switch::On if size.get() < settings.threshold.get() => Decision::Inline,
        Switch::On if (stored + size).get() > settings.budget.get() => Decision::InlineOverBudget,
        Switch::On => Decision::Store,
    }
}
