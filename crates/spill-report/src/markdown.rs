use std::fmt::Write as _;

/// Bytes that a cell's text has at most before it is escaped.
const LONGEST_CELL: usize = 2_000;

/// Text as Markdown that shows it: in a table's cell, a list's item or a paragraph.
///
/// Whatever could end a cell, a row or a block, or start markup, becomes a character reference,
/// which no renderer takes for structure. A backslash is one of them, so nothing in front of it or
/// behind it changes what the other characters mean. Line breaks and control characters become
/// spaces, and long text is cut.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut taken = 0;
    for c in text.chars() {
        taken += c.len_utf8();
        if taken > LONGEST_CELL {
            safe.push('…');
            break;
        }
        match c {
            '\\' | '|' | '`' | '<' | '>' | '&' | '*' | '_' | '[' | ']' | '~' | '#' | '!' | '@'
            | '$' | '{' | '}' | '"' | '\'' => {
                write!(safe, "&#{};", u32::from(c)).expect("a string takes every write");
            }
            '\u{2028}' | '\u{2029}' => safe.push(' '),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// A Markdown text that never passes a number of bytes.
pub(crate) struct Page {
    text: String,
    limit_bytes: usize,
}

/// Bytes kept free for the line that says what was left out.
const RESERVE_BYTES: usize = 400;

impl Page {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            text: String::new(),
            limit_bytes,
        }
    }

    /// Adds a block of Markdown and an empty line; one that does not fit is left out.
    pub(crate) fn block(&mut self, markdown: &str) {
        if self.has_room_for(markdown.len() + 2) {
            self.text.push_str(markdown);
            self.text.push_str("\n\n");
        }
    }

    /// Adds a list of texts, those that fit.
    pub(crate) fn list<'a>(&mut self, items: impl IntoIterator<Item = &'a str>) {
        self.lines(items.into_iter().map(|item| format!("- {}", escape(item))));
    }

    /// Adds a table with `head` as its header; the cells are text. Rows that do not fit are left
    /// out, and their number is said.
    pub(crate) fn table<const COLUMNS: usize>(
        &mut self,
        head: [&str; COLUMNS],
        rows: impl IntoIterator<Item = [String; COLUMNS]>,
    ) {
        let head = [row(&head), row(&["---"; COLUMNS])];
        self.lines(
            head.into_iter()
                .chain(rows.into_iter().map(|cells| row(&cells))),
        );
    }

    fn lines(&mut self, lines: impl Iterator<Item = String>) {
        let mut left_out = 0_u64;
        for line in lines {
            if left_out == 0 && self.has_room_for(line.len() + 1) {
                self.text.push_str(&line);
                self.text.push('\n');
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            let more = format!(
                "\n{left_out} further lines are left out here; `report.html` and `rules.csv` have them.\n"
            );
            self.text.push_str(&more);
            self.limit_bytes = 0;
        }
        self.text.push('\n');
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.text.len() + bytes + RESERVE_BYTES <= self.limit_bytes
    }

    pub(crate) fn finish(self) -> String {
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

fn row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell.as_ref())).collect();
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Page, escape, row};

    /// Columns of a row as GitHub counts them: a backslash takes the next character with it.
    fn columns(line: &str) -> usize {
        let mut bars = 0;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    chars.next();
                }
                '|' => bars += 1,
                _ => {}
            }
        }
        bars - 1
    }

    /// What a reader sees of escaped text.
    fn shown(escaped: &str) -> String {
        let mut parts = escaped.split("&#");
        let mut text = parts.next().expect("there is a first part").to_owned();
        for part in parts {
            let (code, rest) = part.split_once(';').expect("a reference ends");
            let code = code.parse().expect("a reference is a number");
            text.push(char::from_u32(code).expect("a reference is a character"));
            text.push_str(rest);
        }
        text
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected);
    }

    #[test]
    fn markup_is_text() {
        check("A | B | C", "A &#124; B &#124; C");
        check("a\\|b", "a&#92;&#124;b");
        check("x\ny\r\nz", "x y  z");
        check("`code` <b>", "&#96;code&#96; &#60;b&#62;");
        check("[a](b) ![c]", "&#91;a&#93;(b) &#33;&#91;c&#93;");
        check("&lt;", "&#38;lt;");
        check("128KiB ≤ 1.1 × off", "128KiB ≤ 1.1 × off");
        check("", "");
        assert!(escape(&"x".repeat(1_000_000)).len() < 2_100);
    }

    #[test]
    fn a_page_stops_before_its_limit_and_says_so() {
        let mut page = Page::new(1_000);
        page.block("# head");
        page.table(
            ["a", "b"],
            (0..500).map(|n| [n.to_string(), "|".to_owned()]),
        );
        page.block("never");
        page.list(["never"]);
        let text = page.finish();
        assert!(text.len() <= 1_000, "{}", text.len());
        assert!(
            text.contains("further lines are left out") && !text.contains("never"),
            "{text}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Known fault 93: dorny/test-reporter PR #795; oekazuma/svelte-vitals PR #465; microsoft/markitdown PR #2266.
        #[test]
        fn every_row_has_as_many_columns_as_its_header(
            cells in proptest::collection::vec("(\\PC|[|\\\\`<>&\n\r\t*_])*", 5),
        ) {
            let line = row(&cells);
            prop_assert_eq!(columns(&line), 5, "{}", line);
            prop_assert_eq!(line.matches('|').count(), 6);
            prop_assert_eq!(line.lines().count(), 1);
        }

        #[test]
        fn what_is_read_is_what_was_written(text in "([\\PC&&[^\u{2028}\u{2029}]]|[|\\\\`<>&]){0,200}") {
            prop_assert_eq!(shown(&escape(&text)), text);
        }
    }
}
