use csv::Writer;

use crate::folder::RunSet;
use crate::prices::{Cost, Money, Prices};
use crate::run::RunRecord;
use crate::sidecar::SidecarRun;
use crate::text::{csv_json, csv_text as text};

/// Columns of `runs.csv`, in order; one row per recorded run, in plan order.
pub const RUN_COLUMNS: [&str; 77] = [
    "schema",
    "run_id",
    "pair_id",
    "scenario",
    "recipe",
    "input",
    "class",
    "configuration",
    "policy",
    "store",
    "threshold_bytes",
    "preview_share",
    "repetition",
    "seed",
    "subject",
    "model",
    "profile",
    "outcome",
    "end_reason",
    "hit_iteration_limit",
    "iterations",
    "llm_calls",
    "llm_retries",
    "input_tokens",
    "cached_input_tokens",
    "cached_before_read_tool_tokens",
    "cached_after_read_tool_tokens",
    "cache_write_tokens",
    "output_tokens",
    "currency",
    "uncached_input_cost",
    "cache_read_cost",
    "cache_write_cost",
    "output_cost",
    "cost",
    "duration_ms",
    "process_ms",
    "cpu_ms",
    "model_time_ms",
    "tool_calls",
    "tool_result_bytes",
    "largest_result_bytes",
    "results_persisted",
    "persisted_by_tool",
    "results_read_back",
    "reads",
    "reads_with_range",
    "read_bytes",
    "reread_bytes",
    "store_peak_bytes",
    "peak_rss_bytes",
    "sampled_memory_bytes",
    "memory_check",
    "sidecar_peak_rss_bytes",
    "sidecar_cpu_ms",
    "sidecar_log_bytes",
    "body_bytes",
    "facts_expected",
    "facts_found",
    "end_facts_expected",
    "end_facts_found",
    "large_file_facts_expected",
    "large_file_facts_found",
    "missed_facts",
    "unfounded_findings",
    "quality",
    "files_written",
    "state_files",
    "state_bytes",
    "kept_files",
    "leak_findings",
    "leak_check",
    "prompt_digest",
    "offered_tools_digest",
    "effective_settings",
    "error",
    "same_as",
];

/// Columns that are measured, not decided by the seed; all others are equal for equal seeds.
pub const MEASURED_COLUMNS: [&str; 8] = [
    "duration_ms",
    "process_ms",
    "cpu_ms",
    "peak_rss_bytes",
    "sampled_memory_bytes",
    "sidecar_peak_rss_bytes",
    "sidecar_cpu_ms",
    "sidecar_log_bytes",
];

/// Columns whose cells may be empty in a run that succeeded.
pub const OPTIONAL_COLUMNS: [&str; 26] = [
    "sampled_memory_bytes",
    "memory_check",
    "sidecar_peak_rss_bytes",
    "sidecar_cpu_ms",
    "sidecar_log_bytes",
    "kept_files",
    "threshold_bytes",
    "preview_share",
    "currency",
    "uncached_input_cost",
    "cache_read_cost",
    "cache_write_cost",
    "output_cost",
    "cost",
    "model_time_ms",
    "facts_expected",
    "facts_found",
    "end_facts_expected",
    "end_facts_found",
    "large_file_facts_expected",
    "large_file_facts_found",
    "missed_facts",
    "unfounded_findings",
    "quality",
    "error",
    "same_as",
];

/// Renders the records as CSV with a header row.
///
/// `persisted_by_tool` and `effective_settings` are compact JSON, `missed_facts` is a list of ids
/// with spaces between, `state_files` and `leak_findings` are numbers of entries. Costs are exact decimals in
/// `currency`, empty without a price table. Those of sidecars are sums over the run's, empty where it has none, or one of
/// them was not measured. A text
/// cell that a spreadsheet would take for a formula gets an apostrophe in front, and none is longer than
/// readers take.
#[must_use]
pub fn runs_csv(set: &RunSet) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    writer
        .write_record(RUN_COLUMNS)
        .expect("writing to memory does not fail");
    for run in &set.runs {
        writer
            .write_record(cells(run, set.prices.as_ref()))
            .expect("every row has one cell for each column");
    }
    let bytes = writer
        .into_inner()
        .expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every cell is UTF-8")
}

fn cells(run: &RunRecord, prices: Option<&Prices>) -> [String; RUN_COLUMNS.len()] {
    let [currency, uncached, read, written, output, cost] = money(run, prices);
    [
        run.schema.to_string(),
        text(&run.run_id),
        text(&run.pair_id),
        text(&run.scenario),
        text(&run.recipe),
        text(&run.input),
        run.class.as_str().to_owned(),
        text(&run.configuration),
        run.policy.as_deref().map(text).unwrap_or_default(),
        run.store.as_deref().map(text).unwrap_or_default(),
        some(run.threshold_bytes.as_ref()),
        some(run.preview_share.as_ref()),
        run.repetition.to_string(),
        run.seed.to_string(),
        text(&run.subject),
        text(&run.model),
        text(&run.profile),
        run.outcome.as_str().to_owned(),
        run.end_reason.as_str().to_owned(),
        some(run.hit_iteration_limit.as_ref()),
        some(run.iterations.as_ref()),
        some(run.llm_calls.as_ref()),
        some(run.llm_retries.as_ref()),
        some(run.input_tokens.as_ref()),
        some(run.cached_input_tokens.as_ref()),
        some(run.cached_before_read_tool_tokens.as_ref()),
        some(run.cached_after_read_tool_tokens.as_ref()),
        some(run.cache_write_tokens.as_ref()),
        some(run.output_tokens.as_ref()),
        currency,
        uncached,
        read,
        written,
        output,
        cost,
        millis(run.duration_ms),
        millis(run.process_ms),
        millis(run.cpu_ms),
        millis(run.model_time_ms),
        some(run.tool_calls.as_ref()),
        some(run.tool_result_bytes.as_ref()),
        some(run.largest_result_bytes.as_ref()),
        some(run.results_persisted.as_ref()),
        json(&run.persisted_by_tool),
        some(run.results_read_back.as_ref()),
        some(run.reads.as_ref()),
        some(run.reads_with_range.as_ref()),
        some(run.read_bytes.as_ref()),
        some(run.reread_bytes.as_ref()),
        some(run.store_peak_bytes.as_ref()),
        some(run.peak_rss_bytes.as_ref()),
        some(run.sampled_memory_bytes.as_ref()),
        run.memory_check.as_deref().map(text).unwrap_or_default(),
        some(of_sidecars(run, |one| one.peak_rss_bytes).as_ref()),
        millis(of_sidecars(run, |one| one.cpu_ms)),
        some(of_sidecars(run, |one| one.log_bytes).as_ref()),
        some(run.body_bytes.as_ref()),
        some(run.facts_expected.as_ref()),
        some(run.facts_found.as_ref()),
        some(run.end_facts_expected.as_ref()),
        some(run.end_facts_found.as_ref()),
        some(run.large_file_facts_expected.as_ref()),
        some(run.large_file_facts_found.as_ref()),
        text(&run.missed_facts.join(" ")),
        some(run.unfounded_findings.as_ref()),
        some(run.quality.as_ref()),
        some(run.files_written.as_ref()),
        run.state_files.len().to_string(),
        some(run.state_bytes.as_ref()),
        some(run.kept_files.as_ref()),
        run.leak_findings.len().to_string(),
        text(&run.leak_check),
        run.prompt_digest.as_deref().map(text).unwrap_or_default(),
        run.offered_tools_digest
            .as_deref()
            .map(text)
            .unwrap_or_default(),
        run.effective_settings
            .as_ref()
            .map(json)
            .unwrap_or_default(),
        run.error.as_deref().map(text).unwrap_or_default(),
        run.same_as.as_deref().map(text).unwrap_or_default(),
    ]
}

/// Currency, the four buckets, and their sum, as exact decimals; empty without a price table.
fn money(run: &RunRecord, prices: Option<&Prices>) -> [String; 6] {
    let Some(prices) = prices.and_then(|prices| prices.of(&run.model)) else {
        return Default::default();
    };
    let cost = run.tokens().map(|tokens| prices.cost(tokens));
    let amount = |pick: fn(Cost) -> Money| some(cost.map(pick).as_ref());
    [
        prices.currency().to_owned(),
        amount(|cost| cost.uncached_input),
        amount(|cost| cost.cache_read),
        amount(|cost| cost.cache_write),
        amount(|cost| cost.output),
        amount(Cost::total),
    ]
}

/// The sum over the run's sidecars; `None` where there is none, or one does not tell.
fn of_sidecars<T: std::iter::Sum>(
    run: &RunRecord,
    pick: fn(&SidecarRun) -> Option<T>,
) -> Option<T> {
    let told: Option<Vec<T>> = run.sidecars.iter().map(pick).collect();
    let told = told.filter(|values| !values.is_empty())?;
    Some(told.into_iter().sum())
}

fn some<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn millis(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.3}")).unwrap_or_default()
}

fn json<T: serde::Serialize>(value: &T) -> String {
    csv_json(&serde_json::to_string(value).expect("maps with string keys serialise"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_and_optional_columns_are_columns() {
        for name in MEASURED_COLUMNS.iter().chain(&OPTIONAL_COLUMNS) {
            assert!(RUN_COLUMNS.contains(name), "{name} is no column");
        }
    }
}
