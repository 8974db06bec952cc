//! One execution of one step: policy, store and preview under one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::coverage::Again;
use crate::measure::{Bytes, Measure};
use crate::observer::{BudgetWarning, Observer, Unobserved, Usage};
use crate::policy::{Decision, decide};
use crate::preview;
use crate::read::{READ_TOOL, ReadAnswer, ReadError, Readable, reference_in};
use crate::reference::{CallId, Reference, StepId};
use crate::result::{Source, ToolResult, result_string};
use crate::settings::{Settings, Threshold};
use crate::shaped::Canonical;
use crate::shared_text::SharedText;
use crate::store::Store;
use crate::stores::{ByteRange, ReadFailure, Slice};

/// The spilled results of one step execution. Share it between parallel tool calls by reference or `Arc`; two executions,
/// also of the same step, never see each other's results. Dropping it drops the store.
pub struct StepSpill {
    settings: Settings,
    step: StepId,
    observer: Arc<dyn Observer>,
    state: Mutex<State>,
}

struct State {
    /// `None` after the release.
    store: Option<Store>,
    usage: Usage,
}

/// What becomes of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The result string for the tool-call record: always the original.
    pub record_text: SharedText,
    /// What stands in the prompt.
    pub prompt: PromptText,
    /// Where the result went, and why.
    pub placement: Placement,
    /// The result's serialised size; `None` where nothing was measured: policy off, read tool, or a text so short that no
    /// escapes could take it to the threshold (it passes in constant time).
    pub measured: Option<Bytes>,
    /// The result as values, untouched.
    pub canonical: Canonical,
    /// The tool said that it failed.
    pub is_error: bool,
}

/// The text that the prompt gets for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptText {
    /// The result string itself, the same allocation as the record's.
    Inline(SharedText),
    /// The summary of a stored result.
    Preview {
        /// What the model reads it back with.
        reference: Reference,
        /// Compact JSON, at most [`SUMMARY_LIMIT_BYTES`](crate::SUMMARY_LIMIT_BYTES) bytes.
        summary: String,
    },
}

impl PromptText {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Preview { summary, .. } => summary,
        }
    }
}

/// Where a result went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Stored; the prompt has its summary.
    Stored,
    /// In the prompt, untouched.
    Inline(InlineReason),
}

/// Why a result stays in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineReason {
    /// The policy is off.
    Off,
    /// It is the read tool's own answer.
    ReadTool,
    /// It is smaller than the threshold.
    BelowThreshold,
    /// It would take the stored bytes over the budget.
    OverBudget,
    /// The call has a stored result already, and references never change their meaning.
    CallTaken,
    /// The execution has released its store.
    Released,
}

impl StepSpill {
    /// Starts an execution with an empty store.
    pub fn new(settings: Settings, step: StepId, observer: Arc<dyn Observer>) -> Self {
        let state = Mutex::new(State {
            store: Some(Store::default()),
            usage: Usage::default(),
        });
        Self {
            settings,
            step,
            observer,
            state,
        }
    }

    /// An observer that does nothing.
    pub fn unobserved() -> Arc<dyn Observer> {
        Arc::new(Unobserved)
    }

    /// Takes a tool's result, stores it if the policy says so, and says what stands in prompt and record. Never fails.
    ///
    /// The text is moved, not copied. Parallel calls may admit at the same time: checking the budget and adding to it is one
    /// step.
    pub fn admit(&self, call: CallId, tool: &str, result: ToolResult) -> Admitted {
        self.admit_from(self.settings.threshold, call, tool, result)
    }

    /// The same with another threshold for this one result, as the bound of a whole turn asks for. Reads keep the step's own.
    pub fn admit_from(
        &self,
        threshold: Threshold,
        call: CallId,
        tool: &str,
        result: ToolResult,
    ) -> Admitted {
        let settings = Settings {
            threshold,
            ..self.settings
        };
        let ToolResult {
            blocks,
            structured,
            is_error,
        } = result;
        let (text, source) = result_string(blocks, structured);
        let text = SharedText::from(text);
        let short = source.at_most(&text) < Bytes::new(settings.threshold.get());
        let measured = (self.measures(tool) && !short).then(|| source.measured(&text));
        let placement = match measured {
            Some(measure) => self.place(call, tool, &text, measure.serialised, &settings),
            None if tool == READ_TOOL => Placement::Inline(InlineReason::ReadTool),
            None if self.measures(tool) => self.place(call, tool, &text, Bytes::ZERO, &settings),
            None => Placement::Inline(InlineReason::Off),
        };
        let prompt = match (placement, measured) {
            (Placement::Stored, Some(measure)) => self.preview(call, &text, measure, &source),
            _ => PromptText::Inline(text.clone()),
        };
        Admitted {
            record_text: text,
            prompt,
            placement,
            measured: measured.map(|measure| measure.serialised),
            canonical: source.into(),
            is_error,
        }
    }

    /// True from the first stored result to the release: the read tool is to be offered, and may be called.
    pub fn offers_read(&self) -> bool {
        self.lock()
            .store
            .as_ref()
            .is_some_and(|store| !store.is_empty())
    }

    /// Answers a call of the read tool.
    ///
    /// # Errors
    /// [`ReadError`], whose text is for the model: it names fact, limit and way out, and holds no content.
    pub fn read(&self, arguments: &Value) -> Result<ReadAnswer, ReadError> {
        let reference = reference_in(arguments)
            .filter(|reference| reference.step == self.step)
            .ok_or(ReadError::NotFound)?;
        let (answer, with_range) = {
            let mut state = self.lock();
            let State { store, usage } = &mut *state;
            let stored = store
                .as_mut()
                .and_then(|store| store.get_mut(reference.call))
                .ok_or(ReadError::NotFound)?;
            let readable = Readable {
                text: &stored.text,
                cap: self.settings.threshold,
            };
            let asked = readable.asked(arguments)?;
            let answer = readable.answer(reference, asked)?;
            let again = stored
                .read
                .add(answer.offset..answer.offset + answer.bytes());
            usage.count_read(answer.bytes(), asked.is_range(), &again);
            (answer, asked.is_range())
        };
        self.observer
            .read(&answer.reference, with_range, answer.bytes());
        Ok(answer)
    }

    /// Bytes of a stored text for use outside the prompt, such as an [`Expansion`](crate::Expansion): not bounded by the
    /// threshold and not counted as a read.
    ///
    /// # Errors
    /// [`ReadFailure::NotFound`] for whatever [`read`](Self::read) does not find, [`ReadFailure::OutOfRange`] for a range that
    /// starts behind the end.
    pub fn stored_slice(&self, reference: &str, range: ByteRange) -> Result<Slice, ReadFailure> {
        let reference: Reference = reference.parse().map_err(|_| ReadFailure::NotFound)?;
        let mut state = self.lock();
        let stored = state
            .store
            .as_mut()
            .filter(|_| reference.step == self.step)
            .and_then(|store| store.get_mut(reference.call))
            .ok_or(ReadFailure::NotFound)?;
        let wanted = range.within(Bytes::of(&stored.text))?;
        let place = |position| usize::try_from(position).expect("a position inside a text");
        Ok(Slice::shared(
            stored.text.clone().into(),
            place(wanted.start)..place(wanted.end),
        ))
    }

    /// The sums so far.
    pub fn usage(&self) -> Usage {
        self.lock().usage.clone()
    }

    /// Drops the store: later reads find nothing, later results stay in the prompt. A second call does nothing.
    pub fn release(&self) {
        let store = self.lock().store.take();
        drop(store);
    }

    /// The settings of this execution.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    fn measures(&self, tool: &str) -> bool {
        self.settings.enabled.is_on() && tool != READ_TOOL
    }

    fn place(
        &self,
        call: CallId,
        tool: &str,
        text: &SharedText,
        size: Bytes,
        settings: &Settings,
    ) -> Placement {
        let (placement, warning) = self.lock().place(call, tool, text, size, settings);
        if placement == Placement::Stored {
            self.observer.stored(tool, size.get());
        }
        if let Some(warning) = warning {
            self.observer.over_budget(&warning);
        }
        placement
    }

    fn preview(
        &self,
        call: CallId,
        text: &SharedText,
        measure: Measure,
        source: &Source,
    ) -> PromptText {
        let reference = Reference {
            step: self.step.clone(),
            call,
        };
        let summary = preview::render(
            text,
            measure,
            source.structure_hint(text),
            &reference,
            self.settings.threshold,
        );
        PromptText::Preview { reference, summary }
    }

    /// A panic elsewhere leaves no half-made state behind, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Decides and stores in one step, so that parallel calls never overrun the budget together.
    fn place(
        &mut self,
        call: CallId,
        tool: &str,
        text: &SharedText,
        size: Bytes,
        settings: &Settings,
    ) -> (Placement, Option<BudgetWarning>) {
        let Some(store) = &mut self.store else {
            return (Placement::Inline(InlineReason::Released), None);
        };
        match decide(size, store.measured(), settings) {
            Decision::Inline => (Placement::Inline(InlineReason::BelowThreshold), None),
            Decision::InlineOverBudget => {
                let warning = BudgetWarning {
                    tool: tool.to_owned(),
                    size_bytes: size.get(),
                    stored_bytes: store.measured().get(),
                    budget_bytes: settings.budget.get(),
                };
                self.usage.over_budget += 1;
                (
                    Placement::Inline(InlineReason::OverBudget),
                    (self.usage.over_budget == 1).then_some(warning),
                )
            }
            Decision::Store if store.insert(call, text.clone(), size) => {
                self.usage
                    .count_stored(tool, text.len() as u64, store.measured());
                (Placement::Stored, None)
            }
            Decision::Store => (Placement::Inline(InlineReason::CallTaken), None),
        }
    }
}

impl Usage {
    fn count_stored(&mut self, tool: &str, text_bytes: u64, measured: Bytes) {
        self.persisted += 1;
        match self.persisted_by_tool.get_mut(tool) {
            Some(count) => *count += 1,
            None => drop(self.persisted_by_tool.insert(tool.to_owned(), 1)),
        }
        self.stored_bytes += text_bytes;
        self.peak_bytes = self.peak_bytes.max(self.stored_bytes);
        self.budget_used_bytes = measured.get();
    }

    fn count_read(&mut self, bytes: u64, with_range: bool, again: &Again) {
        self.reads += 1;
        self.reads_with_range += u64::from(with_range);
        self.read_bytes += bytes;
        self.distinct_read += u64::from(again.first);
        self.reread_bytes += again.bytes;
    }
}
