//! Known records in, known verdicts out.

mod bounds;
mod builder;
mod completeness;
mod curves;
mod deciding;
mod edges;
mod executions;
mod faults;
mod ladder;
mod laws;
mod live;
mod names;
mod notices;
mod planted;
mod replay;
mod replay_builder;
mod replay_figures;
mod rules;
mod standing;
mod sweeps;
mod text;
