//! What a step does with its results under any policy: shape them, read them back, let them go.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use spill_engine::{
    BudgetWarning, ByteRange, Call, CallId, Dispatched, Expansion, InlineReason, Kept,
    MIN_THRESHOLD_BYTES, Observer, Placement, Policy as _, ReadFailure, SUMMARY_LIMIT_BYTES,
    Settings, SharedText, Slice, StepId, StepSpill, Switch, Threshold, ToolResult, Verdict,
    Warning, serialised_size,
};

use crate::{
    log_copies::Copy,
    read_tools::{ReadBack, ReadKind, ReadTool},
    result::SpillFigures,
    seen::{Placed, Seen},
    settings::{EffectiveSettings, SpillSettings},
    stored::{Limit, StoredSession, TURN_REPLACEMENT_BYTES},
    sweep::sweep_once,
};

/// The most bytes of stored data that one call's arguments may take in.
const EXPANSION_BYTES: u64 = 1 << 20;
/// How long letting the stored results go may hold up a step's end.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The results of one step execution. A handle: its clones are the same session.
///
/// Whatever ends the step, its results are released; a session serves one step.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    settings: SpillSettings,
    engine: Engine,
    /// Makes the result string of what no policy may touch any more.
    untouched: StepSpill,
    expansion: Expansion,
}

enum Engine {
    /// The workflow-step policy, or no policy at all.
    Step(Arc<StepSpill>),
    /// Another policy, over a store.
    Stored(Box<StoredSession>),
}

/// Arguments with stored data in the place of references.
pub(crate) struct Passed {
    pub(crate) arguments: Map<String, Value>,
    /// References replaced.
    pub(crate) references: u64,
    /// Bytes of stored data put in.
    pub(crate) bytes: u64,
}

impl From<Arc<StepSpill>> for Session {
    /// A session of the workflow-step policy over a store that the caller made and may watch.
    fn from(spill: Arc<StepSpill>) -> Self {
        Self(Arc::new(Inner {
            settings: spill.settings().into(),
            untouched: untouched(spill.settings()),
            engine: Engine::Step(spill),
            expansion: Expansion::off(),
        }))
    }
}

impl Session {
    /// A session with nothing stored. Touches no file: a store that cannot be used leaves every
    /// result in the prompt, with a warning.
    #[must_use]
    pub fn open(settings: SpillSettings, step: StepId) -> Self {
        let on = settings.step.enabled.is_on();
        let stored = if on {
            StoredSession::open(&settings)
        } else {
            Ok(None)
        };
        let untouched = untouched(settings.step);
        let by_step = |settings| StepSpill::new(settings, step, Arc::new(SpillLog));
        let engine = match stored {
            Ok(Some(stored)) => Engine::Stored(Box::new(stored)),
            Ok(None) => Engine::Step(Arc::new(by_step(settings.step))),
            Err(error) => {
                tracing::warn!("nothing is stored: {error}");
                Engine::Step(Arc::new(by_step(untouched.settings())))
            }
        };
        let expansion = if on {
            Expansion::allowing(settings.expand_tools.iter().cloned(), EXPANSION_BYTES)
        } else {
            Expansion::off()
        };
        Self(Arc::new(Inner {
            settings,
            engine,
            untouched,
            expansion,
        }))
    }

    /// What the policy has done so far; stays readable after the release.
    #[must_use]
    pub fn figures(&self) -> SpillFigures {
        match &self.0.engine {
            Engine::Step(spill) => spill.usage().into(),
            Engine::Stored(stored) => stored.figures(),
        }
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> EffectiveSettings {
        EffectiveSettings::from(&self.0.settings)
    }

    /// Lets all stored results go. Waits for what is being stored; later results stay in the
    /// prompt and later reads find nothing. A second call does nothing.
    pub fn release(&self) {
        match &self.0.engine {
            Engine::Step(spill) => spill.release(),
            Engine::Stored(stored) => stored.release(),
        }
    }

    /// The same, but never holds up a step for long when files do not answer.
    pub(crate) async fn release_in_time(&self) {
        let released = self.work(Self::release);
        if tokio::time::timeout(RELEASE_TIMEOUT, released)
            .await
            .is_err()
        {
            tracing::warn!("stored results are not removed yet: their files do not answer");
        }
    }

    /// Removes what dead processes left in the directory of the settings, once per process.
    pub(crate) async fn sweep(&self) {
        if let Some(directory) = &self.0.settings.sweep {
            sweep_once(directory.clone()).await;
        }
    }

    /// Does `work` on the spot, or beside the loop when it may wait for files.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        if !self.waits_for_files() {
            return work(self);
        }
        let session = self.clone();
        match tokio::task::spawn_blocking(move || work(&session)).await {
            Ok(done) => done,
            // Cancelled only when the runtime ends, and then nobody waits here.
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        }
    }

    /// Whether storing and reading may wait for files.
    pub(crate) fn waits_for_files(&self) -> bool {
        match &self.0.engine {
            Engine::Step(_) => false,
            Engine::Stored(stored) => stored.in_files(),
        }
    }

    /// The read tools, to be offered from the first stored result on. The first call settles
    /// their names; `taken` knows those of the server's tools.
    pub(crate) fn read_tools(&self, taken: &dyn Fn(&str) -> bool) -> Vec<ReadTool> {
        match &self.0.engine {
            Engine::Step(_) => vec![ReadKind::Step.tool(taken)],
            Engine::Stored(stored) => stored.read_tools(taken).to_vec(),
        }
    }

    /// True from the first stored result to the release.
    pub(crate) fn offers_read(&self) -> bool {
        match &self.0.engine {
            Engine::Step(spill) => spill.offers_read(),
            Engine::Stored(stored) => stored.offers_read(),
        }
    }

    /// Says what stands in prompt and record for the result of a call. May wait for files.
    pub(crate) fn shape(
        &self,
        call: CallId,
        tool: &str,
        arguments: &Map<String, Value>,
        limit: Limit,
        result: ToolResult,
    ) -> Seen {
        match &self.0.engine {
            Engine::Step(spill) => by_step(spill, call, tool, limit, result),
            Engine::Stored(stored) => {
                let arguments = Value::Object(arguments.clone());
                match stored.shape(call, tool, &arguments, limit, result) {
                    Ok(shaped) => Seen {
                        record_text: shaped.record_text,
                        prompt: shaped.prompt,
                        measured: shaped.measured.map(spill_engine::Bytes::get),
                        placed: match shaped.verdict {
                            Verdict::Replace { .. } => Placed::Stored,
                            Verdict::Keep(kept) => Placed::Kept(kept),
                        },
                        is_error: shaped.is_error,
                    },
                    Err(result) => by_step(&self.0.untouched, call, tool, Limit::Usual, result),
                }
            }
        }
    }

    /// What a result that is in the prompt whole would take at most if it were replaced; `None`
    /// when it must stay.
    pub(crate) fn replaced_bytes(&self, seen: &Seen) -> Option<u64> {
        match &seen.placed {
            Placed::Step(Placement::Inline(InlineReason::BelowThreshold)) => {
                // What the step did not measure is a text far below its threshold.
                let size = seen
                    .measured
                    .unwrap_or_else(|| serialised_size(&seen.record_text).get());
                (size >= MIN_THRESHOLD_BYTES).then_some(SUMMARY_LIMIT_BYTES)
            }
            Placed::Kept(Kept::WithinLimit | Kept::Off) => Some(TURN_REPLACEMENT_BYTES),
            Placed::Step(_) | Placed::Stored | Placed::Kept(_) => None,
        }
    }

    /// The most bytes of one turn's results, unless spilling is off.
    pub(crate) fn turn_bytes(&self) -> Option<u64> {
        let settings = &self.0.settings;
        settings
            .turn_bytes
            .filter(|_| settings.step.enabled.is_on())
    }

    /// Sends the result of a composite tool's own call through the policy, which leaves it whole,
    /// and returns its text.
    pub(crate) fn nested(
        &self,
        call: CallId,
        number: u32,
        tool: &str,
        arguments: &Map<String, Value>,
        result: ToolResult,
    ) -> SharedText {
        let arguments = Value::Object(arguments.clone());
        let shaped = match &self.0.engine {
            Engine::Step(spill) => {
                let nested = Call {
                    sub_call: Some(number),
                    arguments: &arguments,
                    ..Call::new(tool, call)
                };
                spill.shape(&nested, result)
            }
            Engine::Stored(stored) => stored.nested(call, number, tool, &arguments, result),
        };
        shaped.record_text
    }

    /// Whether the record has a copy of its own of a text that a composite tool's call returned.
    pub(crate) fn bounds_log_copy(&self, text: &str) -> bool {
        match &self.0.engine {
            Engine::Step(_) => false,
            Engine::Stored(stored) => stored.bounds_log_copy(text),
        }
    }

    /// Orders such a copy; false when too many are waiting.
    pub(crate) fn order_copy(&self, copy: &Copy) -> bool {
        match &self.0.engine {
            Engine::Step(_) => true,
            Engine::Stored(stored) => stored.order_copy(copy),
        }
    }

    /// Makes the oldest copy that waits; false when none does. May wait for files.
    pub(crate) fn make_copy(&self) -> bool {
        match &self.0.engine {
            Engine::Step(_) => false,
            Engine::Stored(stored) => stored.make_copy(),
        }
    }

    /// Makes all copies that wait and returns them in the order of their calls. May wait for
    /// files.
    pub(crate) fn finish_copies(&self) -> Vec<Dispatched> {
        match &self.0.engine {
            Engine::Step(_) => Vec::new(),
            Engine::Stored(stored) => stored.finish_copies(),
        }
    }

    /// Logs a policy's warning where it is new. Not part of shaping, so that the lines come from the
    /// loop's own thread.
    pub(crate) fn warn(&self, warning: &Warning) {
        match &self.0.engine {
            Engine::Step(_) => {}
            Engine::Stored(stored) => stored.warn(warning),
        }
    }

    /// Answers a call of a read tool. May wait for files.
    ///
    /// # Errors
    /// A text for the model: an ordinary tool error.
    pub(crate) fn read(
        &self,
        kind: ReadKind,
        arguments: Map<String, Value>,
    ) -> Result<ReadBack, String> {
        match &self.0.engine {
            Engine::Step(spill) => {
                let answer = spill
                    .read(&Value::Object(arguments))
                    .map_err(|error| error.to_string())?;
                Ok(ReadBack {
                    reference: answer.reference.to_string(),
                    offset: answer.offset,
                    bytes: answer.bytes(),
                    text: answer.render(),
                })
            }
            Engine::Stored(stored) => stored.read(kind, &arguments),
        }
    }

    /// Whether the arguments of any tool are expanded.
    pub(crate) fn expands(&self) -> bool {
        self.0.expansion != Expansion::off() && !self.0.settings.expand_tools.is_empty()
    }

    /// Puts stored data in the place of the references in a call's arguments. May wait for files.
    ///
    /// # Errors
    /// A text for the model; then the call may not be made.
    pub(crate) fn expand(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Passed, String> {
        let fetch = |reference: &str, range| self.slice(reference, range);
        let expanded = self
            .0
            .expansion
            .expand(tool, Value::Object(arguments), &fetch)
            .map_err(|error| error.to_string())?;
        match expanded.arguments {
            Value::Object(arguments) => Ok(Passed {
                arguments,
                references: expanded.references,
                bytes: expanded.bytes,
            }),
            _ => Err("the arguments as a whole cannot be a reference".to_owned()),
        }
    }

    fn slice(&self, reference: &str, range: ByteRange) -> Result<Slice, ReadFailure> {
        match &self.0.engine {
            Engine::Step(spill) => spill.stored_slice(reference, range),
            Engine::Stored(stored) => stored.slice(reference, range),
        }
    }
}

/// A policy that is off. It stores nothing, so its step is never named.
fn untouched(settings: Settings) -> StepSpill {
    let step = StepId::new("none").expect("a step id");
    let off = Settings {
        enabled: Switch::Off,
        ..settings
    };
    StepSpill::new(off, step, StepSpill::unobserved())
}

fn by_step(spill: &StepSpill, call: CallId, tool: &str, limit: Limit, result: ToolResult) -> Seen {
    let admitted = match limit {
        Limit::Usual => spill.admit(call, tool, result),
        Limit::Turn => {
            let lowest = Threshold::new(MIN_THRESHOLD_BYTES).expect("the lowest is accepted");
            spill.admit_from(lowest, call, tool, result)
        }
    };
    Seen {
        record_text: admitted.record_text,
        prompt: match admitted.prompt {
            spill_engine::PromptText::Inline(text) => text,
            spill_engine::PromptText::Preview { summary, .. } => summary.into(),
        },
        measured: admitted.measured.map(spill_engine::Bytes::get),
        placed: Placed::Step(admitted.placement),
        is_error: admitted.is_error,
    }
}

/// Logs the engine's one warning about its budget; the loop logs the rest.
struct SpillLog;

impl Observer for SpillLog {
    fn over_budget(&self, warning: &BudgetWarning) {
        tracing::warn!(
            target: "spill_agent::step",
            tool = %warning.tool,
            size_bytes = warning.size_bytes,
            stored_bytes = warning.stored_bytes,
            budget_bytes = warning.budget_bytes,
            "spill budget has no room, the result stays inline"
        );
    }
}
