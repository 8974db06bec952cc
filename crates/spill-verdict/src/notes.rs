use spill_record::{Class, FactsOrigin, Manifest, Mode, Stage};

use crate::words::{place, plain};

/// What a run cannot show however it ends, then what this run did not cover.
pub(crate) fn not_shown(manifest: &Manifest) -> Vec<String> {
    let mut notes = of_this_run(manifest);
    notes.extend(
        [
            "Each result is bounded, not their sum: many results just under the threshold still fill the prompt.",
            "The context still grows with the number of tool calls.",
            "One read back adds up to the threshold to every later iteration.",
            "Whether a real model reads back as the simulated profiles do.",
            "Rule 5 searches the subject's own folders (home, tmp, out, work) and its log, not the rest of the disk.",
        ]
        .map(str::to_owned),
    );
    notes
}

fn of_this_run(manifest: &Manifest) -> Vec<String> {
    let plan = &manifest.plan;
    let mut notes = Vec::new();
    match manifest.stage {
        Stage::Quick => notes.push(format!(
            "This was the quick stage ({} repetitions of each cell): full has still to run.",
            plan.repetitions
        )),
        Stage::Full => {}
    }
    match manifest.mode {
        Mode::Simulated => notes.push(
            "The mix of model profiles is an assumption; the decision under each of them stands beside it."
                .to_owned(),
        ),
        Mode::Live => notes.push("Intervals of live mode are not measured.".to_owned()),
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
