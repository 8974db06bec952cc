//! Names inside the store's directory. Everything else found there is somebody else's and stays untouched.

use std::fmt::Write as _;

use crate::stores::ItemKey;

pub(super) const LOCK: &str = ".lock";
/// The longest readable part of a name.
const SUFFIX_BYTES: usize = 64;
const KEY_BYTES: usize = 16;

/// What a name of the store stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An item's bytes, exactly as stored.
    Data,
    /// Its description, with the checksums.
    Description,
    /// Bytes that are still arriving.
    Arriving,
}

/// The key and part that `name` stands for; `None` for any name the store does not make.
pub(super) fn parse(name: &str) -> Option<(ItemKey, Part)> {
    let (key, rest) = name.split_at_checked(KEY_BYTES)?;
    let key = key.parse().ok()?;
    let part = match rest {
        ".meta" => Part::Description,
        ".part" => Part::Arriving,
        _ if is_suffix(rest.strip_prefix('-')?) => Part::Data,
        _ => return None,
    };
    Some((key, part))
}

pub(super) fn data(key: ItemKey, suffix: &str) -> String {
    format!("{key}-{suffix}")
}

pub(super) fn description(key: ItemKey) -> String {
    format!("{key}.meta")
}

pub(super) fn arriving(key: ItemKey) -> String {
    format!("{key}.part")
}

/// A label as the readable part of a name: `A-Z a-z 0-9 . _ -` stand, every other UTF-16 unit becomes `~` and four hex
/// digits, and the whole is cut to 64 bytes, never inside an escape.
pub(super) fn suffix(label: &str) -> String {
    let mut out = String::new();
    for char in label.chars() {
        let before = out.len();
        if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') {
            out.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                write!(out, "~{unit:04X}").expect("writing to a String cannot fail");
            }
        }
        if out.len() > SUFFIX_BYTES {
            out.truncate(before);
            break;
        }
    }
    if out.is_empty() { "~".to_owned() } else { out }
}

pub(super) fn is_suffix(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte);
    (1..=SUFFIX_BYTES).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_become_suffixes() {
        for (label, expected) in [
            ("read_file.txt", "read_file.txt"),
            ("", "~"),
            ("a/b", "a~002Fb"),
            ("../../x", "..~002F..~002Fx"),
            ("😀", "~D83D~DE00"),
            ("~", "~007E"),
            ("nul\0", "nul~0000"),
        ] {
            assert_eq!(suffix(label), expected);
        }
        assert_eq!(suffix(&"x".repeat(65_536)), "x".repeat(64));
        assert_eq!(suffix(&"😀".repeat(99)).len(), 60, "an escape is never cut");
    }

    proptest! {
        #[test]
        fn every_name_made_is_recognised_and_is_one_segment(label in any::<String>(), number in any::<u128>()) {
            let key = ItemKey::from_number(number);
            let name = data(key, &suffix(&label));
            prop_assert_eq!(parse(&name), Some((key, Part::Data)));
            prop_assert!(name.len() <= 81 && !name.contains('/'));
        }

        #[test]
        fn no_text_is_a_name_by_accident(text in any::<String>()) {
            prop_assert_eq!(parse(&text), None);
            prop_assert_eq!(parse(&format!("notes-{text}")), None);
        }
    }
}
