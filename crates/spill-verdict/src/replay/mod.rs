//! What a replay of recorded transcripts comes to: whether it holds what was asked of it, and which threshold it speaks for.

mod advice;
mod expression;
mod figure;
mod gate;
mod outcome;
mod summary;
mod table;

pub use advice::{Advice, AdviceKind, LEAST_SESSIONS, advice, focus};
pub use figure::{ReplayFigure, ReplayVariant};
pub use gate::{Gate, GateError, GateState, GateVerdict};
pub use outcome::replay_exit_code;
pub use summary::{
    AdviceSummary, GateSummary, ReplayJudgement, ReplaySummary, VariantSummary, judge_replay,
    replay_summary, replay_summary_schema,
};
pub use table::{classless, replay_text, threshold_words, variant_words};
