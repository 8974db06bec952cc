//! Where bytes may be cut: between characters, and anywhere between bytes that are none.

use std::ops::Range;

/// Most bytes of a character before and after a position inside it.
pub(crate) const REACH: u64 = 3;

/// True when cutting `bytes` at `at` leaves every whole character whole.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    let continues = |byte: &u8| (0x80..0xc0).contains(byte);
    if !bytes.get(at).is_some_and(continues) {
        return true;
    }
    for back in 1..=at.min(3) {
        let lead = bytes[at - back];
        let length = match lead {
            0x80..0xc0 => continue,
            0xc2..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf5 => 4,
            _ => 1,
        };
        let character = bytes.get(at - back..at - back + length);
        return !(back < length && character.is_some_and(|bytes| str::from_utf8(bytes).is_ok()));
    }
    true
}

/// The first boundary at or after `at`.
pub(crate) fn ceil(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len())
        .find(|at| is_boundary(bytes, *at))
        .unwrap_or(bytes.len())
}

/// The last boundary at or before `at`.
pub(crate) fn floor(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    (0..=at)
        .rev()
        .find(|at| is_boundary(bytes, *at))
        .unwrap_or(0)
}

/// The part of `wanted` that is whole characters: the start moves forward, the end back. Too short for the character at its
/// start, it is that character, so that going on always advances.
pub(crate) fn whole(bytes: &[u8], wanted: Range<usize>) -> Range<usize> {
    let start = ceil(bytes, wanted.start);
    let end = floor(bytes, wanted.end);
    if start < end {
        return start..end;
    }
    start..ceil(bytes, (start + 1).min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_str_on_texts(text in any::<String>(), at in 0..100_usize) {
            let at = at.min(text.len());
            prop_assert_eq!(ceil(text.as_bytes(), at), text.ceil_char_boundary(at));
            prop_assert_eq!(floor(text.as_bytes(), at), text.floor_char_boundary(at));
        }

        #[test]
        fn any_bytes_have_boundaries_nearby(bytes in prop::collection::vec(prop::sample::select(vec![0_u8, b'a', 0x80, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff]), 0..20), at in 0..20_usize) {
            let at = at.min(bytes.len());
            let (floor, ceil) = (floor(&bytes, at), ceil(&bytes, at));
            prop_assert!(floor <= at && at <= ceil && ceil - floor <= 4);
            let reach = (at.saturating_sub(3), (at + 4).min(bytes.len()));
            prop_assert_eq!(is_boundary(&bytes, at), is_boundary(&bytes[reach.0..reach.1], at - reach.0), "three bytes around decide");
        }
    }
}
