//! Known records in, known verdicts out.

mod builder;
mod completeness;
mod ladder;
mod laws;
mod rules;
mod standing;
mod text;
