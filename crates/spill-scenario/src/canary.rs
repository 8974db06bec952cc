use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a canary.
pub const CANARY_LEN: usize = 16;

const PREFIX: &str = "sgc";
/// Source text between two canaries before the next one is due.
const STRIDE: usize = 1024;
/// How far past the due place a line break, or else a space, is looked for.
const REACH: usize = 512;

/// Returns `text` with canaries woven in: one as first line, one as last line, and one for each
/// further KiB of source text.
///
/// An inner canary is a line of its own at the first line break within 512 bytes of where it is
/// due; with no line break there, it follows the next space there; with no space either, it stands
/// between two characters. So two canaries are at most 1,536 bytes of source text apart, and
/// [`strip_canaries`] gives back `text` exactly, unless `text` itself holds something that looks
/// like a canary. The length of what is returned does not depend on `canary_seed`.
#[must_use]
pub fn weave(text: &str, canary_seed: u64) -> String {
    let mut woven = String::with_capacity(text.len() + (text.len() / STRIDE + 3) * 18);
    let mut counter = 0u64;
    let mut push = |woven: &mut String, before: &str, after: &str| {
        woven.push_str(before);
        push_canary(woven, canary_seed, counter);
        woven.push_str(after);
        counter += 1;
    };
    push(&mut woven, "", "\n");
    let mut done = 0;
    let mut due = STRIDE;
    while due < text.len() {
        let (at, after) = next_place(text, due);
        woven.push_str(&text[done..at]);
        done = at;
        if at < text.len() {
            push(&mut woven, "", after);
        }
        due = (at / STRIDE + 1) * STRIDE;
    }
    woven.push_str(&text[done..]);
    if text.is_empty() {
        push(&mut woven, "", "");
    } else if text.ends_with('\n') {
        push(&mut woven, "", "\n");
    } else {
        push(&mut woven, "\n", "");
    }
    woven
}

/// What a value that [`plant`] may replace begins with; hex digits follow.
pub(crate) const TRACE_PREFIX: &str = "trc";
/// Bytes of such a value: those of a canary.
pub(crate) const TRACE_LEN: usize = CANARY_LEN;

/// Returns `text` with canaries in place of values `trc` and 13 lower-case hex digits: of the first
/// one, of the last one, and of the first one in each further KiB.
///
/// For texts whose form a line or word of its own would break. The length stays, and so does the
/// form; [`strip_canaries`] leaves such values empty.
#[must_use]
pub fn plant(text: &str, canary_seed: u64) -> String {
    let places: Vec<usize> = text
        .match_indices(TRACE_PREFIX)
        .map(|(at, _)| at)
        .filter(|at| is_token(&text[*at..], TRACE_PREFIX))
        .collect();
    let last = places.last().copied();
    let mut planted = String::with_capacity(text.len());
    let mut counter = 0u64;
    let mut done = 0;
    let mut due = 0;
    for at in places {
        if at < done || (at < due && Some(at) != last) {
            continue;
        }
        planted.push_str(&text[done..at]);
        push_canary(&mut planted, canary_seed, counter);
        counter += 1;
        done = at + TRACE_LEN;
        due = (at / STRIDE + 1) * STRIDE;
    }
    planted.push_str(&text[done..]);
    planted
}

/// Where the canary due at `due` goes, and what follows it there.
fn next_place(text: &str, due: usize) -> (usize, &'static str) {
    let bytes = text.as_bytes();
    let window = &bytes[due..text.len().min(due + REACH)];
    if let Some(at) = window.iter().position(|byte| *byte == b'\n') {
        return (due + at + 1, "\n");
    }
    if let Some(at) = window.iter().position(|byte| *byte == b' ') {
        return (due + at + 1, " ");
    }
    let boundary = (due..=text.len()).find(|at| text.is_char_boundary(*at));
    (boundary.expect("a text's end is a character boundary"), "")
}

fn push_canary(woven: &mut String, canary_seed: u64, counter: u64) {
    let hash = xxh3_64_with_seed(&counter.to_le_bytes(), canary_seed);
    let digits = format!("{hash:016x}");
    woven.push_str(PREFIX);
    woven.push_str(&digits[..CANARY_LEN - PREFIX.len()]);
}

/// Says whether `token` is a canary: `sgc` and 13 lower-case hex digits, nothing else.
#[must_use]
pub fn is_canary(token: &str) -> bool {
    token.len() == CANARY_LEN && starts_with_canary(token)
}

fn starts_with_canary(text: &str) -> bool {
    is_token(text, PREFIX)
}

fn is_token(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..CANARY_LEN).is_some_and(|head| {
        head.starts_with(prefix.as_bytes())
            && head[prefix.len()..]
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns `text` without canaries: canary lines go whole, a canary inside a line goes with the
/// space that was woven in after it.
#[must_use]
pub fn strip_canaries(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut done = 0;
    let mut from = 0;
    let mut found_any = false;
    while let Some(found) = text[from..].find(PREFIX) {
        let at = from + found;
        if !starts_with_canary(&text[at..]) {
            from = at + PREFIX.len();
            continue;
        }
        found_any = true;
        kept.push_str(&text[done..at]);
        let end = at + CANARY_LEN;
        let before = text[..at].chars().next_back();
        let opens_line = matches!(before, None | Some('\n'));
        match text[end..].chars().next() {
            Some('\n') if opens_line => done = end + 1,
            Some(' ') if before == Some(' ') => done = end + 1,
            None if opens_line => {
                if kept.ends_with('\n') {
                    kept.pop();
                }
                done = end;
            }
            Some(_) | None => done = end,
        }
        from = done;
    }
    if !found_any {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[done..]);
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canaries(woven: &str) -> Vec<usize> {
        (0..woven.len())
            .filter(|at| woven.is_char_boundary(*at) && starts_with_canary(&woven[*at..]))
            .collect()
    }

    fn check_round_trip(text: &str) {
        let woven = weave(text, 7);
        assert_eq!(strip_canaries(&woven), text, "woven: {woven:?}");
        let places = canaries(&woven);
        assert!(places.len() >= 2, "{woven:?}");
        assert_eq!(places[0], 0);
        assert!(
            woven
                .trim_end_matches('\n')
                .ends_with(|c: char| c.is_ascii_hexdigit())
        );
        for pair in places.windows(2) {
            assert!(
                pair[1] - pair[0] <= 1638,
                "{} bytes without a canary",
                pair[1] - pair[0]
            );
        }
    }

    #[test]
    fn round_trips() {
        check_round_trip("");
        check_round_trip("\n");
        check_round_trip("a");
        check_round_trip("a\n");
        check_round_trip("a\n\n");
        check_round_trip("sgc");
        check_round_trip("sgcsgc0123");
        check_round_trip(&"x".repeat(1023));
        check_round_trip(&"x".repeat(1024));
        check_round_trip(&"x".repeat(1025));
        check_round_trip(&"x".repeat(9000));
        check_round_trip(&"é".repeat(5000));
        check_round_trip(&"€".repeat(5000));
        check_round_trip(&" ".repeat(5000));
        check_round_trip(&"\n".repeat(5000));
        check_round_trip(&"word ".repeat(2000));
        check_round_trip(&"a line of text\r\n".repeat(500));
        check_round_trip(&format!("{}\n", "y".repeat(1023)));
        check_round_trip(&format!("{} ", "y".repeat(1024)));
    }

    fn check_planted(text: &str, canaries_at: &[usize]) {
        let planted = plant(text, 7);
        assert_eq!(planted.len(), text.len());
        assert_eq!(canaries(&planted), canaries_at, "{planted:?}");
        assert_ne!(plant(text, 8) == planted, !canaries_at.is_empty());
        // All else stays.
        let blank = |text: &str| {
            text.replace(|c: char| c.is_ascii_hexdigit(), "0")
                .replace("sg0", "tr0")
        };
        assert_eq!(blank(&planted), blank(text));
    }

    #[test]
    fn canaries_are_planted_in_values_made_for_them() {
        let value = "trc0123456789abc";
        check_planted("", &[]);
        check_planted("trc trc01234 trc0123456789abX", &[]);
        check_planted(value, &[0]);
        check_planted(&format!("{value},{value},{value}"), &[0, 34]);
        let row = format!("{:>100}\n", format!("a,{value}"));
        let at = |row: usize| row * 101 + 84;
        check_planted(&row.repeat(25), &[at(0), at(10), at(20), at(24)]);
    }

    #[test]
    fn a_canary_is_sixteen_bytes_of_its_own() {
        assert!(is_canary("sgc0123456789abc"));
        assert!(!is_canary("sgc0123456789abcd"));
        assert!(!is_canary("sgc0123456789ab"));
        assert!(!is_canary("sgc0123456789ABC"));
        assert!(!is_canary("xgc0123456789abc"));
    }

    #[test]
    fn canaries_depend_on_the_seed_and_lengths_do_not() {
        let text = "one line\n".repeat(400);
        assert_ne!(weave(&text, 1), weave(&text, 2));
        assert_eq!(weave(&text, 1).len(), weave(&text, 2).len());
    }

    proptest! {
        #[test]
        fn stripping_undoes_weaving(
            parts in prop::collection::vec(("[a-z \né€]{0,40}", 0usize..60), 0..20),
            seed in any::<u64>(),
        ) {
            let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            let woven = weave(&text, seed);
            prop_assert_eq!(strip_canaries(&woven), text.as_str());
            for pair in canaries(&woven).windows(2) {
                prop_assert!(pair[1] - pair[0] <= 1638);
            }
        }
    }
}
