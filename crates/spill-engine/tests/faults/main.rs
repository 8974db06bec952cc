//! The catalogue of faults of published systems, sections A to D: that each entry has its tests, and those entries that cut
//! across the engine's parts. A test that reproduces entry n is called `fault_n_…`, wherever it stands.

mod catalogue;
mod decisions;
mod hints;

use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Bytes, CallId, EnvelopeOptions, InlineCapOptions, MemoryOptions, MemoryStore, Owner,
    SeededNames, Settings, StepId, StepSpill,
};

const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

fn memory() -> Arc<MemoryStore> {
    let options = MemoryOptions::per_execution(Bytes::new(1 << 30));
    Arc::new(MemoryStore::new(
        options.with_names(Arc::new(SeededNames::new(7))),
    ))
}

fn owner() -> Owner {
    Owner::new("session")
}

fn cap_options(options: &Value) -> InlineCapOptions {
    InlineCapOptions::from_json(options).expect("good options")
}

fn envelope_options(options: &Value) -> EnvelopeOptions {
    EnvelopeOptions::from_json(options).expect("good options")
}

fn step(settings: Settings) -> StepSpill {
    let id = StepId::new("step").expect("a step id");
    StepSpill::new(settings, id, StepSpill::unobserved())
}

fn rows(count: usize) -> Value {
    let row = |id| json!({"id": id, "name": format!("row {id}"), "ok": true});
    (0..count).map(row).collect()
}
