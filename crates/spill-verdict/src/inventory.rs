use std::collections::{BTreeSet, HashMap};

use spill_record::{InputRecord, Outcome, PlanRecord, RunRecord, RunSet};

use crate::contradiction::{Known, plan_problems};
use crate::verdict::{Denominators, Leak};
use crate::words::plain;

/// Leaks that a verdict lists; it counts all of them.
const LEAKS_LISTED: usize = 50;
/// Places listed of one leak.
const FINDINGS_LISTED: usize = 5;

/// What became of one planned run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot<'a> {
    Finished(&'a RunRecord),
    Infrastructure(&'a RunRecord),
    Missing,
}

/// The runs of one pair, one slot for each configuration of the plan.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) pair_id: &'a str,
    pub(crate) profile: &'a str,
    pub(crate) slots: Vec<Slot<'a>>,
    /// Whether the pair was run to show a pure profile and stands outside the plan.
    pub(crate) extra: bool,
}

/// All pairs of one input.
#[derive(Clone, Debug)]
pub(crate) struct InputPairs<'a> {
    pub(crate) input: &'a InputRecord,
    pub(crate) pairs: Vec<Pair<'a>>,
}

/// Every planned run accounted for, grouped into pairs, in plan order whatever the order of records.
#[derive(Clone, Debug)]
pub(crate) struct Inventory<'a> {
    pub(crate) inputs: Vec<InputPairs<'a>>,
    /// Pairs outside the plan, in the same order of inputs.
    pub(crate) extra: Vec<InputPairs<'a>>,
    pub(crate) denominators: Denominators,
    pub(crate) leak_runs: u64,
    pub(crate) leaks: Vec<Leak>,
    pub(crate) problems: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// Sorts the records of `set` into the slots of its plan.
pub(crate) fn take<'a>(set: &'a RunSet) -> Inventory<'a> {
    let plan = &set.manifest.plan;
    let mut problems = plan_problems(plan);
    let mut warnings = torn_warnings(set);
    let (slots, started) = fill(set, &mut problems, &mut warnings);
    let denominators = count(&slots, started);
    let inputs = group(plan, &slots);
    let extra = extra_pairs(set, &mut warnings);
    let (leak_runs, leaks) = find_leaks(set);
    problems.sort();
    problems.dedup();
    warnings.sort();
    warnings.dedup();
    Inventory {
        inputs,
        extra,
        denominators,
        leak_runs,
        leaks,
        problems,
        warnings,
    }
}

/// The records that count, one slot for each planned run in plan order; `None` where a run is
/// missing or its record was refused.
///
/// Reports read the same rows as the verdict by reading these.
#[must_use]
pub fn counted_records(set: &RunSet) -> Vec<Option<&RunRecord>> {
    let (slots, _) = fill(set, &mut Vec::new(), &mut Vec::new());
    slots
        .into_iter()
        .map(|slot| match slot {
            Slot::Finished(record) | Slot::Infrastructure(record) => Some(record),
            Slot::Missing => None,
        })
        .collect()
}

fn torn_warnings(set: &RunSet) -> Vec<String> {
    set.torn
        .iter()
        .map(|torn| {
            format!(
                "{}, line {}: the last line was cut off after {} bytes and is not counted",
                plain(&torn.file),
                torn.line,
                torn.bytes
            )
        })
        .collect()
}

/// The slot of every planned run, in plan order, and how many of them left a record.
fn fill<'a>(
    set: &'a RunSet,
    problems: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> (Vec<Slot<'a>>, u64) {
    let plan = &set.manifest.plan;
    let by_id: HashMap<&str, usize> = plan
        .runs
        .iter()
        .enumerate()
        .map(|(index, run)| (&*run.run_id, index))
        .collect();
    let known = Known::of(plan);
    let mut records: Vec<Option<&RunRecord>> = vec![None; plan.runs.len()];
    let mut refused = vec![false; plan.runs.len()];
    for record in &set.runs {
        let Some(&index) = by_id.get(&*record.run_id) else {
            problems.push(format!("run {} is not in the plan", plain(&record.run_id)));
            continue;
        };
        match records[index] {
            Some(first) if first == record => {
                warnings.push(format!(
                    "run {} was recorded twice with the same values; it counts once",
                    plain(&record.run_id)
                ));
            }
            Some(_) => {
                refused[index] = true;
                problems.push(format!(
                    "run {} was recorded twice with different values; neither counts",
                    plain(&record.run_id)
                ));
            }
            None => {
                records[index] = Some(record);
                if let Some(fault) =
                    known.contradiction(&set.manifest.subject, &plan.runs[index], record)
                {
                    refused[index] = true;
                    problems.push(format!(
                        "the record of run {} is refused: {fault}",
                        plain(&record.run_id)
                    ));
                }
            }
        }
    }
    let started = records.iter().flatten().count();
    let slots = records
        .into_iter()
        .zip(refused)
        .map(|(record, refused)| match record {
            Some(record) if !refused => slot_of(record),
            Some(_) | None => Slot::Missing,
        })
        .collect();
    (slots, started as u64)
}

fn slot_of(record: &RunRecord) -> Slot<'_> {
    match record.outcome {
        Outcome::Succeeded | Outcome::Failed => Slot::Finished(record),
        Outcome::Infrastructure => Slot::Infrastructure(record),
    }
}

fn count(slots: &[Slot<'_>], started: u64) -> Denominators {
    let mut counts = Denominators {
        planned: slots.len() as u64,
        started,
        ..Denominators::default()
    };
    for slot in slots {
        match slot {
            Slot::Finished(record) if record.outcome == Outcome::Succeeded => counts.succeeded += 1,
            Slot::Finished(_) => counts.failed += 1,
            Slot::Infrastructure(_) => counts.infrastructure += 1,
            Slot::Missing => counts.missing += 1,
        }
    }
    counts.finished = counts.succeeded + counts.failed;
    assert_eq!(
        counts.planned,
        counts.finished + counts.infrastructure + counts.missing,
        "every planned run has exactly one slot"
    );
    counts
}

fn group<'a>(plan: &'a PlanRecord, slots: &[Slot<'a>]) -> Vec<InputPairs<'a>> {
    let mut inputs: Vec<InputPairs<'a>> = no_pairs(plan);
    let place = places(plan);
    let column = columns(plan);
    let mut pairs: HashMap<(usize, &str), usize> = HashMap::new();
    for (run, slot) in plan.runs.iter().zip(slots) {
        let (Some(&input), Some(&column)) = (
            place.get(&(&*run.scenario, &*run.input)),
            column.get(&*run.configuration),
        ) else {
            continue; // named in the plan's problems
        };
        let group = &mut inputs[input].pairs;
        let index = *pairs.entry((input, &*run.pair_id)).or_insert_with(|| {
            group.push(Pair {
                pair_id: &run.pair_id,
                profile: &run.profile,
                slots: vec![Slot::Missing; plan.configurations.len()],
                extra: false,
            });
            group.len() - 1
        });
        group[index].slots[column] = *slot;
    }
    inputs
}

fn no_pairs(plan: &PlanRecord) -> Vec<InputPairs<'_>> {
    plan.inputs
        .iter()
        .map(|input| InputPairs {
            input,
            pairs: Vec::new(),
        })
        .collect()
}

fn places(plan: &PlanRecord) -> HashMap<(&str, &str), usize> {
    plan.inputs
        .iter()
        .enumerate()
        .map(|(i, input)| ((&*input.scenario, &*input.input), i))
        .collect()
}

fn columns(plan: &PlanRecord) -> HashMap<&str, usize> {
    plan.configurations
        .iter()
        .enumerate()
        .map(|(i, c)| (&*c.name, i))
        .collect()
}

/// The pairs outside the plan, sorted so that the order of writing does not show.
fn extra_pairs<'a>(set: &'a RunSet, warnings: &mut Vec<String>) -> Vec<InputPairs<'a>> {
    let plan = &set.manifest.plan;
    let mut inputs = no_pairs(plan);
    let (place, column) = (places(plan), columns(plan));
    let planned: BTreeSet<&str> = plan.runs.iter().map(|run| &*run.pair_id).collect();
    let mut records: Vec<&RunRecord> = set.sensitivity.iter().collect();
    records.sort_by_key(|r| {
        (
            &r.profile,
            r.repetition,
            &r.pair_id,
            &r.configuration,
            &r.run_id,
        )
    });
    let mut pairs: HashMap<(usize, &str), usize> = HashMap::new();
    for record in records {
        let spot = place.get(&(&*record.scenario, &*record.input));
        let (Some(&input), Some(&column), false) = (
            spot,
            column.get(&*record.configuration),
            planned.contains(&*record.pair_id),
        ) else {
            warnings.push(format!(
                "extra run {} fits nothing in the plan and is not used",
                plain(&record.run_id)
            ));
            continue;
        };
        let group = &mut inputs[input].pairs;
        let index = *pairs.entry((input, &*record.pair_id)).or_insert_with(|| {
            group.push(Pair {
                pair_id: &record.pair_id,
                profile: &record.profile,
                slots: vec![Slot::Missing; plan.configurations.len()],
                extra: true,
            });
            group.len() - 1
        });
        group[index].slots[column] = slot_of(record);
    }
    inputs
}

/// Whether a run let anything out.
pub(crate) fn leaks(record: &RunRecord) -> bool {
    record.files_written.is_some_and(|files| files > 0) || !record.leak_findings.is_empty()
}

fn find_leaks(set: &RunSet) -> (u64, Vec<Leak>) {
    let position: HashMap<&str, usize> = set
        .manifest
        .plan
        .runs
        .iter()
        .enumerate()
        .map(|(i, run)| (&*run.run_id, i))
        .collect();
    let mut found: Vec<&RunRecord> = set
        .runs
        .iter()
        .chain(&set.sensitivity)
        .filter(|record| leaks(record))
        .collect();
    found.sort_by_key(|record| {
        (
            position.get(&*record.run_id).copied().unwrap_or(usize::MAX),
            &record.run_id,
        )
    });
    found.dedup_by_key(|record| &record.run_id);
    let listed = found
        .iter()
        .take(LEAKS_LISTED)
        .map(|record| Leak {
            run_id: record.run_id.clone(),
            configuration: record.configuration.clone(),
            scenario: record.scenario.clone(),
            input: record.input.clone(),
            files_written: record.files_written,
            findings: record
                .leak_findings
                .iter()
                .take(FINDINGS_LISTED)
                .map(|f| plain(f))
                .collect(),
        })
        .collect();
    (found.len() as u64, listed)
}
