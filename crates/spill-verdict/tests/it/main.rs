//! Known records in, known verdicts out.

mod builder;
mod completeness;
mod faults;
mod ladder;
mod laws;
mod live;
mod planted;
mod replay;
mod replay_builder;
mod rules;
mod standing;
mod sweeps;
mod text;
