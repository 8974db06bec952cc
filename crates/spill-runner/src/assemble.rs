//! Puts a run's record together: the servers' journal, the step result, what was measured.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use spill_mocks::{Journal, Lost};
use spill_record::{
    CallRecord, EndReason, InputRecord, Outcome, PlannedRun, PromptTokens, RunRecord, SCHEMA,
    ToolResultForm, digest_parts,
};
use spill_scenario::Fact;

use crate::call_record::call_record;
use crate::execute::FinishedRun;
use crate::expected::Expected;
use crate::foreign::Told;
use crate::launcher::LaunchReport;
use crate::process::Finished;
use crate::score::{Score, score};
use crate::servers_alone;
use crate::sidecar::Left;
use crate::step_result::StepResult;
use crate::watch::{CONFINED_LEAK_CHECK, LEAK_CHECK, LEAK_CHECK_ALONE, Traces};

/// Where `peak_rss_bytes` of a subject of one process comes from.
const MEMORY_CHECK: &str = "largest process";
/// Where that of a process tree comes from.
const MEMORY_CHECK_CGROUP: &str = "cgroup memory.peak";
/// Where `sampled_memory_bytes` comes from.
const MEMORY_CHECK_SAMPLED: &str = "samples of the process tree, a lower bound";

/// What a run is known by before it starts.
pub(crate) struct Identity<'a> {
    pub(crate) planned: &'a PlannedRun,
    pub(crate) input: &'a InputRecord,
    pub(crate) facts: &'a [Fact],
    pub(crate) subject: &'a str,
    pub(crate) model: &'a str,
    pub(crate) expected: Option<Expected>,
    pub(crate) witness: Witness,
}

/// Who tells of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Witness {
    /// The servers, and the subject's step result, which is compared with them.
    StepResult,
    /// The servers alone.
    ServersAlone {
        /// Iterations that the scenario allows.
        iteration_limit: u64,
    },
}

/// How the process ended, seen from outside.
pub(crate) enum ProcessEnd {
    /// It printed a step result.
    Reported(Box<StepResult>),
    /// It is a foreign subject, and ended on its own.
    Told(Told),
    /// It is the subject's fault that there is none.
    Subject(EndReason, String),
    /// It is the harness's fault.
    Harness(EndReason, String),
}

/// Everything that is known after a run.
pub(crate) struct Seen {
    pub(crate) end: ProcessEnd,
    pub(crate) finished: Option<Finished>,
    pub(crate) journal: Journal,
    pub(crate) traces: Result<Traces, String>,
    /// What stood between subject and servers.
    pub(crate) sidecars: Left,
}

/// Makes the records of a run and its calls.
///
/// A subject whose figures contradict the servers' journal, a request outside the script, and a
/// search that cannot be trusted make the run an infrastructure failure.
pub(crate) fn assemble(identity: &Identity<'_>, seen: Seen) -> FinishedRun {
    let calls: Vec<CallRecord> = seen
        .journal
        .llm
        .iter()
        .map(|entry| call_record(&identity.planned.run_id, entry))
        .collect();
    let sums = Sums::of(&calls, &seen.journal);
    let mut record = blank(identity);
    let times = calls.iter().filter_map(|call| call.model_time_ms);
    record.model_time_ms = times.fold(None, |sum: Option<f64>, time| {
        Some(sum.unwrap_or(0.0) + time)
    });
    fill_from_journal(&mut record, &sums);
    if let Some(finished) = &seen.finished {
        record.process_ms = Some(finished.wall.as_secs_f64() * 1000.0);
        if let Ok(report) = &finished.report {
            fill_memory(&mut record, identity.witness, report);
            record.cpu_ms = Some(Duration::from_micros(report.cpu_us).as_secs_f64() * 1000.0);
            if report.confined {
                CONFINED_LEAK_CHECK.clone_into(&mut record.leak_check);
            }
        }
    }
    let mut fault = None;
    match &seen.traces {
        Ok(traces) => {
            record.files_written = Some(traces.files_written);
            record.kept_files = traces.kept_files;
            record.leak_findings.clone_from(&traces.findings);
            record.state_files.clone_from(&traces.state_files);
            record.state_bytes = Some(traces.state_files.iter().map(|file| file.bytes).sum());
        }
        Err(why) => fault = Some((EndReason::LeakCheckFailed, why.clone())),
    }
    fill_from_sidecars(&mut record, &seen.sidecars);
    match identity.witness {
        Witness::StepResult => {}
        Witness::ServersAlone { iteration_limit } => {
            record.leak_check = LEAK_CHECK_ALONE.to_owned();
            servers_alone::fill(&mut record, &seen.journal, iteration_limit);
        }
    }
    match seen.end {
        ProcessEnd::Told(told) => {
            let (answer, ended) = servers_alone::end_of(told, &seen.journal);
            end(&mut record, ended.outcome, ended.reason, ended.error);
            score_into(&mut record, &answer, identity.facts);
        }
        ProcessEnd::Reported(result) => {
            fill_from_result(&mut record, &result);
            score_into(
                &mut record,
                result.final_answer.as_deref().unwrap_or(""),
                identity.facts,
            );
            if let Some(why) = contradiction(&result, &sums) {
                fault = Some((EndReason::Mismatch, why));
            }
        }
        ProcessEnd::Subject(reason, why) => {
            end(&mut record, Outcome::Failed, reason, Some(why));
            score_into(&mut record, "", identity.facts);
        }
        ProcessEnd::Harness(reason, why) => fault = Some((reason, why)),
    }
    if let Some(lost) = lost_upstream(&record, &seen.journal) {
        fault = Some(lost);
    }
    if let Some(request) = seen.journal.unscripted.first() {
        let why = format!("a mock server was asked for something outside its script: {request}");
        fault = Some((EndReason::MockUnavailable, why));
    }
    if let Some(why) = seen.sidecars.failure {
        fault = Some((EndReason::SidecarFailed, why));
    } else if let Some(why) = seen.sidecars.unsearched {
        fault = Some((EndReason::LeakCheckFailed, why));
    }
    record.faults = faults_of(&seen.journal);
    let otherwise = identity
        .expected
        .and_then(|expected| expected.missed_by(record.end_reason, record.faults.len()));
    if fault.is_none()
        && let Some(why) = otherwise
    {
        fault = Some((EndReason::UnexpectedEnd, why));
    }
    if let Some((reason, why)) = fault {
        end(&mut record, Outcome::Infrastructure, reason, Some(why));
        record.quality = None;
    }
    FinishedRun { record, calls }
}

/// What a sidecar wrote and leaked counts as the run's own.
fn fill_from_sidecars(record: &mut RunRecord, left: &Left) {
    record.sidecars.clone_from(&left.runs);
    for sidecar in &left.runs {
        record.files_written = match (record.files_written, sidecar.files_written) {
            (Some(own), Some(files)) => Some(own + files),
            (own, None) | (own @ None, Some(_)) => own,
        };
        let named = |finding| format!("{finding} of the sidecar {}", sidecar.name);
        let findings = sidecar.leak_findings.iter().map(named);
        record.leak_findings.extend(findings);
    }
}

/// Why a run that did not succeed is the endpoint's to answer for: its last request was lost there. One that
/// was not sent since the cap was reached ends no run of its own.
fn lost_upstream(record: &RunRecord, journal: &Journal) -> Option<(EndReason, String)> {
    match record.outcome {
        Outcome::Failed => {}
        Outcome::Succeeded | Outcome::Infrastructure => return None,
    }
    let last = journal.llm.last()?;
    match last.lost? {
        Lost::SpendingCap => {
            let why = "a request was not sent: the spending cap is reached".to_owned();
            Some((EndReason::SpendingCap, why))
        }
        Lost::Endpoint => {
            let status = match last.status {
                0 => String::new(),
                status => format!(", HTTP {status}"),
            };
            let why = format!(
                "the endpoint's answer to request {} was lost: {}{status}",
                last.call + 1,
                last.finish_reason
            );
            Some((EndReason::EndpointFailed, why))
        }
    }
}

/// What the kernel tells of waited-for children is the largest of them: enough for a subject of one
/// process, and nothing of a tree.
fn fill_memory(record: &mut RunRecord, witness: Witness, report: &LaunchReport) {
    let check = match (witness, report.tree) {
        (Witness::StepResult, _) => {
            record.peak_rss_bytes = Some(report.peak_rss_bytes);
            MEMORY_CHECK
        }
        (Witness::ServersAlone { .. }, Some(tree)) if tree.cgroup_peak_bytes.is_some() => {
            record.peak_rss_bytes = tree.cgroup_peak_bytes;
            MEMORY_CHECK_CGROUP
        }
        (Witness::ServersAlone { .. }, Some(tree)) if tree.sampled_bytes.is_some() => {
            record.sampled_memory_bytes = tree.sampled_bytes;
            MEMORY_CHECK_SAMPLED
        }
        (Witness::ServersAlone { .. }, _) => return,
    };
    record.memory_check = Some(check.to_owned());
}

fn end(record: &mut RunRecord, outcome: Outcome, reason: EndReason, error: Option<String>) {
    record.outcome = outcome;
    record.end_reason = reason;
    record.error = error;
}

/// The faults that came to pass, server by server.
fn faults_of(journal: &Journal) -> Vec<String> {
    let llm = journal.llm.iter().filter_map(|call| {
        let fault = call.fault?;
        Some(format!("llm {} {fault}", call.call + 1))
    });
    let tools = (1..).zip(&journal.tools).filter_map(|(number, call)| {
        let fault = call.fault?;
        Some(format!("tools {number} {fault}"))
    });
    llm.chain(tools).collect()
}

/// A record in which nothing is known yet but what the plan says.
fn blank(identity: &Identity<'_>) -> RunRecord {
    let planned = identity.planned;
    RunRecord {
        schema: SCHEMA,
        run_id: planned.run_id.clone(),
        pair_id: planned.pair_id.clone(),
        scenario: planned.scenario.clone(),
        recipe: identity.input.recipe.clone(),
        input: planned.input.clone(),
        class: identity.input.class,
        configuration: planned.configuration.clone(),
        policy: None,
        store: None,
        threshold_bytes: None,
        preview_share: None,
        repetition: planned.repetition,
        seed: planned.seed,
        subject: identity.subject.to_owned(),
        model: identity.model.to_owned(),
        profile: planned.profile.clone(),
        outcome: Outcome::Infrastructure,
        end_reason: EndReason::LaunchFailed,
        hit_iteration_limit: None,
        iterations: None,
        llm_calls: None,
        llm_retries: None,
        input_tokens: None,
        cached_input_tokens: None,
        cached_before_read_tool_tokens: None,
        cached_after_read_tool_tokens: None,
        cache_write_tokens: None,
        output_tokens: None,
        duration_ms: None,
        process_ms: None,
        cpu_ms: None,
        model_time_ms: None,
        tool_calls: None,
        tool_result_bytes: None,
        largest_result_bytes: None,
        results_persisted: None,
        persisted_by_tool: BTreeMap::new(),
        results_read_back: None,
        reads: None,
        reads_with_range: None,
        read_bytes: None,
        reread_bytes: None,
        store_peak_bytes: None,
        peak_rss_bytes: None,
        sampled_memory_bytes: None,
        memory_check: None,
        body_bytes: None,
        facts_expected: None,
        facts_found: None,
        end_facts_expected: None,
        end_facts_found: None,
        large_file_facts_expected: None,
        large_file_facts_found: None,
        missed_facts: Vec::new(),
        faults: Vec::new(),
        unfounded_findings: None,
        quality: None,
        files_written: None,
        state_files: Vec::new(),
        state_bytes: None,
        kept_files: None,
        sidecars: Vec::new(),
        leak_findings: Vec::new(),
        leak_check: LEAK_CHECK.to_owned(),
        prompt_digest: None,
        offered_tools_digest: None,
        effective_settings: None,
        error: None,
        same_as: None,
    }
}

/// What the servers' journal adds up to.
struct Sums {
    answered: u64,
    iterations: u64,
    /// `None` when an answered call does not tell its own.
    tokens: Option<PromptTokens>,
    /// Tokens read from the cache by calls with the run's first tool list, and by all later ones.
    cached_around_read_tool: Option<(u64, u64)>,
    previews: u64,
    slices: u64,
    slice_bytes: u64,
    tool_calls: u64,
    tool_result_bytes: u64,
    largest_result_bytes: u64,
    prompt_digest: String,
    tools_digest: String,
    last_answered: bool,
}

impl Sums {
    fn of(calls: &[CallRecord], journal: &Journal) -> Self {
        let answered = || calls.iter().filter(|call| call.status == 200);
        let mut tokens = Some(PromptTokens::default());
        for call in answered() {
            tokens = tokens.zip(call.tokens).map(|(sum, more)| sum.plus(more));
        }
        let new_results = || calls.iter().flat_map(|call| &call.new_results);
        let of_form = |form| new_results().filter(move |result| result.form == form);
        let join = |digest: fn(&CallRecord) -> &str| {
            let parts: Vec<&str> = calls.iter().map(digest).collect();
            digest_parts(&parts)
        };
        Self {
            answered: count(answered()),
            iterations: calls.iter().map(|call| call.iteration).max().unwrap_or(0),
            tokens,
            cached_around_read_tool: cached_around_read_tool(calls),
            previews: count(of_form(ToolResultForm::Preview)),
            slices: count(of_form(ToolResultForm::Slice)),
            slice_bytes: of_form(ToolResultForm::Slice)
                .filter_map(|slice| slice.stored_bytes)
                .sum(),
            tool_calls: count(journal.tools.iter()),
            tool_result_bytes: journal.tools.iter().map(|call| call.result_bytes).sum(),
            largest_result_bytes: journal
                .tools
                .iter()
                .map(|call| call.result_bytes)
                .max()
                .unwrap_or(0),
            prompt_digest: join(|call| &call.request_digest),
            tools_digest: join(|call| &call.tools_digest),
            last_answered: calls
                .last()
                .is_some_and(|call| call.status == 200 && call.calls_tools.is_empty()),
        }
    }
}

/// Sums of the cached prompt tokens before the tool list first changes and from then on.
fn cached_around_read_tool(calls: &[CallRecord]) -> Option<(u64, u64)> {
    let changed = calls
        .iter()
        .position(|call| call.tools_digest != calls[0].tools_digest)
        .unwrap_or(calls.len());
    let (before, after) = calls.split_at(changed);
    let sum = |calls: &[CallRecord]| {
        let answered = calls.iter().filter(|call| call.status == 200);
        let tokens = answered.map(|call| Some(call.tokens?.cache_read_tokens));
        tokens.sum::<Option<u64>>()
    };
    Some((sum(before)?, sum(after)?))
}

fn count(items: impl Iterator) -> u64 {
    u64::try_from(items.count()).unwrap_or(u64::MAX)
}

fn fill_from_journal(record: &mut RunRecord, sums: &Sums) {
    record.iterations = Some(sums.iterations);
    record.llm_calls = Some(sums.answered);
    let of = |pick: fn(PromptTokens) -> u64| sums.tokens.map(pick);
    record.input_tokens = of(PromptTokens::input_tokens);
    record.cached_input_tokens = of(|tokens| tokens.cache_read_tokens);
    let (before, after) = sums.cached_around_read_tool.unzip();
    record.cached_before_read_tool_tokens = before;
    record.cached_after_read_tool_tokens = after;
    record.cache_write_tokens = of(|tokens| tokens.cache_write_tokens);
    record.output_tokens = of(|tokens| tokens.output_tokens);
    record.tool_calls = Some(sums.tool_calls + sums.slices);
    record.tool_result_bytes = Some(sums.tool_result_bytes);
    record.largest_result_bytes = Some(sums.largest_result_bytes);
    record.prompt_digest = Some(sums.prompt_digest.clone());
    record.offered_tools_digest = Some(sums.tools_digest.clone());
}

fn fill_from_result(record: &mut RunRecord, result: &StepResult) {
    let answered = result.end_reason == EndReason::Answered
        && result
            .final_answer
            .as_deref()
            .is_some_and(|answer| !answer.trim().is_empty());
    let (outcome, reason) = match (answered, result.end_reason) {
        (true, _) => (Outcome::Succeeded, EndReason::Answered),
        (false, EndReason::Answered) => (Outcome::Failed, EndReason::EmptyAnswer),
        (false, reason) => (Outcome::Failed, reason),
    };
    end(record, outcome, reason, result.error.clone());
    record.hit_iteration_limit = Some(result.hit_iteration_limit);
    record.llm_retries = Some(result.llm_retries);
    record.duration_ms = Some(result.duration_ms);
    record.results_persisted = Some(result.spill.persisted);
    record
        .persisted_by_tool
        .clone_from(&result.spill.persisted_by_tool);
    record.results_read_back = Some(result.spill.distinct_read);
    record.reads = Some(result.spill.reads);
    record.reads_with_range = Some(result.spill.reads_with_range);
    record.read_bytes = Some(result.spill.read_bytes);
    record.reread_bytes = Some(result.spill.reread_bytes);
    record.store_peak_bytes = Some(result.spill.store_peak_bytes);
    record.body_bytes = Some(result.body_bytes);
    if let Some(settings) = &result.settings {
        let text = |key| settings.get(key).and_then(Value::as_str).map(str::to_owned);
        record.policy = text("policy");
        record.store = text("store");
        record.threshold_bytes = settings.get("threshold_bytes").and_then(Value::as_u64);
        record.preview_share = settings.get("preview_share").and_then(Value::as_f64);
    }
    record.effective_settings.clone_from(&result.settings);
}

fn score_into(record: &mut RunRecord, answer: &str, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    let Score {
        expected,
        found,
        end_expected,
        end_found,
        large_expected,
        large_found,
        missed,
        unfounded,
    } = score(answer, facts);
    record.facts_expected = Some(expected);
    record.facts_found = Some(found);
    record.end_facts_expected = Some(end_expected);
    record.end_facts_found = Some(end_found);
    record.large_file_facts_expected = Some(large_expected);
    record.large_file_facts_found = Some(large_found);
    record.missed_facts = missed;
    record.unfounded_findings = Some(unfounded);
    #[expect(
        clippy::cast_precision_loss,
        reason = "an input has far fewer facts than 2^53"
    )]
    let quality = found as f64 / expected as f64;
    record.quality = Some(quality);
}

/// Compares the subject's own figures with the journal; says the first difference.
fn contradiction(result: &StepResult, sums: &Sums) -> Option<String> {
    // A step that was cut off has not seen the answer in flight.
    let whole = !matches!(result.end_reason, EndReason::Timeout | EndReason::Aborted);
    // Results of the last iteration are never sent when the step ends there.
    let all_sent = whole && sums.last_answered;
    let used = result.tokens_used.filter(|_| whole).zip(sums.tokens);
    let original = count(
        result
            .tools_called
            .iter()
            .filter(|call| call.result.is_some()),
    );
    let mut pairs = Vec::new();
    if whole {
        pairs.push(("answered LLM calls", result.llm_calls, sums.answered));
        pairs.push(("iterations", result.iterations, sums.iterations));
    }
    if let Some((used, counted)) = used {
        pairs.extend([
            (
                "uncached input tokens",
                used.uncached_input,
                counted.uncached_input_tokens,
            ),
            (
                "cache-read tokens",
                used.cache_read,
                counted.cache_read_tokens,
            ),
            (
                "cache-written tokens",
                used.cache_write,
                counted.cache_write_tokens,
            ),
            ("output tokens", used.output, counted.output_tokens),
        ]);
    }
    if whole {
        // A call of a tool that is not offered never reaches the tool servers.
        pairs.push((
            "tool calls that reached a server",
            original.min(sums.tool_calls),
            sums.tool_calls,
        ));
    }
    if all_sent {
        pairs.extend([
            ("stored results", result.spill.persisted, sums.previews),
            ("reads", result.spill.reads, sums.slices),
            ("bytes read back", result.spill.read_bytes, sums.slice_bytes),
        ]);
    }
    let (what, step, journal) = pairs
        .into_iter()
        .find(|(_, step, journal)| step != journal)?;
    Some(format!(
        "the step result says {step} {what}, the servers' journal {journal}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tools: &str, status: u16, cache_read_tokens: u64) -> CallRecord {
        CallRecord {
            schema: SCHEMA,
            run_id: "r".to_owned(),
            call: 0,
            iteration: 1,
            status,
            tokens: Some(PromptTokens {
                cache_read_tokens,
                ..PromptTokens::default()
            }),
            request_bytes: 1,
            request_digest: "q".to_owned(),
            tools_digest: tools.to_owned(),
            context: spill_record::ContextBytes::default(),
            new_results: Vec::new(),
            calls_tools: Vec::new(),
            finish_reason: "stop".to_owned(),
            model_time_ms: None,
        }
    }

    #[test]
    fn cached_tokens_are_told_apart_at_the_first_other_tool_list() {
        let check =
            |calls: &[CallRecord], want| assert_eq!(cached_around_read_tool(calls), Some(want));
        check(&[], (0, 0));
        check(&[call("a", 200, 0), call("a", 200, 5)], (5, 0));
        check(
            &[
                call("a", 200, 5),
                call("b", 200, 1),
                call("b", 500, 64),
                call("a", 200, 2),
            ],
            (5, 3),
        );
        let untold = CallRecord {
            tokens: None,
            ..call("a", 200, 0)
        };
        assert_eq!(cached_around_read_tool(&[call("a", 200, 5), untold]), None);
    }
}
