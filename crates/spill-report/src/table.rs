use serde::Serialize;

/// A table of the report, of texts that the template escapes.
#[derive(Serialize)]
pub(crate) struct Table {
    id: String,
    caption: String,
    /// Columns of words, then columns of numbers.
    words: Vec<String>,
    numbers: Vec<String>,
    rows: Vec<Vec<String>>,
    left_out: usize,
}

/// Rows that a table has at most.
const ROWS: usize = 200;

impl Table {
    pub(crate) fn new(
        id: impl Into<String>,
        caption: impl Into<String>,
        words: &[&str],
        numbers: &[&str],
        mut rows: Vec<Vec<String>>,
    ) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let left_out = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        Self {
            id: id.into(),
            caption: caption.into(),
            words: owned(words),
            numbers: owned(numbers),
            rows,
            left_out,
        }
    }
}
