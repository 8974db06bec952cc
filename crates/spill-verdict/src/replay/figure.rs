use spill_record::{CellSums, ReplayRecord, ReplaySums};

/// A figure that a gate may hold against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFigure {
    /// Input tokens less than as recorded.
    SavedInputTokens,
    /// Input bytes less than as recorded.
    SavedInputBytes,
    /// Input tokens that no prompt cache holds, less than as recorded.
    SavedUncachedTokens,
    /// Money for input, less than as recorded.
    SavedCost,
    /// Input tokens.
    InputTokens,
    /// Money for input.
    InputCost,
    /// Calls that reading back adds.
    ExtraCalls,
    /// Results that are replaced.
    ReplacedResults,
    /// Replaced results of whose hidden part the model later repeated something.
    UsedResults,
    /// The largest input.
    PeakContextTokens,
    /// Calls whose input is larger than the window.
    CallsOverWindow,
    /// LLM calls as recorded.
    Calls,
    /// Transcripts.
    Sessions,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayVariant {
    /// The transcripts as they are.
    AsRecorded,
    /// A policy with threshold and size of replacements, and a read-back assumption, by their places in the replay.
    Under {
        /// The policy's.
        cell: usize,
        /// The assumption's.
        read_back: usize,
    },
}

/// A figure and what it is a share of; what is not known is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Observed {
    pub(crate) value: Option<f64>,
    pub(crate) whole: Option<f64>,
}

impl ReplayFigure {
    /// All figures.
    pub const ALL: [Self; 13] = [
        Self::SavedInputTokens,
        Self::SavedInputBytes,
        Self::SavedUncachedTokens,
        Self::SavedCost,
        Self::InputTokens,
        Self::InputCost,
        Self::ExtraCalls,
        Self::ReplacedResults,
        Self::UsedResults,
        Self::PeakContextTokens,
        Self::CallsOverWindow,
        Self::Calls,
        Self::Sessions,
    ];

    /// The name in an expression.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SavedInputTokens => "saved_input_tokens",
            Self::SavedInputBytes => "saved_input_bytes",
            Self::SavedUncachedTokens => "saved_uncached_tokens",
            Self::SavedCost => "saved_cost",
            Self::InputTokens => "input_tokens",
            Self::InputCost => "input_cost",
            Self::ExtraCalls => "extra_calls",
            Self::ReplacedResults => "replaced_results",
            Self::UsedResults => "used_results",
            Self::PeakContextTokens => "peak_context_tokens",
            Self::CallsOverWindow => "calls_over_window",
            Self::Calls => "calls",
            Self::Sessions => "sessions",
        }
    }

    /// Whether it has a share: whether `%` may stand behind its limit.
    #[must_use]
    pub fn has_share(self) -> bool {
        match self {
            Self::SavedInputTokens
            | Self::SavedInputBytes
            | Self::SavedUncachedTokens
            | Self::SavedCost
            | Self::InputTokens
            | Self::InputCost
            | Self::ExtraCalls
            | Self::ReplacedResults
            | Self::UsedResults
            | Self::PeakContextTokens
            | Self::CallsOverWindow => true,
            Self::Calls | Self::Sessions => false,
        }
    }

    /// Whether it says something about a policy that replaced nothing.
    pub(crate) fn needs_replacements(self) -> bool {
        match self {
            Self::SavedInputTokens
            | Self::SavedInputBytes
            | Self::SavedUncachedTokens
            | Self::SavedCost
            | Self::InputTokens
            | Self::InputCost
            | Self::ExtraCalls
            | Self::UsedResults
            | Self::PeakContextTokens
            | Self::CallsOverWindow => true,
            Self::ReplacedResults | Self::Calls | Self::Sessions => false,
        }
    }

    /// Whether it says something of what is recorded, where nothing is replaced.
    pub(crate) fn is_absolute(self) -> bool {
        match self {
            Self::InputTokens
            | Self::InputCost
            | Self::PeakContextTokens
            | Self::CallsOverWindow
            | Self::Calls
            | Self::Sessions => true,
            Self::SavedInputTokens
            | Self::SavedInputBytes
            | Self::SavedUncachedTokens
            | Self::SavedCost
            | Self::ExtraCalls
            | Self::ReplacedResults
            | Self::UsedResults => false,
        }
    }

    /// Whether it is reckoned with a price table.
    pub(crate) fn needs_prices(self) -> bool {
        matches!(self, Self::SavedCost | Self::InputCost)
    }

    /// Whether it, or its share, is held against a context window.
    pub(crate) fn needs_window(self, is_share: bool) -> bool {
        self == Self::CallsOverWindow || (self == Self::PeakContextTokens && is_share)
    }

    /// The figure of one variant.
    pub(crate) fn of(
        self,
        record: &ReplayRecord,
        sums: &ReplaySums,
        variant: ReplayVariant,
    ) -> Observed {
        let base = &sums.as_recorded;
        let nothing = CellSums::default();
        let found = match variant {
            ReplayVariant::AsRecorded => Some((&nothing, base)),
            ReplayVariant::Under { cell, read_back } => sums
                .cells
                .get(cell)
                .zip(sums.outcomes.get(record.outcome_index(cell, read_back))),
        };
        let Some((cell_sums, under)) = found else {
            return Observed {
                value: None,
                whole: None,
            };
        };
        let saved =
            |before: u64, after: u64| (Some(before as f64 - after as f64), Some(before as f64));
        let counted = |part: u64, whole: u64| (Some(part as f64), Some(whole as f64));
        let (value, whole) = match self {
            Self::SavedInputTokens => saved(base.input_tokens, under.input_tokens),
            Self::SavedInputBytes => saved(base.input_bytes, under.input_bytes),
            Self::SavedUncachedTokens => saved(
                base.input_tokens - base.cached_input_tokens,
                under.input_tokens - under.cached_input_tokens,
            ),
            // Some transcripts without a price would make it a part of the money.
            Self::SavedCost if sums.unpriced_sessions > 0 => (None, None),
            Self::SavedCost => (
                base.input_cost.zip(under.input_cost).map(|(a, b)| a - b),
                base.input_cost,
            ),
            Self::InputTokens => counted(under.input_tokens, base.input_tokens),
            Self::InputCost if sums.unpriced_sessions > 0 => (None, None),
            Self::InputCost => (under.input_cost, base.input_cost),
            Self::ExtraCalls => counted(under.extra_calls, base.calls),
            Self::ReplacedResults => counted(cell_sums.replaced_results, sums.sent_results),
            Self::UsedResults => counted(cell_sums.used_results, cell_sums.replaced_results),
            Self::PeakContextTokens => (
                Some(under.peak_context_tokens as f64),
                record.window_tokens.map(|window| window as f64),
            ),
            Self::CallsOverWindow => (
                under.calls_over_window.map(|calls| calls as f64),
                Some(under.calls as f64),
            ),
            Self::Calls => (Some(base.calls as f64), None),
            Self::Sessions => (Some(sums.sessions as f64), None),
        };
        Observed { value, whole }
    }
}
