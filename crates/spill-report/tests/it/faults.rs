//! Faults that others reported of their reports, each with its reproduction. `spillgate`'s catalogue lists them all.

use std::collections::BTreeMap;

use spill_report::{Context, Rendered, render};
use spill_verdict::{Figures, Rule, judge};

use crate::builder::{Case, lose, score};

fn files(case: &Case) -> Rendered {
    render(&case.set, &judge(&case.set), Context::default())
}

/// The cells of a table's row whose columns have the given values.
fn cells(table: &str, wanted: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let rows = reader.deserialize::<BTreeMap<String, String>>();
    rows.map(|row| row.expect("a row"))
        .find(|row| wanted.iter().all(|(name, value)| row[*name] == *value))
        .expect("the row is there")
}

fn cell(files: &Rendered, configuration: &str, input: &str) -> BTreeMap<String, String> {
    let wanted = [("configuration", configuration), ("input", input)];
    cells(&files.summary_csv, &wanted)
}

fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().expect("a number")
}

/// The table that is published has the medians and means that the rules were judged on, from the same rows.
///
/// Known fault 105: GoogleChrome/lighthouse-ci #1064.
/// Known fault 113: hud-evals/hud-python PR #526.
#[test]
fn report_and_gate_read_the_same_rows() {
    let case = Case::full()
        .one("128KiB", "document", 1, |run| score(run, 3, 1))
        .set(|set| {
            // A second record that contradicts the first: neither counts, here and there.
            let mut other = set.runs[1].clone();
            other.input_tokens = Some(9_000_000);
            set.runs.push(other);
        });
    let verdict = judge(&case.set);
    let files = files(&case);
    let rules = |rule: Rule, input: &str| {
        let mut rows = verdict.candidates[0].rules.iter();
        let row = rows.find(|row| row.rule == rule && row.input == input);
        row.expect("a row").clone()
    };
    for input in ["small", "medium", "large"] {
        let Some(Figures::Tokens { all_runs, .. }) = rules(Rule::InputTokens, input).figures else {
            panic!("tokens have figures");
        };
        for (configuration, judged) in [("off", all_runs.control), ("128KiB", all_runs.candidate)] {
            let row = cell(&files, configuration, input);
            // The pair that lost a record is in the control's row alone.
            if (configuration, input) != ("off", "small") {
                assert_eq!(
                    Some(number(&row, "median_input_tokens")),
                    judged,
                    "{configuration} {input}"
                );
            }
        }
    }
    let quality = rules(Rule::Quality, "document")
        .observed
        .expect("it is scored");
    let mean = |configuration| number(&cell(&files, configuration, "document"), "mean_quality");
    assert!((mean("128KiB") - mean("off") - quality).abs() < 1e-9);
}

/// A run that could not be scored is not one of quality 0.
///
/// Known fault 113: hud-evals/hud-python PR #526.
#[test]
fn what_the_harness_lost_is_no_zero_in_a_mean() {
    let lost = Case::full().one("128KiB", "document", 1, |run| {
        lose(run);
        run.facts_found = Some(0);
    });
    let row = cell(&files(&lost), "128KiB", "document");
    assert_eq!(number(&row, "mean_quality"), 0.95);
    assert_eq!(
        (&*row["planned"], &*row["finished"], &*row["infrastructure"]),
        ("5", "4", "1")
    );
}

/// Both readings of a rate stand side by side: without what the harness lost, and with it as failures.
///
/// Known fault 75: UKGovernmentBEIS/inspect_ai #3707.
/// Known fault 111: UKGovernmentBEIS/inspect_ai #2914.
/// Known fault 112: CherryHQ/stella #1054.
#[test]
fn a_success_rate_is_shown_with_and_without_what_was_lost() {
    let lost = Case::full().cell("128KiB", "small", |run| {
        if run.repetition > 1 {
            lose(run);
        }
    });
    let row = cell(&files(&lost), "128KiB", "small");
    assert_eq!(number(&row, "success_rate"), 1.0);
    assert_eq!(number(&row, "success_rate_harness_as_failure"), 0.4);
}

/// Where nothing ran there is no figure: no 0 ms, no 0 tokens, no NaN, and no class that ends the rendering.
///
/// Known fault 76: bird-bench/mini_dev #47.
/// Known fault 77: smarr/ReBenchDB #224; MDA2AV/HttpArena PR #1322.
/// Known fault 85: Lamatic/AgentKit PR #229.
/// Known fault 94: seiggy/lucia-dotnet PR #238.
#[test]
fn nothing_run_is_no_figure_of_zero() {
    let case = Case::full().without(|run| run.configuration == "128KiB" && run.input == "large");
    let files = files(&case);
    let row = cell(&files, "128KiB", "large");
    assert_eq!(
        (&*row["planned"], &*row["finished"], &*row["missing"]),
        ("5", "0", "5")
    );
    for column in [
        "success_rate",
        "median_input_tokens",
        "median_iterations",
        "mean_quality",
        "median_peak_rss_bytes",
        "step_p50_duration_ms",
        "step_p90_duration_ms",
    ] {
        assert_eq!(row[column], "", "{column}");
    }
    assert_eq!(number(&cell(&files, "off", "large"), "finished"), 5.0);
    assert!(files.report_html.contains("n&#x2f;a"));
    let page = files
        .report_html
        .split("<script>")
        .next()
        .unwrap_or_default();
    assert!(!page.contains("NaN") && !files.summary_csv.contains("NaN"));
}

/// Failed runs have a duration, which is none of a completed step.
///
/// Known fault 85: Lamatic/AgentKit PR #229.
#[test]
fn latency_is_that_of_completed_runs() {
    let fast_failure = Case::full().cell("128KiB", "small", |run| {
        run.duration_ms = Some(if run.repetition < 3 { 0.0 } else { 80.0 });
        if run.repetition < 3 {
            crate::builder::fail(run);
        }
    });
    let row = cell(&files(&fast_failure), "128KiB", "small");
    let median = number(&row, "step_p50_duration_ms");
    assert!((79.0..=81.0).contains(&median), "{median}");
}
