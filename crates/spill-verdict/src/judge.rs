use spill_record::{ConfigurationRole, Mode, PlanRecord, RunSet, Stage};

use crate::identity::Identity;
use crate::inventory::{self, InputPairs, Inventory, Slot};
use crate::ladder::{self, Climb};
use crate::rule::State;
use crate::verdict::{
    Decision, Denominators, PlantedFault, ProfileCandidate, ProfileVerdict, VERDICT_SCHEMA, Verdict,
};
use crate::words::{counted, plain};
use crate::{executions, exit, identity, notes, planted};

/// Judges a run folder: five rules on every input for every candidate, then the ladder.
///
/// Total: whatever the records hold, it returns a verdict, and one that is not a pass unless every
/// planned run is there and says so. The order of records does not matter.
///
/// The gate's reduced self-test runs beside it; a fault that it misses makes the exit code 7.
pub fn judge(set: &RunSet) -> Verdict {
    verdict_of(set, planted::test_gate(set))
}

/// The verdict over `set` beside the outcome of a self-test.
pub(crate) fn verdict_of(set: &RunSet, self_test: Vec<PlantedFault>) -> Verdict {
    let manifest = &set.manifest;
    let plan = &manifest.plan;
    let inventory = inventory::take(set);
    let identity = match manifest.mode {
        Mode::Simulated => identity::compare(&manifest.subject, &inventory),
        // A real model does not say the same twice.
        Mode::Live => Identity::default(),
    };
    let mut candidates =
        ladder::judge_candidates(plan, manifest.mode, &inventory.inputs, &inventory.extra);
    let mut climb = ladder::climb(plan, &mut candidates);
    if control_leaks(plan, &inventory) {
        climb = ladder::Climb {
            decision: Decision::None,
            proposed: None,
            words: "the control leaks as well, so no configuration of spilling is the cause or the cure".to_owned(),
        };
    }
    let profiles = match manifest.mode {
        Mode::Simulated => profiles(plan, &inventory),
        // Nobody knows how a real model will read.
        Mode::Live => Vec::new(),
    };
    let incomplete = incomplete(plan, &inventory);
    let mut problems: Vec<String> = notes::spent_out(set.spending.as_ref())
        .into_iter()
        .collect();
    problems.extend(inventory.problems);
    problems.extend(incomplete);
    let mut warnings = inventory.warnings;
    warnings.extend(identity.warnings);
    warnings.extend(notes::failing_controls(set));
    warnings.extend(notes::unjudged_quality(set));
    warnings.extend(executions::notes(set));
    let mut verdict = Verdict {
        schema: VERDICT_SCHEMA,
        mode: manifest.mode,
        stage: manifest.stage,
        subject: manifest.subject.clone(),
        plan_hash: manifest.plan_hash.clone(),
        decision: climb.decision,
        sentence: String::new(),
        shipped: ladder::shipped(plan),
        proposed: climb.proposed.clone(),
        exit_code: exit::INTERNAL,
        candidates,
        denominators: inventory.denominators,
        leak_runs: inventory.leak_runs,
        leaks: inventory.leaks,
        profiles,
        self_test,
        harness_errors: identity.harness_errors,
        problems,
        warnings,
        not_shown: notes::not_shown(manifest),
    };
    conclude(&mut verdict, &climb);
    verdict
}

/// Whether a run of the control wrote a file or let content out.
fn control_leaks(plan: &PlanRecord, inventory: &Inventory<'_>) -> bool {
    inventory.leaks.iter().any(|leak| {
        plan.configurations.iter().any(|configuration| {
            configuration.role == ConfigurationRole::Control
                && configuration.name == leak.configuration
        })
    })
}

/// Why the runs do not cover the plan, if they do not.
fn incomplete(plan: &PlanRecord, inventory: &Inventory<'_>) -> Vec<String> {
    let Denominators {
        planned,
        finished,
        infrastructure,
        missing,
        ..
    } = inventory.denominators;
    let mut problems = Vec::new();
    if missing > 0 {
        problems.push(format!(
            "{} of {planned} planned without a usable record",
            counted(missing, "run")
        ));
    }
    if finished == 0 {
        problems.push(format!(
            "no run finished, so there is nothing to judge{}",
            first_lost(inventory)
        ));
    }
    let within = infrastructure as f64 <= plan.rules.infrastructure_budget * planned as f64;
    if !within {
        problems.push(format!(
            "{} of {planned} lost to the harness, more than the budget of {}{}",
            counted(infrastructure, "run"),
            crate::words::percent(plan.rules.infrastructure_budget),
            first_lost(inventory)
        ));
    }
    let controls = plan
        .configurations
        .iter()
        .filter(|c| c.role == ConfigurationRole::Control)
        .count();
    if controls != 1 {
        problems.push(format!(
            "the plan has {}, one is needed",
            counted(controls as u64, "control")
        ));
    }
    problems
}

/// How the first run that the harness lost ended, as the end of a sentence; empty where none says why.
fn first_lost(inventory: &Inventory<'_>) -> String {
    let slots = inventory.inputs.iter().flat_map(|input| &input.pairs);
    let mut lost = slots
        .flat_map(|pair| &pair.slots)
        .filter_map(|slot| match slot {
            Slot::Infrastructure(run) => Some((run.end_reason, run.error.as_deref()?)),
            Slot::Finished(_) | Slot::Missing => None,
        });
    lost.next().map_or_else(String::new, |(end, error)| {
        format!("; the first was lost as {}: {}", end.as_str(), plain(error))
    })
}

/// Sets exit code, decision and sentence from what was found.
fn conclude(verdict: &mut Verdict, climb: &Climb) {
    let mut codes = vec![match climb.decision {
        Decision::Keep => exit::ACCEPTED,
        Decision::Change | Decision::Disable => exit::REJECTED,
        Decision::None => exit::NOT_PROVEN,
    }];
    if verdict.leak_runs > 0 {
        codes.push(exit::LEAK);
    }
    if verdict.self_test.iter().any(PlantedFault::is_missed) {
        codes.push(exit::SELF_TEST);
    }
    let broken_harness = !verdict.harness_errors.is_empty();
    if broken_harness {
        codes.push(exit::INTERNAL);
    }
    let incomplete = !verdict.problems.is_empty();
    if incomplete {
        codes.push(exit::INCOMPLETE);
    }
    let untrusted = codes.contains(&exit::SELF_TEST);
    if broken_harness || incomplete || untrusted {
        verdict.decision = Decision::None;
        verdict.proposed = None;
    }
    verdict.exit_code = exit::first_that_applies(&codes);
    verdict.sentence = sentence(verdict, climb);
}

fn sentence(verdict: &Verdict, climb: &Climb) -> String {
    let mut parts = Vec::new();
    if verdict.leak_runs > 0 {
        let where_found = verdict.leaks.first().map_or_else(String::new, |leak| {
            format!(
                " (first under {}, run {})",
                plain(&leak.configuration),
                plain(&leak.run_id)
            )
        });
        parts.push(format!(
            "Leak found in {}{where_found}.",
            counted(verdict.leak_runs, "run")
        ));
    }
    if let Some(fault) = verdict.harness_errors.first() {
        parts.push(format!("No decision, the harness is at fault: {fault}."));
    } else if let Some(missed) = verdict.self_test.iter().find(|fault| fault.is_missed()) {
        parts.push(format!(
            "No decision, the gate failed its self-test: planted was \"{}\", expected \"{}\".",
            missed.fault, missed.expected
        ));
    } else if let Some(problem) = verdict.problems.first() {
        let more = verdict.problems.len() - 1;
        let more = if more > 0 {
            format!(" (and {})", counted(more as u64, "further problem"))
        } else {
            String::new()
        };
        parts.push(format!(
            "No decision, the runs are incomplete: {problem}{more}."
        ));
    } else {
        let shipped = verdict.shipped.as_ref().map_or_else(
            || "the default".to_owned(),
            |shipped| ladder::label(&shipped.configuration, shipped.threshold_bytes),
        );
        let to = verdict
            .candidates
            .iter()
            .find(|candidate| candidate.considered && candidate.state == State::Holds)
            .map_or_else(String::new, |c| {
                ladder::label(&c.configuration, c.threshold_bytes)
            });
        parts.push(match verdict.decision {
            Decision::Keep => format!("Keep {shipped}, the shipped default: {}.", climb.words),
            Decision::Change => format!(
                "Change the default from {shipped} to {to}: {}.",
                climb.words
            ),
            Decision::Disable => {
                format!("Disable spilling, {shipped} ships today: {}.", climb.words)
            }
            Decision::None => format!("No decision: {}.", climb.words),
        });
    }
    if verdict.stage == Stage::Quick {
        parts.push("This was the quick stage; full has still to run.".to_owned());
    }
    parts.join(" ")
}

/// The decision under each profile that any scenario's population names.
fn profiles(plan: &PlanRecord, inventory: &Inventory<'_>) -> Vec<ProfileVerdict> {
    let mut names: Vec<&str> = plan
        .models
        .iter()
        .flat_map(|model| model.population.keys())
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| under_profile(plan, inventory, name))
        .collect()
}

fn under_profile(plan: &PlanRecord, inventory: &Inventory<'_>, profile: &str) -> ProfileVerdict {
    let mut extra_pairs = 0;
    let mut pairs = 0;
    let cells: Vec<InputPairs<'_>> = inventory
        .inputs
        .iter()
        .zip(&inventory.extra)
        .map(|(planned, extra)| {
            let chosen: Vec<_> = planned
                .pairs
                .iter()
                .chain(&extra.pairs)
                .filter(|pair| pair.profile == profile)
                .cloned()
                .map(|pair| {
                    extra_pairs += u64::from(pair.extra);
                    inventory::Pair {
                        extra: false,
                        ..pair
                    }
                })
                .collect();
            pairs += chosen.len() as u64;
            InputPairs {
                input: planned.input,
                pairs: chosen,
            }
        })
        .collect();
    let nothing: Vec<InputPairs<'_>> = cells
        .iter()
        .map(|cell| InputPairs {
            input: cell.input,
            pairs: Vec::new(),
        })
        .collect();
    let mut candidates = ladder::judge_candidates(plan, Mode::Simulated, &cells, &nothing);
    let climb = ladder::climb(plan, &mut candidates);
    ProfileVerdict {
        profile: profile.to_owned(),
        decision: climb.decision,
        proposed: climb.proposed,
        pairs,
        extra_pairs,
        words: climb.words,
        candidates: candidates
            .into_iter()
            .map(|candidate| ProfileCandidate {
                configuration: candidate.configuration,
                state: candidate.state,
                words: candidate.words,
            })
            .collect(),
    }
}
