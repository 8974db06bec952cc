use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use crate::known::Known;
use crate::measured::Measured;
use crate::tokenizer::{O200kBase, Tokenizer};

/// Texts of at least this many bytes are remembered by their hash; shorter ones are cheaper to
/// tokenise again than to remember. The arguments of a call that every run makes are longer.
pub const CACHED_FROM_BYTES: usize = 32;

/// Counts tokens and remembers the counts of longer texts, and of their parts, by content
/// (XXH3-128).
///
/// Two threads that meet a new text at the same time may both tokenise it; the count is the same.
pub struct TokenCounter {
    tokenizer: Box<dyn Tokenizer>,
    known: Mutex<Known>,
    tokenised_bytes: AtomicU64,
}

impl TokenCounter {
    /// A counter over [`O200kBase`].
    #[must_use]
    pub fn o200k_base() -> Self {
        Self::with_tokenizer(Box::new(O200kBase))
    }

    /// A counter over another tokenizer.
    #[must_use]
    pub fn with_tokenizer(tokenizer: Box<dyn Tokenizer>) -> Self {
        Self {
            tokenizer,
            known: Mutex::default(),
            tokenised_bytes: AtomicU64::new(0),
        }
    }

    /// The same counter, which remembers at most about `counts` counts: the ones that were asked for longest ago are
    /// forgotten. A count takes some 50 bytes.
    #[must_use]
    pub fn remembering(self, counts: usize) -> Self {
        Self {
            known: Mutex::new(Known::at_most(counts)),
            ..self
        }
    }

    /// Name of the tokenizer, for the record.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.tokenizer.name()
    }

    /// Tokens of `text`.
    pub fn count(&self, text: &str) -> u64 {
        if text.len() < CACHED_FROM_BYTES {
            return self.tokenise(text);
        }
        let hash = xxh3_128(text.as_bytes());
        if let Some(tokens) = self.known().get(hash) {
            return tokens;
        }
        let tokens = self.measure(text).tokens();
        self.known().insert(hash, tokens);
        tokens
    }

    /// Counts the parts of a text one by one and remembers them: a slice of a known text is mostly made of known lines.
    pub fn measure(&self, text: &str) -> Measured {
        let mut hashes = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = at + self.tokenizer.first_part(&text[at..]);
            hashes.push((xxh3_128(&text.as_bytes()[at..end]), at..end));
            at = end;
        }
        let mut parts = Vec::with_capacity(hashes.len());
        let mut unknown = Vec::new();
        let mut known = self.known();
        for (index, (hash, range)) in hashes.into_iter().enumerate() {
            let count = known.get(hash);
            parts.push((range.end, count.unwrap_or(0)));
            if count.is_none() {
                unknown.push((index, hash, range));
            }
        }
        drop(known);
        let mut new = HashMap::new();
        for (index, hash, range) in unknown {
            parts[index].1 = *new
                .entry(hash)
                .or_insert_with(|| self.tokenise(&text[range]));
        }
        let mut known = self.known();
        for (hash, tokens) in new {
            known.insert(hash, tokens);
        }
        Measured::of(parts)
    }

    /// Tokens of the part `range` of `text`, which was measured: what it cuts is counted anew, the rest is known. The tokens
    /// at the two cuts are those of the cut pieces on their own.
    ///
    /// # Panics
    ///
    /// When `range` is outside of `text` or not on character bounds.
    pub fn count_slice(&self, text: &str, measured: &Measured, range: Range<usize>) -> u64 {
        let Some(whole) = measured.whole_parts(&range) else {
            return self.count(&text[range]);
        };
        self.count(&text[range.start..whole.bytes.start])
            + whole.tokens
            + self.count(&text[whole.bytes.end..range.end])
    }

    /// Bytes that went through the tokenizer so far; what the cache answered is not in it.
    pub fn tokenised_bytes(&self) -> u64 {
        self.tokenised_bytes.load(Ordering::Relaxed)
    }

    fn tokenise(&self, text: &str) -> u64 {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.tokenised_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.tokenizer.count(text)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TokenCounter {
    fn default() -> Self {
        Self::o200k_base()
    }
}

impl fmt::Debug for TokenCounter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenCounter")
            .field("tokenizer", &self.name())
            .field("tokenised_bytes", &self.tokenised_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts one token for each byte.
    struct Bytes;

    impl Tokenizer for Bytes {
        fn name(&self) -> &'static str {
            "bytes"
        }

        fn count(&self, text: &str) -> u64 {
            text.len() as u64
        }
    }

    fn check_count(text: &str, tokens: u64) {
        assert_eq!(TokenCounter::o200k_base().count(text), tokens, "{text:?}");
    }

    #[test]
    fn counts_are_those_of_the_openai_cookbook() {
        check_count("", 0);
        check_count("hello world", 2);
        check_count("Hello, world!", 4);
        check_count("antidisestablishmentarianism", 6);
        check_count("2 + 2 = 4", 7);
        check_count("お誕生日おめでとう", 8);
    }

    #[test]
    fn special_tokens_written_out_are_ordinary_text() {
        assert!(TokenCounter::o200k_base().count("<|endoftext|>") > 1);
    }

    fn check_tokenised(len: usize, asked: u64, tokenised: u64) {
        let counter = TokenCounter::with_tokenizer(Box::new(Bytes));
        let text = "x".repeat(len);
        for _ in 0..asked {
            assert_eq!(counter.count(&text), len as u64);
        }
        assert_eq!(counter.tokenised_bytes(), tokenised, "{len} bytes");
    }

    #[test]
    fn a_text_of_32_bytes_is_tokenised_once_and_a_shorter_one_each_time() {
        check_tokenised(31, 3, 3 * 31);
        check_tokenised(32, 3, 32);
        check_tokenised(33, 3, 33);
    }

    #[test]
    fn a_slice_of_a_known_text_costs_the_lines_that_it_cuts() {
        let counter = TokenCounter::o200k_base();
        let text: String = (0..100)
            .map(|n| format!("    let value_{n} = compute({n});\n"))
            .collect();
        counter.count(&text);
        let before = counter.tokenised_bytes();
        let slice = &text[1003..2999];
        assert_eq!(
            counter.count(slice),
            TokenCounter::o200k_base().count(slice)
        );
        assert!(counter.tokenised_bytes() - before < 80);
    }

    /// Counts one token for each byte, in parts of a line each.
    struct Lines;

    impl Tokenizer for Lines {
        fn name(&self) -> &'static str {
            "lines"
        }

        fn count(&self, text: &str) -> u64 {
            text.len() as u64
        }

        fn first_part(&self, text: &str) -> usize {
            text.find('\n').map_or(text.len(), |at| at + 1)
        }
    }

    #[test]
    fn a_counter_with_a_bound_forgets_and_counts_again() {
        let text = |letter: &str| letter.repeat(300);
        let counter = TokenCounter::with_tokenizer(Box::new(Bytes)).remembering(4);
        for letter in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(counter.count(&text(letter)), 300);
        }
        let before = counter.tokenised_bytes();
        counter.count(&text("f"));
        assert_eq!(counter.tokenised_bytes(), before, "the last one is known");
        counter.count(&text("a"));
        assert_eq!(
            counter.tokenised_bytes(),
            before + 300,
            "the first one is not"
        );
    }

    #[track_caller]
    fn check_slice(text: &str, range: Range<usize>, tokenised: u64) {
        let counter = TokenCounter::with_tokenizer(Box::new(Lines));
        let measured = counter.measure(text);
        assert_eq!(measured.tokens(), text.len() as u64);
        let before = counter.tokenised_bytes();
        let tokens = counter.count_slice(text, &measured, range.clone());
        assert_eq!(tokens, range.len() as u64, "{range:?}");
        assert_eq!(counter.tokenised_bytes() - before, tokenised, "{range:?}");
    }

    #[test]
    fn a_slice_counts_what_it_cuts() {
        let text = "one\ntwo\nthree\n";
        check_slice(text, 0..14, 0);
        check_slice(text, 4..8, 0);
        check_slice(text, 1..14, 3);
        check_slice(text, 0..9, 1);
        check_slice(text, 1..9, 4);
        check_slice(text, 5..7, 2);
        check_slice(text, 5..8, 3);
        check_slice(text, 3..3, 0);
        check_slice(text, 14..14, 0);
        check_slice("", 0..0, 0);
    }

    #[test]
    fn hard_texts_are_counted() {
        let counter = TokenCounter::o200k_base();
        for text in [
            " ".repeat(300_000),
            "\n".repeat(300_000),
            "=".repeat(300_000),
            "\0".repeat(1000),
            "\u{301}".repeat(10_000),
            "\u{1F468}\u{200D}\u{1F469}".repeat(5000),
        ] {
            assert!(counter.count(&text) > 0);
        }
    }

    proptest! {
        #[test]
        fn every_text_has_a_count_of_at_most_its_bytes(text in "\\PC{0,400}|(?s).{0,400}") {
            let counter = TokenCounter::o200k_base();
            let tokens = counter.count(&text);
            prop_assert!(tokens <= text.len() as u64);
            prop_assert_eq!(tokens == 0, text.is_empty());
            prop_assert_eq!(counter.count(&text), tokens);
        }
    }
}
