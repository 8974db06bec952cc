//! The figures of each subject, by input and configuration.

use std::collections::BTreeMap;

use serde::Serialize;
use spill_record::{ConfigurationRole, EndReason, Outcome, RunRecord};
use spill_verdict::median;

use super::SubjectRuns;
use super::largest::{Came, Largest, LargestResults};
use crate::cells::{Cell, cells, facts};
use crate::figures::memory_of;

/// An input, with what each subject made of it.
#[derive(Serialize)]
pub(super) struct Place {
    pub(super) scenario: String,
    pub(super) input: String,
    pub(super) class: &'static str,
    pub(super) largest_result_bytes: u64,
    pub(super) facts: u64,
    pub(super) repetitions: u64,
    /// Profiles of the simulated model in these runs.
    pub(super) profiles: Vec<String>,
    /// Subjects of the other folders, with which it was not run.
    pub(super) not_run_with: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// A subject under one of its configurations: medians over finished runs, sums over recorded ones.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) subject: String,
    pub(super) configuration: String,
    pub(super) is_control: bool,
    pub(super) ships: bool,
    pub(super) planned: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) infrastructure: u64,
    pub(super) missing: u64,
    pub(super) iterations: Option<f64>,
    pub(super) input_tokens: Option<f64>,
    pub(super) output_tokens: Option<f64>,
    pub(super) peak_memory_bytes: Option<f64>,
    /// Whether the peak is at least that, and not known.
    pub(super) peak_memory_is_lower_bound: Option<bool>,
    pub(super) quality: Option<f64>,
    pub(super) process_ms: Option<f64>,
    pub(super) kept_files: Option<u64>,
    pub(super) files_written: Option<u64>,
    pub(super) leak_findings: u64,
    pub(super) ends: Vec<End>,
    pub(super) largest: Option<Became>,
}

/// How runs that did not succeed ended.
#[derive(Serialize)]
pub(super) struct End {
    pub(super) end_reason: &'static str,
    pub(super) runs: u64,
    /// What the first of them says in its record.
    pub(super) error: Option<String>,
}

/// What became of the largest result: medians over the runs that have calls.
#[derive(Serialize)]
pub(super) struct Became {
    pub(super) runs: u64,
    /// How many of them had it which way: `whole`, `stored`, `cut`, or such as `whole, then stored`; `absent` where it
    /// never came.
    pub(super) ways: BTreeMap<String, u64>,
    pub(super) served_bytes: Option<f64>,
    pub(super) shown_bytes: Option<f64>,
    pub(super) times: Option<f64>,
    pub(super) reads: Option<f64>,
    pub(super) read_bytes: Option<f64>,
    pub(super) failed_reads: Option<f64>,
}

/// The inputs in the order in which they come up first, and the subjects in that of the folders.
pub(super) fn places(folders: &[SubjectRuns<'_>]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for folder in folders {
        let subject = &folder.set.manifest.subject;
        for cell in cells(folder.set) {
            let is_here = |place: &&mut Place| {
                place.scenario == cell.input.scenario && place.input == cell.input.input
            };
            let row = row(subject, &cell, folder.largest);
            match places.iter_mut().find(is_here) {
                Some(place) => place.rows.push(row),
                None => places.push(Place {
                    rows: vec![row],
                    ..place(folder, &cell)
                }),
            }
        }
    }
    for place in &mut places {
        let mut absent: Vec<String> = Vec::new();
        for folder in folders {
            let subject = &folder.set.manifest.subject;
            let is_shown = place.rows.iter().any(|row| row.subject == *subject);
            if !is_shown && !absent.contains(subject) {
                absent.push(subject.clone());
            }
        }
        place.not_run_with = absent;
    }
    places
}

fn place(folder: &SubjectRuns<'_>, cell: &Cell<'_>) -> Place {
    let runs = folder.set.manifest.plan.runs.iter();
    let mut profiles: Vec<String> = runs
        .filter(|run| run.scenario == cell.input.scenario && run.input == cell.input.input)
        .map(|run| run.profile.clone())
        .collect();
    profiles.sort();
    profiles.dedup();
    Place {
        scenario: cell.input.scenario.clone(),
        input: cell.input.input.clone(),
        class: cell.input.class.as_str(),
        largest_result_bytes: cell.input.largest_result_bytes,
        facts: cell.input.facts.len() as u64,
        repetitions: cell.planned,
        profiles,
        not_run_with: Vec::new(),
        rows: Vec::new(),
    }
}

fn row(subject: &str, cell: &Cell<'_>, largest: &LargestResults) -> Row {
    let middle = |pick| cell.spread(pick).map(|spread| spread.median);
    let memory = || {
        let finished = |run: &&&RunRecord| run.outcome != Outcome::Infrastructure;
        let records = cell.records().iter().filter(finished);
        records.filter(|run| memory_of(run).is_some())
    };
    let process: Vec<f64> = cell
        .records()
        .iter()
        .filter(|run| run.outcome != Outcome::Infrastructure)
        .filter_map(|run| run.process_ms.filter(|ms| ms.is_finite()))
        .collect();
    Row {
        subject: subject.to_owned(),
        configuration: cell.configuration.name.clone(),
        is_control: cell.configuration.role == ConfigurationRole::Control,
        ships: cell.configuration.shipped,
        planned: cell.planned,
        succeeded: cell.succeeded(),
        failed: cell.failed(),
        infrastructure: cell.infrastructure(),
        missing: cell.missing(),
        iterations: middle(|run| run.iterations),
        input_tokens: middle(|run| run.input_tokens),
        output_tokens: middle(|run| run.output_tokens),
        peak_memory_bytes: middle(memory_of),
        peak_memory_is_lower_bound: memory()
            .next()
            .map(|_| memory().any(|run| run.peak_rss_bytes.is_none())),
        quality: cell.coverage(facts).map(|spread| spread.median),
        process_ms: median(&process),
        kept_files: sum(cell, |run| run.kept_files),
        files_written: sum(cell, |run| run.files_written),
        leak_findings: cell
            .records()
            .iter()
            .map(|run| run.leak_findings.len() as u64)
            .sum(),
        ends: ends(cell.records()),
        largest: became(cell.records(), largest),
    }
}

/// The sum over all recorded runs; `None` when none of them tells it.
fn sum(cell: &Cell<'_>, pick: fn(&RunRecord) -> Option<u64>) -> Option<u64> {
    let told = cell.records().iter().filter_map(|run| pick(run));
    told.reduce(u64::saturating_add)
}

fn ends(records: &[&RunRecord]) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    let mut places: BTreeMap<EndReason, usize> = BTreeMap::new();
    for run in records {
        if run.outcome == Outcome::Succeeded {
            continue;
        }
        let index = *places.entry(run.end_reason).or_insert(ends.len());
        match ends.get_mut(index) {
            Some(end) => end.runs += 1,
            None => ends.push(End {
                end_reason: run.end_reason.as_str(),
                runs: 1,
                error: run.error.clone(),
            }),
        }
    }
    ends
}

fn became(records: &[&RunRecord], largest: &LargestResults) -> Option<Became> {
    let known: Vec<(&RunRecord, Option<Largest>)> = records
        .iter()
        .filter(|run| largest.knows(&run.run_id))
        .map(|run| (*run, largest.of(&run.run_id)))
        .collect();
    if known.is_empty() {
        return None;
    }
    let mut ways = BTreeMap::new();
    for (_, found) in &known {
        *ways.entry(found.map_or_else(absent, way)).or_insert(0) += 1;
    }
    let middle = |pick: fn(&Largest) -> u64| {
        let found = known.iter().filter_map(|(_, found)| found.as_ref());
        median(&found.map(|one| pick(one) as f64).collect::<Vec<f64>>())
    };
    let served = known.iter().filter_map(|(run, _)| run.largest_result_bytes);
    Some(Became {
        runs: known.len() as u64,
        ways,
        served_bytes: median(&served.map(|bytes| bytes as f64).collect::<Vec<f64>>()),
        shown_bytes: middle(|one| one.shown_bytes),
        times: middle(|one| one.times),
        reads: middle(|one| one.reads),
        read_bytes: middle(|one| one.read_bytes),
        failed_reads: middle(|one| one.failed_reads),
    })
}

fn absent() -> String {
    "absent".to_owned()
}

fn way(largest: Largest) -> String {
    let came: Came = largest.came;
    match largest.later {
        None => came.as_str().to_owned(),
        Some(later) => format!("{}, then {}", came.as_str(), later.as_str()),
    }
}
