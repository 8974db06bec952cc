//! Sums over the model calls of one step.

use crate::{ports::Usage, result::TokensUsed};

/// Tokens so far; a missing usage makes the sum missing, never smaller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenTally {
    used: TokensUsed,
    answered: u32,
    without_usage: u32,
}

impl TokenTally {
    /// Counts one answered call.
    pub(crate) fn add(&mut self, usage: Option<Usage>) {
        self.answered += 1;
        let Some(usage) = usage else {
            self.without_usage += 1;
            return;
        };
        let fresh = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        self.used.uncached_input = self.used.uncached_input.saturating_add(fresh);
        self.used.cache_read = self.used.cache_read.saturating_add(usage.cached_tokens);
        self.used.output = self.used.output.saturating_add(usage.completion_tokens);
    }

    /// The sums; `None` when no call was answered or an answer had no usage.
    pub(crate) fn total(self) -> Option<TokensUsed> {
        (self.answered > 0 && self.without_usage == 0).then_some(self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64, cached_tokens: u64) -> Option<Usage> {
        Some(Usage {
            prompt_tokens,
            cached_tokens,
            completion_tokens: 7,
        })
    }

    fn check_total(calls: &[Option<Usage>], expected: Option<(u64, u64, u64)>) {
        let mut tally = TokenTally::default();
        for call in calls {
            tally.add(*call);
        }
        let total = tally.total();
        assert_eq!(
            total.map(|used| (used.uncached_input, used.cache_read, used.output)),
            expected
        );
    }

    /// Known fault 70: NousResearch/hermes-agent #12023.
    /// Known fault 72: adolfousier/opencrabs #1636; earendil-works/pi PR #2148; tembo/agent-studio PR #238; omnigent-ai/omnigent #1801.
    #[test]
    fn buckets_are_disjoint_and_a_gap_is_not_zero() {
        check_total(&[], None);
        check_total(&[usage(10, 0)], Some((10, 0, 7)));
        check_total(&[usage(10, 0), usage(30, 10)], Some((30, 10, 14)));
        check_total(&[usage(10, 0), None], None);
        check_total(&[usage(10, 10)], Some((0, 10, 7)));
    }
}
