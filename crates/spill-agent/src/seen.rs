//! A result after the policy, whichever that is.

use std::fmt;

use spill_engine::{Kept, Placement, SharedText, Warning};

/// A result on its way into record and prompt.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The original.
    pub(crate) record_text: SharedText,
    /// What the model sees.
    pub(crate) prompt: SharedText,
    /// The size that the policy measured.
    pub(crate) measured: Option<u64>,
    /// Where it went.
    pub(crate) placed: Placed,
    pub(crate) is_error: bool,
}

/// Where a result went; `Debug` is what the log says.
#[derive(Clone)]
pub(crate) enum Placed {
    Step(Placement),
    Stored,
    Kept(Kept),
}

impl Placed {
    /// What somebody should be told, once.
    pub(crate) fn warning(&self) -> Option<&Warning> {
        match self {
            Self::Kept(Kept::Warned(warning)) => Some(warning),
            Self::Step(_) | Self::Stored | Self::Kept(_) => None,
        }
    }
}

impl fmt::Debug for Placed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(placement) => placement.fmt(out),
            Self::Stored => out.write_str("Stored"),
            // The warning itself is logged where it is new.
            Self::Kept(Kept::Warned(_)) => out.write_str("Inline(Warned)"),
            Self::Kept(kept) => write!(out, "Inline({kept:?})"),
        }
    }
}
