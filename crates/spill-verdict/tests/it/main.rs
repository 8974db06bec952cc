//! Known records in, known verdicts out.

mod builder;
mod completeness;
mod ladder;
mod laws;
mod replay;
mod replay_builder;
mod rules;
mod text;
