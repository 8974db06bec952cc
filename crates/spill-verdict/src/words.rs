//! How values and names from outside are written into sentences.

use std::borrow::Cow;

use spill_record::is_unsafe;

/// `text` on one line and harmless on a terminal: control characters and the marks that reorder
/// or hide text become U+FFFD, and long text is cut.
#[must_use]
pub fn plain(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut safe: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if is_unsafe(c) { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        safe.push('…');
    }
    safe
}

/// `text` on as many lines as it has, and otherwise as [`plain`] makes it; nothing is cut.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t');
    if text.contains(bad) {
        Cow::Owned(text.replace(bad, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// An input with its scenario; one name when both are the same.
pub(crate) fn place(scenario: &str, input: &str) -> String {
    if scenario == input {
        plain(input)
    } else {
        format!("{}/{}", plain(scenario), plain(input))
    }
}

/// A whole number with thousands separators.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count, or the half between two counts, with thousands separators; `value` is not negative.
#[must_use]
pub fn amount(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are not negative, and the cast saturates"
    )]
    let floor = value.floor() as u64;
    let half = if value.fract() == 0.0 { "" } else { ".5" };
    format!("{}{half}", grouped(floor))
}

/// A figure with at most three decimals and no trailing zeros.
///
/// A value that is not whole never reads as a whole one: digits are added until it does not, so
/// that a figure just past its limit is not printed as the limit.
#[must_use]
pub fn figure(value: f64) -> String {
    for decimals in 3..=9 {
        let text = format!("{value:.decimals$}");
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        let whole = !trimmed.contains('.');
        if !whole || value.fract() == 0.0 {
            return if trimmed == "-0" {
                "0".to_owned()
            } else {
                trimmed.to_owned()
            };
        }
    }
    value.to_string()
}

/// `value` with as many digits as it takes to tell it from `limit`.
#[must_use]
pub fn figure_beside(value: f64, limit: f64) -> String {
    let text = figure(value);
    if value == limit || text != figure(limit) {
        text
    } else {
        value.to_string()
    }
}

/// A share as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", figure((share * 100_000.0).round() / 1_000.0))
}

/// `count` with its noun in the right number.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{} {noun}s", grouped(count))
    }
}

#[cfg(test)]
mod tests {
    use super::{amount, counted, figure, figure_beside, grouped, harmless, percent, plain};

    #[test]
    fn names_cannot_drive_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(plain("x\u{202e}y\u{200f}"), "x\u{fffd}y\u{fffd}");
        assert_eq!(plain(&"é".repeat(300)).chars().count(), 201);
        assert_eq!(plain("größe/文書 🙂"), "größe/文書 🙂");
    }

    #[test]
    fn texts_of_several_lines_stay_so_and_drive_no_terminal() {
        assert_eq!(harmless("a\n\tb"), "a\n\tb");
        assert_eq!(
            harmless("a\u{1b}]0;x\u{7}\r\u{9b}\n"),
            "a\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}\n"
        );
    }

    #[test]
    fn figures_never_round_onto_a_whole_number() {
        assert_eq!(figure(1.0), "1");
        assert_eq!(figure(-0.0), "0");
        assert_eq!(figure(1.00004), "1.00004");
        assert_eq!(figure(0.99995), "0.99995");
        assert_eq!(figure(1.1), "1.1");
        assert_eq!(figure(-0.05), "-0.05");
        assert_eq!(figure(1.000_000_000_1), "1.0000000001");
        assert_eq!(figure(1234.5), "1234.5");
        assert_eq!(figure_beside(1.100_000_04, 1.1), "1.10000004");
        assert_eq!(figure_beside(1.1, 1.1), "1.1");
        assert_eq!(percent(0.8), "80 %");
        assert_eq!(percent(2.0 / 3.0), "66.667 %");
    }

    #[test]
    fn counts_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(131_072), "131,072");
        assert_eq!(amount(1_234.0), "1,234");
        assert_eq!(amount(1_234.5), "1,234.5");
        assert_eq!(counted(1, "pair"), "1 pair");
        assert_eq!(counted(0, "pair"), "0 pairs");
    }
}
