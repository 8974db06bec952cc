use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spill_record::{
    Class, ReplayFigures, ReplayFiles, ReplayRecord, ReplaySums, ReplayTotals, SCHEMA, schema_text,
};

use super::advice::{Advice, AdviceKind, advice};
use super::gate::{Gate, GateError, GateState, GateVerdict};
use super::outcome::replay_exit_code;

/// `summary.json` of a replay folder: what the replay comes to, for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySummary {
    /// Version of the record format.
    pub schema: u32,
    /// The folder's name.
    pub replay_id: String,
    /// The program's exit code.
    pub exit_code: u8,
    /// Transcripts.
    pub sessions: u64,
    /// What became of the files.
    pub files: ReplayFiles,
    /// What could not be understood, all kinds together.
    pub problems: u64,
    /// Results that were sent.
    pub sent_results: u64,
    /// Results that the recording agents had cut or stored.
    pub incomplete_results: u64,
    /// All inputs as recorded.
    pub as_recorded: ReplayFigures,
    /// All inputs under each variant, in the order of the replay.
    pub variants: Vec<VariantSummary>,
    /// Which thresholds the transcripts speak for.
    pub advice: Vec<AdviceSummary>,
    /// The gates.
    pub gates: Vec<GateSummary>,
}

/// One policy with threshold, size of replacements and read-back assumption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// The policy.
    pub policy: String,
    /// Its threshold.
    pub threshold_bytes: u64,
    /// The most bytes of a replacement; `None` is the policy's own.
    pub replacement_bytes: Option<u64>,
    /// The read-back assumption.
    pub read_back: String,
    /// Results that are replaced.
    pub replaced_results: u64,
    /// Of these, the ones whose hidden part the model later repeated.
    pub used_results: u64,
    /// Input tokens less than as recorded; negative when there are more.
    pub saved_input_tokens: i64,
    /// Their share of all input tokens; `None` when there are none.
    pub saved_input_share: Option<f64>,
    /// Money less than as recorded; `None` where it is not known of all transcripts.
    pub saved_cost: Option<f64>,
    /// All inputs.
    pub figures: ReplayFigures,
}

/// A recommendation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AdviceSummary {
    /// The class of work; `None` for all transcripts together.
    pub class: Option<Class>,
    /// Its transcripts.
    pub sessions: u64,
    /// The policy.
    pub policy: String,
    /// The most bytes of a replacement; `None` is the policy's own.
    pub replacement_bytes: Option<u64>,
    /// `threshold`, `off` or `nothing_to_replace`.
    pub kind: String,
    /// The threshold, where one is advised.
    pub threshold_bytes: Option<u64>,
    /// The assumption that it rests on.
    pub read_back: String,
    /// Whether there are too few transcripts for more than an indication.
    pub is_indication: bool,
    /// Why.
    pub reason: String,
}

/// A gate and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateSummary {
    /// The expression.
    pub gate: String,
    /// `holds`, `broken` or `not_proven`.
    pub state: String,
    /// The figure in the limit's unit; `None` where it is not known.
    pub observed: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// The variant, and why nothing is proven where it is not.
    pub words: String,
}

/// Everything that follows from a replay's record and its sums.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayJudgement {
    /// The gates.
    pub gates: Vec<GateVerdict>,
    /// The recommendations.
    pub advice: Vec<Advice>,
    /// The exit code.
    pub exit_code: u8,
}

/// Judges a replay: the gates that its record names, the recommendations, and the exit code.
///
/// # Errors
///
/// [`GateError`] when a gate of the record is not one.
pub fn judge_replay(
    record: &ReplayRecord,
    totals: &ReplayTotals,
) -> Result<ReplayJudgement, GateError> {
    let gates = record.gates.iter();
    let gates: Vec<GateVerdict> = gates
        .map(|gate| Gate::parse(gate)?.judge(record, &totals.all))
        .collect::<Result<_, _>>()?;
    Ok(ReplayJudgement {
        exit_code: replay_exit_code(record, &totals.all, &gates),
        advice: advice(record, totals),
        gates,
    })
}

/// `summary.json`.
#[must_use]
pub fn replay_summary(
    record: &ReplayRecord,
    totals: &ReplayTotals,
    judgement: &ReplayJudgement,
) -> ReplaySummary {
    let all = &totals.all;
    ReplaySummary {
        schema: SCHEMA,
        replay_id: record.replay_id.clone(),
        exit_code: judgement.exit_code,
        sessions: all.sessions,
        files: record.files,
        problems: record.problems.values().sum(),
        sent_results: all.sent_results,
        incomplete_results: all.incomplete_results,
        as_recorded: all.as_recorded,
        variants: variants(record, all),
        advice: judgement.advice.iter().map(AdviceSummary::of).collect(),
        gates: judgement.gates.iter().map(GateSummary::of).collect(),
    }
}

/// The schema of `summary.json`: the name it is published under, and its text.
#[must_use]
pub fn replay_summary_schema() -> (&'static str, String) {
    (
        "replay-summary.schema.json",
        schema_text::<ReplaySummary>("summary.json of a replay folder"),
    )
}

/// A figure less than another, as far as a signed number goes.
pub(crate) fn less(before: u64, after: u64) -> i64 {
    let signed = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
    signed(before) - signed(after)
}

fn variants(record: &ReplayRecord, all: &ReplaySums) -> Vec<VariantSummary> {
    let base = &all.as_recorded;
    let mut variants = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        let sums = all.cells.get(index).copied().unwrap_or_default();
        for (number, read_back) in record.read_backs.iter().enumerate() {
            let figures = all.outcomes.get(record.outcome_index(index, number));
            let figures = figures.copied().unwrap_or_default();
            let saved = less(base.input_tokens, figures.input_tokens);
            let priced = all.unpriced_sessions == 0;
            let costs = base.input_cost.zip(figures.input_cost);
            variants.push(VariantSummary {
                policy: cell.policy.clone(),
                threshold_bytes: cell.threshold_bytes,
                replacement_bytes: cell.replacement_bytes,
                read_back: read_back.clone(),
                replaced_results: sums.replaced_results,
                used_results: sums.used_results,
                saved_input_tokens: saved,
                saved_input_share: (base.input_tokens > 0)
                    .then(|| saved as f64 / base.input_tokens as f64),
                saved_cost: costs
                    .filter(|_| priced)
                    .map(|(before, after)| before - after),
                figures,
            });
        }
    }
    variants
}

impl AdviceSummary {
    fn of(advice: &Advice) -> Self {
        let (kind, threshold_bytes) = match advice.kind {
            AdviceKind::Threshold { bytes, .. } => ("threshold", Some(bytes)),
            AdviceKind::Off => ("off", None),
            AdviceKind::NothingToReplace => ("nothing_to_replace", None),
        };
        Self {
            class: advice.class,
            sessions: advice.sessions,
            policy: advice.policy.clone(),
            replacement_bytes: advice.replacement_bytes,
            kind: kind.to_owned(),
            threshold_bytes,
            read_back: advice.read_back.clone(),
            is_indication: advice.is_indication,
            reason: advice.reason.clone(),
        }
    }
}

impl GateSummary {
    fn of(gate: &GateVerdict) -> Self {
        let state: GateState = gate.state;
        Self {
            gate: gate.gate.clone(),
            state: state.as_str().to_owned(),
            observed: gate.observed,
            limit: gate.limit,
            words: gate.words.clone(),
        }
    }
}
