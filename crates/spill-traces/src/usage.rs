//! Tokens of a call as recorded.

use std::ops::AddAssign;

/// Tokens in four disjoint buckets, and the sum of the first three. What is not recorded is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: Option<u64>,
    /// Input tokens that were neither read from nor written to a cache.
    pub uncached_input_tokens: Option<u64>,
    /// Input tokens read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to a cache, where the provider counts them apart.
    pub cache_write_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u64>,
}

impl Usage {
    /// From a total that includes what was read from the cache (OpenAI, Gemini, Codex, ATIF). A cached part above the total
    /// leaves the uncached part unknown.
    #[must_use]
    pub fn from_total(input: Option<u64>, cached: Option<u64>, output: Option<u64>) -> Self {
        Self {
            input_tokens: input,
            uncached_input_tokens: input.zip(cached).and_then(|(i, c)| i.checked_sub(c)),
            cache_read_tokens: cached,
            cache_write_tokens: None,
            output_tokens: output,
        }
    }

    /// From disjoint parts (Anthropic, DeepSeek Harness). The total is the sum of the recorded ones, and unknown without the
    /// uncached part.
    #[must_use]
    pub fn from_parts(
        uncached: Option<u64>,
        read: Option<u64>,
        written: Option<u64>,
        output: Option<u64>,
    ) -> Self {
        let total = uncached.map(|tokens| {
            tokens
                .saturating_add(read.unwrap_or(0))
                .saturating_add(written.unwrap_or(0))
        });
        Self {
            input_tokens: total,
            uncached_input_tokens: uncached,
            cache_read_tokens: read,
            cache_write_tokens: written,
            output_tokens: output,
        }
    }

    /// `None` when nothing is recorded in it.
    #[must_use]
    pub fn recorded(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl AddAssign for Usage {
    /// Adds bucket by bucket; a bucket stays `None` as long as no addend has it.
    fn add_assign(&mut self, other: Self) {
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.uncached_input_tokens, other.uncached_input_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.output_tokens, other.output_tokens);
    }
}

fn add(sum: &mut Option<u64>, addend: Option<u64>) {
    if let Some(addend) = addend {
        *sum = Some(sum.unwrap_or(0).saturating_add(addend));
    }
}
