//! `self-test`: real runs with planted faults, each of which the gate has to catch.
//!
//! One plan in which every fault is a candidate beside a sound one, the control and all candidates
//! spilling alike; each candidate is then judged as if it were the only one.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use spill_record::{ConfigurationRole, FolderKind, RunRecord, RunSet, Stage};
use spill_runner::{FinishedRun, Subject, pairs_of};
use spill_scenario::{
    Configuration, DEFAULT_POLICY, DEFAULT_STORE, Plan, PlanOptions, built_in, expand,
};
use spill_verdict::{Rule, State, Verdict, counted, exit, judge};

use crate::cli::SelfTestArgs;
use crate::planted::{FAULT_VAR, ONCE_VAR};
use crate::setup::Setup;
use crate::{Failure, accept, host, out};

const VERB: &str = "self-test";
/// Small enough that the small change and the document are stored.
const THRESHOLD_BYTES: u64 = 8_192;
const CONTROL: &str = "control";

/// How the verdict over a planted fault has to end.
#[derive(Clone, Copy)]
enum Expected {
    Accepted,
    Broken(Rule),
    Incomplete,
}

/// One fault, and the records that show it.
struct Fault {
    name: &'static str,
    /// What the wrapper subject plants, and whether in one run only.
    planted: Option<(&'static str, bool)>,
    /// What is taken from the records.
    lose: Lose,
    expected: Expected,
}

#[derive(Clone, Copy)]
enum Lose {
    Nothing,
    LastRepetition,
    OneRun,
    Everything,
}

const fn subject(name: &'static str, fault: &'static str, once: bool, rule: Rule) -> Fault {
    Fault {
        name,
        planted: Some((fault, once)),
        lose: Lose::Nothing,
        expected: Expected::Broken(rule),
    }
}

const fn records(name: &'static str, lose: Lose) -> Fault {
    Fault {
        name,
        planted: None,
        lose,
        expected: Expected::Incomplete,
    }
}

const FAULTS: [Fault; 12] = [
    Fault {
        name: "nothing: A/A",
        planted: None,
        lose: Lose::Nothing,
        expected: Expected::Accepted,
    },
    subject(
        "15 % more input tokens",
        "costs-15-percent",
        false,
        Rule::InputTokens,
    ),
    subject("one lost success", "crashes", true, Rule::SuccessRate),
    subject(
        "one result that is none",
        "babbles",
        true,
        Rule::SuccessRate,
    ),
    subject(
        "one new iteration-limit hit",
        "hits-the-limit",
        true,
        Rule::IterationLimit,
    ),
    subject(
        "answers without the end of the document",
        "loses-the-tail",
        false,
        Rule::Quality,
    ),
    subject(
        "one file written",
        "plants-a-file",
        true,
        Rule::NothingLeaks,
    ),
    subject(
        "one log line with content",
        "plants-a-log-line",
        true,
        Rule::NothingLeaks,
    ),
    Fault {
        name: "one step result that contradicts the servers",
        planted: Some(("lies", true)),
        lose: Lose::Nothing,
        expected: Expected::Incomplete,
    },
    records("one repetition fewer than planned", Lose::LastRepetition),
    records("one missing run", Lose::OneRun),
    records("no data at all", Lose::Everything),
];

/// What became of one fault.
#[derive(Serialize)]
struct Outcome {
    planted: &'static str,
    expected: String,
    exit_code: u8,
    caught: bool,
    words: String,
}

pub(crate) fn run(args: &SelfTestArgs) -> Result<u8, Failure> {
    let internal = |error| Failure::internal(VERB, error);
    let program = host::this_program().map_err(|error| internal(error.into()))?;
    let planted = Subject::Command {
        name: "planted faults".to_owned(),
        command: vec![program.into(), "planted".into()],
    };
    let setup = Setup::new(VERB, planted, None)?;
    let plan = plan(&setup.options.temp).map_err(internal)?;
    let set = setup.runtime.block_on(measure(plan, &setup))?;
    let outcomes: Vec<Outcome> = FAULTS.iter().map(|fault| outcome(&set, fault)).collect();
    let missed = outcomes.iter().filter(|outcome| !outcome.caught).count() as u64;
    if args.json {
        let text = serde_json::to_string_pretty(&outcomes)
            .map_err(|error| Failure::internal(VERB, error))?;
        out::line(text);
    } else {
        for outcome in &outcomes {
            let state = if outcome.caught {
                "as expected"
            } else {
                "MISSED"
            };
            out::line(format_args!(
                "{state:<11}  {}: {} (exit {})",
                outcome.planted, outcome.expected, outcome.exit_code
            ));
            if !outcome.caught {
                out::line(format_args!("             {}", outcome.words));
            }
        }
        out::line(format_args!(
            "{} in {}, {missed} missed",
            counted(FAULTS.len() as u64, "planted fault"),
            counted(set.runs.len() as u64, "run")
        ));
    }
    Ok(if missed == 0 {
        exit::ACCEPTED
    } else {
        exit::SELF_TEST
    })
}

/// Runs every fault's candidate beside the control.
async fn measure(plan: Plan, setup: &Setup) -> Result<RunSet, Failure> {
    let (plan, harness) = setup.start(plan).await?;
    let order = plan.execution_order.iter();
    let runs = order.map(|&index| plan.record.runs[index].clone());
    let stop = accept::stop_on_signals().map_err(|error| Failure::internal(VERB, error))?;
    let mut records = Vec::new();
    let mut keep = |finished: FinishedRun| {
        records.push(finished.record);
        Ok(())
    };
    let run = harness.execute(pairs_of(runs), stop, &mut keep).await;
    run.map_err(|error| setup.failure(error))?;
    Ok(RunSet {
        manifest: accept::manifest(
            &plan,
            None,
            &setup.options,
            harness.tokenizer(),
            None,
            FolderKind::Acceptance,
        ),
        runs: records,
        sensitivity: Vec::new(),
        executions: Vec::new(),
        torn: Vec::new(),
        prices: None,
        spending: None,
    })
}

/// The built-in small change and document, under configurations that differ in their faults alone.
fn plan(temp: &Path) -> anyhow::Result<Plan> {
    let mut scenarios = built_in()?;
    for scenario in &mut scenarios {
        scenario.inputs.truncate(1);
        scenario.configurations = configurations(temp);
    }
    let options = PlanOptions {
        base_seed: 1,
        stage: Stage::Quick,
        repetitions: None,
    };
    Ok(expand(scenarios, options)?)
}

fn configurations(temp: &Path) -> Vec<Configuration> {
    let of = |name: &str, role, planted: Option<(&str, bool)>| {
        let mut env = BTreeMap::from([(
            spill_engine::THRESHOLD_VAR.to_owned(),
            THRESHOLD_BYTES.to_string(),
        )]);
        if let Some((fault, once)) = planted {
            env.insert(FAULT_VAR.to_owned(), fault.to_owned());
            if once {
                let path = temp.join(format!("planted-{fault}"));
                env.insert(ONCE_VAR.to_owned(), path.to_string_lossy().into_owned());
            }
        }
        Configuration {
            name: name.to_owned(),
            role,
            shipped: false,
            env,
            enabled: true,
            threshold_bytes: Some(THRESHOLD_BYTES),
            policy: DEFAULT_POLICY.to_owned(),
            store: DEFAULT_STORE.to_owned(),
            preview_share: None,
            sidecars: Vec::new(),
        }
    };
    let control = of(CONTROL, ConfigurationRole::Control, None);
    let candidates = FAULTS
        .iter()
        .map(|fault| of(fault.name, ConfigurationRole::Candidate, fault.planted));
    std::iter::once(control).chain(candidates).collect()
}

/// Judges the control and one fault's candidate as if nothing else had been planned.
fn outcome(all: &RunSet, fault: &Fault) -> Outcome {
    let verdict = judge(&alone(all, fault));
    let (expected, caught) = match fault.expected {
        Expected::Accepted => ("accepted".to_owned(), verdict.exit_code() == exit::ACCEPTED),
        Expected::Incomplete => (
            "incomplete".to_owned(),
            verdict.exit_code() == exit::INCOMPLETE,
        ),
        Expected::Broken(rule) => {
            let code = match rule {
                Rule::NothingLeaks => exit::LEAK,
                Rule::SuccessRate | Rule::IterationLimit | Rule::InputTokens | Rule::Quality => {
                    exit::REJECTED
                }
            };
            (
                format!("rule {} broken", rule.number()),
                breaks(&verdict, rule) && verdict.exit_code() == code,
            )
        }
    };
    Outcome {
        planted: fault.name,
        expected,
        exit_code: verdict.exit_code(),
        caught,
        words: verdict.decision_sentence().to_owned(),
    }
}

fn breaks(verdict: &Verdict, rule: Rule) -> bool {
    let mut rows = verdict
        .candidates
        .iter()
        .flat_map(|candidate| &candidate.rules);
    rows.any(|row| row.rule == rule && row.state == State::Broken)
}

fn alone(all: &RunSet, fault: &Fault) -> RunSet {
    let kept = |configuration: &str| configuration == CONTROL || configuration == fault.name;
    let mut manifest = all.manifest.clone();
    let plan = &mut manifest.plan;
    plan.configurations.retain(|one| kept(&one.name));
    for one in &mut plan.configurations {
        one.shipped = one.role == ConfigurationRole::Candidate;
    }
    plan.runs.retain(|run| kept(&run.configuration));
    let last = plan.repetitions.saturating_sub(1);
    let stays = |index: usize, run: &RunRecord| match fault.lose {
        Lose::Nothing => true,
        Lose::LastRepetition => run.repetition != last,
        Lose::OneRun => index > 0,
        Lose::Everything => false,
    };
    let runs = all.runs.iter().filter(|run| kept(&run.configuration));
    let runs = runs
        .enumerate()
        .filter(|(index, run)| stays(*index, run))
        .map(|(_, run)| run.clone())
        .collect();
    RunSet {
        manifest,
        runs,
        sensitivity: Vec::new(),
        executions: Vec::new(),
        torn: Vec::new(),
        prices: None,
        spending: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README.md and the report's page name the numbers.
    #[test]
    fn twelve_faults_nine_of_them_in_real_runs() {
        assert_eq!(FAULTS.len(), 12);
        let in_real_runs = FAULTS.iter().filter(|fault| match fault.lose {
            Lose::Nothing => true,
            Lose::LastRepetition | Lose::OneRun | Lose::Everything => false,
        });
        assert_eq!(in_real_runs.count(), 9);
    }
}
