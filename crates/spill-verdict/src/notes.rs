use std::collections::HashMap;

use spill_record::{
    CapReached, Class, ConfigurationRole, FactsOrigin, InputRecord, Manifest, Mode, Outcome,
    RunSet, Spending, Stage,
};

use crate::words::{counted, grouped, percent, place, plain};

/// Where a candidate's answers hold fewer facts than the control's though no rule judges it: rule 4
/// concerns documents. One line a candidate.
pub(crate) fn unjudged_quality(set: &RunSet) -> Vec<String> {
    let plan = &set.manifest.plan;
    let qualities: HashMap<(&str, &str), f64> = set
        .runs
        .iter()
        .filter_map(|run| Some(((&*run.pair_id, &*run.configuration), run.quality?)))
        .collect();
    let Some(control) = plan
        .configurations
        .iter()
        .find(|configuration| configuration.role == ConfigurationRole::Control)
    else {
        return Vec::new();
    };
    // Means over the pairs in which both are known: of the candidate, of the control.
    let means = |candidate: &str, input: &InputRecord| {
        let pairs = plan.runs.iter().filter(|run| {
            run.configuration == candidate
                && (&run.scenario, &run.input) == (&input.scenario, &input.input)
        });
        let both: Vec<(f64, f64)> = pairs
            .filter_map(|run| {
                let of = |configuration| qualities.get(&(&*run.pair_id, configuration)).copied();
                Some((of(candidate)?, of(&control.name)?))
            })
            .collect();
        let sums = both
            .iter()
            .fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        let n = both.len() as f64;
        (!both.is_empty()).then_some((sums.0 / n, sums.1 / n))
    };
    let mut lines = Vec::new();
    for candidate in &plan.configurations {
        let inputs = plan.inputs.iter().filter(|input| match input.class {
            Class::Small | Class::Medium | Class::Large => true,
            Class::Document => false,
        });
        let lower: Vec<String> = inputs
            .filter_map(|input| {
                let (on, off) = means(&candidate.name, input)?;
                (on + 1e-9 < off).then(|| {
                    let place = place(&input.scenario, &input.input);
                    format!("{place} {} against {}", percent(on), percent(off))
                })
            })
            .collect();
        if !lower.is_empty() {
            lines.push(format!(
                "Under {} the answers hold fewer of the expected facts than with {}, which no rule judges outside documents: {}.",
                plain(&candidate.name),
                plain(&control.name),
                lower.join(", ")
            ));
        }
    }
    lines
}

/// Inputs on which no run of the control succeeded: a candidate cannot do worse there.
pub(crate) fn failing_controls(set: &RunSet) -> Vec<String> {
    let plan = &set.manifest.plan;
    let control = plan
        .configurations
        .iter()
        .find(|configuration| configuration.role == ConfigurationRole::Control);
    let Some(control) = control else {
        return Vec::new();
    };
    plan.inputs
        .iter()
        .filter_map(|input| {
            let runs = set.runs.iter().filter(|run| {
                run.configuration == control.name
                    && (&run.scenario, &run.input) == (&input.scenario, &input.input)
            });
            let outcomes: Vec<Outcome> = runs.map(|run| run.outcome).collect();
            let succeeded = outcomes.contains(&Outcome::Succeeded);
            (!outcomes.is_empty() && !succeeded).then(|| {
                format!(
                    "No run of {} succeeded on {}: there a candidate that fails as well holds rule 1.",
                    plain(&control.name),
                    place(&input.scenario, &input.input)
                )
            })
        })
        .collect()
}

/// What a run cannot show however it ends, then what this run did not cover.
pub(crate) fn not_shown(manifest: &Manifest) -> Vec<String> {
    let mut notes = of_this_run(manifest);
    notes.extend(
        [
            "Each result is bounded, not their sum: many results just under the threshold still fill the prompt.",
            "The context still grows with the number of tool calls.",
            "One read back adds up to the threshold to every later iteration.",
            "Rule 5 searches the subject's own folders (home, tmp, out, work) and its log, not the rest of the disk.",
        ]
        .map(str::to_owned),
    );
    notes
}

/// That a live acceptance ended at its spending cap, if it did.
pub(crate) fn spent_out(spending: Option<&Spending>) -> Option<String> {
    let spending = spending?;
    let spent = grouped(spending.counted_tokens());
    let what = match spending.reached? {
        CapReached::Tokens => format!(
            "the spending cap of {} tokens was reached: {spent} are spent",
            grouped(spending.limit_tokens.unwrap_or(0))
        ),
        CapReached::Money => {
            let amount =
                |amount: &Option<String>| amount.as_deref().map_or_else(String::new, plain);
            format!(
                "the spending cap of {} {} was reached: {} are spent",
                amount(&spending.limit_money),
                amount(&spending.currency),
                amount(&spending.money)
            )
        }
    };
    Some(format!(
        "{what} (go on with `spillgate accept --resume DIR` and a larger cap)"
    ))
}

fn of_this_run(manifest: &Manifest) -> Vec<String> {
    let plan = &manifest.plan;
    let mut notes = Vec::new();
    match manifest.stage {
        Stage::Quick => notes.push(format!(
            "This was the quick stage ({} of each cell): full has still to run.",
            counted(u64::from(plan.repetitions), "repetition")
        )),
        Stage::Full => {}
    }
    match manifest.mode {
        Mode::Simulated => notes.extend(
            [
                "The mix of model profiles is an assumption; the decision under each of them stands beside it.",
                "Whether a real model reads back as the simulated profiles do.",
            ]
            .map(str::to_owned),
        ),
        Mode::Live => notes.push(
            "How another model, or this one on another day, would do: the bounds are of these inputs and this endpoint."
                .to_owned(),
        ),
    }
    let keep_files: Vec<String> = plan
        .configurations
        .iter()
        .filter(|configuration| configuration.store.as_deref() == Some("file"))
        .map(|configuration| plain(&configuration.name))
        .collect();
    if !keep_files.is_empty() {
        notes.push(format!(
            "{} keeps results in files of a folder that it declares: rule 5 neither counts nor searches that folder.",
            keep_files.join(", ")
        ));
    }
    let derived: Vec<String> = plan
        .inputs
        .iter()
        .filter(|input| match input.facts_origin {
            FactsOrigin::Derived => true,
            FactsOrigin::Scenario | FactsOrigin::Expected => false,
        })
        .map(|input| place(&input.scenario, &input.input))
        .collect();
    if !derived.is_empty() {
        notes.push(format!(
            "The facts of {} are what the reading rules find in the whole text: their quality is self-consistency, not truth.",
            derived.join(", ")
        ));
    }
    let absent: Vec<&str> = [Class::Small, Class::Medium, Class::Large, Class::Document]
        .into_iter()
        .filter(|class| plan.inputs.iter().all(|input| input.class != *class))
        .map(Class::as_str)
        .collect();
    if !absent.is_empty() {
        notes.push(format!("No input of class {} was run.", absent.join(", ")));
    }
    for input in &plan.inputs {
        let place = place(&input.scenario, &input.input);
        notes.extend(
            input
                .notes
                .iter()
                .map(|note| format!("{place}: {}.", plain(note))),
        );
    }
    if manifest.subject != "built-in" {
        notes.push(format!(
            "The subject was {}, not the built-in one.",
            plain(&manifest.subject)
        ));
    }
    notes
}
