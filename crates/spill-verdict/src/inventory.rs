use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use spill_record::{
    ConfigurationRecord, InputRecord, Outcome, PlanRecord, PlannedRun, RunRecord, RunSet,
};

use crate::verdict::{Denominators, Leak};
use crate::words::{place, plain};

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

/// Cells that the plan names but does not fill, and ids that it uses twice.
fn plan_problems(plan: &PlanRecord) -> Vec<String> {
    let mut cells: HashMap<(&str, &str, &str), BTreeSet<u32>> = HashMap::new();
    let mut ids = BTreeSet::new();
    let mut problems = Vec::new();
    for run in &plan.runs {
        cells
            .entry((&run.scenario, &run.input, &run.configuration))
            .or_default()
            .insert(run.repetition);
        if !ids.insert(run.run_id.as_str()) {
            problems.push(format!("the plan names run {} twice", plain(&run.run_id)));
        }
    }
    for input in &plan.inputs {
        for configuration in &plan.configurations {
            let key = (&*input.scenario, &*input.input, &*configuration.name);
            let found = cells
                .remove(&key)
                .map_or(0, |repetitions| repetitions.len());
            if u32::try_from(found).ok() != Some(plan.repetitions) {
                problems.push(format!(
                    "the plan has {found} of {} repetitions of {} under {}",
                    plan.repetitions,
                    place(&input.scenario, &input.input),
                    plain(&configuration.name)
                ));
            }
        }
    }
    for (scenario, input, configuration) in cells.into_keys() {
        problems.push(format!(
            "the plan runs {} under {}, which it does not describe",
            place(scenario, input),
            plain(configuration)
        ));
    }
    problems
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

/// What the plan says about inputs and configurations, by name.
struct Known<'a> {
    inputs: HashMap<(&'a str, &'a str), &'a InputRecord>,
    configurations: HashMap<&'a str, &'a ConfigurationRecord>,
}

impl<'a> Known<'a> {
    fn of(plan: &'a PlanRecord) -> Self {
        Self {
            inputs: plan
                .inputs
                .iter()
                .map(|i| ((&*i.scenario, &*i.input), i))
                .collect(),
            configurations: plan.configurations.iter().map(|c| (&*c.name, c)).collect(),
        }
    }

    /// In what `record` contradicts the plan or itself, if in anything.
    fn contradiction(
        &self,
        subject: &str,
        planned: &PlannedRun,
        record: &RunRecord,
    ) -> Option<String> {
        let named = [
            ("pair", &planned.pair_id, &record.pair_id),
            ("scenario", &planned.scenario, &record.scenario),
            ("input", &planned.input, &record.input),
            (
                "configuration",
                &planned.configuration,
                &record.configuration,
            ),
            ("profile", &planned.profile, &record.profile),
        ];
        for (what, plan, found) in named {
            if plan != found {
                return Some(format!(
                    "its {what} is {}, the plan has {}",
                    plain(found),
                    plain(plan)
                ));
            }
        }
        if record.subject != subject {
            return Some(format!(
                "its subject is {}, the manifest has {}",
                plain(&record.subject),
                plain(subject)
            ));
        }
        if (planned.repetition, planned.seed) != (record.repetition, record.seed) {
            return Some(format!(
                "its repetition and seed are {} and {}, the plan has {} and {}",
                record.repetition, record.seed, planned.repetition, planned.seed
            ));
        }
        self.contradicts_description(record)
    }

    fn contradicts_description(&self, record: &RunRecord) -> Option<String> {
        let input = self.inputs.get(&(&*record.scenario, &*record.input))?;
        let configuration = self.configurations.get(&*record.configuration)?;
        if (&input.recipe, input.class) != (&record.recipe, record.class) {
            return Some(format!(
                "its recipe and class are {} and {}, the plan has {} and {}",
                plain(&record.recipe),
                record.class.as_str(),
                plain(&input.recipe),
                input.class.as_str()
            ));
        }
        if let Some(expected) = record.facts_expected
            && expected != input.facts.len() as u64
        {
            return Some(format!(
                "it was scored against {expected} facts, the plan has {}",
                input.facts.len()
            ));
        }
        unlike_settings(configuration, record.effective_settings.as_ref())
            .or_else(|| impossible_score(record))
    }
}

/// How the settings that the subject reports differ from what the configuration is labelled with.
fn unlike_settings(
    configuration: &ConfigurationRecord,
    settings: Option<&Value>,
) -> Option<String> {
    let settings = settings?;
    let enabled = settings.get("enabled").and_then(Value::as_bool);
    let threshold = settings.get("threshold_bytes").and_then(Value::as_u64);
    let unlike = enabled.is_some_and(|enabled| enabled != configuration.enabled)
        || (configuration.enabled
            && threshold.is_some()
            && threshold != configuration.threshold_bytes);
    unlike.then(|| {
        format!(
            "the subject ran with other settings than {} is labelled with",
            plain(&configuration.name)
        )
    })
}

/// A score outside its range, or unlike the counts it comes from.
fn impossible_score(record: &RunRecord) -> Option<String> {
    let counts = [
        ("facts", record.facts_expected, record.facts_found),
        (
            "end facts",
            record.end_facts_expected,
            record.end_facts_found,
        ),
    ];
    for (what, expected, found) in counts {
        if let (expected, Some(found)) = (expected.unwrap_or(0), found)
            && found > expected
        {
            return Some(format!("it found {found} of {expected} {what}"));
        }
    }
    let quality = record.quality?;
    let (Some(expected), Some(found)) = (record.facts_expected, record.facts_found) else {
        return Some("it has a quality without counts of facts".to_owned());
    };
    let close = (quality * expected as f64 - found as f64).abs() < 1e-6;
    (!close || expected == 0).then(|| format!("its quality is not {found} of {expected} facts"))
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
