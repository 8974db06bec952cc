use std::fmt::Write as _;

/// Whether a character drives a terminal, or reorders or hides what stands beside it.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{61c}')
}

/// JSON that says the same and cannot drive a terminal: what could, is written as an escape.
#[must_use]
pub fn harmless_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        // Line breaks stand between values; those within strings are escapes already.
        if is_unsafe(c) && c != '\n' {
            write!(safe, "\\u{:04x}", u32::from(c)).expect("a string takes every write");
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Characters that a cell has at most: a spreadsheet's cell holds no more, and some readers of CSV
/// refuse fields of 131,072 bytes.
const LONGEST_CELL: usize = 32_000;

/// A text as a cell of a CSV file: on one line, not too long, and with an apostrophe in front where a
/// spreadsheet would execute it. Numbers do not come here: a negative one stays a number.
#[must_use]
pub fn csv_text(text: &str) -> String {
    let executes = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let starts = text.trim_start_matches(|c: char| c.is_whitespace() || is_unsafe(c));
    let mut cell = String::new();
    if starts.starts_with(executes) || starts.len() < text.len() {
        cell.push('\'');
    }
    cell.extend(
        text.chars()
            .take(LONGEST_CELL)
            .map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }),
    );
    if text.chars().nth(LONGEST_CELL).is_some() {
        cell.push('…');
    }
    cell
}

/// JSON as a cell of a CSV file; one that is too long says so, as JSON.
pub(crate) fn csv_json(json: &str) -> String {
    let cell = harmless_json(json);
    if cell.chars().nth(LONGEST_CELL).is_some() {
        format!("\"longer than {LONGEST_CELL} characters: runs.jsonl has it\"")
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_CELL, csv_json, csv_text, harmless_json};

    #[test]
    fn cells_that_a_spreadsheet_would_execute_are_text() {
        let check = |cell: &str, expected: &str| assert_eq!(csv_text(cell), expected);
        check("=cmd()", "'=cmd()");
        check("+1", "'+1");
        check("-2+3", "'-2+3");
        check("@SUM(A1)", "'@SUM(A1)");
        check(" =1", "' =1");
        check("\t=1", "'\u{fffd}=1");
        check("\u{feff}=1", "'\u{fffd}=1");
        check("＝1", "'＝1");
        check("a=b", "a=b");
        check("a\r\nb\u{0}\u{202e}", "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}");
        check("review", "review");
        check("", "");
    }

    #[test]
    fn cells_are_bounded() {
        assert_eq!(
            csv_text(&"é".repeat(LONGEST_CELL)).chars().count(),
            LONGEST_CELL
        );
        assert_eq!(
            csv_text(&"é".repeat(1 << 20)).chars().count(),
            LONGEST_CELL + 1
        );
        assert_eq!(csv_json("{}"), "{}");
        let long = csv_json(&format!("{:?}", "x".repeat(1 << 20)));
        assert!(long.len() < 100 && serde_json::from_str::<String>(&long).is_ok());
    }

    #[test]
    fn json_keeps_its_meaning_and_drives_no_terminal() {
        let value =
            serde_json::json!({"a": "\u{1b}[31m\u{9b}2J\u{202e}x\u{7f}\n\"", "b": [1, "é文🙂"]});
        for json in [value.to_string(), format!("{value:#}")] {
            let safe = harmless_json(&json);
            let bad = safe.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!((bad, safe.contains('\u{202e}')), (None, false), "{safe}");
            let read: serde_json::Value = serde_json::from_str(&safe).expect("it is JSON");
            assert_eq!(read, value);
        }
    }
}
