use csv::Writer;
use serde_json::Value;
use spill_record::{Cost, csv_text as text};
use spill_verdict::{Rule, RuleVerdict, Verdict, figure, plain};

use crate::cells::{Cell, end_facts, facts, large_facts};
use crate::money::BUCKETS;

/// Columns of `summary.csv`; one row per scenario × input × configuration, in plan order.
///
/// Medians and totals are over the runs that finished, `step` durations over those that succeeded.
/// An empty cell is a figure that was not obtained; costs need a price table.
pub const SUMMARY_COLUMNS: [&str; 49] = [
    "scenario",
    "input",
    "class",
    "configuration",
    "policy",
    "store",
    "threshold_bytes",
    "preview_share",
    "planned",
    "finished",
    "succeeded",
    "failed",
    "infrastructure",
    "missing",
    "success_rate",
    "success_rate_harness_as_failure",
    "median_input_tokens",
    "median_cached_input_tokens",
    "median_cached_before_read_tool_tokens",
    "median_cached_after_read_tool_tokens",
    "median_cache_write_tokens",
    "median_output_tokens",
    "currency",
    "median_cost",
    "median_uncached_input_cost",
    "median_cache_read_cost",
    "median_cache_write_cost",
    "median_output_cost",
    "median_iterations",
    "most_iterations",
    "median_llm_calls",
    "median_tool_calls",
    "median_tool_result_bytes",
    "results_persisted",
    "results_read_back",
    "reads",
    "reads_with_range",
    "read_bytes",
    "reread_bytes",
    "median_state_bytes",
    "median_body_bytes",
    "mean_quality",
    "mean_end_coverage",
    "mean_large_file_coverage",
    "unfounded_findings",
    "leaking_runs",
    "median_peak_rss_bytes",
    "step_p50_duration_ms",
    "step_p90_duration_ms",
];

/// Columns of `summary.csv` that are measured, not decided by the seed.
pub const SUMMARY_MEASURED_COLUMNS: [&str; 3] = [
    "median_peak_rss_bytes",
    "step_p50_duration_ms",
    "step_p90_duration_ms",
];

/// Columns of `rules.csv`; one row per candidate × rule × input.
pub const RULES_COLUMNS: [&str; 16] = [
    "candidate",
    "candidate_state",
    "considered",
    "rule",
    "name",
    "scenario",
    "input",
    "class",
    "state",
    "observed",
    "bound",
    "limit",
    "n",
    "planned",
    "words",
    "evidence_run_ids",
];

/// `summary.csv`.
pub(crate) fn summary(cells: &[Cell<'_>]) -> String {
    write(&SUMMARY_COLUMNS, cells.iter().map(summary_row))
}

/// What the subject said before the first run that it would use; empty when it did not say.
fn setting(cell: &Cell<'_>, key: &str) -> String {
    let settings = cell.configuration.effective_settings.as_ref();
    match settings.and_then(|settings| settings.get(key)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(words)) => text(&plain(words)),
        Some(other) => text(&plain(&other.to_string())),
    }
}

fn summary_row(cell: &Cell<'_>) -> Vec<String> {
    let durations = cell.durations();
    let median = |pick| number(cell.spread(pick).map(|spread| spread.median));
    let mean = |pick| number(cell.coverage(pick).map(|spread| spread.median));
    let total = |pick| whole(cell.total(pick));
    let money = |pick| number(cell.money(pick).map(|spread| spread.median));
    let [uncached, read, written, output] = BUCKETS.map(money);
    vec![
        text(&plain(&cell.input.scenario)),
        text(&plain(&cell.input.input)),
        cell.input.class.as_str().to_owned(),
        text(&plain(&cell.configuration.name)),
        setting(cell, "policy"),
        setting(cell, "store"),
        setting(cell, "threshold_bytes"),
        setting(cell, "preview_share"),
        cell.planned.to_string(),
        cell.finished().to_string(),
        cell.succeeded().to_string(),
        cell.failed().to_string(),
        cell.infrastructure().to_string(),
        cell.missing().to_string(),
        number(cell.success_rate()),
        number(cell.success_rate_at_least()),
        median(|r| r.input_tokens),
        median(|r| r.cached_input_tokens),
        median(|r| r.cached_before_read_tool_tokens),
        median(|r| r.cached_after_read_tool_tokens),
        median(|r| r.cache_write_tokens),
        median(|r| r.output_tokens),
        cell.prices
            .map(|prices| prices.currency().to_owned())
            .unwrap_or_default(),
        money(Cost::total),
        uncached,
        read,
        written,
        output,
        median(|r| r.iterations),
        number(cell.spread(|r| r.iterations).map(|spread| spread.most)),
        median(|r| r.llm_calls),
        median(|r| r.tool_calls),
        median(|r| r.tool_result_bytes),
        total(|r| r.results_persisted),
        total(|r| r.results_read_back),
        total(|r| r.reads),
        total(|r| r.reads_with_range),
        total(|r| r.read_bytes),
        total(|r| r.reread_bytes),
        median(|r| r.state_bytes),
        median(|r| r.body_bytes),
        mean(facts),
        mean(end_facts),
        mean(large_facts),
        total(|r| r.unfounded_findings),
        cell.leaking().to_string(),
        median(|r| r.peak_rss_bytes),
        number(durations.percentile_ms(50)),
        number(durations.percentile_ms(90)),
    ]
}

/// `rules.csv`.
pub(crate) fn rules(verdict: &Verdict) -> String {
    let rows = verdict.candidates.iter().flat_map(|candidate| {
        candidate.rules.iter().map(move |row| {
            let mut cells = vec![
                text(&plain(&candidate.configuration)),
                candidate.state.as_str().to_owned(),
                candidate.considered.to_string(),
            ];
            cells.extend(rule_row(row));
            cells
        })
    });
    write(&RULES_COLUMNS, rows)
}

fn rule_row(row: &RuleVerdict) -> [String; RULES_COLUMNS.len() - 3] {
    let bound = row.bound.map_or("", |bound| bound.as_str());
    let rule: Rule = row.rule;
    let runs: Vec<String> = row.evidence.iter().map(|e| plain(&e.run_id)).collect();
    [
        rule.number().to_string(),
        rule.as_str().to_owned(),
        text(&plain(&row.scenario)),
        text(&plain(&row.input)),
        row.class.as_str().to_owned(),
        row.state.as_str().to_owned(),
        number(row.observed),
        bound.to_owned(),
        number(row.limit),
        row.n.to_string(),
        row.planned.to_string(),
        text(&row.words),
        text(&runs.join(" ")),
    ]
}

pub(crate) fn write<C: AsRef<[u8]>>(
    columns: &[C],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    writer
        .write_record(columns)
        .expect("a vector takes every write");
    for row in rows {
        writer
            .write_record(row)
            .expect("a row has as many cells as the header");
    }
    let bytes = writer.into_inner().expect("a vector takes every write");
    String::from_utf8(bytes).expect("cells are UTF-8")
}

pub(crate) fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map(figure_exact)
        .unwrap_or_default()
}

/// The shortest text that reads back as the same number.
fn figure_exact(value: f64) -> String {
    if value == 0.0 {
        figure(0.0)
    } else {
        value.to_string()
    }
}

pub(crate) fn whole(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{number, whole};

    #[test]
    fn numbers_stay_numbers_and_nothing_is_not_zero() {
        assert_eq!(number(Some(-0.25)), "-0.25");
        assert_eq!(number(Some(-0.0)), "0");
        assert_eq!(number(None), "");
        assert_eq!(number(Some(f64::NAN)), "");
        assert_eq!(number(Some(1.1)), "1.1");
        assert_eq!(whole(None), "");
        assert_eq!(whole(Some(0)), "0");
    }
}
