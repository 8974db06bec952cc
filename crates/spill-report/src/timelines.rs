use std::collections::HashMap;

use serde::Serialize;
use spill_record::{RunRecord, RunSet};
use spill_verdict::{counted, plain};

use crate::calls::Calls;
use crate::pairs::place;
use crate::timeline::{Timeline, timeline};

/// A run of the report whose calls are shown.
#[derive(Serialize)]
pub(crate) struct TimelinePart {
    pub(crate) anchor: String,
    pub(crate) run_id: String,
    /// What the run was, in words.
    words: String,
    calls: String,
    timeline: Timeline,
}

/// Calls that a timeline within the report has at most; a run's own page has more.
const TIMELINE_ROWS: usize = 40;

/// The timelines of the runs whose calls were taken.
pub(crate) fn timelines(set: &RunSet, calls: Option<&Calls>) -> Vec<TimelinePart> {
    let Some(calls) = calls else {
        return Vec::new();
    };
    let records: HashMap<&str, &RunRecord> =
        set.runs.iter().map(|run| (&*run.run_id, run)).collect();
    let shown = calls
        .shown()
        .filter_map(|(id, calls)| Some((records.get(id)?, calls)));
    shown
        .enumerate()
        .map(|(index, (run, calls))| TimelinePart {
            anchor: format!("timeline-{index}"),
            run_id: plain(&run.run_id),
            words: run_words(run),
            calls: counted(calls.len() as u64, "LLM call"),
            timeline: timeline(&format!("chart-timeline-{index}"), calls, TIMELINE_ROWS),
        })
        .collect()
}

/// What a run was: input, configuration, repetition, profile and how it ended.
pub(crate) fn run_words(run: &RunRecord) -> String {
    format!(
        "{}, {}, repetition {}, {}: {}",
        place(&run.scenario, &run.input),
        plain(&run.configuration),
        run.repetition,
        plain(&run.profile),
        run.end_reason.as_str()
    )
}
