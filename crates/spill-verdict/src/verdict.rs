use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spill_record::{Class, Mode, Stage};

use crate::rule::{Bound, Rule, State};
use crate::statistics::{Bounds, CONFIDENCE};

/// Version of `verdict.json` that this crate writes; readers accept it and all older ones.
pub const VERDICT_SCHEMA: u32 = 2;

/// The JSON Schema of `verdict.json`: the name that it is published under, and its text.
#[must_use]
pub fn verdict_schema() -> (&'static str, String) {
    let title = "verdict.json of a spillgate run folder";
    (
        "verdict.schema.json",
        spill_record::schema_text::<Verdict>(title),
    )
}

/// A pair, or one run of it, that decided a rule or came closest to deciding it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The pair.
    pub pair_id: String,
    /// The candidate's run.
    pub run_id: String,
    /// The control's run, where the rule compares with it.
    pub control_run_id: Option<String>,
    /// What it shows, in words.
    pub words: String,
}

/// The same figure under the control and under the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arms {
    /// Under the control; `None` where it could not be obtained.
    pub control: Option<f64>,
    /// Under the candidate; `None` where it could not be obtained.
    pub candidate: Option<f64>,
}

/// Which runs decide rule 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenBasis {
    /// Every run of the cell: all of them succeeded.
    AllRuns,
    /// The pairs in which both runs succeeded, because some run did not.
    BothSucceeded,
}

/// The figures behind a rule, kept beside the one that decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Rule 1.
    Success {
        /// Runs that succeeded under the control, of `n`.
        control_succeeded: u64,
        /// Runs that succeeded under the candidate, of `n`.
        candidate_succeeded: u64,
        /// Pairs that succeeded under the candidate only.
        gains: u64,
        /// Pairs that succeeded under the control only.
        losses: u64,
    },
    /// Rule 3. A median of an even count is the mean of the two middle values.
    Tokens {
        /// Which runs decide.
        basis: TokenBasis,
        /// Medians over all runs, in tokens.
        all_runs: Arms,
        /// Medians over the pairs in which both runs succeeded, in tokens.
        both_succeeded: Arms,
        /// Number of those pairs.
        both_succeeded_pairs: u64,
        /// Input tokens of all runs, over the number of runs that succeeded.
        per_success: Arms,
        /// Median of the ratios within pairs, over the pairs that decide.
        median_paired_ratio: Option<f64>,
    },
    /// Rule 4.
    Quality {
        /// Mean quality.
        quality: Arms,
        /// Mean paired difference of quality, candidate minus control.
        quality_difference: Option<f64>,
        /// Mean share of the end's facts that were found.
        end_coverage: Arms,
        /// Mean paired difference of the coverage of the end.
        end_difference: Option<f64>,
    },
}

/// What an interval is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntervalOf {
    /// Rule 1: the candidate's success rate less the control's (Newcombe, paired).
    SuccessDifference,
    /// Rule 2: the share of pairs that hit the limit under the candidate only (Clopper and Pearson).
    NewLimitHitRate,
    /// Rule 3: the median of the ratios within pairs (order statistics; large: sign test).
    MedianTokenRatio,
    /// Rule 4: the mean difference within pairs, of all facts or of the end's, whichever is bounded
    /// lower (percentile bootstrap).
    QualityDifference,
}

/// Bounds of what a rule judges, each one-sided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// What it is of.
    pub of: IntervalOf,
    /// Lower bound; `None` where the method gives none.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Confidence of each bound alone.
    pub confidence: f64,
    /// What a bound is held against: a margin below 0, or the limit of a ratio.
    pub margin: Option<f64>,
    /// Of the sign test, where one decides.
    pub p_value: Option<f64>,
}

impl Interval {
    pub(crate) fn of(of: IntervalOf, bounds: Bounds, margin: Option<f64>) -> Self {
        Self {
            of,
            lower: Some(bounds.lower),
            upper: Some(bounds.upper),
            confidence: CONFIDENCE,
            margin,
            p_value: None,
        }
    }
}

/// One rule on one input for one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleVerdict {
    /// The rule.
    pub rule: Rule,
    /// Its number, 1 to 5.
    pub number: u8,
    /// The scenario's name.
    pub scenario: String,
    /// The input's name.
    pub input: String,
    /// The input's class.
    pub class: Class,
    /// What it came to.
    pub state: State,
    /// The number that decided; `None` where nothing was measured. Never NaN.
    pub observed: Option<f64>,
    /// What it is held against.
    pub limit: Option<f64>,
    /// On which side of the limit it has to be.
    pub bound: Option<Bound>,
    /// Pairs (rule 5: runs) behind the observed value.
    pub n: u64,
    /// Pairs (rule 5: runs) that the plan asked for.
    pub planned: u64,
    /// The result and its reason, in words.
    pub words: String,
    /// Further figures.
    pub figures: Option<Figures>,
    /// What live mode judges by; `None` in simulated mode and where nothing could be bounded.
    #[serde(default)]
    pub interval: Option<Interval>,
    /// Deciding or worst pairs, worst first; at most [`EVIDENCE_LIMIT`](crate::EVIDENCE_LIMIT).
    #[schemars(description = "Deciding or worst pairs, worst first; a bounded number of them.")]
    pub evidence: Vec<Evidence>,
}

impl RuleVerdict {
    /// The input with its scenario, as people read it.
    #[must_use]
    pub fn place(&self) -> String {
        crate::words::place(&self.scenario, &self.input)
    }
}

/// All rules for one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateVerdict {
    /// The configuration's name.
    pub configuration: String,
    /// Its threshold.
    pub threshold_bytes: Option<u64>,
    /// The heaviest of its rules' states; *not proven* when it stored nothing.
    pub state: State,
    /// Whether the ladder reached it: the first one, and each one after a broken one.
    pub considered: bool,
    /// Results that it stored in the whole plan; `None` when no run tells.
    pub results_persisted: Option<u64>,
    /// The state's reason, in words.
    pub words: String,
    /// Every rule on every input: inputs in plan order within each rule.
    pub rules: Vec<RuleVerdict>,
}

impl CandidateVerdict {
    /// The input that decides `rule`: the one with the heaviest state, then the one closest to its
    /// limit, then the first in plan order. `None` when the plan has no inputs.
    #[must_use]
    pub fn deciding(&self, rule: Rule) -> Option<&RuleVerdict> {
        let mut best: Option<&RuleVerdict> = None;
        for row in self.rules.iter().filter(|row| row.rule == rule) {
            let heavier = match best {
                None => true,
                Some(known) => match row.state.weight().cmp(&known.state.weight()) {
                    std::cmp::Ordering::Greater => true,
                    std::cmp::Ordering::Less => false,
                    std::cmp::Ordering::Equal => row.excess() > known.excess(),
                },
            };
            if heavier {
                best = Some(row);
            }
        }
        best
    }
}

impl RuleVerdict {
    /// How far the observed value is past its limit, in the direction that breaks the rule.
    fn excess(&self) -> f64 {
        match (self.observed, self.limit, self.bound) {
            (Some(observed), Some(limit), Some(Bound::AtLeast)) => limit - observed,
            (Some(observed), Some(limit), Some(Bound::AtMost | Bound::Below)) => observed - limit,
            _ => f64::NEG_INFINITY,
        }
    }
}

/// What the owners should do with the shipped default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The shipped default is accepted.
    Keep,
    /// Another candidate is accepted and becomes the default.
    Change,
    /// Every candidate is broken: spilling is switched off by default.
    Disable,
    /// The evidence does not reach a decision.
    None,
}

impl Decision {
    /// The decision's name as files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Change => "change",
            Self::Disable => "disable",
            Self::None => "none",
        }
    }
}

/// What ships today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shipped {
    /// The configuration's name.
    pub configuration: String,
    /// Its threshold; `None` when spilling is off.
    pub threshold_bytes: Option<u64>,
}

/// What should ship.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposed {
    /// The configuration that should ship; `None` when spilling is to be off.
    #[serde(default)]
    pub configuration: Option<String>,
    /// Whether spilling is on.
    pub enabled: bool,
    /// Its threshold; `None` when it is off.
    pub threshold_bytes: Option<u64>,
}

/// Every planned run accounted for: `planned = finished + infrastructure + missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denominators {
    /// Runs that the plan asks for.
    pub planned: u64,
    /// Planned runs that left a record, a refused one included.
    pub started: u64,
    /// Runs that succeeded or failed.
    pub finished: u64,
    /// Of those, the ones that succeeded.
    pub succeeded: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Runs that the harness failed.
    pub infrastructure: u64,
    /// Runs without a usable record.
    pub missing: u64,
}

/// A run that wrote a file or let result content out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leak {
    /// The run.
    pub run_id: String,
    /// The configuration it ran under.
    pub configuration: String,
    /// The scenario's name.
    pub scenario: String,
    /// The input's name.
    pub input: String,
    /// Files written outside the declared outputs.
    pub files_written: Option<u64>,
    /// The first places where content was found.
    pub findings: Vec<String>,
}

/// The decision if every run had been made under one profile of the simulated model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileVerdict {
    /// The profile's name.
    pub profile: String,
    /// The decision.
    pub decision: Decision,
    /// What would ship.
    pub proposed: Option<Proposed>,
    /// Pairs behind it, over all inputs.
    pub pairs: u64,
    /// Those of them that were run for this view only.
    pub extra_pairs: u64,
    /// The reason, in words.
    pub words: String,
    /// The candidates' states, in order.
    pub candidates: Vec<ProfileCandidate>,
}

/// A candidate under one profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileCandidate {
    /// The configuration's name.
    pub configuration: String,
    /// What it came to.
    pub state: State,
    /// The state's reason, in words.
    pub words: String,
}

/// What became of a planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlantedOutcome {
    /// The verdict over it was the expected one.
    Caught,
    /// It was not: the gate cannot be trusted.
    Missed,
    /// The plan has no input or no limit that the fault could show on.
    NotApplicable,
}

/// One fault of the gate's reduced self-test: planted in records shaped after the run's own, under
/// the plan's limits, and judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlantedFault {
    /// What was planted.
    pub fault: String,
    /// How the verdict over it has to end.
    pub expected: String,
    /// What became of it.
    pub outcome: PlantedOutcome,
}

impl PlantedFault {
    pub(crate) fn is_missed(&self) -> bool {
        match self.outcome {
            PlantedOutcome::Missed => true,
            PlantedOutcome::Caught | PlantedOutcome::NotApplicable => false,
        }
    }
}

/// `verdict.json`: the one object that gives the exit code, the report and every table.
#[must_use = "a verdict nobody reads is a check nobody ran"]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of this format.
    pub schema: u32,
    /// Simulated or live.
    pub mode: Mode,
    /// Quick or full.
    pub stage: Stage,
    /// The subject's name.
    pub subject: String,
    /// Hash of the plan that was judged.
    pub plan_hash: String,
    /// The decision.
    pub decision: Decision,
    /// The decision and its reason in plain words.
    pub sentence: String,
    /// What ships today; `None` when the plan marks nothing.
    pub shipped: Option<Shipped>,
    /// What should ship; `None` without a decision.
    pub proposed: Option<Proposed>,
    /// The process's exit code, by the precedence of [`exit`](crate::exit).
    #[schemars(description = "The exit code of the process that judged.")]
    pub exit_code: u8,
    /// Candidates in the order of the ladder.
    pub candidates: Vec<CandidateVerdict>,
    /// Every planned run accounted for.
    pub denominators: Denominators,
    /// Runs that leaked, of all configurations and of the extra pairs too.
    pub leak_runs: u64,
    /// The first of them, in plan order.
    pub leaks: Vec<Leak>,
    /// The decision under each pure profile, by name.
    pub profiles: Vec<ProfileVerdict>,
    /// The gate's reduced self-test; empty where nothing was recorded.
    #[serde(default)]
    pub self_test: Vec<PlantedFault>,
    /// Faults of the harness itself; any of them makes the exit code 1.
    pub harness_errors: Vec<String>,
    /// Why the runs do not cover the plan; any of them makes the verdict incomplete.
    pub problems: Vec<String>,
    /// What was noticed and does not change the verdict.
    pub warnings: Vec<String>,
    /// What this run does not show.
    pub not_shown: Vec<String>,
}

impl Verdict {
    /// The exit code of the process that judged.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The decision and its reason in plain words, free of control characters.
    #[must_use]
    pub fn decision_sentence(&self) -> &str {
        &self.sentence
    }
}
