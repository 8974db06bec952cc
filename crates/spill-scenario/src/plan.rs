use std::collections::BTreeMap;
use std::sync::Arc;

use spill_record::{
    FactRecord, InputRecord, Mode, ModelRecord, PlanRecord, PlannedRun, Stage, digest,
    digest_parts, seed_of,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::defaults::{MODEL_NAME, QUICK_REPETITIONS};
use crate::error::ScenarioError;
use crate::input::Input;
use crate::scenario::{Profile, Scenario};
use crate::served::{ServedInput, canary_seed};

/// What a plan depends on beside its scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// The seed from which all others are derived.
    pub base_seed: u64,
    /// Quick or full.
    pub stage: Stage,
    /// Repetitions of each cell in place of the stage's number.
    pub repetitions: Option<u32>,
}

/// What is run, in which order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The plan as a manifest holds it; runs are in plan order.
    pub record: PlanRecord,
    /// Hash over everything that a result can depend on; 16 hex digits.
    pub plan_hash: String,
    /// What it was made with.
    pub options: PlanOptions,
    /// Who answers the LLM calls.
    pub mode: Mode,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// What the tools serve, one entry per `record.inputs`.
    pub served: Vec<Arc<ServedInput>>,
    /// Indices into `record.runs`: pairs in seeded order, the runs of a pair next to each other,
    /// in seeded order too. Names of configurations have no part in it.
    pub execution_order: Vec<usize>,
}

/// Expands scenarios into a plan: every input under every configuration, as often as the stage or
/// the options ask for.
///
/// # Errors
///
/// When the scenarios do not fit into one plan, ask for nothing, or the plan is larger than they
/// allow.
pub fn expand(scenarios: Vec<Scenario>, options: PlanOptions) -> Result<Plan, ScenarioError> {
    check_together(&scenarios)?;
    expand_as(scenarios, options, Mode::Simulated)
}

/// Expands scenarios into a plan whose LLM calls a real endpoint answers. Nothing of the simulated model
/// is part of it: no profile is drawn ([`LIVE_PROFILE`] stands in its place), and no extra pairs show one.
///
/// # Errors
///
/// As [`expand`], and when a scenario plans faults, expects an end other than an answer, or names no
/// model but the simulated one.
pub fn expand_live(scenarios: Vec<Scenario>, options: PlanOptions) -> Result<Plan, ScenarioError> {
    check_together(&scenarios)?;
    check_live(&scenarios)?;
    expand_as(scenarios, options, Mode::Live)
}

/// The profile of runs that a real endpoint answers.
pub const LIVE_PROFILE: &str = "live";

fn check_live(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    for scenario in scenarios {
        let name = &scenario.name;
        if !scenario.faults.is_empty() || scenario.expect.is_some() {
            return Err(plan_error(
                format!(
                    "the scenario `{name}` plans faults or expects an end, which a real endpoint does not do to order"
                ),
                "leave it out, or run it without --llm",
            ));
        }
        if scenario.model.name == MODEL_NAME {
            return Err(plan_error(
                format!(
                    "the scenario `{name}` names no model of a real endpoint, only `{MODEL_NAME}`"
                ),
                "name one with --model NAME, or with `name` in the scenario's [model]",
            ));
        }
    }
    Ok(())
}

/// What a manifest says of a scenario's model.
fn model_record(scenario: &Scenario, mode: Mode) -> ModelRecord {
    let record = scenario.model_record();
    match mode {
        Mode::Simulated => record,
        Mode::Live => ModelRecord {
            population: BTreeMap::new(),
            recall: Vec::new(),
            latency: None,
            ..record
        },
    }
}

fn expand_as(
    scenarios: Vec<Scenario>,
    options: PlanOptions,
    mode: Mode,
) -> Result<Plan, ScenarioError> {
    let repetitions = repetitions_of(&scenarios, options)?;
    check_size(&scenarios, repetitions)?;
    let mut served = Vec::new();
    let mut inputs = Vec::new();
    for scenario in &scenarios {
        for input in &scenario.inputs {
            let seed = canary_seed(options.base_seed, &scenario.name, &input.name);
            let texts = ServedInput::new(input, seed);
            inputs.push(input_record(scenario, input, &texts));
            served.push(Arc::new(texts));
        }
    }
    let first = &scenarios[0];
    let mut record = PlanRecord {
        configurations: first
            .configurations
            .iter()
            .map(|one| one.to_record())
            .collect(),
        inputs,
        models: scenarios
            .iter()
            .map(|scenario| model_record(scenario, mode))
            .collect(),
        rules: first.rules.clone(),
        repetitions,
        runs: Vec::new(),
    };
    let plan_hash = hash_of(&record, &scenarios, options.base_seed);
    record.runs = planned_runs(&scenarios, &plan_hash, options.base_seed, repetitions, mode);
    let execution_order =
        execution_order(&record.runs, record.configurations.len(), options.base_seed);
    Ok(Plan {
        record,
        plan_hash,
        options,
        mode,
        scenarios,
        served,
        execution_order,
    })
}

fn plan_error(problem: impl Into<String>, way_out: &str) -> ScenarioError {
    ScenarioError::Plan {
        problem: problem.into(),
        way_out: way_out.to_owned(),
    }
}

fn check_together(scenarios: &[Scenario]) -> Result<(), ScenarioError> {
    let Some((first, others)) = scenarios.split_first() else {
        return Err(plan_error("there is no scenario", "name at least one"));
    };
    for (index, scenario) in scenarios.iter().enumerate() {
        if scenario.inputs.is_empty() {
            return Err(plan_error(
                format!("the scenario `{}` has no input", scenario.name),
                "give it at least one",
            ));
        }
        if scenarios[..index]
            .iter()
            .any(|earlier| earlier.name == scenario.name)
        {
            return Err(plan_error(
                format!("two scenarios have the name `{}`", scenario.name),
                "give each its own `name`",
            ));
        }
    }
    for other in others {
        let names = format!("`{}` and `{}`", first.name, other.name);
        if other.subject != first.subject {
            return Err(plan_error(
                format!("the scenarios {names} name different subjects"),
                "name the same one, or run the scenarios one at a time",
            ));
        }
        if other.configurations != first.configurations {
            return Err(plan_error(
                format!("the scenarios {names} declare different configurations"),
                "declare the same ones in the same order, or run the scenarios one at a time",
            ));
        }
        if other.rules != first.rules {
            return Err(plan_error(
                format!("the scenarios {names} declare different rules"),
                "declare the same ones, or run the scenarios one at a time",
            ));
        }
    }
    Ok(())
}

fn repetitions_of(scenarios: &[Scenario], options: PlanOptions) -> Result<u32, ScenarioError> {
    let asked = match (options.repetitions, options.stage) {
        (Some(repetitions), _) => repetitions,
        (None, Stage::Quick) => QUICK_REPETITIONS,
        (None, Stage::Full) => {
            let first = &scenarios[0];
            if let Some(other) = scenarios
                .iter()
                .find(|other| other.repetitions != first.repetitions)
            {
                return Err(plan_error(
                    format!(
                        "the scenario `{}` asks for {} repetitions and `{}` for {}",
                        first.name, first.repetitions, other.name, other.repetitions
                    ),
                    "write the same `repetitions`, or choose with --reps",
                ));
            }
            first.repetitions
        }
    };
    if asked == 0 {
        return Err(plan_error(
            "0 repetitions were asked for, so nothing would be run",
            "ask for at least 1",
        ));
    }
    Ok(asked)
}

fn check_size(scenarios: &[Scenario], repetitions: u32) -> Result<(), ScenarioError> {
    let cells: usize = scenarios
        .iter()
        .map(|one| one.inputs.len() * one.configurations.len())
        .sum();
    let runs = (cells as u64).saturating_mul(u64::from(repetitions));
    let limit = scenarios
        .iter()
        .map(|one| one.limits.max_runs)
        .min()
        .unwrap_or(0);
    if runs > limit {
        return Err(ScenarioError::TooManyRuns { runs, limit });
    }
    Ok(())
}

fn input_record(scenario: &Scenario, input: &Input, served: &ServedInput) -> InputRecord {
    InputRecord {
        notes: input.notes.clone(),
        scenario: scenario.name.clone(),
        recipe: scenario.recipe.as_str().to_owned(),
        input: input.name.clone(),
        class: input.class,
        largest_result_bytes: served.largest_result_bytes(),
        content_digest: served.digest(),
        facts_origin: input.facts_origin,
        facts: input
            .facts
            .iter()
            .map(|fact| FactRecord {
                id: fact.id.clone(),
                carrier: fact.carrier.clone(),
                carrier_bytes: fact.carrier_bytes,
                place: fact.place,
            })
            .collect(),
    }
}

/// Hash over all that a result or its score can depend on. Times, names of files and the order of
/// execution are not in it.
fn hash_of(record: &PlanRecord, scenarios: &[Scenario], base_seed: u64) -> String {
    let record = serde_json::to_string(record).expect("a plan record has string keys only");
    let mut parts = vec![base_seed.to_string(), record];
    for scenario in scenarios {
        parts.push(scenario.system.clone());
        parts.push(scenario.prompt.clone());
        parts.push(scenario.model.max_findings.to_string());
        parts.push(digest_of(scenario.model.patterns.iter()));
        parts.push(scenario.model.composite.to_string());
        if let Some(expect) = scenario.expect {
            parts.push(format!("otherwise {}", expect.otherwise.as_str()));
        }
        if let Some(subject) = &scenario.subject {
            parts.push(format!("{subject:?}"));
        }
        let limits = &scenario.limits;
        if limits.max_retries.is_some() || limits.retry_base_ms.is_some() {
            parts.push(format!(
                "{:?} {:?}",
                limits.max_retries, limits.retry_base_ms
            ));
        }
        for input in &scenario.inputs {
            parts.push(digest_of(input.facts.iter().map(|fact| &fact.expect)));
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    digest_parts(&parts)
}

fn digest_of<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let texts: Vec<&str> = texts.map(String::as_str).collect();
    digest(serde_json::json!(texts).to_string().as_bytes())
}

fn planned_runs(
    scenarios: &[Scenario],
    plan_hash: &str,
    base_seed: u64,
    repetitions: u32,
    mode: Mode,
) -> Vec<PlannedRun> {
    let mut runs = Vec::new();
    for scenario in scenarios {
        for input in &scenario.inputs {
            for repetition in 0..repetitions {
                let seed = seed_of(base_seed, &scenario.name, &input.name, repetition);
                let pair = Pair {
                    plan_hash,
                    kind: "main",
                    scenario,
                    input,
                    repetition,
                    seed,
                    profile: match mode {
                        Mode::Simulated => scenario.model.draw(seed).name(),
                        Mode::Live => LIVE_PROFILE,
                    },
                };
                runs.extend(pair.runs());
            }
        }
    }
    runs
}

struct Pair<'a> {
    plan_hash: &'a str,
    kind: &'a str,
    scenario: &'a Scenario,
    input: &'a Input,
    repetition: u32,
    seed: u64,
    profile: &'a str,
}

impl Pair<'_> {
    fn runs(&self) -> impl Iterator<Item = PlannedRun> {
        let repetition = self.repetition.to_string();
        let id = |configuration: &[&str]| {
            let mut parts = vec![
                self.plan_hash,
                self.kind,
                &self.scenario.name,
                &self.input.name,
                &repetition,
            ];
            parts.extend(configuration);
            digest_parts(&parts)
        };
        let pair_id = id(&[]);
        let runs: Vec<PlannedRun> = self
            .scenario
            .configurations
            .iter()
            .map(|configuration| PlannedRun {
                run_id: id(&[&configuration.name]),
                pair_id: pair_id.clone(),
                scenario: self.scenario.name.clone(),
                input: self.input.name.clone(),
                configuration: configuration.name.clone(),
                repetition: self.repetition,
                seed: self.seed,
                profile: self.profile.to_owned(),
            })
            .collect();
        runs.into_iter()
    }
}

/// Orders pairs, and the runs within each, by hashes of seeds and positions.
fn execution_order(runs: &[PlannedRun], width: usize, base_seed: u64) -> Vec<usize> {
    let mut pairs: Vec<usize> = (0..runs.len() / width).collect();
    pairs.sort_by_key(|pair| {
        let run = &runs[pair * width];
        (
            xxh3_64_with_seed(b"pair order", base_seed ^ run.seed),
            *pair,
        )
    });
    let mut order = Vec::with_capacity(runs.len());
    for pair in pairs {
        let seed = runs[pair * width].seed;
        let mut within: Vec<usize> = (0..width).collect();
        within
            .sort_by_key(|position| (xxh3_64_with_seed(&position.to_le_bytes(), seed), *position));
        order.extend(within.into_iter().map(|position| pair * width + position));
    }
    order
}

/// Returns the runs of the extra pairs that show the decision under each pure profile: for each
/// input and each profile that none of its repetitions drew, one pair, in plan order.
///
/// A scenario that expects an end of its runs is about that end and has none; nor has a plan that a real
/// endpoint answers.
///
/// Their ids are their own, their repetitions go on counting after the plan's, and their seeds are
/// those of these repetitions.
#[must_use]
pub fn sensitivity_runs(plan: &Plan) -> Vec<PlannedRun> {
    let mut runs = Vec::new();
    match plan.mode {
        Mode::Simulated => {}
        Mode::Live => return runs,
    }
    let judged = plan.scenarios.iter().filter(|one| one.expect.is_none());
    for scenario in judged {
        for input in &scenario.inputs {
            let drawn = |profile: Profile| {
                plan.record.runs.iter().any(|run| {
                    run.scenario == scenario.name
                        && run.input == input.name
                        && run.profile == profile.name()
                })
            };
            let missing = Profile::PURE.into_iter().filter(|profile| !drawn(*profile));
            for (repetition, profile) in (plan.record.repetitions..).zip(missing) {
                let seed = seed_of(
                    plan.options.base_seed,
                    &scenario.name,
                    &input.name,
                    repetition,
                );
                let pair = Pair {
                    plan_hash: &plan.plan_hash,
                    kind: "sensitivity",
                    scenario,
                    input,
                    repetition,
                    seed,
                    profile: profile.name(),
                };
                runs.extend(pair.runs());
            }
        }
    }
    runs
}

/// A number in `0.0..1.0` that depends on seed and purpose alone.
pub(crate) fn unit_interval(seed: u64, purpose: &str) -> f64 {
    let bits = xxh3_64_with_seed(purpose.as_bytes(), seed) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let numerator = bits as f64;
    numerator / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests;
