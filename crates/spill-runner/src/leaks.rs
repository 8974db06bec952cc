//! Searches places for tool-result content that must not be there.
//!
//! Two things are content: a canary of the input, and any 64 bytes that stand in a row in a served
//! text, as they are or escaped as JSON once or twice. Texts are indexed by their aligned 32-byte
//! blocks: every 64-byte window holds at least one whole block, so a rolling hash over the searched
//! bytes finds every window, and a comparison confirms it.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use spill_scenario::is_canary;

/// Bytes in a row that count as content.
pub(crate) const WINDOW_BYTES: usize = 64;
const BLOCK_BYTES: usize = WINDOW_BYTES / 2;
/// A run of fewer distinct bytes than this is a rule or padding, not content.
const DISTINCT_BYTES: usize = 9;
/// Places of one block that are compared; equal blocks beyond it are padding in practice.
const CANDIDATES: usize = 64;
const BASE: u64 = 0x0100_0000_01b3;
const CANARY_BYTES: usize = 16;
const CANARY_PREFIX: &[u8] = b"sgc";

/// The served texts of one input, ready to be looked for.
pub(crate) struct Needles {
    texts: Vec<Vec<u8>>,
    /// (hash, text, offset) of every aligned block, sorted.
    blocks: Vec<(u64, u32, u32)>,
    /// One bit per hash prefix: most searched bytes end here.
    filter: Vec<u64>,
}

const FILTER_BITS: u32 = 20;

impl Needles {
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let texts: Vec<Vec<u8>> = texts
            .into_iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
        let mut blocks = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let index = u32::try_from(index).expect("an input has fewer than 4 billion texts");
            for (number, block) in text.chunks_exact(BLOCK_BYTES).enumerate() {
                let Ok(offset) = u32::try_from(number * BLOCK_BYTES) else {
                    break;
                };
                blocks.push((hash(block), index, offset));
            }
        }
        blocks.sort_unstable();
        let mut filter = vec![0; 1 << (FILTER_BITS - 6)];
        for (hash, _, _) in &blocks {
            let (word, bit) = filter_place(*hash);
            filter[word] |= 1 << bit;
        }
        Self {
            texts,
            blocks,
            filter,
        }
    }

    /// Says what of the served texts stands in `haystack`, without quoting it.
    pub(crate) fn find(&self, haystack: &[u8]) -> Option<&'static str> {
        if has_canary(haystack) {
            return Some("a canary");
        }
        if self.has_window(haystack) {
            return Some("64 bytes of a result");
        }
        let mut escaped = Cow::Borrowed(haystack);
        for _ in 0..2 {
            let plain = json_unescaped(&escaped)?;
            if has_canary(&plain) {
                return Some("a canary");
            }
            if self.has_window(&plain) {
                return Some("64 bytes of a JSON-escaped result");
            }
            escaped = Cow::Owned(plain);
        }
        None
    }

    fn has_window(&self, haystack: &[u8]) -> bool {
        if haystack.len() < WINDOW_BYTES {
            return false;
        }
        let drop_factor = (1..BLOCK_BYTES).fold(1_u64, |factor, _| factor.wrapping_mul(BASE));
        let mut rolling = hash(&haystack[..BLOCK_BYTES]);
        let mut at = 0;
        loop {
            let (word, bit) = filter_place(rolling);
            if self.filter[word] >> bit & 1 == 1 && self.confirms(haystack, at, rolling) {
                return true;
            }
            let Some(&next) = haystack.get(at + BLOCK_BYTES) else {
                return false;
            };
            let gone = u64::from(haystack[at]) + 1;
            rolling = rolling
                .wrapping_sub(gone.wrapping_mul(drop_factor))
                .wrapping_mul(BASE)
                .wrapping_add(u64::from(next) + 1);
            at += 1;
        }
    }

    fn confirms(&self, haystack: &[u8], at: usize, hash: u64) -> bool {
        let first = self.blocks.partition_point(|block| block.0 < hash);
        self.blocks[first..]
            .iter()
            .take_while(|block| block.0 == hash)
            .take(CANDIDATES)
            .any(|&(_, text, offset)| {
                let text = &self.texts[text as usize];
                let run = common_run(haystack, at, text, offset as usize);
                run.len() >= WINDOW_BYTES && distinct(run) >= DISTINCT_BYTES
            })
    }
}

/// The longest run of equal bytes around position `at` of `haystack` and `offset` of `text`.
fn common_run<'a>(haystack: &'a [u8], at: usize, text: &[u8], offset: usize) -> &'a [u8] {
    let before = haystack[..at]
        .iter()
        .rev()
        .zip(text[..offset].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let after = haystack[at..]
        .iter()
        .zip(&text[offset..])
        .take_while(|(a, b)| a == b)
        .count();
    &haystack[at - before..at + after]
}

fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    for &byte in bytes {
        seen[usize::from(byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}

fn has_canary(haystack: &[u8]) -> bool {
    memmem::find_iter(haystack, CANARY_PREFIX).any(|at| {
        haystack
            .get(at..at + CANARY_BYTES)
            .and_then(|token| std::str::from_utf8(token).ok())
            .is_some_and(is_canary)
    })
}

fn hash(block: &[u8]) -> u64 {
    block.iter().fold(0_u64, |hash, &byte| {
        hash.wrapping_mul(BASE).wrapping_add(u64::from(byte) + 1)
    })
}

fn filter_place(hash: u64) -> (usize, u32) {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS);
    let word = usize::try_from(mixed >> 6).expect("the filter is small");
    (word, u32::try_from(mixed & 63).expect("masked to six bits"))
}

/// Undoes JSON string escapes; `None` when there is none. What is no escape stays as it is.
fn json_unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    memchr(b'\\', bytes)?;
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let (decoded, used) = escape_at(&rest[at..]);
        let mut utf8 = [0; 4];
        match decoded {
            Some(character) => plain.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes()),
            None => plain.extend_from_slice(&rest[at..at + used]),
        }
        rest = &rest[at + used..];
    }
    plain.extend_from_slice(rest);
    Some(plain)
}

/// Decodes the escape that `bytes` starts with: the character, and how many bytes it took.
fn escape_at(bytes: &[u8]) -> (Option<char>, usize) {
    let simple = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'u') => return unicode_escape_at(bytes),
        Some(_) | None => return (None, 1),
    };
    (Some(simple), 2)
}

fn unicode_escape_at(bytes: &[u8]) -> (Option<char>, usize) {
    let Some(first) = hex4(bytes) else {
        return (None, 1);
    };
    if let Some(character) = char::from_u32(first) {
        return (Some(character), 6);
    }
    let second = bytes.get(6..).and_then(hex4);
    let pair = second
        .filter(|low| (0xdc00..0xe000).contains(low) && (0xd800..0xdc00).contains(&first))
        .map(|low| 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00))
        .and_then(char::from_u32);
    match pair {
        Some(character) => (Some(character), 12),
        None => (None, 1),
    }
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    if bytes.get(..2) != Some(b"\\u") {
        return None;
    }
    let digits = std::str::from_utf8(bytes.get(2..6)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "fn transfer(from: Account, to: Account, amount: u64) -> Result<(), Error> {\n\
        \tlet total = from.balance.checked_sub(amount).ok_or(Error::Insufficient)?;\n\
        \tprintln!(\"moved {amount} to “{to}”\");\n}\n";

    fn needles() -> Needles {
        Needles::new([TEXT])
    }

    fn check(haystack: &str, want: Option<&str>) {
        assert_eq!(needles().find(haystack.as_bytes()), want, "{haystack}");
    }

    #[test]
    fn the_window_is_64_bytes() {
        check(
            &format!("<<{}>>", &TEXT[3..67]),
            Some("64 bytes of a result"),
        );
        check(&format!("<<{}>>", &TEXT[3..66]), None);
    }

    #[test]
    fn every_alignment_of_a_window_is_found() {
        for start in 0..=TEXT.len() - WINDOW_BYTES {
            let Some(window) = TEXT.get(start..start + WINDOW_BYTES) else {
                continue;
            };
            check(&format!("log: {window}|"), Some("64 bytes of a result"));
        }
    }

    #[test]
    fn escaped_content_is_found() {
        let quoted = serde_json::to_string(TEXT).expect("a string serialises");
        check(&quoted, Some("64 bytes of a result"));
        let lines = "a\"b\"\n".repeat(4) + "cdefghijkl\n\tmnop\n\"q\"\n" + &"r\"st\n".repeat(8);
        let index = Needles::new([lines.as_str()]);
        let once = serde_json::to_string(&lines).expect("a string serialises");
        let twice = serde_json::to_string(&once).expect("a string serialises");
        let want = Some("64 bytes of a JSON-escaped result");
        assert_eq!(index.find(once.as_bytes()), want);
        assert_eq!(index.find(twice.as_bytes()), want);
    }

    #[test]
    fn non_ascii_escapes_are_found() {
        let text = "Größe überschreitet für Ölförderung äußerst häufig übliche Maße, prüfe später nächtliche Läufe";
        let escaped: String = text
            .chars()
            .map(|c| {
                if c.is_ascii() {
                    c.to_string()
                } else {
                    format!("\\u{:04x}", u32::from(c))
                }
            })
            .collect();
        let found = Needles::new([text]).find(escaped.as_bytes());
        assert_eq!(found, Some("64 bytes of a JSON-escaped result"));
    }

    #[test]
    fn padding_is_not_content() {
        let ruled = format!("title\n{}\nbody", "=".repeat(300));
        let index = Needles::new([ruled.as_str()]);
        assert_eq!(index.find("=".repeat(200).as_bytes()), None);
    }

    #[test]
    fn a_canary_is_found_wherever_it_stands() {
        let woven = spill_scenario::weave("one\ntwo\n", 7);
        let canary = woven
            .split_whitespace()
            .find(|token| is_canary(token))
            .expect("a woven text has canaries");
        check(&format!("x{canary}y"), Some("a canary"));
        check("sgc and sgc0", None);
    }

    proptest! {
        #[test]
        fn never_panics_and_unrelated_text_is_clean(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(needles().find(&bytes), None);
        }
    }
}
