use serde::Serialize;
use spill_record::{CallRecord, RunRecord, RunSet};
use spill_verdict::{grouped, percent, plain};

use crate::figures::{NOTHING, memory_words};
use crate::html::html;
use crate::sidecars::sidecars_of;
use crate::table::Table;
use crate::timeline::{Timeline, timeline};
use crate::timelines::run_words;

/// Calls that the page lists at most; `calls.jsonl` has all of them.
const ROWS: usize = 1_000;
/// Runs of one pair that are shown beside each other.
const ARMS: usize = 8;

/// The page of one run.
#[derive(Serialize)]
struct RunPage {
    title: String,
    run_id: String,
    words: String,
    outcome: &'static str,
    /// What went wrong, or what leaked; one line each.
    remarks: Vec<String>,
    /// The configurations of the pair; the first is this run's.
    arms: Vec<String>,
    figures: Vec<Figure>,
    sidecars: Option<Table>,
    missed: Vec<String>,
    identity: Vec<(&'static str, String)>,
    timeline: Option<Timeline>,
    calls: String,
}

#[derive(Serialize)]
struct Figure {
    name: &'static str,
    measured: bool,
    values: Vec<String>,
}

/// The page of one run: its figures beside those of its pair, and the timeline of its iterations.
///
/// `calls` may hold the calls of other runs as well. It shows ids, sizes and digests, never content.
/// `None` when the folder has no record of the run.
#[must_use]
pub fn run_page(set: &RunSet, calls: &[CallRecord], run_id: &str) -> Option<String> {
    let mut runs = set.runs.iter().chain(&set.sensitivity);
    let run = runs.find(|run| run.run_id == run_id)?;
    let calls: Vec<CallRecord> = calls
        .iter()
        .filter(|call| call.run_id == run_id)
        .cloned()
        .collect();
    let arms = arms(set, run);
    let missed = run.missed_facts.iter().take(ROWS);
    Some(html(
        "run.html",
        RunPage {
            title: format!("Spillgate: run {}", plain(&run.run_id)),
            run_id: plain(&run.run_id),
            words: run_words(run),
            outcome: run.outcome.as_str(),
            remarks: remarks(run),
            arms: arms.iter().map(|arm| plain(&arm.configuration)).collect(),
            figures: figures(&arms),
            sidecars: sidecars_of(run),
            missed: missed.map(|id| plain(id)).collect(),
            identity: identity(set, run),
            calls: grouped(calls.len() as u64),
            timeline: (!calls.is_empty()).then(|| timeline("chart-timeline", &calls, ROWS)),
        },
    ))
}

/// The run, then the others of its pair in the order of the folder.
fn arms<'a>(set: &'a RunSet, run: &'a RunRecord) -> Vec<&'a RunRecord> {
    let others = set.runs.iter().chain(&set.sensitivity);
    let others = others.filter(|other| other.pair_id == run.pair_id && other.run_id != run.run_id);
    std::iter::once(run).chain(others).take(ARMS).collect()
}

fn remarks(run: &RunRecord) -> Vec<String> {
    let mut remarks: Vec<String> = run.error.iter().map(|error| plain(error)).collect();
    if let Some(files @ 1..) = run.files_written {
        remarks.push(format!("files written: {}", grouped(files)));
    }
    if let Some(kept @ 1..) = run.kept_files {
        remarks.push(format!(
            "files with content kept by the agent: {}",
            grouped(kept)
        ));
    }
    let findings = run.leak_findings.iter().take(20);
    remarks.extend(findings.map(|place| format!("content in {}", plain(place))));
    remarks
}

fn figures(arms: &[&RunRecord]) -> Vec<Figure> {
    let row =
        |name: &'static str, measured: bool, of: &dyn Fn(&RunRecord) -> Option<String>| Figure {
            name,
            measured,
            values: arms
                .iter()
                .map(|run| of(run).unwrap_or_else(|| NOTHING.to_owned()))
                .collect(),
        };
    let count = |name: &'static str, pick: fn(&RunRecord) -> Option<u64>| {
        row(name, false, &|run| pick(run).map(grouped))
    };
    let part = |found: Option<u64>, expected: Option<u64>| {
        Some(format!("{} of {}", grouped(found?), grouped(expected?)))
    };
    vec![
        row("outcome", false, &|run| {
            Some(run.outcome.as_str().to_owned())
        }),
        row("ended as", false, &|run| {
            Some(run.end_reason.as_str().to_owned())
        }),
        count("iterations", |run| run.iterations),
        count("LLM calls", |run| run.llm_calls),
        count("LLM requests sent again", |run| run.llm_retries),
        count("input tokens", |run| run.input_tokens),
        count("of them cache reads", |run| run.cached_input_tokens),
        count("output tokens", |run| run.output_tokens),
        count("tool calls", |run| run.tool_calls),
        count("bytes of tool results", |run| run.tool_result_bytes),
        count("bytes of the largest", |run| run.largest_result_bytes),
        count("results stored", |run| run.results_persisted),
        count("of them read back", |run| run.results_read_back),
        count("reads", |run| run.reads),
        count("reads with a range", |run| run.reads_with_range),
        count("bytes read back", |run| run.read_bytes),
        count("of them read again", |run| run.reread_bytes),
        count("store at its fullest, bytes", |run| run.store_peak_bytes),
        row("facts found", false, &|run| {
            part(run.facts_found, run.facts_expected)
        }),
        row("facts of the end found", false, &|run| {
            part(run.end_facts_found, run.end_facts_expected)
        }),
        count("unfounded findings", |run| run.unfounded_findings),
        row("quality", false, &|run| {
            run.quality.filter(|q| q.is_finite()).map(percent)
        }),
        count("files written", |run| run.files_written),
        count("status report, bytes", |run| run.body_bytes),
        row("step, ms", true, &|run| millis(run.duration_ms)),
        row("process, ms", true, &|run| millis(run.process_ms)),
        row("processor time, ms", true, &|run| millis(run.cpu_ms)),
        row("peak memory", true, &|run| {
            memory_words(run).map(|words| match &run.memory_check {
                Some(check) => format!("{words} MiB ({})", plain(check)),
                None => format!("{words} MiB"),
            })
        }),
    ]
}

fn millis(value: Option<f64>) -> Option<String> {
    value
        .filter(|ms| ms.is_finite())
        .map(|ms| format!("{ms:.1}"))
}

fn identity(set: &RunSet, run: &RunRecord) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.as_deref().map_or(NOTHING.to_owned(), plain);
    vec![
        ("run", plain(&run.run_id)),
        ("pair", plain(&run.pair_id)),
        ("seed", run.seed.to_string()),
        ("plan hash", plain(&set.manifest.plan_hash)),
        ("subject", plain(&run.subject)),
        ("model", plain(&run.model)),
        ("policy", text(&run.policy)),
        ("store", text(&run.store)),
        (
            "threshold, bytes",
            run.threshold_bytes.map_or(NOTHING.to_owned(), grouped),
        ),
        ("digest of all requests", text(&run.prompt_digest)),
        ("digest of the tool lists", text(&run.offered_tools_digest)),
        ("search for leaks", plain(&run.leak_check)),
    ]
}
