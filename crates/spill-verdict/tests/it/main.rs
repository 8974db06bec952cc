//! Known records in, known verdicts out.

mod builder;
mod completeness;
mod ladder;
mod laws;
mod live;
mod planted;
mod rules;
mod sweeps;
mod text;
