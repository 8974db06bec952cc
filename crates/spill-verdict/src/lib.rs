//! Samples, estimates, rules, and the one [`Verdict`] that gives the exit code and every report.
//!
//! [`judge()`] takes what a run folder holds and accounts for every planned run (`inventory`),
//! compares each candidate with the control pair by pair (`rules`), and climbs the ladder of
//! candidates (`ladder`). In simulated mode every run is a function of its seed, so the rules are
//! judged literally; in live mode by intervals and margins ([`statistics`]). A rule holds on the planned number of pairs only; it is broken early only
//! where no absent run could change that.
//!
//! It reads records and rules alone: no answer key, no script of a mock, no clock. It does not
//! print or exit. No value is NaN, and a value that was not measured is `None`, never 0.
//!
//! A median of an even count is the mean of the two middle values.

mod rule;
mod verdict;

mod estimate;
pub mod exit;
pub mod statistics;
mod words;

mod contradiction;
mod inventory;

mod rules;

mod attainable;

mod ladder;

mod executions;
mod identity;
mod notes;

mod judge;
mod planted;
mod standing;

mod sweep;
mod table;

pub use attainable::attainable;
mod replay;

pub use executions::{EXECUTIONS_MEMORY_SLACK, control_of};

pub use estimate::{median, ratio, share};
pub use inventory::counted_records;
pub use judge::judge;
pub use replay::{
    Advice, AdviceKind, AdviceSummary, Gate, GateError, GateState, GateSummary, GateVerdict,
    LEAST_SESSIONS, ReplayFigure, ReplayJudgement, ReplaySummary, ReplayVariant, VariantSummary,
    advice, classless, focus, judge_replay, replay_exit_code, replay_summary,
    replay_summary_schema, replay_text, threshold_words, variant_words,
};
pub use rule::{Bound, Rule, State};
pub use rules::EVIDENCE_LIMIT;
pub use standing::standing;
pub use sweep::{
    Recommended, SWEEP_SCHEMA, Sweep, SweepCurve, SweepPoint, of_control, recommendation_line,
    stored_nothing_line, sweep, sweep_schema,
};
pub use table::{deciding_number, terminal_table};
pub use verdict::{
    Arms, CandidateVerdict, Decision, Denominators, Evidence, Figures, Interval, IntervalOf, Leak,
    PlantedFault, PlantedOutcome, ProfileCandidate, ProfileVerdict, Proposed, RuleVerdict, Shipped,
    TokenBasis, VERDICT_SCHEMA, Verdict, verdict_schema,
};
pub use words::{amount, counted, figure, figure_beside, grouped, harmless, percent, plain};
