//! The reading rules for tables, exports and logs: what the questions of the recipe `records` ask for.
//!
//! At the start of a table: its columns, and the id of its first row. Of each row in view: the id of one that is
//! disputed or lost, id and amount of one whose note begins with `audit`. Of a log: every line with an error. A
//! row or line of which only a part is visible is not read.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::rules::{Cuts, Finding, whole_lines};

/// Values that a question asks for, whatever the column.
const FLAGS: [&str; 2] = ["disputed", "lost"];
const AUDIT: &str = "audit";
const ERROR: &str = " ERROR ";
/// The column of amounts in rows; in comma-separated values it is the one of digits alone.
const AMOUNT: &str = "total_cents";
/// Characters of an event that a finding quotes.
const EVENT_LIMIT: usize = 160;

/// Rows are recognised by their braces: a flat object is whole when both are visible.
static ROW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{[^{}]*\}").expect("the pattern is valid"));

pub(crate) fn of_rows(table: &str, text: &str, cuts: Cuts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in ROW.find_iter(text) {
        let at = row.start();
        let Ok(fields) = serde_json::from_str::<Map<String, Value>>(row.as_str()) else {
            continue;
        };
        let Some(id) = fields.get("id").and_then(Value::as_str) else {
            continue;
        };
        if !cuts.start && text[..at].trim() == "[" {
            let columns: Vec<&str> = fields.keys().map(String::as_str).collect();
            findings.extend(start_of(table, at, &columns, id));
        }
        let texts = || fields.values().filter_map(Value::as_str);
        let amount = fields.get(AMOUNT).and_then(Value::as_u64);
        let amount = amount.map(|amount| amount.to_string());
        findings.extend(of_row(table, at, id, texts(), amount.as_deref()));
    }
    findings
}

pub(crate) fn of_csv(table: &str, text: &str, cuts: Cuts) -> Vec<Finding> {
    let whole = whole_lines(text, cuts);
    let mut findings = Vec::new();
    let mut columns: Option<Vec<&str>> = None;
    let mut at = whole.start;
    for (number, raw) in text[whole].split_inclusive('\n').enumerate() {
        let fields: Vec<&str> = raw.trim_end_matches(['\n', '\r']).split(',').collect();
        let id = fields[0];
        match (number, cuts.start) {
            (0, false) => columns = Some(fields),
            (_, _) => {
                if let Some(columns) = columns.take() {
                    findings.extend(start_of(table, at, &columns, id));
                }
                let is_amount = |field: &&&str| {
                    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
                };
                let amount = fields.iter().find(is_amount).copied();
                let fields = fields.iter().copied();
                findings.extend(of_row(table, at, id, fields, amount));
            }
        }
        at += raw.len();
    }
    findings
}

pub(crate) fn of_log(log: &str, text: &str, cuts: Cuts) -> Vec<Finding> {
    let whole = whole_lines(text, cuts);
    let mut findings = Vec::new();
    let mut at = whole.start;
    for raw in text[whole].split_inclusive('\n') {
        if let Some((_, event)) = raw.split_once(ERROR) {
            let event: String = event.trim_end().chars().take(EVENT_LIMIT).collect();
            findings.push(Finding {
                at,
                text: format!("{log}: error: {event}"),
            });
        }
        at += raw.len();
    }
    findings
}

fn start_of(table: &str, at: usize, columns: &[&str], id: &str) -> [Finding; 2] {
    let columns = columns.join(", ");
    [
        format!("{table}: columns: {columns}"),
        format!("{table}: first: {id}"),
    ]
    .map(|text| Finding { at, text })
}

fn of_row<'f>(
    table: &str,
    at: usize,
    id: &str,
    fields: impl Iterator<Item = &'f str>,
    amount: Option<&str>,
) -> Vec<Finding> {
    let found = fields.filter_map(|field| {
        if FLAGS.contains(&field) {
            return Some(format!("{table}: {field}: {id}"));
        }
        let is_audited = field.split(' ').next() == Some(AUDIT);
        let amount = amount.filter(|_| is_audited)?;
        Some(format!("{table}: audited: {id}: {amount}"))
    });
    found.map(|text| Finding { at, text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Cuts = Cuts {
        start: false,
        end: false,
    };
    const OPEN: Cuts = Cuts {
        start: true,
        end: true,
    };

    fn check(
        rules: fn(&str, &str, Cuts) -> Vec<Finding>,
        text: &str,
        cuts: Cuts,
        expected: &[&str],
    ) {
        let found = rules("t", text, cuts);
        let texts: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(texts, expected, "{text:?} {cuts:?}");
    }

    #[test]
    fn rows_are_read_where_they_are_whole() {
        let rows = r#"[{"id":"a","n":1,"total_cents":5},{"id":"b","status":"disputed"},{"id":"c","total_cents":77,"note":"audit x"}]"#;
        let start = ["t: columns: id, n, total_cents", "t: first: a"];
        let others = ["t: disputed: b", "t: audited: c: 77"];
        check(of_rows, rows, WHOLE, &[start, others].concat());
        check(of_rows, &rows[1..], OPEN, &others);
        check(of_rows, &rows[..rows.len() - 3], OPEN, &others[..1]);
        check(of_rows, r#"s":"disputed"},{"id":"c","no"#, OPEN, &[]);
        check(
            of_rows,
            r#"[{"id":7},{"status":"lost"},{broken},[]"#,
            WHOLE,
            &[],
        );
        check(of_rows, "", WHOLE, &[]);
    }

    #[test]
    fn values_are_read_line_by_line() {
        let csv = "id,state,grams\na,new,5\nb,lost,6,audit now\r\nc,lo";
        let start = ["t: columns: id, state, grams", "t: first: a"];
        let others = ["t: lost: b", "t: audited: b: 6"];
        let cut_end = Cuts {
            start: false,
            end: true,
        };
        check(of_csv, csv, cut_end, &[start, others].concat());
        check(of_csv, csv, OPEN, &others);
        check(of_csv, "id,state\n", WHOLE, &[]);
        check(
            of_csv,
            "id,lost\nx,auditor,5\n",
            WHOLE,
            &["t: columns: id, lost", "t: first: x"],
        );
        check(of_csv, "", OPEN, &[]);
    }

    #[test]
    fn errors_of_a_log_are_read_where_the_line_is_whole() {
        let log = "1 ERROR one\n2 INFO ERRORS\n3 ERROR two x\r\n4 ERROR thr";
        check(of_log, log, OPEN, &["t: error: two x"]);
        check(
            of_log,
            log,
            WHOLE,
            &["t: error: one", "t: error: two x", "t: error: thr"],
        );
        check(
            of_log,
            &format!("1 ERROR {}", "é".repeat(200)),
            WHOLE,
            &[&format!("t: error: {}", "é".repeat(160))],
        );
    }
}
