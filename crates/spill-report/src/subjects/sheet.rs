//! Several subjects side by side as CSV.

use spill_record::csv_text as text;
use spill_verdict::plain;

use super::figures::{Became, Place, Row};
use crate::sheet::{number, whole, write};

const COLUMNS: [&str; 30] = [
    "scenario",
    "input",
    "class",
    "subject",
    "configuration",
    "role",
    "ships",
    "planned",
    "succeeded",
    "failed",
    "infrastructure",
    "missing",
    "end_reasons",
    "median_iterations",
    "median_input_tokens",
    "median_output_tokens",
    "median_peak_memory_bytes",
    "peak_memory_is_lower_bound",
    "mean_quality",
    "median_process_ms",
    "kept_files",
    "files_written",
    "leak_findings",
    "largest_result",
    "median_served_bytes",
    "median_shown_bytes",
    "median_times",
    "median_reads",
    "median_read_bytes",
    "median_failed_reads",
];

/// A row for each input, subject and configuration; an empty cell was not measured.
pub(super) fn csv(places: &[Place]) -> String {
    let rows = places
        .iter()
        .flat_map(|place| place.rows.iter().map(move |row| cells(place, row)));
    write(&COLUMNS, rows)
}

fn cells(place: &Place, row: &Row) -> Vec<String> {
    let role = if row.is_control {
        "control"
    } else {
        "candidate"
    };
    let bound = row.peak_memory_is_lower_bound;
    let mut cells = vec![
        text(&plain(&place.scenario)),
        text(&plain(&place.input)),
        place.class.to_owned(),
        text(&plain(&row.subject)),
        text(&plain(&row.configuration)),
        role.to_owned(),
        row.ships.to_string(),
        row.planned.to_string(),
        row.succeeded.to_string(),
        row.failed.to_string(),
        row.infrastructure.to_string(),
        row.missing.to_string(),
        row.ends
            .iter()
            .map(|end| end.end_reason)
            .collect::<Vec<_>>()
            .join(" "),
        number(row.iterations),
        number(row.input_tokens),
        number(row.output_tokens),
        number(row.peak_memory_bytes),
        bound.map(|bound| bound.to_string()).unwrap_or_default(),
        number(row.quality),
        number(row.process_ms),
        whole(row.kept_files),
        whole(row.files_written),
        row.leak_findings.to_string(),
    ];
    match &row.largest {
        Some(became) => cells.extend(of_largest(became)),
        None => cells.extend([const { String::new() }; 7]),
    }
    cells
}

fn of_largest(became: &Became) -> [String; 7] {
    let ways: Vec<&str> = became.ways.keys().map(String::as_str).collect();
    [
        ways.join("; "),
        number(became.served_bytes),
        number(became.shown_bytes),
        number(became.times),
        number(became.reads),
        number(became.read_bytes),
        number(became.failed_reads),
    ]
}
