use std::collections::BTreeMap;

use super::size::Size;

/// What is sent to one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelInput {
    /// Input tokens that the prompt cache does not hold.
    pub uncached_tokens: u64,
    /// Input tokens that it holds.
    pub cached_tokens: u64,
}

/// What all calls of a transcript send together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Calls, extra ones included.
    pub calls: u64,
    /// Calls that reading back adds.
    pub extra_calls: u64,
    /// All inputs.
    pub input: Size,
    /// The part of them that the prompt cache holds.
    pub cached: Size,
    /// The part of them that extra calls send.
    pub extra_input: Size,
    /// The largest input, by tokens.
    pub peak: Size,
    /// Calls whose input is larger than the window; `None` without one.
    pub calls_over_window: Option<u64>,
    /// Input by model; calls whose model is not recorded are `None`.
    pub models: BTreeMap<Option<String>, ModelInput>,
}

impl Outcome {
    /// Bytes and tokens of input that this has less than `recorded`; negative when it has more.
    #[must_use]
    pub fn saved(&self, recorded: &Self) -> (i64, i64) {
        recorded.input.over(self.input)
    }
}
