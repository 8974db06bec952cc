use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use spill_record::{CallRecord, ConfigurationRole, RunSet, ToolResultForm};
use spill_verdict::{EVIDENCE_LIMIT, Rule, State, Verdict};

use crate::pairs::place;

/// Runs whose timelines a report holds.
const TIMELINES: usize = 8;

/// What a report needs of `calls.jsonl`: of bounded size, whatever the number of runs.
///
/// It names the runs whose calls it wants, and takes them one at a time; a report without them says
/// *not measured* where they would stand.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Input of every run of the control, by run id.
    control: HashMap<String, usize>,
    /// Runs whose timelines are shown, in the order that they are shown.
    shown: Vec<String>,
    wanted: BTreeSet<String>,
    timelines: BTreeMap<String, Vec<CallRecord>>,
    inputs: Vec<String>,
    /// Per input: how many results of the control have how many bytes.
    sizes: Vec<BTreeMap<u64, u64>>,
}

impl Calls {
    /// Picks the runs of the control and those that decided rules, of which no call is known yet.
    #[must_use]
    pub fn of(set: &RunSet, verdict: &Verdict) -> Self {
        Self::picked(set, deciding_runs(verdict))
    }

    fn picked(set: &RunSet, shown: Vec<String>) -> Self {
        let plan = &set.manifest.plan;
        let controls: BTreeSet<&str> = plan
            .configurations
            .iter()
            .filter(|configuration| configuration.role == ConfigurationRole::Control)
            .map(|configuration| &*configuration.name)
            .collect();
        let places: HashMap<(&str, &str), usize> = plan
            .inputs
            .iter()
            .enumerate()
            .map(|(index, input)| ((&*input.scenario, &*input.input), index))
            .collect();
        let runs = plan.runs.iter();
        let control = runs
            .filter(|run| controls.contains(&*run.configuration))
            .filter_map(|run| {
                let index = places.get(&(&*run.scenario, &*run.input))?;
                Some((run.run_id.clone(), *index))
            });
        Self {
            control: control.collect(),
            wanted: shown.iter().cloned().collect(),
            shown,
            timelines: BTreeMap::new(),
            inputs: plan
                .inputs
                .iter()
                .map(|input| place(&input.scenario, &input.input))
                .collect(),
            sizes: vec![BTreeMap::new(); plan.inputs.len()],
        }
    }

    /// Picks the runs of the control alone.
    #[must_use]
    pub fn of_control(set: &RunSet) -> Self {
        Self::picked(set, Vec::new())
    }

    /// The runs whose calls are wanted.
    #[must_use]
    pub fn wanted(&self) -> HashSet<String> {
        self.wanted
            .iter()
            .chain(self.control.keys())
            .cloned()
            .collect()
    }

    /// Takes one call, in the order in which a run made them.
    pub fn take(&mut self, call: CallRecord) {
        if let Some(sizes) = self
            .control
            .get(&call.run_id)
            .and_then(|i| self.sizes.get_mut(*i))
        {
            for result in &call.new_results {
                match result.form {
                    ToolResultForm::Inline => {
                        *sizes.entry(result.prompt_bytes).or_insert(0) += 1;
                    }
                    ToolResultForm::Preview
                    | ToolResultForm::Slice
                    | ToolResultForm::Error
                    | ToolResultForm::Cut => {}
                }
            }
        }
        if self.wanted.contains(&call.run_id) {
            self.timelines
                .entry(call.run_id.clone())
                .or_default()
                .push(call);
        }
    }

    /// The calls of the runs that are shown, in the order that they are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&str, &[CallRecord])> {
        self.shown
            .iter()
            .filter_map(|id| Some((&**id, &**self.timelines.get(id)?)))
    }

    /// Sizes of the control's whole results by input: bytes and how many have them.
    pub(crate) fn result_sizes(&self) -> Vec<(&str, &BTreeMap<u64, u64>)> {
        let inputs = self.inputs.iter().map(String::as_str);
        inputs
            .zip(&self.sizes)
            .filter(|(_, sizes)| !sizes.is_empty())
            .collect()
    }
}

/// Runs of the pairs that are evidence in each rule's deciding row, broken ones first.
fn deciding_runs(verdict: &Verdict) -> Vec<String> {
    let mut rows: Vec<_> = verdict
        .candidates
        .iter()
        .flat_map(|candidate| {
            Rule::ALL
                .into_iter()
                .filter_map(|rule| candidate.deciding(rule))
        })
        .collect();
    rows.sort_by_key(|row| u8::from(row.state != State::Broken));
    let mut ids: Vec<String> = Vec::new();
    // The worst pair of every rule, then the next ones.
    for depth in 0..EVIDENCE_LIMIT {
        for evidence in rows.iter().filter_map(|row| row.evidence.get(depth)) {
            let pair = [Some(&evidence.run_id), evidence.control_run_id.as_ref()];
            for id in pair.into_iter().flatten() {
                if !ids.contains(id) && ids.len() < TIMELINES {
                    ids.push(id.clone());
                }
            }
        }
    }
    ids
}
