use std::sync::Arc;

use spill_record::{PlanRecord, PlannedRun, Stage};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::ScenarioError;
use crate::scenario::Scenario;
use crate::served::ServedInput;

/// What a plan depends on beside its scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// The seed from which all others are derived.
    pub base_seed: u64,
    /// Quick or full.
    pub stage: Stage,
    /// Repetitions of each cell in place of the stage's number.
    pub repetitions: Option<u32>,
}

/// What is run, in which order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The plan as a manifest holds it; runs are in plan order.
    pub record: PlanRecord,
    /// Hash over everything that a result can depend on; 16 hex digits.
    pub plan_hash: String,
    /// What it was made with.
    pub options: PlanOptions,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// What the tools serve, one entry per `record.inputs`.
    pub served: Vec<Arc<ServedInput>>,
    /// Indices into `record.runs`: pairs in seeded order, the runs of a pair next to each other,
    /// in seeded order too.
    pub execution_order: Vec<usize>,
}

/// Expands scenarios into a plan.
///
/// # Errors
///
/// When the scenarios do not fit into one plan or the plan is larger than they allow.
pub fn expand(scenarios: Vec<Scenario>, options: PlanOptions) -> Result<Plan, ScenarioError> {
    let _ = (&scenarios, options);
    Err(ScenarioError::Plan {
        problem: "not built yet".into(),
        way_out: String::new(),
    })
}

/// Returns the runs of the extra pairs that show the decision under each pure profile: for each
/// input and each profile that none of its repetitions drew, one pair, in plan order.
#[must_use]
pub fn sensitivity_runs(plan: &Plan) -> Vec<PlannedRun> {
    let _ = plan;
    Vec::new()
}

/// A number in `0.0..1.0` that depends on seed and purpose alone.
pub(crate) fn unit_interval(seed: u64, purpose: &str) -> f64 {
    let bits = xxh3_64_with_seed(purpose.as_bytes(), seed) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let numerator = bits as f64;
    numerator / 9_007_199_254_740_992.0
}
