use std::collections::BTreeMap;

use spill_record::EndReason;
use spill_verdict::{grouped, plain};

use crate::cells::Cell;
use crate::table::Table;

/// How runs ended: a row for each reason that occurs, a column for each configuration.
pub(crate) fn endings(cells: &[Cell<'_>], configurations: usize) -> Table {
    let width = configurations.max(1);
    let mut counts: BTreeMap<EndReason, Vec<u64>> = BTreeMap::new();
    let mut planned = vec![0u64; width];
    let mut known = vec![0u64; width];
    for (index, cell) in cells.iter().enumerate() {
        let column = index % width;
        planned[column] += cell.planned;
        for record in cell.records() {
            known[column] += 1;
            let row = counts
                .entry(record.end_reason)
                .or_insert_with(|| vec![0; width]);
            row[column] += 1;
        }
    }
    let row = |reason: &str, class: &str, counts: &[u64]| {
        let mut row = vec![reason.to_owned(), class.to_owned()];
        row.extend(counts.iter().map(|count| grouped(*count)));
        row
    };
    let mut rows: Vec<Vec<String>> = counts
        .iter()
        .map(|(reason, counts)| row(reason.as_str(), class(*reason), counts))
        .collect();
    let missing: Vec<u64> = planned.iter().zip(&known).map(|(p, k)| p - k).collect();
    rows.push(row("no record", "missing", &missing));
    rows.push(row("planned", "all", &planned));
    let names: Vec<String> = cells
        .iter()
        .take(configurations)
        .map(|cell| plain(&cell.configuration.name))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Table::new(
        "endings-table",
        "Planned runs by how they ended and configuration",
        &["ended as", "whose"],
        &names,
        rows,
    )
}

/// Whom an end is counted against.
fn class(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Answered => "success",
        EndReason::EmptyAnswer
        | EndReason::IterationLimit
        | EndReason::ContextWindow
        | EndReason::Timeout
        | EndReason::Aborted
        | EndReason::ModelError
        | EndReason::ToolError
        | EndReason::Crashed
        | EndReason::BadSettings => "the subject's",
        EndReason::MockUnavailable
        | EndReason::EndpointFailed
        | EndReason::SpendingCap
        | EndReason::Mismatch
        | EndReason::UnexpectedEnd
        | EndReason::LeakCheckFailed
        | EndReason::LaunchFailed
        | EndReason::SidecarFailed => "the harness's",
    }
}
