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

    /// Length of a first part of `text` whose tokens and those of the rest add up to the whole
    /// text's: the parts can be counted one by one. The length of `text` where no shorter one is
    /// known; 0 for an empty text only.
    fn first_part(&self, text: &str) -> usize {
        text.len()
    }
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

    /// One line, or several where a token could span the break between them.
    fn first_part(&self, text: &str) -> usize {
        let lines = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut ends = lines.filter(|&end| is_cut_before(&text.as_bytes()[end..]));
        ends.next().unwrap_or(text.len())
    }
}

/// Whether a text is always cut between a line feed and `rest`.
///
/// The vocabulary's pattern cuts a text into pieces before it is encoded, and has no look-behind.
/// Only two of its alternatives match beyond a line feed: ` ?[^\s\p{L}\p{N}]+[\r\n/]*` goes on with
/// line breaks and slashes, `\s*[\r\n]+` with white space up to the last line break in it. Neither
/// reaches into `rest` when that starts with blanks, if any, and then a visible character, and not
/// with a slash.
fn is_cut_before(rest: &[u8]) -> bool {
    let visible = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    rest.first() != Some(&b'/') && visible.is_some_and(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str) -> Vec<&str> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(O200kBase.first_part(rest));
            parts.push(part);
            rest = after;
        }
        parts
    }

    fn check_parts(text: &str, expected: &[&str]) {
        assert_eq!(parts(text), expected, "{text:?}");
        let sum: u64 = parts(text).iter().map(|part| O200kBase.count(part)).sum();
        assert_eq!(sum, O200kBase.count(text), "{text:?}");
    }

    #[test]
    fn a_text_is_cut_at_line_breaks_that_no_token_spans() {
        check_parts("", &[]);
        check_parts("a", &["a"]);
        check_parts("a\nb\n", &["a\n", "b\n"]);
        check_parts("a;\n  b\n\tc", &["a;\n", "  b\n", "\tc"]);
        check_parts("a\n\n\nb", &["a\n\n\n", "b"]);
        check_parts("a\n  \n b", &["a\n  \n", " b"]);
        check_parts("a\r\nb", &["a\r\n", "b"]);
        check_parts("a\n \r\nb", &["a\n \r\n", "b"]);
        check_parts("};\n//x\n /y", &["};\n//x\n", " /y"]);
        check_parts("a\n\u{a0}\nb", &["a\n\u{a0}\n", "b"]);
        check_parts("a\n \u{2028}b", &["a\n \u{2028}b"]);
        check_parts("a\n  ", &["a\n  "]);
    }

    proptest! {
        #[test]
        fn parts_add_up(text in "[a-cA-C1-3 \t\r\n\n\n/;'.{é\u{301}\u{a0}\u{85}\u{2028}\u{b}中]{0,60}") {
            let all = parts(&text);
            prop_assert_eq!(all.concat(), text.clone());
            let sum: u64 = all.iter().map(|part| O200kBase.count(part)).sum();
            prop_assert_eq!(sum, O200kBase.count(&text), "{:?}", text);
        }
    }
}
