//! From flags to scenarios to a plan.

use anyhow::{Context, anyhow};
use spill_record::FactsOrigin;
use spill_scenario::{
    Plan, PlanOptions, Scenario, built_in, expand, from_document, from_repository, load,
};

use crate::cli::PlanArgs;

/// Makes the plan that the flags ask for, and says what was left out of real input.
pub(crate) fn plan(args: &PlanArgs) -> anyhow::Result<(Plan, Vec<String>)> {
    let (scenarios, notes) = scenarios(args)?;
    let scenarios = scenarios.into_iter().map(derive_missing_facts).collect();
    let options = PlanOptions {
        base_seed: args.seed,
        stage: args.stage.into(),
        repetitions: args.reps,
    };
    Ok((expand(scenarios, options)?, notes))
}

fn scenarios(args: &PlanArgs) -> anyhow::Result<(Vec<Scenario>, Vec<String>)> {
    let class = args.class.map(Into::into);
    let real = match (&args.document, &args.repo) {
        (Some(path), _) => Some(from_document(path, class)?),
        (None, Some(path)) => {
            let range = args.range.as_deref().context("--repo needs --range A..B")?;
            Some(from_repository(path, range, class)?)
        }
        (None, None) => None,
    };
    let (scenarios, notes) = match real {
        Some(real) => (vec![real.scenario], real.notes),
        None if class.is_some() => {
            return Err(anyhow!(
                "--class goes with --document or --repo (a scenario file names its own)"
            ));
        }
        None if args.scenario.is_empty() => (built_in()?, Vec::new()),
        None => {
            let loaded: Result<Vec<_>, _> = args.scenario.iter().map(|path| load(path)).collect();
            (loaded?, Vec::new())
        }
    };
    if args.expect.is_empty() {
        return Ok((scenarios, notes));
    }
    let expecting: Result<Vec<_>, _> = scenarios
        .into_iter()
        .map(|scenario| scenario.with_expected(&args.expect))
        .collect();
    Ok((expecting?, notes))
}

/// Facts of real input that nobody named: what the reading rules find in the whole text at once.
fn derive_missing_facts(mut scenario: Scenario) -> Scenario {
    for input in &mut scenario.inputs {
        if input.facts_origin == FactsOrigin::Derived && input.facts.is_empty() {
            input.facts = spill_mocks::derive_facts(&input.data, &scenario.model);
        }
    }
    scenario
}
