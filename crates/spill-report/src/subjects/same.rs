//! Whether the figures of several folders may be held against each other.

use std::collections::{BTreeMap, BTreeSet};

use spill_record::{EndpointRecord, InputRecord, Mode, ModelRecord, PlanRecord, RunSet};

use super::SubjectRuns;
use crate::pairs::place;

/// Two folders whose figures say nothing beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotComparable {
    /// Places of the two folders among those given.
    pub folders: (usize, usize),
    /// What differs, and on which input.
    pub words: String,
}

/// Checks each folder against the first that has the same input, and that something can be compared at all.
pub(super) fn check(folders: &[SubjectRuns<'_>]) -> Result<(), NotComparable> {
    let mut first: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut shown: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    let mut shared = false;
    for (index, folder) in folders.iter().enumerate() {
        let manifest = &folder.set.manifest;
        for input in &manifest.plan.inputs {
            let key = (&*input.scenario, &*input.input);
            let refuse = |other, what: &str| NotComparable {
                folders: (other, index),
                words: format!("{what} of {}", place(key.0, key.1)),
            };
            if let Some(other) = shown.insert((key.0, key.1, &manifest.subject), index) {
                return Err(refuse(other, "they both hold runs with the same subject"));
            }
            let other = *first.entry(key).or_insert(index);
            if other == index {
                continue;
            }
            shared = true;
            if let Some(what) = difference(folders[other].set, folder.set, key) {
                return Err(refuse(other, what));
            }
        }
    }
    if shared {
        return Ok(());
    }
    Err(NotComparable {
        folders: (0, folders.len().saturating_sub(1)),
        words: "no input was run with two of the subjects".to_owned(),
    })
}

/// What differs in how the input `key` was given, in words that "of …" may follow.
fn difference(a: &RunSet, b: &RunSet, key: (&str, &str)) -> Option<&'static str> {
    let (ours, theirs) = (Given::of(a, key), Given::of(b, key));
    let (a, b) = (&a.manifest.versions, &b.manifest.versions);
    let parts = [
        ("other versions of the program made the runs", a == b),
        (
            "the model server or the model differs in the runs",
            ours.answers == theirs.answers,
        ),
        (
            "the tools served another content",
            ours.input == theirs.input,
        ),
        (
            "the simulated model or the limits differ in the runs",
            ours.model == theirs.model,
        ),
        (
            "seeds, profiles or repetitions differ in the runs",
            ours.draws == theirs.draws,
        ),
    ];
    parts
        .into_iter()
        .find_map(|(what, same)| (!same).then_some(what))
}

/// All that a subject is given with an input, beside its own configurations.
struct Given<'a> {
    answers: (Mode, Option<&'a EndpointRecord>),
    input: Option<&'a InputRecord>,
    /// Without the timeouts, which a subject may bring.
    model: Option<ModelRecord>,
    draws: BTreeSet<(u32, u64, &'a str)>,
}

impl<'a> Given<'a> {
    fn of(set: &'a RunSet, key: (&str, &str)) -> Self {
        let plan = &set.manifest.plan;
        let is_key = |scenario: &str, input: &str| (scenario, input) == key;
        let input = plan
            .inputs
            .iter()
            .find(|one| is_key(&one.scenario, &one.input));
        let runs = plan.runs.iter();
        let runs = runs.filter(|run| is_key(&run.scenario, &run.input));
        Self {
            answers: (set.manifest.mode, set.manifest.endpoint.as_ref()),
            input,
            model: model(plan, key.0),
            draws: runs
                .map(|run| (run.repetition, run.seed, &*run.profile))
                .collect(),
        }
    }
}

fn model(plan: &PlanRecord, scenario: &str) -> Option<ModelRecord> {
    let model = plan.models.iter().find(|one| one.scenario == scenario)?;
    Some(ModelRecord {
        step_timeout_ms: 0,
        run_timeout_ms: 0,
        ..model.clone()
    })
}
