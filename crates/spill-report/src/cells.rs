use std::collections::HashMap;

use spill_record::{
    ConfigurationRecord, ConfigurationRole, Cost, EndReason, InputRecord, ModelPrices, Money,
    Outcome, RunRecord, RunSet,
};
use spill_verdict::{counted_records, median, ratio, share};

use crate::durations::Durations;

/// The middle and the range of one figure over the runs that tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) n: u64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        Some(Self {
            median,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            n: values.len() as u64,
        })
    }
}

/// The records of one scenario × input × configuration that the verdict counted.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) input: &'a InputRecord,
    pub(crate) configuration: &'a ConfigurationRecord,
    pub(crate) planned: u64,
    /// What the tokens of its model cost, where a price table tells.
    pub(crate) prices: Option<&'a ModelPrices>,
    records: Vec<&'a RunRecord>,
}

/// All cells in plan order: inputs, and configurations within each.
pub(crate) fn cells(set: &RunSet) -> Vec<Cell<'_>> {
    let plan = &set.manifest.plan;
    let mut cells = Vec::new();
    let mut places = HashMap::new();
    for input in &plan.inputs {
        let model = plan.models.iter().find(|m| m.scenario == input.scenario);
        let prices = set.prices.as_ref().zip(model);
        let prices = prices.and_then(|(prices, model)| prices.of(&model.model));
        for configuration in &plan.configurations {
            places.insert(
                (&*input.scenario, &*input.input, &*configuration.name),
                cells.len(),
            );
            cells.push(Cell {
                input,
                configuration,
                planned: 0,
                prices,
                records: Vec::new(),
            });
        }
    }
    for (run, record) in plan.runs.iter().zip(counted_records(set)) {
        let place = places.get(&(&*run.scenario, &*run.input, &*run.configuration));
        let Some(&index) = place else { continue };
        let cell: &mut Cell<'_> = &mut cells[index];
        cell.planned += 1;
        cell.records.extend(record);
    }
    cells
}

impl<'a> Cell<'a> {
    fn count(&self, outcome: Outcome) -> u64 {
        self.records
            .iter()
            .filter(|record| record.outcome == outcome)
            .count() as u64
    }

    pub(crate) fn succeeded(&self) -> u64 {
        self.count(Outcome::Succeeded)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.count(Outcome::Failed)
    }

    pub(crate) fn finished(&self) -> u64 {
        self.succeeded() + self.failed()
    }

    pub(crate) fn infrastructure(&self) -> u64 {
        self.count(Outcome::Infrastructure)
    }

    pub(crate) fn missing(&self) -> u64 {
        self.planned - self.records.len() as u64
    }

    pub(crate) fn success_rate(&self) -> Option<f64> {
        share(self.succeeded(), self.finished())
    }

    pub(crate) fn is_control(&self) -> bool {
        self.configuration.role == ConfigurationRole::Control
    }

    /// Spread of a part of what the finished runs cost; `None` without prices.
    pub(crate) fn money(&self, pick: fn(Cost) -> Money) -> Option<Spread> {
        let costs = self.finished_records().filter_map(|run| self.cost(run));
        let amounts: Vec<f64> = costs.map(|cost| pick(cost).to_f64()).collect();
        Spread::of(&amounts)
    }

    /// What a run of this cell costs; `None` without prices, or where its tokens are not all known.
    pub(crate) fn cost(&self, run: &RunRecord) -> Option<Cost> {
        Some(self.prices?.cost(run.tokens()?))
    }

    /// Success rate with the runs that the harness lost counted as failures.
    pub(crate) fn success_rate_at_least(&self) -> Option<f64> {
        share(self.succeeded(), self.finished() + self.infrastructure())
    }

    /// Pairs of which both runs finished: `control`'s and this cell's, by repetition.
    pub(crate) fn paired_with(&self, control: &Cell<'a>) -> Vec<(&'a RunRecord, &'a RunRecord)> {
        let off: HashMap<u32, &RunRecord> = control
            .finished_records()
            .map(|record| (record.repetition, record))
            .collect();
        self.finished_records()
            .filter_map(|record| Some((*off.get(&record.repetition)?, record)))
            .collect()
    }

    /// Every counted record of the cell, lost ones included.
    pub(crate) fn records(&self) -> &[&'a RunRecord] {
        &self.records
    }

    fn finished_records(&self) -> impl Iterator<Item = &'a RunRecord> {
        self.records
            .iter()
            .copied()
            .filter(|record| record.outcome != Outcome::Infrastructure)
    }

    /// Spread of a count over the finished runs that tell it.
    pub(crate) fn spread(&self, pick: fn(&RunRecord) -> Option<u64>) -> Option<Spread> {
        let values: Vec<f64> = self
            .finished_records()
            .filter_map(|record| Some(pick(record)? as f64))
            .collect();
        Spread::of(&values)
    }

    /// Median of a count over that of `control`, over the repetitions that finished in both cells
    /// and tell it; `None` when one of those does not tell it.
    pub(crate) fn ratio_to(
        &self,
        control: &Cell<'_>,
        pick: fn(&RunRecord) -> Option<u64>,
    ) -> Option<f64> {
        self.ratio_by(control, |record| Some(pick(record)? as f64))
    }

    /// As [`Cell::ratio_to`], for what a run costs.
    pub(crate) fn money_ratio_to(&self, control: &Cell<'_>) -> Option<f64> {
        self.ratio_by(control, |record| Some(self.cost(record)?.total().to_f64()))
    }

    fn ratio_by(
        &self,
        control: &Cell<'_>,
        pick: impl Fn(&RunRecord) -> Option<f64>,
    ) -> Option<f64> {
        let off: HashMap<u32, &RunRecord> = control
            .finished_records()
            .map(|record| (record.repetition, record))
            .collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for record in self.finished_records() {
            let Some(other) = off.get(&record.repetition) else {
                continue;
            };
            ours.push(pick(record)?);
            theirs.push(pick(other)?);
        }
        ratio(median(&ours), median(&theirs))
    }

    /// Sum of a count over the finished runs; `None` when none of them tells it.
    pub(crate) fn total(&self, pick: fn(&RunRecord) -> Option<u64>) -> Option<u64> {
        self.finished_records()
            .filter_map(pick)
            .reduce(u64::saturating_add)
    }

    /// Mean share `found / expected` over the finished runs that were scored, with its range.
    pub(crate) fn coverage(
        &self,
        pick: fn(&RunRecord) -> (Option<u64>, Option<u64>),
    ) -> Option<Spread> {
        let shares: Vec<f64> = self
            .finished_records()
            .filter_map(|record| match pick(record) {
                (Some(found), Some(expected)) => share(found, expected),
                (None, _) | (_, None) => None,
            })
            .collect();
        let spread = Spread::of(&shares)?;
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        Some(Spread {
            median: mean,
            ..spread
        })
    }

    /// Finished runs that used up their iterations.
    pub(crate) fn limit_hits(&self) -> u64 {
        let hit = |record: &&RunRecord| {
            record.end_reason == EndReason::IterationLimit
                || record.hit_iteration_limit == Some(true)
        };
        self.finished_records().filter(hit).count() as u64
    }

    /// Durations of the steps that succeeded.
    pub(crate) fn durations(&self) -> Durations {
        let succeeded = self
            .records
            .iter()
            .filter(|record| record.outcome == Outcome::Succeeded);
        Durations::collect(succeeded.filter_map(|record| record.duration_ms))
    }

    /// Times of the steps that succeeded on the latency model's clock; none without one.
    pub(crate) fn model_times(&self) -> Durations {
        let succeeded = self
            .records
            .iter()
            .filter(|record| record.outcome == Outcome::Succeeded);
        Durations::collect(succeeded.filter_map(|record| record.model_time_ms))
    }

    /// Recorded runs, lost ones included, that wrote a file or let content out.
    pub(crate) fn leaking(&self) -> u64 {
        let leaks = |record: &&&RunRecord| {
            record.files_written.is_some_and(|files| files > 0) || !record.leak_findings.is_empty()
        };
        self.records.iter().filter(leaks).count() as u64
    }
}

/// Facts found and expected.
pub(crate) fn facts(record: &RunRecord) -> (Option<u64>, Option<u64>) {
    (record.facts_found, record.facts_expected)
}

/// Facts of the end found and expected.
pub(crate) fn end_facts(record: &RunRecord) -> (Option<u64>, Option<u64>) {
    (record.end_facts_found, record.end_facts_expected)
}

/// Facts that a large result carries, found and expected.
pub(crate) fn large_facts(record: &RunRecord) -> (Option<u64>, Option<u64>) {
    (
        record.large_file_facts_found,
        record.large_file_facts_expected,
    )
}
