//! Several subjects side by side as a page.

use serde::Serialize;
use spill_verdict::{counted, grouped, percent, plain};

use super::SubjectRuns;
use super::figures::{Place, Row};
use super::words;
use crate::background::provenance_of;
use crate::html::html;
use crate::pairs::place;
use crate::table::Table;

#[derive(Serialize)]
struct Page {
    title: &'static str,
    subtitle: String,
    places: Vec<Part>,
    folders: Vec<Folder>,
}

#[derive(Serialize)]
struct Part {
    id: String,
    name: String,
    given: String,
    figures: Table,
    became: Table,
    ends: Vec<String>,
    not_run_with: String,
}

#[derive(Serialize)]
struct Folder {
    name: String,
    id: String,
    provenance: Vec<(&'static str, String)>,
}

/// Inputs of a folder that are named at most.
const INPUTS: usize = 6;

const FIGURES: [&str; 10] = [
    "succeeded",
    "iterations",
    "input tokens",
    "output tokens",
    "peak memory, MiB (measured)",
    "quality",
    "seconds (measured)",
    "files kept by the agent",
    "files written",
    "leaks",
];

const BECAME: [&str; 7] = [
    "in the prompt, bytes",
    "of served, bytes",
    "share",
    "times it came",
    "reads",
    "bytes read back",
    "failed reads",
];

pub(super) fn page(folders: &[SubjectRuns<'_>], places: &[Place]) -> String {
    let mut subjects: Vec<&str> = folders
        .iter()
        .map(|folder| &*folder.set.manifest.subject)
        .collect();
    subjects.sort_unstable();
    subjects.dedup();
    html(
        "subjects.html",
        Page {
            title: "Spillgate: subjects side by side",
            subtitle: format!(
                "{}, {}",
                counted(subjects.len() as u64, "subject"),
                counted(places.len() as u64, "input")
            ),
            places: places.iter().enumerate().map(part).collect(),
            folders: folders.iter().map(folder).collect(),
        },
    )
}

fn part((number, at): (usize, &Place)) -> Part {
    let name = words::name(at);
    let rows = |cells: fn(&Row) -> Vec<String>| at.rows.iter().map(cells).collect();
    let ends = at.rows.iter().flat_map(|row| {
        let who = format!("{}, {}", plain(&row.subject), plain(&row.configuration));
        let ends = words::ends(row).into_iter();
        ends.map(move |end| format!("{who}: {end}"))
    });
    let absent: Vec<String> = at.not_run_with.iter().map(|one| plain(one)).collect();
    Part {
        id: format!("input-{number}"),
        given: words::given(at),
        figures: Table::new(
            format!("figures-{number}"),
            format!("{name}: medians of the finished runs; files and leaks of all runs"),
            &["subject", "configuration"],
            &FIGURES,
            rows(figures),
        ),
        became: Table::new(
            format!("largest-{number}"),
            format!("{name}: what became of the largest result"),
            &["subject", "configuration", "it was"],
            &BECAME,
            rows(became),
        ),
        ends: ends.collect(),
        not_run_with: absent.join(", "),
        name,
    }
}

fn figures(row: &Row) -> Vec<String> {
    vec![
        plain(&row.subject),
        words::configuration(row),
        words::succeeded(row),
        words::count(row.iterations),
        words::count(row.input_tokens),
        words::count(row.output_tokens),
        words::memory(row, 1),
        words::quality(row),
        words::seconds(row),
        words::sum(row.kept_files),
        words::sum(row.files_written),
        grouped(row.leak_findings),
    ]
}

fn became(row: &Row) -> Vec<String> {
    let mut cells = vec![plain(&row.subject), words::configuration(row)];
    let Some(became) = &row.largest else {
        cells.push("not measured: no calls".to_owned());
        cells.extend(BECAME.map(|_| words::nothing()));
        return cells;
    };
    cells.extend([
        words::ways(became),
        words::count(became.shown_bytes),
        words::count(became.served_bytes),
        words::part_shown(became).map_or_else(words::nothing, percent),
        words::count(became.times),
        words::count(became.reads),
        words::count(became.read_bytes),
        words::count(became.failed_reads),
    ]);
    cells
}

fn folder(runs: &SubjectRuns<'_>) -> Folder {
    let manifest = &runs.set.manifest;
    let inputs = manifest.plan.inputs.iter();
    let inputs: Vec<String> = inputs
        .take(INPUTS)
        .map(|one| place(&one.scenario, &one.input))
        .collect();
    Folder {
        name: format!("{}: {}", plain(&manifest.subject), inputs.join(", ")),
        id: plain(&manifest.acceptance_id),
        provenance: provenance_of(runs.set),
    }
}
