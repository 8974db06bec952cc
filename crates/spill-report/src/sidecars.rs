//! What stood between subject and servers, by configuration.

use spill_record::{ConfigurationRecord, RunRecord, RunSet, SidecarRecord, SidecarRun};
use spill_verdict::{counted_records, grouped, median, plain};

use crate::figures::{NOTHING, mebibytes};
use crate::table::Table;

/// One row a sidecar; `None` where no configuration has one.
pub(crate) fn sidecars(set: &RunSet) -> Option<Table> {
    let configurations = set.manifest.plan.configurations.iter();
    let rows: Vec<Vec<String>> = configurations
        .flat_map(|one| one.sidecars.iter().map(move |sidecar| (one, sidecar)))
        .map(|(configuration, sidecar)| row(set, configuration, sidecar))
        .collect();
    (!rows.is_empty()).then(|| {
        Table::new(
            "sidecar-table",
            "Medians of the runs, files and leaks of all of them",
            &["configuration", "sidecar", "before"],
            &[&["runs"], &FIGURES[..]].concat(),
            rows,
        )
    })
}

/// What is measured of a sidecar.
const FIGURES: [&str; 6] = [
    "peak memory",
    "processor time",
    "printed",
    "state",
    "files written",
    "leak findings",
];

/// The sidecars of one run; `None` where it has none.
pub(crate) fn sidecars_of(run: &RunRecord) -> Option<Table> {
    let rows: Vec<Vec<String>> = run.sidecars.iter().map(row_of).collect();
    (!rows.is_empty()).then(|| {
        let caption = "What stood between the subject and the servers";
        Table::new("sidecar-table", caption, &["sidecar"], &FIGURES, rows)
    })
}

fn row_of(run: &SidecarRun) -> Vec<String> {
    let told = |value: Option<f64>, shown: fn(f64) -> String| {
        value.map_or_else(|| NOTHING.to_owned(), shown)
    };
    let size = |value: Option<u64>| value.map(|bytes| bytes as f64);
    vec![
        plain(&run.name),
        told(size(run.peak_rss_bytes), mebibytes),
        told(run.cpu_ms, millis),
        told(size(run.log_bytes), bytes),
        told(size(run.state_bytes), bytes),
        run.files_written
            .map_or_else(|| NOTHING.to_owned(), grouped),
        grouped(run.leak_findings.len() as u64),
    ]
}

fn row(set: &RunSet, configuration: &ConfigurationRecord, sidecar: &SidecarRecord) -> Vec<String> {
    let runs: Vec<&SidecarRun> = counted_records(set)
        .into_iter()
        .flatten()
        .filter(|run| run.configuration == configuration.name)
        .flat_map(|run| &run.sidecars)
        .filter(|run| run.name == sidecar.name)
        .collect();
    let middle = |of: fn(&SidecarRun) -> Option<f64>, shown: fn(f64) -> String| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| of(run)).collect();
        let middle = values.and_then(|values| median(&values));
        middle.map_or_else(|| NOTHING.to_owned(), shown)
    };
    let files = runs
        .iter()
        .map(|run| run.files_written)
        .sum::<Option<u64>>();
    let leaks: usize = runs.iter().map(|run| run.leak_findings.len()).sum();
    vec![
        plain(&configuration.name),
        plain(&sidecar.name),
        sidecar.before.as_str().to_owned(),
        grouped(runs.len() as u64),
        middle(
            |run| run.peak_rss_bytes.map(|bytes| bytes as f64),
            mebibytes,
        ),
        middle(|run| run.cpu_ms, millis),
        middle(|run| run.log_bytes.map(|bytes| bytes as f64), bytes),
        middle(|run| run.state_bytes.map(|bytes| bytes as f64), bytes),
        files.map_or_else(|| NOTHING.to_owned(), grouped),
        grouped(leaks as u64),
    ]
}

fn millis(time: f64) -> String {
    format!("{time:.0} ms")
}

fn bytes(bytes: f64) -> String {
    format!("{bytes:.0} B")
}
