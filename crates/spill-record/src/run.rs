use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::PromptTokens;
use crate::sidecar::SidecarRun;

/// How large an input's results are; it decides which rules apply.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The largest result is below 32,768 bytes.
    Small,
    /// The largest result is below 131,072 bytes.
    Medium,
    /// The largest result is 131,072 bytes or more.
    Large,
    /// A document to be summarised, whatever its size.
    Document,
}

impl Class {
    /// The class's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Document => "document",
        }
    }
}

/// What became of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The step completed with a non-empty answer, whatever its quality.
    Succeeded,
    /// The subject did not complete the step.
    Failed,
    /// The harness, not the subject, is at fault; the run says nothing about its configuration.
    Infrastructure,
}

impl Outcome {
    /// The outcome's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Infrastructure => "infrastructure",
        }
    }
}

/// Why a run ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model gave a final answer.
    Answered,
    /// The model finished with an empty answer.
    EmptyAnswer,
    /// The step used up its iterations.
    IterationLimit,
    /// A request did not fit the model's context window.
    ContextWindow,
    /// The step ran out of time.
    Timeout,
    /// The step was told to stop.
    Aborted,
    /// The model endpoint failed beyond the bound of retries, or answered with an error.
    ModelError,
    /// The tool servers could not be used.
    ToolError,
    /// The subject's process ended without a step result.
    Crashed,
    /// The subject refused its settings or its job.
    BadSettings,
    /// A mock server could not be reached or was asked for something outside its script.
    MockUnavailable,
    /// The real endpoint could not be reached, refused the key, was too busy beyond the retries, or
    /// answered with what is no answer.
    EndpointFailed,
    /// The cap on what a live acceptance may spend was reached before the run had ended.
    SpendingCap,
    /// The subject's own figures contradict the servers' journal.
    Mismatch,
    /// The run ended otherwise than its scenario expects, or a planned fault never came to pass.
    UnexpectedEnd,
    /// The search for leaks could not be trusted: a planted control token was not found.
    LeakCheckFailed,
    /// The runner could not start or watch the subject.
    LaunchFailed,
    /// What stands between subject and servers did not start, or ended before the subject.
    SidecarFailed,
}

impl EndReason {
    /// The reason's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::EmptyAnswer => "empty_answer",
            Self::IterationLimit => "iteration_limit",
            Self::ContextWindow => "context_window",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::ModelError => "model_error",
            Self::ToolError => "tool_error",
            Self::Crashed => "crashed",
            Self::BadSettings => "bad_settings",
            Self::MockUnavailable => "mock_unavailable",
            Self::EndpointFailed => "endpoint_failed",
            Self::SpendingCap => "spending_cap",
            Self::Mismatch => "mismatch",
            Self::UnexpectedEnd => "unexpected_end",
            Self::LeakCheckFailed => "leak_check_failed",
            Self::LaunchFailed => "launch_failed",
            Self::SidecarFailed => "sidecar_failed",
        }
    }
}

/// A file in a declared state folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateFile {
    /// Its path below the folder; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// Its size when the process had ended.
    pub bytes: u64,
}

/// One execution of one cell: a line of `runs.jsonl`.
///
/// Figures come from the servers' journal; those marked *step* are the subject's own and were
/// compared with the journal where it can tell. `None` is a value that was not obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Hash of plan hash, scenario, input, repetition and configuration; 16 hex digits.
    pub run_id: String,
    /// Hash of plan hash, scenario, input and repetition; equal for all runs of a pair.
    pub pair_id: String,
    /// The scenario's name.
    pub scenario: String,
    /// The recipe's name: `review` or `document`.
    pub recipe: String,
    /// The input's name.
    pub input: String,
    /// The input's class.
    pub class: Class,
    /// The configuration's name.
    pub configuration: String,
    /// The policy that the subject reports to have used, such as `workflow-step` (*step*).
    #[serde(default)]
    pub policy: Option<String>,
    /// The store that held its results: `memory` or `file` (*step*).
    #[serde(default)]
    pub store: Option<String>,
    /// The limit in force, in the policy's own measure (*step*).
    #[serde(default)]
    pub threshold_bytes: Option<u64>,
    /// Share of the limit that a preview may fill; null where the policy fixes its form (*step*).
    #[serde(default)]
    pub preview_share: Option<f64>,
    /// Repetition, from 0.
    pub repetition: u32,
    /// The pair's seed.
    pub seed: u64,
    /// The subject's name: `built-in`, that of its file, or the path that was given.
    pub subject: String,
    /// The model's name as the requests spell it.
    pub model: String,
    /// The simulated model's profile in this run.
    pub profile: String,
    /// What became of the run.
    pub outcome: Outcome,
    /// Why it ended.
    pub end_reason: EndReason,
    /// Whether the step used up its iterations.
    pub hit_iteration_limit: Option<bool>,
    /// Iterations of the step loop.
    pub iterations: Option<u64>,
    /// LLM calls that were answered with a completion.
    pub llm_calls: Option<u64>,
    /// LLM requests that were sent again after a failure.
    pub llm_retries: Option<u64>,
    /// Prompt tokens of all calls: uncached, cache-read and cache-written together.
    pub input_tokens: Option<u64>,
    /// Prompt tokens that the provider would read from its prompt cache.
    pub cached_input_tokens: Option<u64>,
    /// Those of the calls up to the first one with another tool list than the run's first call.
    #[serde(default)]
    pub cached_before_read_tool_tokens: Option<u64>,
    /// Those of that call and all after it: 0 when the tool list never changed.
    #[serde(default)]
    pub cached_after_read_tool_tokens: Option<u64>,
    /// Prompt tokens written to the prompt cache, where the provider bills them apart; null in folders
    /// from before they were recorded.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    /// Completion tokens of all calls.
    pub output_tokens: Option<u64>,
    /// Duration of the step as the subject measured it (*step*, measured).
    pub duration_ms: Option<f64>,
    /// Duration of the process from launch to reaping (measured).
    pub process_ms: Option<f64>,
    /// Processor time of the process, user and system (measured).
    pub cpu_ms: Option<f64>,
    /// Time on the latency model's virtual clock; null while no latency model is in force.
    pub model_time_ms: Option<f64>,
    /// Tool calls, those of the read tool included.
    pub tool_calls: Option<u64>,
    /// Bytes of all tool results as the tool servers sent them.
    pub tool_result_bytes: Option<u64>,
    /// Bytes of the largest one.
    pub largest_result_bytes: Option<u64>,
    /// Results that were stored.
    pub results_persisted: Option<u64>,
    /// The same by tool.
    pub persisted_by_tool: BTreeMap<String, u64>,
    /// Distinct stored results that were read back.
    pub results_read_back: Option<u64>,
    /// Successful reads.
    pub reads: Option<u64>,
    /// Those that asked for a range.
    pub reads_with_range: Option<u64>,
    /// Bytes that reads returned.
    pub read_bytes: Option<u64>,
    /// Bytes that reads returned although an earlier read of the run had returned them.
    pub reread_bytes: Option<u64>,
    /// Bytes that the store held when it was fullest (*step*).
    pub store_peak_bytes: Option<u64>,
    /// Peak memory of the subject: of its process, or of its tree of processes (measured).
    pub peak_rss_bytes: Option<u64>,
    /// The largest sample of the resident memory of a tree of processes, pages that several share counted
    /// once: its peak is at least this. Only where nothing tells the peak itself (measured).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_memory_bytes: Option<u64>,
    /// Which measure of memory was in force; null where there was none, and in folders from before it was
    /// recorded.
    #[serde(default)]
    pub memory_check: Option<String>,
    /// Size of the status report: the JSON of `toolsCalled` and the final answer (*step*).
    pub body_bytes: Option<u64>,
    /// Facts that the answer should contain.
    pub facts_expected: Option<u64>,
    /// Those that it contains.
    pub facts_found: Option<u64>,
    /// Facts in the last tenth of what carries them.
    pub end_facts_expected: Option<u64>,
    /// Those that the answer contains.
    pub end_facts_found: Option<u64>,
    /// Facts carried by a result of 131,072 bytes or more.
    pub large_file_facts_expected: Option<u64>,
    /// Those that the answer contains.
    pub large_file_facts_found: Option<u64>,
    /// Ids of the facts that the answer misses, sorted.
    pub missed_facts: Vec<String>,
    /// Findings of the answer that no fact covers.
    pub unfounded_findings: Option<u64>,
    /// `facts_found / facts_expected`; null when none are expected or the run did not succeed
    /// because of the harness.
    pub quality: Option<f64>,
    /// Files that appeared outside the declared outputs, at any time of the run.
    pub files_written: Option<u64>,
    /// Files that the subject left in its declared state folder, sorted by path. They hold what it
    /// keeps there by design and are neither counted as written nor as leaks.
    #[serde(default)]
    pub state_files: Vec<StateFile>,
    /// Their bytes together; 0 for a configuration that declares no state folder.
    #[serde(default)]
    pub state_bytes: Option<u64>,
    /// Files below a foreign subject's own state folders that hold result content: kept by the agent, no
    /// leak; null for a subject that has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_files: Option<u64>,
    /// Places where result content or a canary was found outside the step result, one a place.
    pub leak_findings: Vec<String>,
    /// Which checks for leaks were in force, such as `inotify+search`.
    pub leak_check: String,
    /// Digest over all request bodies of the run, in order.
    pub prompt_digest: Option<String>,
    /// Digest over the tool lists offered, in order.
    pub offered_tools_digest: Option<String>,
    /// Planned faults that came to pass, in order: server, number of the call, kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The settings that the subject reports to have used.
    pub effective_settings: Option<Value>,
    /// What stood between subject and servers, in the configuration's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sidecars: Vec<SidecarRun>,
    /// What went wrong, without result content.
    pub error: Option<String>,
    /// In a sweep: the run that this one is known to equal. It was not made, so nothing is measured and
    /// no calls are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl RunRecord {
    /// The record without the columns that are measured: equal for equal seeds.
    #[must_use]
    pub fn unmeasured(&self) -> Self {
        Self {
            duration_ms: None,
            process_ms: None,
            cpu_ms: None,
            peak_rss_bytes: None,
            sampled_memory_bytes: None,
            sidecars: self.sidecars.iter().map(SidecarRun::unmeasured).collect(),
            ..self.clone()
        }
    }

    /// The run's tokens in disjoint buckets; `None` when one of them was not obtained, or when the
    /// buckets do not fit into the total.
    #[must_use]
    pub fn tokens(&self) -> Option<PromptTokens> {
        let (cache_read_tokens, cache_write_tokens) =
            (self.cached_input_tokens?, self.cache_write_tokens?);
        let uncached = self.input_tokens?.checked_sub(cache_read_tokens)?;
        Some(PromptTokens {
            uncached_input_tokens: uncached.checked_sub(cache_write_tokens)?,
            cache_read_tokens,
            cache_write_tokens,
            output_tokens: self.output_tokens?,
        })
    }
}
