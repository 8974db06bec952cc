//! Ids inside resource URIs.

use super::options::Form;
use crate::stores::ItemKey;

const KEY_ALPHABET: &str = "0123456789abcdefghjkmnpqrstvwxyz";
const OBSERVED: &str = "spill-";
/// Where a version 4 UUID keeps bits of ours: 60 of the last 62, and 20 of the first 48.
const LOW_BITS: u32 = 60;

/// The id for `key`: the key itself, or in the observed form `spill-` and a version 4 UUID that holds the key's 80 bits.
pub(crate) fn id_of(key: ItemKey, form: Form) -> String {
    match form {
        Form::Published => key.to_string(),
        Form::Observed => format!("{OBSERVED}{}", uuid(number_of(key))),
    }
}

/// The key of an observed id.
pub(crate) fn key_of(id: &str) -> Option<ItemKey> {
    let uuid_text = id.strip_prefix(OBSERVED)?;
    let plain: String = uuid_text.chars().filter(|char| *char != '-').collect();
    let bits = u128::from_str_radix(&plain, 16).ok()?;
    let number = (bits >> 80 << LOW_BITS) | (bits & ((1 << LOW_BITS) - 1));
    let key = ItemKey::from_number(number);
    (id_of(key, Form::Observed) == id).then_some(key)
}

/// The 80 bits of a key.
fn number_of(key: ItemKey) -> u128 {
    let digit = |char| u128::try_from(KEY_ALPHABET.find(char).unwrap_or(0)).unwrap_or(0);
    let digits = key.as_str().chars().map(digit);
    digits.fold(0, |number, digit| (number << 5) | digit)
}

fn uuid(number: u128) -> String {
    let low = number & ((1 << LOW_BITS) - 1);
    let high = (number >> LOW_BITS) & 0xf_ffff;
    let bits = (high << 80) | (4 << 76) | (0b10 << 62) | low;
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observed_id_has_one_spelling() {
        for number in [0, 1, 1 << 59, 1 << 60, (1 << 80) - 1] {
            let key = ItemKey::from_number(number);
            let id = id_of(key, Form::Observed);
            assert_eq!(key_of(&id), Some(key), "{id}");
            for other in [
                id.to_uppercase(),
                id.replace('-', ""),
                format!("{id} "),
                id[..id.len() - 1].to_owned(),
                id.replacen("-4", "-5", 1),
            ] {
                assert_eq!(key_of(&other), None, "{other}");
            }
        }
        let first = id_of(ItemKey::from_number(1), Form::Observed);
        assert_eq!(first, "spill-00000000-0000-4000-8000-000000000001");
    }
}
