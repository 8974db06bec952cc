//! The gate's test of itself in its reduced form: faults planted in records, under the limits of
//! the plan that is judged.

use spill_record::{
    Class, ConfigurationRole, EndReason, FactPlace, FactRecord, FactsOrigin, InputRecord, Mode,
    Outcome, PlannedRun, RulesRecord, RunRecord, RunSet, Stage,
};

use crate::exit;
use crate::judge::verdict_of;
use crate::rule::{Rule, State};
use crate::verdict::{PlantedFault, PlantedOutcome, Verdict};

/// Pairs of each input.
const PAIRS: u32 = 5;
/// Facts that an input gets which has none.
const FACTS: u32 = 10;
/// Input tokens of the control's runs.
const TOKENS: u64 = 100_000;
/// Share of the limit that a sound candidate uses on a large input, where it has to stay below it.
const BELOW: f64 = 0.9;

/// Judges sound records and, one after the other, records with one fault each. Empty where the plan
/// lacks a control, a candidate or any record to shape others after.
pub(crate) fn test_gate(set: &RunSet) -> Vec<PlantedFault> {
    let Some(sound) = sound_set(set) else {
        return Vec::new();
    };
    FAULTS
        .iter()
        .map(|fault| {
            let mut planted = sound.clone();
            let outcome = if (fault.plant)(&mut planted) {
                let verdict = verdict_of(&planted, Vec::new());
                if fault.expected.is_met(&verdict) {
                    PlantedOutcome::Caught
                } else {
                    PlantedOutcome::Missed
                }
            } else {
                PlantedOutcome::NotApplicable
            };
            PlantedFault {
                fault: fault.name.to_owned(),
                expected: fault.expected.words(),
                outcome,
            }
        })
        .collect()
}

/// How a verdict over a planted fault has to end.
#[derive(Clone, Copy)]
enum Expected {
    Accepted,
    /// This rule is broken and no other.
    Broken(Rule),
    Incomplete,
}

impl Expected {
    fn is_met(self, verdict: &Verdict) -> bool {
        let broken = |rule: Rule| {
            verdict.candidates.iter().any(|candidate| {
                let mut rows = candidate.rules.iter();
                rows.any(|row| row.rule == rule && row.state == State::Broken)
            })
        };
        match self {
            Self::Accepted => verdict.exit_code == exit::ACCEPTED,
            Self::Incomplete => verdict.exit_code == exit::INCOMPLETE,
            Self::Broken(expected) => {
                let code = match expected {
                    Rule::NothingLeaks => exit::LEAK,
                    Rule::SuccessRate
                    | Rule::IterationLimit
                    | Rule::InputTokens
                    | Rule::Quality => exit::REJECTED,
                };
                verdict.exit_code == code
                    && Rule::ALL
                        .into_iter()
                        .all(|rule| broken(rule) == (rule == expected))
            }
        }
    }

    fn words(self) -> String {
        match self {
            Self::Accepted => "accepted".to_owned(),
            Self::Incomplete => "incomplete".to_owned(),
            Self::Broken(rule) => format!("rule {} broken", rule.number()),
        }
    }
}

struct Fault {
    name: &'static str,
    expected: Expected,
    /// Plants it; false where the plan has no place for it.
    plant: fn(&mut RunSet) -> bool,
}

const FAULTS: [Fault; 11] = [
    Fault {
        name: "none: the candidate does as well as the control and keeps every limit",
        expected: Expected::Accepted,
        plant: |_| true,
    },
    Fault {
        name: "input tokens 5 % above the limit on a small or medium input",
        expected: Expected::Broken(Rule::InputTokens),
        plant: |set| {
            let limit = set.manifest.plan.rules.input_tokens_ratio_limit;
            let tokens = tokens_at(limit * 1.05) + 1;
            spoil(set, &[Class::Small, Class::Medium], u32::MAX, |run| {
                run.input_tokens = Some(tokens);
            })
        },
    },
    Fault {
        name: "input tokens at the limit on a large input, which has to stay below it",
        expected: Expected::Broken(Rule::InputTokens),
        plant: |set| {
            let limit = set.manifest.plan.rules.large_input_tokens_ratio_limit;
            spoil(set, &[Class::Large], u32::MAX, |run| {
                run.input_tokens = Some(tokens_at(limit));
            })
        },
    },
    Fault {
        name: "one lost success",
        expected: Expected::Broken(Rule::SuccessRate),
        plant: |set| {
            spoil(set, &ANY, 1, |run| {
                run.outcome = Outcome::Failed;
                run.end_reason = EndReason::ModelError;
            })
        },
    },
    Fault {
        name: "one new iteration-limit hit",
        expected: Expected::Broken(Rule::IterationLimit),
        plant: |set| spoil(set, &ANY, 1, |run| run.hit_iteration_limit = Some(true)),
    },
    Fault {
        name: "answers that miss the end of a document",
        expected: Expected::Broken(Rule::Quality),
        plant: |set| {
            set.manifest.plan.rules.quality_allowance < 1.0
                && spoil(set, &[Class::Document], u32::MAX, |run| {
                    let end = run.end_facts_found.unwrap_or(0);
                    score(run, run.facts_found.unwrap_or(0) - end, 0);
                })
        },
    },
    Fault {
        name: "one file written",
        expected: Expected::Broken(Rule::NothingLeaks),
        plant: |set| spoil(set, &ANY, 1, |run| run.files_written = Some(1)),
    },
    Fault {
        name: "one log line with content",
        expected: Expected::Broken(Rule::NothingLeaks),
        plant: |set| {
            spoil(set, &ANY, 1, |run| {
                run.leak_findings = vec!["stderr".to_owned()];
            })
        },
    },
    Fault {
        name: "one repetition fewer than planned",
        expected: Expected::Incomplete,
        plant: |set| {
            set.runs.retain(|run| run.repetition + 1 < PAIRS);
            true
        },
    },
    Fault {
        name: "one missing run",
        expected: Expected::Incomplete,
        plant: |set| set.runs.pop().is_some(),
    },
    Fault {
        name: "no data",
        expected: Expected::Incomplete,
        plant: |set| {
            set.runs.clear();
            true
        },
    },
];

const ANY: [Class; 4] = [Class::Small, Class::Medium, Class::Large, Class::Document];

/// Alters the first `count` runs of the candidate on the first input of one of `classes`.
fn spoil(set: &mut RunSet, classes: &[Class], count: u32, alter: impl Fn(&mut RunRecord)) -> bool {
    let plan = &set.manifest.plan;
    let Some(input) = plan
        .inputs
        .iter()
        .find(|input| classes.contains(&input.class))
    else {
        return false;
    };
    let candidate = &plan.configurations[1].name;
    let runs = set.runs.iter_mut().filter(|run| {
        (&run.scenario, &run.input) == (&input.scenario, &input.input)
            && run.configuration == *candidate
            && run.repetition < count
    });
    runs.for_each(alter);
    true
}

/// A plan of the control, the first candidate and one input of each class, under the same limits,
/// with a record of every run, none of which has a fault.
fn sound_set(set: &RunSet) -> Option<RunSet> {
    let template = set.runs.first()?;
    let mut manifest = set.manifest.clone();
    manifest.mode = Mode::Simulated;
    manifest.stage = Stage::Full;
    "self-test".clone_into(&mut manifest.subject);
    let plan = &mut manifest.plan;
    let of_role = |role| plan.configurations.iter().find(|c| c.role == role).cloned();
    let control = of_role(ConfigurationRole::Control)?;
    let mut candidate = of_role(ConfigurationRole::Candidate)?;
    candidate.shipped = true;
    plan.configurations = vec![control, candidate];
    plan.configurations[0].shipped = false;
    plan.inputs = ANY
        .iter()
        .filter_map(|class| plan.inputs.iter().find(|input| input.class == *class))
        .map(with_facts)
        .collect();
    plan.repetitions = PAIRS;
    let template_run = plan.runs.first()?.clone();
    let mut runs = Vec::new();
    let mut records = Vec::new();
    for input in &plan.inputs {
        for repetition in 0..PAIRS {
            for configuration in &plan.configurations {
                let pair_id = format!("{}/{}/{repetition}", input.scenario, input.input);
                let planned = PlannedRun {
                    run_id: format!("{pair_id}/{}", configuration.name),
                    pair_id,
                    scenario: input.scenario.clone(),
                    input: input.input.clone(),
                    configuration: configuration.name.clone(),
                    repetition,
                    ..template_run.clone()
                };
                let is_candidate = configuration.role == ConfigurationRole::Candidate;
                let tokens = if is_candidate {
                    sound_tokens(input.class, &plan.rules)
                } else {
                    TOKENS
                };
                records.push(sound_record(
                    template,
                    input,
                    &planned,
                    tokens,
                    is_candidate,
                ));
                runs.push(planned);
            }
        }
    }
    plan.runs = runs;
    Some(RunSet {
        manifest,
        runs: records,
        sensitivity: Vec::new(),
        executions: Vec::new(),
        torn: Vec::new(),
        prices: None,
        spending: None,
    })
}

/// `input` with facts that its author named, half of them at the end.
fn with_facts(input: &InputRecord) -> InputRecord {
    let facts = (0..FACTS).map(|number| FactRecord {
        id: format!("fact-{number}"),
        carrier: input.input.clone(),
        carrier_bytes: input.largest_result_bytes,
        place: Some(if number < FACTS / 2 {
            FactPlace::Middle
        } else {
            FactPlace::End
        }),
    });
    InputRecord {
        facts_origin: FactsOrigin::Scenario,
        facts: facts.collect(),
        ..input.clone()
    }
}

/// Input tokens of a candidate's run that keeps the limit of its class.
fn sound_tokens(class: Class, rules: &RulesRecord) -> u64 {
    match class {
        Class::Small | Class::Medium => tokens_below(rules.input_tokens_ratio_limit.min(1.0)),
        Class::Large => tokens_below(rules.large_input_tokens_ratio_limit.min(1.0) * BELOW),
        Class::Document => TOKENS,
    }
}

/// At least `ratio` times the control's tokens; a limit is at most 100 and not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn tokens_at(ratio: f64) -> u64 {
    (TOKENS as f64 * ratio).ceil() as u64
}

/// At most `ratio` times the control's tokens.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn tokens_below(ratio: f64) -> u64 {
    (TOKENS as f64 * ratio).floor() as u64
}

fn sound_record(
    template: &RunRecord,
    input: &InputRecord,
    planned: &PlannedRun,
    tokens: u64,
    is_candidate: bool,
) -> RunRecord {
    let mut record = RunRecord {
        run_id: planned.run_id.clone(),
        pair_id: planned.pair_id.clone(),
        scenario: planned.scenario.clone(),
        recipe: input.recipe.clone(),
        input: planned.input.clone(),
        class: input.class,
        configuration: planned.configuration.clone(),
        repetition: planned.repetition,
        seed: planned.seed,
        subject: "self-test".to_owned(),
        profile: planned.profile.clone(),
        outcome: Outcome::Succeeded,
        end_reason: EndReason::Answered,
        hit_iteration_limit: Some(false),
        input_tokens: Some(tokens),
        results_persisted: Some(u64::from(is_candidate)),
        facts_expected: Some(u64::from(FACTS)),
        end_facts_expected: Some(u64::from(FACTS) / 2),
        files_written: Some(0),
        leak_findings: Vec::new(),
        effective_settings: None,
        error: None,
        same_as: None,
        kept_files: None,
        sidecars: Vec::new(),
        sampled_memory_bytes: None,
        memory_check: None,
        ..template.clone()
    };
    score(&mut record, u64::from(FACTS), u64::from(FACTS) / 2);
    record
}

fn score(record: &mut RunRecord, found: u64, end_found: u64) {
    record.facts_found = Some(found);
    record.end_facts_found = Some(end_found);
    record.quality = crate::estimate::share(found, u64::from(FACTS));
}

#[cfg(test)]
mod tests;
