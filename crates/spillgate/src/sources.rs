//! From flags to scenarios to a plan.

use anyhow::{Context, anyhow};
use spill_record::FactsOrigin;
use spill_scenario::{
    Input, ModelSpec, Plan, PlanOptions, Scenario, built_in, expand, expand_live, from_document,
    from_repository, load,
};

use crate::cli::{LiveArgs, PlanArgs};
use crate::subject::{self, Asked};

/// Makes the plan that the flags ask for, for the agent and the endpoint that they ask for.
pub(crate) fn plan(args: &PlanArgs, live: &LiveArgs, asked: &Asked) -> anyhow::Result<Plan> {
    let mut scenarios = subject::under(asked, settled_scenarios(args)?)?;
    let options = PlanOptions {
        base_seed: args.seed,
        stage: args.stage.into(),
        repetitions: args.reps,
    };
    if live.llm.is_none() {
        return Ok(expand(scenarios, options)?);
    }
    if let Some(model) = &live.model {
        for scenario in &mut scenarios {
            scenario.model.name.clone_from(model);
        }
    }
    Ok(expand_live(scenarios, options)?)
}

/// The scenarios that the flags name, with the facts of every input.
pub(crate) fn settled_scenarios(args: &PlanArgs) -> anyhow::Result<Vec<Scenario>> {
    let mut scenarios = scenarios(args)?;
    for scenario in &mut scenarios {
        let model = &scenario.model;
        for input in &mut scenario.inputs {
            settle_facts(input, model)?;
        }
    }
    Ok(scenarios)
}

fn scenarios(args: &PlanArgs) -> anyhow::Result<Vec<Scenario>> {
    let class = args.class.map(Into::into);
    let real = match (&args.document, &args.repo) {
        (Some(path), _) => from_document(path, class)?,
        (None, Some(path)) => {
            let range = args.range.as_deref().context("--repo needs --range A..B")?;
            from_repository(path, range, class)?
        }
        (None, None) => return given_scenarios(args),
    };
    if args.expect.is_empty() {
        Ok(vec![real])
    } else {
        Ok(vec![real.with_expected(&args.expect)?])
    }
}

fn given_scenarios(args: &PlanArgs) -> anyhow::Result<Vec<Scenario>> {
    for (flag, given, of_its_own) in [
        ("--class", args.class.is_some(), "class"),
        ("--expect", !args.expect.is_empty(), "facts"),
    ] {
        if given {
            return Err(anyhow!(
                "{flag} goes with --document or --repo (a scenario file names its own {of_its_own})"
            ));
        }
    }
    if args.scenario.is_empty() {
        return Ok(built_in()?);
    }
    let loaded: Result<Vec<_>, _> = args.scenario.iter().map(|path| load(path)).collect();
    Ok(loaded?)
}

/// Ties an input's facts to what the reading rules find in the whole text at once.
///
/// Where nobody named facts, those findings are the facts. A text that was expected takes carrier
/// and place of the finding that contains it; one that no finding contains could be answered by no
/// run, so it would prove nothing.
fn settle_facts(input: &mut Input, model: &ModelSpec) -> anyhow::Result<()> {
    match input.facts_origin {
        FactsOrigin::Scenario => {}
        FactsOrigin::Derived => {
            if input.facts.is_empty() {
                input.facts = spill_mocks::derive_facts(&input.data, model);
            }
            if input.facts.len() as u64 == model.max_findings {
                input.notes.push(format!(
                    "answers and facts are a sample: the text has {} findings or more, the bound of an answer",
                    model.max_findings
                ));
            }
        }
        FactsOrigin::Expected => {
            let findings = spill_mocks::derive_facts(&input.data, model);
            for fact in &mut input.facts {
                let finding = findings
                    .iter()
                    .find(|finding| finding.expect.contains(&fact.expect))
                    .with_context(|| unanswerable(&fact.expect, findings.len(), model))?;
                fact.carrier.clone_from(&finding.carrier);
                fact.carrier_bytes = finding.carrier_bytes;
                fact.place = finding.place;
            }
        }
    }
    Ok(())
}

fn unanswerable(text: &str, findings: usize, model: &ModelSpec) -> String {
    format!(
        "--expect: no answer can contain {text:?}: it is in none of the {findings} findings that the \
         reading rules make of the whole text, at most {} (give a text of a heading or key sentence, \
         or a scenario file with `patterns` for findings of other kinds and a higher `max_findings`)",
        model.max_findings
    )
}
