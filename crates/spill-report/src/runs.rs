use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use spill_record::{Outcome, RunRecord, RunSet};
use spill_verdict::{Verdict, counted_records, grouped, percent, plain};

use crate::figures::{NOTHING, memory_words};
use crate::pairs::place;

/// Runs that a report lists; beyond that it lists those that are evidence or did not succeed.
const LISTED: usize = 200;

/// The table of runs.
#[derive(Serialize)]
pub(crate) struct Runs {
    pub(crate) rows: Vec<RunRow>,
    /// Runs that have a record and no row.
    pub(crate) left_out: usize,
    /// Anchor by run id, for links from evidence.
    #[serde(skip)]
    anchors: BTreeMap<String, String>,
}

/// One run.
#[derive(Serialize)]
pub(crate) struct RunRow {
    anchor: String,
    run_id: String,
    place: String,
    configuration: String,
    repetition: u32,
    profile: String,
    outcome: &'static str,
    end_reason: &'static str,
    input_tokens: String,
    iterations: String,
    stored: String,
    reads: String,
    quality: String,
    duration: String,
    memory: String,
    /// What went wrong, or what leaked.
    remark: String,
    /// Where its timeline stands in the report, if it does.
    timeline: Option<String>,
}

impl Runs {
    /// Lists the runs that the verdict counted, in plan order; those of `worst` and of `timelines`
    /// (run ids with their anchors) are listed in any case.
    pub(crate) fn list(
        set: &RunSet,
        verdict: &Verdict,
        worst: &BTreeSet<&str>,
        timelines: &BTreeMap<&str, String>,
    ) -> Self {
        let evidence: BTreeSet<&str> = verdict
            .candidates
            .iter()
            .flat_map(|candidate| &candidate.rules)
            .flat_map(|row| &row.evidence)
            .flat_map(|evidence| {
                [Some(&*evidence.run_id), evidence.control_run_id.as_deref()]
                    .into_iter()
                    .flatten()
            })
            .chain(verdict.leaks.iter().map(|leak| &*leak.run_id))
            .chain(worst.iter().copied())
            .chain(timelines.keys().copied())
            .collect();
        let records: Vec<(usize, &RunRecord)> = counted_records(set)
            .into_iter()
            .enumerate()
            .filter_map(|(index, record)| Some((index, record?)))
            .collect();
        let total = records.len();
        let mut listed: Vec<(usize, &RunRecord)> = if total <= LISTED {
            records
        } else {
            let rank = |record: &RunRecord| match record.outcome {
                _ if evidence.contains(&*record.run_id) => Some(0),
                Outcome::Failed | Outcome::Infrastructure => Some(1),
                Outcome::Succeeded => None,
            };
            let mut ranked: Vec<(i32, (usize, &RunRecord))> = records
                .into_iter()
                .filter_map(|entry| Some((rank(entry.1)?, entry)))
                .collect();
            ranked.sort_by_key(|(rank, (index, _))| (*rank, *index));
            ranked.truncate(LISTED);
            ranked.into_iter().map(|(_, entry)| entry).collect()
        };
        listed.sort_by_key(|(index, _)| *index);
        let anchor = |index: usize| format!("run-{index}");
        Self {
            left_out: total - listed.len(),
            anchors: listed
                .iter()
                .map(|(i, r)| (r.run_id.clone(), anchor(*i)))
                .collect(),
            rows: listed
                .into_iter()
                .map(|(index, r)| row(anchor(index), r, timelines.get(&*r.run_id).cloned()))
                .collect(),
        }
    }

    /// Where a run stands in the table, if it does.
    pub(crate) fn anchor(&self, run_id: &str) -> Option<String> {
        self.anchors.get(run_id).cloned()
    }
}

fn row(anchor: String, run: &RunRecord, timeline: Option<String>) -> RunRow {
    let count = |value: Option<u64>| value.map_or_else(|| NOTHING.to_owned(), grouped);
    let mut remarks: Vec<String> = run.error.iter().map(|error| plain(error)).collect();
    if let Some(files @ 1..) = run.files_written {
        remarks.push(format!("files written: {}", grouped(files)));
    }
    remarks.extend(
        run.leak_findings
            .iter()
            .take(3)
            .map(|place| format!("content in {}", plain(place))),
    );
    RunRow {
        anchor,
        run_id: plain(&run.run_id),
        place: place(&run.scenario, &run.input),
        configuration: plain(&run.configuration),
        repetition: run.repetition,
        profile: plain(&run.profile),
        outcome: run.outcome.as_str(),
        end_reason: run.end_reason.as_str(),
        input_tokens: count(run.input_tokens),
        iterations: count(run.iterations),
        stored: count(run.results_persisted),
        reads: count(run.reads),
        quality: run
            .quality
            .filter(|q| q.is_finite())
            .map_or_else(|| NOTHING.to_owned(), percent),
        duration: run
            .duration_ms
            .filter(|ms| ms.is_finite())
            .map_or_else(|| NOTHING.to_owned(), |ms| format!("{ms:.1}")),
        memory: memory_words(run).unwrap_or_else(|| NOTHING.to_owned()),
        remark: remarks.join("; "),
        timeline,
    }
}
