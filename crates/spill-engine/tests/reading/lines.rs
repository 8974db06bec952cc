use serde_json::json;
use spill_engine::{AskError, Part};

use super::stored;

#[track_caller]
fn check_line(text: &str, line: i64, lines: u64, expected: Result<&str, AskError>) {
    stored(text.to_owned(), |shelf| {
        let found = shelf.text(&json!({"line": line, "lines": lines}));
        assert_eq!(
            found,
            expected.clone().map(str::to_owned),
            "{text:?} {line} {lines}"
        );
    });
}

#[test]
fn lines_are_counted_from_both_ends() {
    check_line("a\nb\nc\n", 1, 1, Ok("a\n"));
    check_line("a\nb\nc\n", 2, 2, Ok("b\nc\n"));
    check_line("a\nb\nc\n", 3, 9, Ok("c\n"));
    check_line("a\nb\nc", 3, 1, Ok("c"));
    check_line("a\n\nb\n", 2, 1, Ok("\n"));
    check_line("a\nb\nc\n", -2, 1, Ok("b\n"));
    check_line("a\nb\nc", -1, 1, Ok("c"));
    check_line("a\nb\nc\n", -99, 1, Ok("a\n"));
    check_line("", 1, 1, Ok(""));
    check_line("", -1, 1, Ok(""));
    check_line("\n", 1, 1, Ok("\n"));
}

/// The last line, asked for from the end of a text that ends in a line feed, is not empty.
#[test]
fn fault_44_the_last_line_is_the_last_terminated_one() {
    check_line("a\nb\nc\n", -1, 1, Ok("c\n"));
    for text in ["", "a", "a\n", "a\nb", "a\n\nb\n", "\n\n"] {
        let lines = spill_engine::line_count(text);
        let past = AskError::LinePastEnd {
            line: lines + 1,
            lines,
        };
        if lines > 0 {
            check_line(text, i64::try_from(lines + 1).expect("few"), 1, Err(past));
        }
    }
}

/// A line beyond the cap is cut inside, and the rest of it is reached by going on.
#[test]
fn fault_40_one_line_of_50_mb_is_read_in_parts() {
    let bytes = 50 << 20;
    let mut text = "0123456789".repeat(bytes / 10);
    text.push_str("\nlast");
    stored(text, |shelf| {
        let answer = shelf
            .arguments(&json!({"line": 1, "lines": 1}))
            .expect("a line");
        assert_eq!(answer.part, Part::Lines(Some(1)));
        let next = answer.next_offset.expect("the line goes on");
        assert_eq!(next, answer.bytes().len() as u64);
        let rest = shelf
            .arguments(&json!({"offset": next, "length": 10}))
            .expect("inside");
        assert_eq!(
            rest.bytes()[0],
            b'0' + u8::try_from(next % 10).expect("a digit")
        );
        assert_eq!(shelf.text(&json!({"line": 2})), Ok("last".to_owned()));
        assert_eq!(shelf.text(&json!({"line": -1})), Ok("last".to_owned()));
    });
}
