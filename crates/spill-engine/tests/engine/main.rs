//! The workflow-step policy from outside, through its public API alone.

mod boundaries;
mod concurrency;
mod disk;
mod laws;
mod measuring;
mod reading;
mod references;
mod results;
mod settings;
mod summaries;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use spill_engine::{
    Admitted, Budget, BudgetWarning, CallId, DEFAULT_BUDGET_BYTES, MIN_THRESHOLD_BYTES, Observer,
    PromptText, ReadAnswer, ReadError, Reference, Settings, StepId, StepSpill, Switch, Threshold,
    ToolResult,
};

fn settings(threshold: u64, budget: u64) -> Settings {
    Settings {
        enabled: Switch::On,
        threshold: Threshold::new(threshold).expect("a threshold within bounds"),
        budget: Budget::new(budget).expect("a budget within bounds"),
    }
}

/// The lowest threshold, so that small texts spill.
fn low() -> Settings {
    settings(MIN_THRESHOLD_BYTES, DEFAULT_BUDGET_BYTES)
}

fn step(settings: Settings) -> StepSpill {
    StepSpill::new(settings, step_id("step"), StepSpill::unobserved())
}

fn step_id(id: &str) -> StepId {
    StepId::new(id).expect("a step id")
}

fn call(index: u32) -> CallId {
    CallId {
        iteration: 1,
        index,
    }
}

/// A text whose JSON serialisation has `size` bytes.
fn plain(size: u64) -> String {
    "x".repeat(usize::try_from(size).expect("a small size") - 2)
}

fn admit(step: &StepSpill, index: u32, text: impl Into<String>) -> Admitted {
    step.admit(call(index), "read_file", ToolResult::text(text))
}

#[track_caller]
fn preview(admitted: &Admitted) -> (&Reference, &str) {
    match &admitted.prompt {
        PromptText::Preview { reference, summary } => (reference, summary),
        PromptText::Inline(_) => panic!("expected a preview, got {:?}", admitted.placement),
    }
}

#[track_caller]
fn summary(admitted: &Admitted) -> Value {
    serde_json::from_str(preview(admitted).1).expect("a summary is JSON")
}

fn arguments(reference: &str, offset: u64, length: u64) -> Value {
    json!({"spillover_ref": reference, "range": {"offset": offset, "length": length}})
}

fn read(step: &StepSpill, index: u32, offset: u64, length: u64) -> Result<ReadAnswer, ReadError> {
    step.read(&arguments(
        &format!("spillover://step/i1c{index}.json"),
        offset,
        length,
    ))
}

/// Writes down what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn taken(&self) -> Vec<String> {
        self.0.lock().expect("no test panics while noting").clone()
    }

    fn note(&self, line: String) {
        self.0
            .lock()
            .expect("no test panics while noting")
            .push(line);
    }
}

impl Observer for Notes {
    fn stored(&self, tool: &str, bytes: u64) {
        self.note(format!("stored {tool} {bytes}"));
    }

    fn read(&self, reference: &Reference, with_range: bool, bytes: u64) {
        self.note(format!("read {reference} with_range={with_range} {bytes}"));
    }

    fn over_budget(&self, warning: &BudgetWarning) {
        self.note(warning.to_string());
    }
}

fn noted(settings: Settings) -> (StepSpill, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    (
        StepSpill::new(settings, step_id("step"), notes.clone()),
        notes,
    )
}
