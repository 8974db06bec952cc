use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::digest;
use crate::run::{Class, EndReason};
use crate::shard::Shard;
use crate::sidecar::SidecarRecord;

/// How much of the plan a run folder is meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Two repetitions: a first look before `full`.
    Quick,
    /// The scenario's own number of repetitions.
    Full,
}

/// What answers the subject's LLM calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The simulated model: every run is a pure function of scenario, input, seed and configuration.
    Simulated,
    /// A real endpoint.
    Live,
}

/// What a run folder was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FolderKind {
    /// To be judged: candidates against the shipped default.
    #[default]
    Acceptance,
    /// To be read as curves: settings against cost and quality. None of them is what ships, and nothing is judged.
    Sweep,
}

impl FolderKind {
    fn is_acceptance(&self) -> bool {
        *self == Self::Acceptance
    }
}

/// What a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationRole {
    /// What the candidates are compared with.
    Control,
    /// May become the default.
    Candidate,
}

/// One set of environment settings of the subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationRecord {
    /// Its name, such as `128KiB`.
    pub name: String,
    /// Control or candidate.
    pub role: ConfigurationRole,
    /// Whether it is what ships today.
    pub shipped: bool,
    /// Environment variables that it sets.
    pub env: BTreeMap<String, String>,
    /// What it is labelled with: whether results are stored at all.
    pub enabled: bool,
    /// What it is labelled with: results of at least this many bytes are stored; `None` when off.
    pub threshold_bytes: Option<u64>,
    /// The spill policy; `None` in folders from before there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Where stored results are kept: `memory` or `file`; `None` in folders from before that was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Share of the limit that a preview may fill; `None` is the policy's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_share: Option<f64>,
    /// What stands between subject and servers, the nearest to the subject first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sidecars: Vec<SidecarRecord>,
    /// What the subject reported to use, asked before the first run.
    pub effective_settings: Option<Value>,
}

/// Where a fact sits in what carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactPlace {
    /// First tenth.
    Beginning,
    /// Between first and last tenth.
    Middle,
    /// Last tenth.
    End,
}

/// Where an input's facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactsOrigin {
    /// Planted in a generated input, or written in the scenario.
    Scenario,
    /// Given on the command line.
    Expected,
    /// What the reading rules find when they are given the whole text at once; the control's
    /// quality is then 1 by construction and is called self-consistency.
    Derived,
}

/// A fact without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactRecord {
    /// Its id, unique within the input.
    pub id: String,
    /// Name of the file or document that carries it.
    pub carrier: String,
    /// Bytes of the result that carries it.
    pub carrier_bytes: u64,
    /// Where it sits there; `None` when it was given without a place.
    pub place: Option<FactPlace>,
}

/// One input of one scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputRecord {
    /// The scenario's name.
    pub scenario: String,
    /// The recipe's name: `review` or `document`.
    pub recipe: String,
    /// The input's name.
    pub input: String,
    /// Its class.
    pub class: Class,
    /// Bytes of the largest result that the tools can return for it, as served.
    pub largest_result_bytes: u64,
    /// Digest of everything the tools serve for it.
    pub content_digest: String,
    /// Where its facts come from.
    pub facts_origin: FactsOrigin,
    /// Its facts.
    pub facts: Vec<FactRecord>,
    /// What of the real input was left out, and why; one line each.
    pub notes: Vec<String>,
}

/// The simulated model and the step's limits in one scenario: the assumptions a verdict hangs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRecord {
    /// The scenario's name.
    pub scenario: String,
    /// The model's name as requests spell it.
    pub model: String,
    /// Share of each profile, by name; they sum to 1.
    pub population: BTreeMap<String, f64>,
    /// Context window, in tokens.
    pub context_window_tokens: u64,
    /// Tool calls that one answer asks for at most.
    pub parallel_calls: u64,
    /// Bytes that one read asks for at most.
    pub slice_bytes: u64,
    /// Lines that the `selective` profile reads around a place that a diff names.
    pub window_lines: u64,
    /// Bytes that the `selective` profile reads back of one result at most.
    pub reading_budget_bytes: u64,
    /// Iterations of one step at most.
    pub iteration_limit: u64,
    /// Time for one step.
    pub step_timeout_ms: u64,
    /// Time for one process.
    pub run_timeout_ms: u64,
    /// How well the `forgetful` profile recalls; empty where the population has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recall: Vec<RecallPoint>,
    /// How long answers take on a virtual clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyRecord>,
    /// Faults that the mock servers are to have, one a line; none in most plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// How a run that they hit is to end; every run where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<EndReason>,
}

/// How well a model recalls what stands so far back in its context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecallPoint {
    /// That far, in tokens.
    pub tokens: u64,
    /// Share that it recalls, from 0 to 1.
    pub share: f64,
}

/// How long a simulated model takes to answer: these together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRecord {
    /// For each call.
    pub overhead_ms: f64,
    /// For each prompt token that the prompt cache does not have.
    pub uncached_token_ms: f64,
    /// For each token of the answer.
    pub output_token_ms: f64,
    /// The mean wait for a turn; each call's is drawn by its seed from an exponential distribution.
    pub queue_ms: f64,
    /// Share of this time that the mock server really waits; 0 for none.
    pub sleep_scale: f64,
}

/// The acceptance rules' limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulesRecord {
    /// Rule 3 for the classes small and medium: candidate over control at most this.
    pub input_tokens_ratio_limit: f64,
    /// Rule 3 for the class large: candidate over control below this.
    pub large_input_tokens_ratio_limit: f64,
    /// Rule 4: a lower quality by at most this is still "not lower".
    pub quality_allowance: f64,
    /// Rule 1 in live mode: a success rate lower by less than this is still "not lower".
    #[serde(default = "default_margin", skip_serializing_if = "is_default_margin")]
    pub success_margin: f64,
    /// Rule 4 in live mode: a quality lower by less than this is still "not lower".
    #[serde(default = "default_margin", skip_serializing_if = "is_default_margin")]
    pub quality_margin: f64,
    /// Rule 4: derived facts fewer than this prove nothing.
    pub derived_facts_needed: u64,
    /// Share of planned runs that may end as infrastructure failures.
    pub infrastructure_budget: f64,
}

/// What records that say nothing of margins were judged with.
fn default_margin() -> f64 {
    0.10
}

/// Left out where it says nothing new, so that older manifests keep their digest.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
#[expect(clippy::float_cmp, reason = "the very constant")]
fn is_default_margin(margin: &f64) -> bool {
    *margin == default_margin()
}

/// One run that the plan asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRun {
    /// Hash of plan hash, scenario, input, repetition and configuration.
    pub run_id: String,
    /// Hash of plan hash, scenario, input and repetition.
    pub pair_id: String,
    /// The scenario's name.
    pub scenario: String,
    /// The input's name.
    pub input: String,
    /// The configuration's name.
    pub configuration: String,
    /// Repetition, from 0.
    pub repetition: u32,
    /// The pair's seed.
    pub seed: u64,
    /// The profile drawn for the pair.
    pub profile: String,
}

/// The whole plan: what is run, on what, under which rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// Configurations in scenario order; candidates are tried in this order.
    pub configurations: Vec<ConfigurationRecord>,
    /// Inputs in plan order.
    pub inputs: Vec<InputRecord>,
    /// One entry per scenario.
    pub models: Vec<ModelRecord>,
    /// The rules' limits.
    pub rules: RulesRecord,
    /// Repetitions of each cell.
    pub repetitions: u32,
    /// All runs in plan order: scenario, input, repetition, configuration.
    pub runs: Vec<PlannedRun>,
}

/// Versions of what took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// This program.
    pub spillgate: String,
    /// The tokenizer, such as `o200k_base (bpe-openai 0.3.2)`.
    pub tokenizer: String,
}

/// The machine the runs were made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Processors that the process may use.
    pub cpus: u64,
    /// Physical memory.
    pub memory_bytes: Option<u64>,
}

/// The API that a real endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI's chat completions and responses.
    Openai,
    /// Anthropic's messages.
    Anthropic,
}

impl Api {
    /// The API's name as flags and files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// The real endpoint of a live acceptance. Neither its key nor anything else of its address is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointRecord {
    /// What it speaks.
    pub api: Api,
    /// Host and, where it is not the scheme's own, port.
    pub host: String,
}

/// `manifest.json`: everything about an acceptance that its records do not repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Version of the record format.
    pub schema: u32,
    /// Time and plan hash; the folder's name. It stands here only.
    pub acceptance_id: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Hash of the plan.
    pub plan_hash: String,
    /// Quick or full.
    pub stage: Stage,
    /// Simulated or live.
    pub mode: Mode,
    /// The real endpoint; `None` in simulated mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointRecord>,
    /// What the folder was made for; an acceptance where it does not say.
    #[serde(default, skip_serializing_if = "FolderKind::is_acceptance")]
    pub kind: FolderKind,
    /// The subject's name: `built-in`, or the path that was given.
    pub subject: String,
    /// The seed from which all others are derived.
    pub base_seed: u64,
    /// Versions of what took part.
    pub versions: Versions,
    /// Commit of the working folder, where it is a git checkout.
    pub commit: Option<String>,
    /// Whether that checkout had uncommitted changes.
    pub dirty: Option<bool>,
    /// The machine.
    pub host: Host,
    /// Columns of `runs.csv` that are measured; all others are equal for equal seeds.
    pub measured_columns: Vec<String>,
    /// The whole plan.
    pub plan: PlanRecord,
    /// Which part of the plan's pairs the folder is of; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Digest of all of the above, so that a manifest changed by hand is noticed.
    pub manifest_digest: String,
}

impl Manifest {
    /// Returns the manifest with its digest.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.manifest_digest = self.computed_digest();
        self
    }

    /// The digest that belongs to what the manifest says.
    #[must_use]
    pub(crate) fn computed_digest(&self) -> String {
        let mut open = self.clone();
        open.manifest_digest = String::new();
        digest(&serde_json::to_vec(&open).expect("manifests have string keys and finite numbers"))
    }
}
