/// Turns a text into a number of tokens.
///
/// Implementations are total (no text makes them fail or panic) and pure (equal texts have equal
/// counts), because [`TokenCounter`](crate::TokenCounter) remembers what they answered.
pub trait Tokenizer: Send + Sync {
    /// Name that stands in records, with the word `estimate` where the vocabulary is not the
    /// model's own.
    fn name(&self) -> &'static str;

    /// Tokens of `text`; special tokens written out in it count as ordinary text.
    fn count(&self, text: &str) -> u64;
}

/// OpenAI's `o200k_base` vocabulary; it is loaded on the first count (about 0.1 s of CPU).
#[derive(Clone, Copy, Debug, Default)]
pub struct O200kBase;

impl Tokenizer for O200kBase {
    fn name(&self) -> &'static str {
        "o200k_base estimate"
    }

    fn count(&self, text: &str) -> u64 {
        u64::try_from(bpe_openai::o200k_base().count(text)).unwrap_or(u64::MAX)
    }
}
