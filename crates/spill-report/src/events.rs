use schemars::JsonSchema;
use serde::Serialize;
use spill_record::{EndReason, Outcome, RunRecord, Stage, harmless_json};
use spill_verdict::Verdict;

use crate::standing::Standing;

/// Version of the events that [`Event::line`] writes.
pub const EVENT_SCHEMA: u32 = 1;

/// One event of an acceptance: a line of `accept --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first line: the plan is settled, and its folder is there.
    Started {
        /// Version of the events.
        schema: u32,
        /// The run folder.
        folder: String,
        /// Hash of the plan.
        plan_hash: String,
        /// Quick or full.
        stage: Stage,
        /// Runs that the plan asks for.
        planned: u64,
    },
    /// A planned run has ended and is recorded.
    Run {
        /// Version of the events.
        schema: u32,
        /// The run.
        run_id: String,
        /// The scenario's name.
        scenario: String,
        /// The input's name.
        input: String,
        /// The configuration's name.
        configuration: String,
        /// Repetition, from 0.
        repetition: u32,
        /// What became of it.
        outcome: Outcome,
        /// Why it ended.
        end_reason: EndReason,
        /// How far the acceptance is with it.
        pace: Pace,
    },
    /// The rules as they stand; provisional, since the planned number of runs is not reached.
    Rules {
        /// Version of the events.
        schema: u32,
        /// Always true: what holds by now may be broken by a run that is still to come.
        provisional: bool,
        /// Every candidate, in the order of the ladder.
        candidates: Vec<Standing>,
    },
    /// A signal ended the acceptance early; the verdict that follows is on the runs made so far.
    Interrupted {
        /// Version of the events.
        schema: u32,
        /// How far it came.
        pace: Pace,
    },
    /// The last line of one shard, which is not judged.
    Shard {
        /// Version of the events.
        schema: u32,
        /// Which part of the plan, such as `2/4`.
        shard: String,
        /// The run folder.
        folder: String,
        /// Runs that the plan asks of this shard.
        planned: u64,
        /// Runs that left a record.
        recorded: u64,
        /// Of those, the ones that the harness failed.
        infrastructure: u64,
    },
    /// The last line of an acceptance that was judged.
    Verdict {
        /// Version of the events.
        schema: u32,
        /// The exit code.
        exit_code: u8,
        /// The run folder.
        folder: String,
        /// The content of its `verdict.json`.
        verdict: Box<Verdict>,
    },
    /// The last line of one that could not be run or judged.
    Failed {
        /// Version of the events.
        schema: u32,
        /// The exit code.
        exit_code: u8,
        /// Place, fact and way out, as on standard error.
        message: String,
    },
}

/// How far an acceptance is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pace {
    /// Runs recorded.
    pub done: u64,
    /// Runs that the plan asks for.
    pub planned: u64,
    /// Recorded runs that did not succeed.
    pub not_succeeded: u64,
    /// Runs recorded per second since the start; `None` before the first one (measured).
    pub runs_per_second: Option<f64>,
    /// Time until the planned number is reached at that rate; `None` before the first run (measured).
    pub eta_ms: Option<u64>,
}

impl Event {
    /// The event of a run that has ended.
    #[must_use]
    pub fn of_run(run: &RunRecord, pace: Pace) -> Self {
        Self::Run {
            schema: EVENT_SCHEMA,
            run_id: run.run_id.clone(),
            scenario: run.scenario.clone(),
            input: run.input.clone(),
            configuration: run.configuration.clone(),
            repetition: run.repetition,
            outcome: run.outcome,
            end_reason: run.end_reason,
            pace,
        }
    }

    /// The event as one line of JSON, without a line feed.
    #[must_use]
    pub fn line(&self) -> String {
        let text = serde_json::to_string(self);
        harmless_json(&text.expect("an event has string keys and finite numbers"))
    }
}

/// The JSON Schema of a line of `accept --json`: the name that it is published under, and its text.
#[must_use]
pub fn event_schema() -> (&'static str, String) {
    (
        "event.schema.json",
        spill_record::schema_text::<Event>("a line of accept --json"),
    )
}
