use std::collections::BTreeMap;

use spill_record::{
    ConfigurationRecord, ConfigurationRole, LatencyRecord, ModelRecord, RecallPoint, RulesRecord,
    SidecarRecord,
};

use crate::fault::{Expect, Fault, PlannedFault};
use crate::input::{Input, Recipe};
use crate::subject::ForeignSubject;

/// How the simulated model deals with a stored result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Reads back only the ranges it needs, within a reading budget.
    Selective,
    /// Reads everything back.
    Diligent,
    /// Answers from previews.
    Hasty,
    /// Reads as `selective` does, and forgets what stands far back in the context: reads it once more,
    /// and then reports less of it.
    Forgetful,
    /// Reads as `selective` does, and then repeats its last calls in place of an answer.
    Loopy,
}

impl Profile {
    /// All profiles, in the order in which a population is drawn from.
    pub const ALL: [Self; 5] = [
        Self::Selective,
        Self::Diligent,
        Self::Hasty,
        Self::Forgetful,
        Self::Loopy,
    ];
    /// The profiles whose decision stands beside every verdict: the ways to deal with a stored result.
    /// The others add a weakness to the first of them.
    pub const PURE: [Self; 3] = [Self::Selective, Self::Diligent, Self::Hasty];

    /// The profile's name as files and reports spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Selective => "selective",
            Self::Diligent => "diligent",
            Self::Hasty => "hasty",
            Self::Forgetful => "forgetful",
            Self::Loopy => "loopy",
        }
    }

    /// Returns the profile of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

/// The simulated model, without facts: what a mock server may know.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The model's name as requests spell it.
    pub name: String,
    /// Share of each profile; the shares sum to 1.
    pub population: BTreeMap<Profile, f64>,
    /// Context window, in tokens.
    pub context_window_tokens: u64,
    /// Tool calls that one answer asks for at most.
    pub parallel_calls: u64,
    /// Bytes that one read asks for at most.
    pub slice_bytes: u64,
    /// Lines that `selective` reads around a place that a diff names.
    pub window_lines: u64,
    /// Bytes that `selective` reads back of one result at most.
    pub reading_budget_bytes: u64,
    /// Lines of the final answer at most.
    pub max_findings: u64,
    /// Regular expressions of the user's own that count as findings beside the recipe's rules.
    pub patterns: Vec<String>,
    /// Whether the diffs of a review are asked for with one call of a composite tool.
    pub composite: bool,
    /// How well `forgetful` recalls what stands so many tokens back; distances ascend.
    pub recall: Vec<RecallPoint>,
    /// How long its answers take on a virtual clock; `None` keeps no time.
    pub latency: Option<LatencyRecord>,
}

impl ModelSpec {
    /// Returns the profile for a pair with this seed: one draw from the population.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Profile {
        let draw = crate::plan::unit_interval(seed, "profile");
        let mut upper = 0.0;
        let mut last = Profile::Selective;
        for (profile, share) in self.population.iter().filter(|(_, share)| **share > 0.0) {
            upper += share;
            last = *profile;
            if draw < upper {
                break;
            }
        }
        last
    }
}

/// What bounds a step, a run and a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Iterations of one step at most.
    pub iteration_limit: u64,
    /// Time for one step.
    pub step_timeout_ms: u64,
    /// Time for one process.
    pub run_timeout_ms: u64,
    /// Runs of one plan at most.
    pub max_runs: u64,
    /// How often a subject repeats a call that failed in passing; `None` leaves it to the subject.
    pub max_retries: Option<u32>,
    /// How long it waits before the first repetition; `None` leaves it to the subject.
    pub retry_base_ms: Option<u64>,
}

/// The policy of a configuration that names none.
pub const DEFAULT_POLICY: &str = "workflow-step";
/// The store of a configuration that names none.
pub const DEFAULT_STORE: &str = "memory";
/// Stands in a variable's value for the run's own state folder.
pub const STATE_PLACEHOLDER: &str = "{state}";

/// One set of environment settings of the subject, and what it is labelled with.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// Control or candidate.
    pub role: ConfigurationRole,
    /// Whether it is what ships today.
    pub shipped: bool,
    /// Environment variables that it sets; empty measures the subject's own defaults. A value may hold
    /// [`STATE_PLACEHOLDER`].
    pub env: BTreeMap<String, String>,
    /// Label: whether results are stored at all.
    pub enabled: bool,
    /// Label: results of at least this many bytes are stored (more than this many under the policies
    /// `inline-cap` and `envelope`); `None` when off.
    pub threshold_bytes: Option<u64>,
    /// The spill policy: `workflow-step`, `inline-cap` or `envelope`.
    pub policy: String,
    /// Where stored results are kept: `memory` or `file`.
    pub store: String,
    /// Share of the limit that a preview may fill, above 0 and up to 1; `None` is the policy's own.
    pub preview_share: Option<f64>,
    /// What stands between subject and servers, the nearest to the subject first.
    pub sidecars: Vec<SidecarRecord>,
}

impl Configuration {
    /// Returns the configuration as a manifest holds it, before the subject was asked.
    #[must_use]
    pub fn to_record(&self) -> ConfigurationRecord {
        ConfigurationRecord {
            name: self.name.clone(),
            role: self.role,
            shipped: self.shipped,
            env: self.env.clone(),
            enabled: self.enabled,
            threshold_bytes: self.threshold_bytes,
            policy: Some(self.policy.clone()),
            store: Some(self.store.clone()),
            preview_share: self.preview_share,
            sidecars: self.sidecars.clone(),
            effective_settings: None,
        }
    }
}

/// A scenario: everything about one recipe that a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, unique within a plan.
    pub name: String,
    /// What the agent is asked to do.
    pub recipe: Recipe,
    /// The step's system message.
    pub system: String,
    /// The step's prompt.
    pub prompt: String,
    /// Inputs, in plan order.
    pub inputs: Vec<Input>,
    /// The simulated model.
    pub model: ModelSpec,
    /// Limits.
    pub limits: Limits,
    /// Configurations; candidates are tried in this order.
    pub configurations: Vec<Configuration>,
    /// Repetitions of each cell at stage `full`.
    pub repetitions: u32,
    /// The acceptance rules' limits.
    pub rules: RulesRecord,
    /// Faults of the mock servers.
    pub faults: Vec<Fault>,
    /// How its runs are to end; without it, any end is evidence.
    pub expect: Option<Expect>,
    /// The agent under test; `None` leaves it to the caller.
    pub subject: Option<ForeignSubject>,
}

impl Scenario {
    /// Returns the faults of the pair with this seed and repetition: the same for all its runs.
    #[must_use]
    pub fn faults_of(&self, seed: u64, repetition: u32) -> Vec<PlannedFault> {
        let faults = self.faults.iter().enumerate();
        faults
            .filter_map(|(place, fault)| fault.planned(place, seed, repetition))
            .collect()
    }

    /// Returns the assumptions of this scenario as a manifest holds them.
    #[must_use]
    pub fn model_record(&self) -> ModelRecord {
        ModelRecord {
            scenario: self.name.clone(),
            model: self.model.name.clone(),
            population: self
                .model
                .population
                .iter()
                .map(|(profile, share)| (profile.name().to_owned(), *share))
                .collect(),
            context_window_tokens: self.model.context_window_tokens,
            parallel_calls: self.model.parallel_calls,
            slice_bytes: self.model.slice_bytes,
            window_lines: self.model.window_lines,
            reading_budget_bytes: self.model.reading_budget_bytes,
            iteration_limit: self.limits.iteration_limit,
            step_timeout_ms: self.limits.step_timeout_ms,
            run_timeout_ms: self.limits.run_timeout_ms,
            recall: if self.model.population.contains_key(&Profile::Forgetful) {
                self.model.recall.clone()
            } else {
                Vec::new()
            },
            latency: self.model.latency,
            faults: self.faults.iter().map(Fault::describe).collect(),
            expected_end: self.expect.map(|expect| expect.end_reason),
        }
    }
}
