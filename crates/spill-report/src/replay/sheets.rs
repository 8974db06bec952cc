//! The figures of a replay as CSV.

use spill_record::{CellSums, ReplayRecord, ReplaySums, ReplayTotals};
use spill_verdict::plain;

use crate::sheet::{number, whole, write};
use spill_record::csv_text as text;

const THRESHOLDS: [&str; 25] = [
    "class",
    "sessions",
    "policy",
    "threshold_bytes",
    "replacement_bytes",
    "read_back",
    "sent_results",
    "replaced_results",
    "replaced_bytes",
    "replacements_bytes",
    "kept_results",
    "used_results",
    "calls",
    "extra_calls",
    "input_bytes",
    "input_tokens",
    "cached_input_tokens",
    "uncached_input_tokens",
    "saved_input_bytes",
    "saved_input_tokens",
    "saved_uncached_input_tokens",
    "peak_context_tokens",
    "calls_over_window",
    "input_cost",
    "saved_cost",
];

/// `thresholds.csv`: all transcripts and each class; as recorded first, then each variant.
pub(super) fn thresholds(record: &ReplayRecord, totals: &ReplayTotals) -> String {
    let classes = totals.classes.iter().map(|(class, sums)| {
        let name = class.map_or("none", |class| class.as_str());
        (name, sums)
    });
    let groups = std::iter::once(("all", &totals.all)).chain(classes);
    write(
        &THRESHOLDS,
        groups.flat_map(|(name, sums)| rows(record, name, sums)),
    )
}

fn rows(record: &ReplayRecord, class: &str, sums: &ReplaySums) -> Vec<Vec<String>> {
    let mut rows = vec![row(class, sums, None)];
    for (index, cell) in record.cells.iter().enumerate() {
        let cell_sums = sums.cells.get(index).copied().unwrap_or_default();
        for (number, read_back) in record.read_backs.iter().enumerate() {
            let names = [
                cell.policy.clone(),
                cell.threshold_bytes.to_string(),
                whole(cell.replacement_bytes),
                read_back.clone(),
            ];
            let outcome = record.outcome_index(index, number);
            rows.push(row(class, sums, Some((names, cell_sums, outcome))));
        }
    }
    rows
}

type Variant = ([String; 4], CellSums, usize);

fn row(class: &str, sums: &ReplaySums, variant: Option<Variant>) -> Vec<String> {
    let base = sums.as_recorded;
    let (names, cell, under) = match variant {
        Some((names, cell, outcome)) => {
            let under = sums.outcomes.get(outcome).copied();
            (names, Some(cell), under.unwrap_or_default())
        }
        None => (["off", "", "", ""].map(str::to_owned), None, base),
    };
    let [policy, threshold, replacement, read_back] = names;
    let of_cell = |pick: fn(CellSums) -> u64| whole(cell.map(pick));
    let less = |before: u64, after: u64| (i128::from(before) - i128::from(after)).to_string();
    let uncached = |tokens: u64, cached: u64| tokens.saturating_sub(cached);
    let base_uncached = uncached(base.input_tokens, base.cached_input_tokens);
    let under_uncached = uncached(under.input_tokens, under.cached_input_tokens);
    let costs = base.input_cost.zip(under.input_cost);
    vec![
        class.to_owned(),
        sums.sessions.to_string(),
        policy,
        threshold,
        replacement,
        read_back,
        sums.sent_results.to_string(),
        of_cell(|cell| cell.replaced_results),
        of_cell(|cell| cell.replaced_bytes),
        of_cell(|cell| cell.replacement_bytes),
        of_cell(|cell| cell.kept_results),
        of_cell(|cell| cell.used_results),
        under.calls.to_string(),
        under.extra_calls.to_string(),
        under.input_bytes.to_string(),
        under.input_tokens.to_string(),
        under.cached_input_tokens.to_string(),
        under_uncached.to_string(),
        less(base.input_bytes, under.input_bytes),
        less(base.input_tokens, under.input_tokens),
        less(base_uncached, under_uncached),
        under.peak_context_tokens.to_string(),
        whole(under.calls_over_window),
        number(under.input_cost),
        number(costs.map(|(before, after)| before - after)),
    ]
}

const TOOLS: [&str; 11] = [
    "tool",
    "results",
    "result_bytes",
    "sent_bytes",
    "sent_tokens",
    "policy",
    "threshold_bytes",
    "replacement_bytes",
    "replaced_results",
    "saved_bytes_before_reads",
    "saved_tokens_before_reads",
];

/// `tools.csv`: each tool under each policy, threshold and size, before anything is read back. The cell of a tool without a
/// name is empty.
pub(super) fn tools(record: &ReplayRecord, all: &ReplaySums) -> String {
    let rows = all.tools.iter().flat_map(|(tool, sums)| {
        record.cells.iter().enumerate().map(move |(index, cell)| {
            let (replaced, bytes, tokens) = sums.cells.get(index).copied().unwrap_or_default();
            let name = tool.as_ref().map(|name| text(&plain(name)));
            vec![
                name.unwrap_or_default(),
                sums.results.to_string(),
                sums.result_bytes.to_string(),
                sums.sent_bytes.to_string(),
                sums.sent_tokens.to_string(),
                cell.policy.clone(),
                cell.threshold_bytes.to_string(),
                whole(cell.replacement_bytes),
                replaced.to_string(),
                bytes.to_string(),
                tokens.to_string(),
            ]
        })
    });
    write(&TOOLS, rows)
}
