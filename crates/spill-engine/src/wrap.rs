//! Policies around tools: around one with its own options, around all, and always after every other transform.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::arriving::ArrivingResult;
use crate::envelope::{Envelope, EnvelopeOptions, Storage};
use crate::inline_cap::{InlineCap, InlineCapOptions, OptionsError};
use crate::measure::Bytes;
use crate::result::{Block, ToolResult};
use crate::shaped::{Call, Kept, Policy, Shaped, Spilled, Verdict};
use crate::step::{Admitted, InlineReason, Placement, PromptText, StepSpill};
use crate::stores::{FileOptions, FileStore, MemoryOptions, MemoryStore, Names, SpillStore};

/// What a store in memory holds that nobody has sized.
const MEMORY_QUOTA_BYTES: u64 = 100 << 20;

/// Changes a result before it is bounded. A closure of the same form is one.
pub trait Transform: Send + Sync {
    /// Says what becomes of `result`.
    fn transform(&self, call: &Call<'_>, result: &ToolResult) -> Transformed;
}

impl<F: Fn(&Call<'_>, &ToolResult) -> Transformed + Send + Sync> Transform for F {
    fn transform(&self, call: &Call<'_>, result: &ToolResult) -> Transformed {
        self(call, result)
    }
}

/// What a transform says.
#[derive(Clone, Debug, PartialEq)]
pub enum Transformed {
    /// The result goes on, with changes or without.
    Accept(Accepted),
    /// The result goes no further; the model gets `feedback`.
    Block {
        /// What the model is told.
        feedback: String,
    },
}

/// The changes of a transform.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// Other content for the model. It is what the next transform sees, and what is measured and stored in the end.
    pub content: Option<Vec<Block>>,
    /// Another value for the result. Nothing bounds it.
    pub value: Option<Value>,
    /// Texts that go beside the result, in any case.
    pub additional_contexts: Vec<String>,
}

/// What comes out for the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    /// A result, bounded by the tool's policy.
    Shaped {
        /// The result; boxed, since it is the largest by far.
        shaped: Box<Shaped>,
        /// What the transforms add beside it.
        additional_contexts: Vec<String>,
    },
    /// A transform has put another value in the result's place.
    Value {
        /// That value.
        value: Value,
        /// What the transforms add beside it.
        additional_contexts: Vec<String>,
    },
    /// A transform has blocked the result.
    Blocked {
        /// What the model is told.
        feedback: String,
    },
}

/// Transforms in their order, then one policy, whatever order they were registered in.
#[derive(Default)]
pub struct Pipeline {
    transforms: Vec<Box<dyn Transform>>,
    all: Option<Arc<dyn Policy>>,
    by_tool: BTreeMap<String, Arc<dyn Policy>>,
}

impl Pipeline {
    /// Nothing around anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transform after those that are there.
    #[must_use]
    pub fn transform(mut self, transform: impl Transform + 'static) -> Self {
        self.transforms.push(Box::new(transform));
        self
    }

    /// Puts `policy` around every tool that has none of its own.
    #[must_use]
    pub fn around_all(mut self, policy: Arc<dyn Policy>) -> Self {
        self.all = Some(policy);
        self
    }

    /// Puts `policy` around `tool`, in place of the one around all.
    #[must_use]
    pub fn around(mut self, tool: &str, policy: Arc<dyn Policy>) -> Self {
        self.by_tool.insert(tool.to_owned(), policy);
        self
    }

    /// The policy around `tool`.
    pub fn policy_of(&self, tool: &str) -> Option<&Arc<dyn Policy>> {
        self.by_tool.get(tool).or(self.all.as_ref())
    }

    /// Sends a result through.
    pub fn run(&self, call: &Call<'_>, mut result: ToolResult) -> Passed {
        let mut additional_contexts = Vec::new();
        let mut replaced = None;
        for transform in &self.transforms {
            match transform.transform(call, &result) {
                Transformed::Block { feedback } => return Passed::Blocked { feedback },
                Transformed::Accept(accepted) => {
                    additional_contexts.extend(accepted.additional_contexts);
                    replaced = accepted.value.or(replaced);
                    if let Some(content) = accepted.content {
                        result.blocks = content;
                    }
                }
            }
        }
        match replaced {
            Some(value) => Passed::Value {
                value,
                additional_contexts,
            },
            None => Passed::Shaped {
                shaped: Box::new(self.shape(call, result)),
                additional_contexts,
            },
        }
    }

    /// Takes a result of `call` while it is still arriving. `None` where that is not possible: a transform has to see it whole
    /// first, or no policy is around the tool. Then gather it and [`run`](Self::run).
    pub fn begin<'a>(&'a self, call: Call<'a>) -> Option<Box<dyn ArrivingResult + 'a>> {
        if !self.transforms.is_empty() {
            return None;
        }
        self.policy_of(call.tool).map(|policy| policy.begin(call))
    }

    fn shape(&self, call: &Call<'_>, result: ToolResult) -> Shaped {
        match self.policy_of(call.tool) {
            Some(policy) => policy.shape(call, result),
            None => Shaped::kept(result, Kept::Off),
        }
    }
}

/// One tool with its own policy: the wrapper calls the tool and bounds what it returns.
pub struct Around<T> {
    policy: Arc<dyn Policy>,
    tool: T,
}

impl<T: Fn(&Call<'_>) -> ToolResult> Around<T> {
    /// Puts `policy` around `tool`, which finds its arguments in the call.
    pub fn new(policy: Arc<dyn Policy>, tool: T) -> Self {
        Self { policy, tool }
    }

    /// Calls the tool.
    pub fn call(&self, call: &Call<'_>) -> Shaped {
        self.policy.shape(call, (self.tool)(call))
    }
}

/// The policy called `name` with `options` as JSON: `inline-cap` ([`InlineCapOptions::from_json`]) or `envelope`
/// ([`EnvelopeOptions::from_json`]). It stores in `store`, whatever `storage` the options name; see [`open_policy`].
///
/// # Errors
/// [`OptionsError`] for another name or a bad option.
pub fn configure(
    name: &str,
    options: &Value,
    store: Arc<dyn SpillStore>,
) -> Result<Arc<dyn Policy>, OptionsError> {
    match name {
        "inline-cap" => {
            let options = InlineCapOptions::from_json(options)?;
            Ok(Arc::new(InlineCap::new(options, store)))
        }
        "envelope" => {
            let options = EnvelopeOptions::from_json(options)?;
            Ok(Arc::new(Envelope::new(options, store)))
        }
        _ => Err(OptionsError::NoSuchPolicy(name.to_owned())),
    }
}

/// The same with the store that the options name: `storage` and `storagePath` of `envelope`, the path from `base` on where
/// it is relative; a store of 100 MiB in memory, shared between sessions, where they name none. Names come from `names`.
///
/// # Errors
/// [`OptionsError`] for another name, a bad option, or a directory that cannot be used: it is made and looked at here, so
/// that a wrong configuration fails at the start.
pub fn open_policy(
    name: &str,
    options: &Value,
    base: &Path,
    names: Arc<dyn Names>,
) -> Result<Arc<dyn Policy>, OptionsError> {
    let memory = |names| {
        let options = MemoryOptions::shared(Bytes::new(MEMORY_QUOTA_BYTES)).with_names(names);
        Arc::new(MemoryStore::new(options))
    };
    if name != "envelope" {
        return configure(name, options, memory(names));
    }
    let options = EnvelopeOptions::from_json(options)?;
    let store: Arc<dyn SpillStore> = match options.storage {
        Storage::Memory => memory(names),
        Storage::Filesystem => {
            let root = base.join(&options.storage_path).components().collect();
            let store = FileStore::new(FileOptions {
                root,
                names,
                ..FileOptions::new("")
            })?;
            store.probe()?;
            Arc::new(store)
        }
    };
    Ok(Arc::new(Envelope::new(options, store)))
}

/// The `workflow-step` policy: the step's own store, [`Call::call`] names the result.
impl Policy for StepSpill {
    fn name(&self) -> &'static str {
        "workflow-step"
    }

    fn shape(&self, call: &Call<'_>, result: ToolResult) -> Shaped {
        if call.sub_call.is_some() {
            return Shaped::kept(result, Kept::Nested);
        }
        let admitted = self.admit(call.call, call.tool, result);
        let verdict = verdict_of(&admitted, call);
        let prompt = match admitted.prompt {
            PromptText::Inline(text) => text,
            PromptText::Preview { summary, .. } => summary.into(),
        };
        Shaped {
            record_text: admitted.record_text,
            prompt,
            measured: admitted.measured,
            verdict,
            canonical: admitted.canonical,
            is_error: admitted.is_error,
        }
    }
}

fn verdict_of(admitted: &Admitted, call: &Call<'_>) -> Verdict {
    match (&admitted.prompt, admitted.placement) {
        (PromptText::Preview { reference, summary }, _) => Verdict::Replace {
            text: summary.clone().into(),
            spilled: Spilled::in_step(reference, &admitted.record_text, call),
        },
        (PromptText::Inline(_), Placement::Inline(reason)) => Verdict::Keep(match reason {
            InlineReason::Off => Kept::Off,
            InlineReason::ReadTool => Kept::ReadBack,
            InlineReason::BelowThreshold => Kept::WithinLimit,
            InlineReason::OverBudget => Kept::OverBudget,
            InlineReason::CallTaken => Kept::Taken,
            InlineReason::Released => Kept::Released,
        }),
        (PromptText::Inline(_), Placement::Stored) => Verdict::Keep(Kept::Taken),
    }
}
