//! What each setting of a sweep costs and gives, and which of them to take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spill_record::{Class, ConfigurationRole, InputRecord, Outcome, RunRecord, RunSet};

use crate::estimate::{median, share};
use crate::inventory::counted_records;
use crate::words::{amount, percent, plain};

/// Version of `sweep.json`.
pub const SWEEP_SCHEMA: u32 = 1;

/// One setting on one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// The configuration's name.
    pub configuration: String,
    /// Its threshold; `None` when nothing is stored.
    pub threshold_bytes: Option<u64>,
    /// Share of the limit that a preview may fill, where the sweep set it.
    pub preview_share: Option<f64>,
    /// Finished runs.
    pub runs: u64,
    /// Of those, the ones that were not made, since the control's run is known to be the same.
    pub same_as_control: u64,
    /// Of the finished runs, the share that succeeded.
    pub success_rate: Option<f64>,
    /// Median input tokens of a run.
    pub input_tokens: Option<f64>,
    /// Median iterations of a run.
    pub iterations: Option<f64>,
    /// Mean quality.
    pub quality: Option<f64>,
    /// Results stored, over all runs.
    pub results_persisted: Option<u64>,
    /// Bytes that reads returned over the distinct ones among them; `None` where nothing was read.
    pub read_amplification: Option<f64>,
    /// Whether no other setting is better in one of tokens, success and quality and worse in none.
    pub on_front: bool,
}

/// All settings on one input, and the one to take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCurve {
    /// The scenario's name.
    pub scenario: String,
    /// The input's name.
    pub input: String,
    /// Its class.
    pub class: Class,
    /// Settings in plan order, the control first.
    pub points: Vec<SweepPoint>,
    /// The recommended setting; `None` where no run of any finished.
    pub recommended: Option<Recommended>,
}

/// The setting to take on one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommended {
    /// The configuration's name.
    pub configuration: String,
    /// Its threshold; `None` when nothing is to be stored.
    pub threshold_bytes: Option<u64>,
    /// Why.
    pub words: String,
    /// The next best setting that costs something else; `None` where there is none.
    pub runner_up: Option<String>,
    /// By how much more input tokens it costs, as a share.
    pub runner_up_costs_more: Option<f64>,
}

/// `sweep.json`: settings against cost and quality, an input at a time; classes of work are never
/// averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Version of this format.
    pub schema: u32,
    /// Hash of the plan.
    pub plan_hash: String,
    /// Planned runs without a usable record.
    pub missing: u64,
    /// One curve an input, in plan order.
    pub curves: Vec<SweepCurve>,
}

/// The JSON Schema of `sweep.json`: the name that it is published under, and its text.
#[must_use]
pub fn sweep_schema() -> (&'static str, String) {
    (
        "sweep.schema.json",
        spill_record::schema_text::<Sweep>("sweep.json of a spillgate sweep"),
    )
}

/// Reads the curves off a sweep's records.
///
/// The recommended setting is, among those whose success rate and quality are not lower than the
/// control's, the one with the fewest median input tokens; of equal ones the control, then the
/// highest threshold, which changes least.
#[must_use]
pub fn sweep(set: &RunSet) -> Sweep {
    let records = counted_records(set);
    let plan = &set.manifest.plan;
    let curves = plan
        .inputs
        .iter()
        .map(|input| curve(set, input, &records))
        .collect();
    Sweep {
        schema: SWEEP_SCHEMA,
        plan_hash: set.manifest.plan_hash.clone(),
        missing: records.iter().filter(|record| record.is_none()).count() as u64,
        curves,
    }
}

fn curve(set: &RunSet, input: &InputRecord, records: &[Option<&RunRecord>]) -> SweepCurve {
    let plan = &set.manifest.plan;
    let mut configurations: Vec<_> = plan.configurations.iter().collect();
    configurations.sort_by_key(|one| one.role != ConfigurationRole::Control);
    let mut points: Vec<SweepPoint> = configurations
        .into_iter()
        .map(|one| {
            let runs: Vec<&RunRecord> = records
                .iter()
                .flatten()
                .copied()
                .filter(|run| {
                    (&run.scenario, &run.input) == (&input.scenario, &input.input)
                        && run.configuration == one.name
                        && run.outcome != Outcome::Infrastructure
                })
                .collect();
            let threshold = one.threshold_bytes.filter(|_| one.enabled);
            point(&one.name, threshold, one.preview_share, &runs)
        })
        .collect();
    let dominated: Vec<bool> = points
        .iter()
        .map(|one| points.iter().any(|other| dominates(other, one)))
        .collect();
    for (point, dominated) in points.iter_mut().zip(dominated) {
        point.on_front = point.input_tokens.is_some() && !dominated;
    }
    SweepCurve {
        scenario: input.scenario.clone(),
        input: input.input.clone(),
        class: input.class,
        recommended: recommend(&points, plan.rules.quality_allowance),
        points,
    }
}

fn point(
    configuration: &str,
    threshold_bytes: Option<u64>,
    preview_share: Option<f64>,
    runs: &[&RunRecord],
) -> SweepPoint {
    let of = |pick: fn(&RunRecord) -> Option<u64>| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| pick(run).map(|n| n as f64)).collect();
        values.and_then(|values| median(&values))
    };
    let total = |pick: fn(&RunRecord) -> Option<u64>| -> Option<u64> {
        runs.iter().map(|run| pick(run)).sum()
    };
    let won = |run: &&&RunRecord| run.outcome == Outcome::Succeeded;
    let qualities: Option<Vec<f64>> = runs.iter().map(|run| run.quality).collect();
    let qualities = qualities.filter(|values| !values.is_empty());
    let (read, again) = (total(|r| r.read_bytes), total(|r| r.reread_bytes));
    let distinct = read
        .zip(again)
        .and_then(|(read, again)| read.checked_sub(again));
    SweepPoint {
        configuration: configuration.to_owned(),
        threshold_bytes,
        preview_share,
        runs: runs.len() as u64,
        same_as_control: runs.iter().filter(|run| run.same_as.is_some()).count() as u64,
        success_rate: share(runs.iter().filter(won).count() as u64, runs.len() as u64),
        input_tokens: of(|run| run.input_tokens),
        iterations: of(|run| run.iterations),
        quality: qualities.map(|values| values.iter().sum::<f64>() / values.len() as f64),
        results_persisted: total(|run| run.results_persisted),
        read_amplification: read.zip(distinct).and_then(|(read, all)| share(read, all)),
        on_front: false,
    }
}

/// Whether `a` is better than `b` in one of tokens, success and quality and worse in none.
fn dominates(a: &SweepPoint, b: &SweepPoint) -> bool {
    let (Some(a_tokens), Some(b_tokens)) = (a.input_tokens, b.input_tokens) else {
        return false;
    };
    // A quality that was not measured takes no part.
    let gains = |pick: fn(&SweepPoint) -> Option<f64>| match (pick(a), pick(b)) {
        (Some(a), Some(b)) => a - b,
        (None, _) | (_, None) => 0.0,
    };
    let gains = [
        b_tokens - a_tokens,
        gains(|point| point.success_rate),
        gains(|point| point.quality),
    ];
    gains.iter().all(|gain| *gain >= 0.0) && gains.iter().any(|gain| *gain > 0.0)
}

fn recommend(points: &[SweepPoint], allowance: f64) -> Option<Recommended> {
    let control = points.first()?;
    let off_tokens = control.input_tokens?;
    let keeps = |point: &&SweepPoint| {
        let quality = match (point.quality, control.quality) {
            (Some(on), Some(off)) => on + 1e-9 >= off - allowance,
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        quality && point.success_rate >= control.success_rate && point.input_tokens.is_some()
    };
    let mut kept: Vec<&SweepPoint> = points.iter().filter(keeps).collect();
    let threshold = |point: &SweepPoint| point.threshold_bytes.unwrap_or(u64::MAX);
    let tokens = |point: &SweepPoint| point.input_tokens.unwrap_or(f64::INFINITY);
    kept.sort_by(|a, b| {
        tokens(a)
            .total_cmp(&tokens(b))
            .then_with(|| threshold(b).cmp(&threshold(a)))
    });
    let best = *kept.first()?;
    let best_tokens = tokens(best);
    let next = kept.iter().find(|point| tokens(point) > best_tokens);
    let left_out = points.len() - kept.len();
    let mut words = if best.threshold_bytes.is_none() {
        "no setting costs fewer input tokens than storing nothing".to_owned()
    } else {
        format!(
            "{} against {} median input tokens, {} of the control's",
            amount(best_tokens),
            amount(off_tokens),
            percent(best_tokens / off_tokens)
        )
    };
    if let Some(next) = next {
        words = format!(
            "{words}; {} is next with {} more",
            plain(&next.configuration),
            percent(tokens(next) / best_tokens - 1.0)
        );
    }
    if left_out > 0 {
        words = format!("{words}; {left_out} lose success or quality against the control");
    }
    Some(Recommended {
        configuration: best.configuration.clone(),
        threshold_bytes: best.threshold_bytes,
        words,
        runner_up: next.map(|point| point.configuration.clone()),
        runner_up_costs_more: next
            .map(|point| tokens(point) / best_tokens - 1.0)
            .filter(|more| more.is_finite()),
    })
}

/// The curve's figure at a point, for tables: tokens over the control's.
#[must_use]
pub fn of_control(curve: &SweepCurve, point: &SweepPoint) -> Option<f64> {
    let off = curve.points.first()?.input_tokens?;
    crate::estimate::ratio(point.input_tokens, Some(off))
}

/// Which settings stored nothing, in one line; `None` where each of them stored something. The control is none of them.
#[must_use]
pub fn stored_nothing_line(curve: &SweepCurve) -> Option<String> {
    let settings = curve.points.iter().skip(1);
    let nothing: Vec<String> = settings
        .filter(|point| point.results_persisted == Some(0))
        .map(|point| plain(&point.configuration))
        .collect();
    let place = crate::words::place(&curve.scenario, &curve.input);
    (!nothing.is_empty())
        .then(|| format!("{place}: stored nothing, as off: {}", nothing.join(", ")))
}

/// The recommendation in one line, such as `review/large: 32KiB: …`.
#[must_use]
pub fn recommendation_line(curve: &SweepCurve) -> String {
    let place = crate::words::place(&curve.scenario, &curve.input);
    match &curve.recommended {
        None => format!("{place}: no run of the control finished"),
        Some(one) => format!("{place}: {}: {}", plain(&one.configuration), one.words),
    }
}
