use std::path::Path;

use spill_record::{Prices, runs_csv};
use spill_report::{Context, render, terminal_money};
use spill_verdict::judge;

use crate::builder::Case;

const TABLE: &str = r#"[models.simulated-reader]
currency = "USD"
uncached_input_per_million = 3
cache_read_per_million = 0.3
cache_write_per_million = 3.75
output_per_million = 15
"#;

pub(crate) fn prices(text: &str) -> Option<Prices> {
    Some(Prices::parse(Path::new("prices.toml"), text.as_bytes()).expect("a price table"))
}

/// A full case whose model has the price table `text`.
fn priced(text: &str) -> Case {
    Case::full().set(|set| set.prices = prices(text))
}

/// Cells of one column of a CSV text.
fn column(csv: &str, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headers = reader.headers().expect("there is a header").clone();
    let at = headers.iter().position(|header| header == name);
    let at = at.unwrap_or_else(|| panic!("there is no column {name}"));
    let cell = |row: Result<csv::StringRecord, _>| row.expect("a row")[at].to_owned();
    reader.records().map(cell).collect()
}

#[test]
fn a_price_table_gives_costs_everywhere() {
    let set = priced(TABLE).set;
    let files = render(&set, &judge(&set), Context::default());
    let summary = files.summary_md;
    let from = summary.find("## What a run costs").expect("a section");
    let to = summary[from + 3..].find("## ").expect("a next section");
    insta::assert_snapshot!("summary_md", &summary[from..from + 3 + to]);
    insta::assert_snapshot!("terminal", terminal_money(&set).expect("a table"));
    let html = files.report_html;
    let from = html.find("<section class=\"card figure\" id=\"costs\"");
    let costs = &html[from.expect("a section")..];
    for words in ["chart-costs", "uncached input", "cache read", "USD"] {
        assert!(costs.contains(words), "{words}");
    }
}

#[test]
fn a_run_costs_what_its_tokens_do() {
    let set = priced(TABLE).set;
    let csv = runs_csv(&set);
    let run = &set.runs[0];
    let tokens = run.tokens().expect("all are known");
    // Prices of a million tokens are millionths of a token's.
    let micros = tokens.uncached_input_tokens as f64 * 3.0
        + tokens.cache_read_tokens as f64 * 0.3
        + tokens.output_tokens as f64 * 15.0;
    let told: f64 = column(&csv, "cost")[0].parse().expect("a number");
    assert!((told - micros / 1e6).abs() < 1e-12, "{told} {micros}");
    let mut parts = 0.0;
    for name in [
        "uncached_input_cost",
        "cache_read_cost",
        "cache_write_cost",
        "output_cost",
    ] {
        parts += column(&csv, name)[0].parse::<f64>().expect("a number");
    }
    assert!((parts - told).abs() < 1e-12);
    assert!(column(&csv, "currency").iter().all(|cell| cell == "USD"));
}

#[test]
fn no_table_no_cost_and_no_rule_reads_a_price() {
    let (bare, priced) = (Case::full().set, priced(TABLE).set);
    assert_eq!(judge(&bare), judge(&priced));
    let files = render(&bare, &judge(&bare), Context::default());
    assert!(!files.report_html.contains("id=\"costs\""));
    assert!(!files.summary_md.contains("What a run costs"));
    assert_eq!(terminal_money(&bare), None);
    for name in ["currency", "median_cost", "median_output_cost"] {
        let cells = column(&files.summary_csv, name);
        assert!(cells.iter().all(String::is_empty), "{name}: {cells:?}");
    }
}

#[test]
fn what_was_not_measured_costs_nothing_that_is_known() {
    let set = priced(TABLE).every(|run| run.cache_write_tokens = None).set;
    let files = render(&set, &judge(&set), Context::default());
    assert!(
        column(&files.summary_csv, "median_cost")
            .iter()
            .all(String::is_empty)
    );
    assert!(column(&runs_csv(&set), "cost").iter().all(String::is_empty));
    let table = terminal_money(&set).expect("a table");
    assert!(table.contains("n/a") && !table.contains(" 0 "), "{table}");
    assert!(
        files
            .report_html
            .contains("<td class=\"num\">not measured</td>")
    );
}

#[test]
fn a_model_without_a_price_says_so() {
    let other = TABLE.replace("simulated-reader", "another");
    let set = priced(&other).set;
    let files = render(&set, &judge(&set), Context::default());
    assert!(
        files.summary_md.contains("no price in the table"),
        "{}",
        files.summary_md
    );
    let told = |name| column(&files.summary_csv, name);
    assert!(told("currency").iter().all(String::is_empty));
}
