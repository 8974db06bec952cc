//! The key of a stored item: 16 characters that are hard to confuse.

use std::fmt;
use std::str::FromStr;

/// Crockford's base 32 in lower case: no `i`, `l`, `o` or `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 16;

/// Names one item of a store: 80 bits, written as 16 characters of `0-9 a-z` without `i`, `l`, `o`, `u`. It is made from a
/// source of names, never from an id that a caller brings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey([u8; LENGTH]);

impl ItemKey {
    /// The key for the low 80 bits of `number`.
    pub fn from_number(number: u128) -> Self {
        let mut key = [0; LENGTH];
        for (place, digit) in key.iter_mut().rev().enumerate() {
            let five_bits = usize::try_from((number >> (5 * place)) & 31).expect("five bits");
            *digit = ALPHABET[five_bits];
        }
        Self(key)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for ItemKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ItemKey({self})")
    }
}

/// Not a key: another length or character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key of 16 characters 0-9 a-z (copy it from the notice)")]
pub struct MalformedKey;

impl FromStr for ItemKey {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, MalformedKey> {
        let key: [u8; LENGTH] = text.as_bytes().try_into().map_err(|_| MalformedKey)?;
        let known = key.iter().all(|byte| ALPHABET.contains(byte));
        known.then_some(Self(key)).ok_or(MalformedKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_spelling() {
        let key = ItemKey::from_number(u128::MAX);
        assert_eq!(key.as_str(), "zzzzzzzzzzzzzzzz");
        assert_eq!(key.as_str().parse(), Ok(key));
        assert_eq!(ItemKey::from_number(33).as_str(), "0000000000000011");
        for text in [
            "",
            "zzzzzzzzzzzzzzz",
            "ZZZZZZZZZZZZZZZZ",
            "zzzzzzzzzzzzzzzzz",
            "zzzzzzzzzzzzzzzi",
            "../../../../../..",
        ] {
            assert_eq!(text.parse::<ItemKey>(), Err(MalformedKey), "{text}");
        }
    }
}
