//! What the policies around a tool have in common: the call they see, the answer they give.

use std::fmt;

use serde_json::Value;

use crate::arriving::{ArrivingResult, Gathered};
use crate::measure::Bytes;
use crate::policy::Decision;
use crate::reference::{CallId, Reference};
use crate::result::{Block, Source, ToolResult, result_string};
use crate::shared_text::SharedText;
use crate::stores::{ItemKey, Millis, Owner, Reader, StoreError, StoredItem};

/// The tool call whose result is shaped.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The call's place in the conversation.
    pub call: CallId,
    /// The number, from 1, of a call that a composite tool makes while it answers `call`; `None` for a call of the model.
    pub sub_call: Option<u32>,
    /// The session or execution that the result belongs to.
    pub owner: Option<&'a Owner>,
    /// The arguments of the call: a reference among them makes it a read-back.
    pub arguments: &'a Value,
    /// The caller's clock.
    pub now: Millis,
}

impl<'a> Call<'a> {
    /// A call of the model, without owner and arguments, at the clock's start.
    pub const fn new(tool: &'a str, call: CallId) -> Self {
        Self {
            tool,
            call,
            sub_call: None,
            owner: None,
            arguments: &Value::Null,
            now: Millis::new(0),
        }
    }

    /// The same call for `owner`.
    #[must_use]
    pub const fn owned_by(self, owner: &'a Owner) -> Self {
        Self {
            owner: Some(owner),
            ..self
        }
    }

    /// The call's id: `i1c0`, and `i1c0:code:1` for the first call that a composite tool makes.
    pub fn id(&self) -> String {
        match self.sub_call {
            None => self.call.to_string(),
            Some(number) => format!("{}:code:{number}", self.call),
        }
    }

    pub(crate) fn reader(&self) -> Reader {
        self.owner.cloned().map_or(Reader::Stranger, Reader::Of)
    }

    /// True when a text of the arguments, whole, is one that `is_reference` knows. A `{"$spill": …}` argument hands data on
    /// and reads nothing back.
    pub(crate) fn reads_back(&self, is_reference: &dyn Fn(&str) -> bool) -> bool {
        any_text(self.arguments, is_reference)
    }
}

fn any_text(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, holds)),
        Value::Object(map) => {
            !map.contains_key("$spill") && map.values().any(|item| any_text(item, holds))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// For whom a copy of a result is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// For the model.
    Result,
    /// For the session's log of what a composite tool called; the tool itself gets the whole result.
    Dispatch,
}

impl fmt::Display for Arm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Result => "result",
            Self::Dispatch => "dispatch",
        })
    }
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// What the replacement names it by: a locator or a URI.
    pub reference: String,
    /// Its key in the store; `None` in the store of a step, which knows references alone.
    pub key: Option<ItemKey>,
    /// Bytes stored.
    pub size: Bytes,
    /// The tool.
    pub tool: String,
    /// [`Call::id`].
    pub call: String,
    /// Which copy was bounded.
    pub arm: Arm,
}

impl Spilled {
    pub(crate) fn new(reference: String, stored: &StoredItem, call: &Call<'_>, arm: Arm) -> Self {
        Self {
            reference,
            key: Some(stored.key),
            size: stored.size,
            tool: call.tool.to_owned(),
            call: call.id(),
            arm,
        }
    }

    pub(crate) fn in_step(reference: &Reference, text: &str, call: &Call<'_>) -> Self {
        Self {
            reference: reference.to_string(),
            key: None,
            size: Bytes::of(text),
            tool: call.tool.to_owned(),
            call: call.id(),
            arm: Arm::Result,
        }
    }
}

/// The line for a log.
impl fmt::Display for Spilled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, reference) = (self.size.get(), &self.reference);
        write!(
            out,
            "Spilled tool output exceeding threshold ({size} bytes) to {reference}"
        )
    }
}

/// What becomes of a text.
#[derive(Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It stays, byte for byte.
    Keep(Kept),
    /// It is stored, and `text` stands for it.
    Replace {
        /// Smaller than what it replaces.
        text: SharedText,
        /// What was stored.
        spilled: Spilled,
    },
}

impl Verdict {
    /// The same in the words that all policies share.
    pub fn decision(&self) -> Decision {
        match self {
            Self::Replace { .. } => Decision::Store,
            Self::Keep(Kept::OverBudget | Kept::Warned(Warning::NoRoom { .. })) => {
                Decision::InlineOverBudget
            }
            Self::Keep(_) => Decision::Inline,
        }
    }

    /// What somebody should be told, once.
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            Self::Keep(Kept::Warned(warning)) => Some(warning),
            Self::Keep(_) | Self::Replace { .. } => None,
        }
    }
}

/// Shows sizes, not content.
impl fmt::Debug for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(kept) => write!(out, "Keep({kept:?})"),
            Self::Replace { text, spilled } => {
                write!(out, "Replace({} bytes, {spilled:?})", text.len())
            }
        }
    }
}

/// Why a result stays in the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The policy is off.
    Off,
    /// A composite tool asked for it, and gets it whole.
    Nested,
    /// The tool is on the skip list.
    ByName,
    /// It reads a stored result back.
    ReadBack,
    /// It is not text alone.
    NotText,
    /// There is nothing to measure.
    Nothing,
    /// It is no larger than the limit.
    WithinLimit,
    /// The step's budget has no room for it; the step's observer is warned once.
    OverBudget,
    /// The call has a stored result already.
    Taken,
    /// The step has released its store.
    Released,
    /// Shaping the copy for the log broke down.
    Broken,
    /// It should have been replaced.
    Warned(Warning),
}

/// A result that is too large stays in the prompt all the same. Never holds content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Nobody could read it back.
    #[error("spill-policy: no session owner for {tool} {arm}; keeping the inline content")]
    NoOwner {
        /// The tool.
        tool: String,
        /// Which copy.
        arm: Arm,
    },
    /// The store did not take it.
    #[error("spill-policy: saveText failed for {tool}: {reason}; keeping the inline content")]
    StoreFailed {
        /// The tool.
        tool: String,
        /// The store's words.
        reason: String,
    },
    /// The store has no room for it.
    #[error("spill-policy: no room for the result of {tool}: {reason}; keeping the inline content")]
    NoRoom {
        /// The tool.
        tool: String,
        /// The store's words.
        reason: String,
    },
    /// No replacement is small enough; nothing was stored.
    #[error("spill-policy: spill notice for {tool} exceeds {limit}; keeping the inline content")]
    NoticeTooLarge {
        /// The tool.
        tool: String,
        /// The option that sets the limit.
        limit: &'static str,
    },
}

impl Warning {
    pub(crate) fn of_store(call: &Call<'_>, error: &StoreError) -> Self {
        let (tool, reason) = (call.tool.to_owned(), error.to_string());
        match error {
            StoreError::TooLarge { .. } | StoreError::Full { .. } => Self::NoRoom { tool, reason },
            StoreError::Taken
            | StoreError::Latched { .. }
            | StoreError::Unusable { .. }
            | StoreError::Io { .. } => Self::StoreFailed { tool, reason },
        }
    }
}

/// A result on its way to the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaped {
    /// The result string for the tool-call record: always the original.
    pub record_text: SharedText,
    /// What stands in the prompt.
    pub prompt: SharedText,
    /// The size that the policy compared with its limit; `None` where it measured nothing.
    pub measured: Option<Bytes>,
    /// What was decided, and why.
    pub verdict: Verdict,
    /// The result as values, untouched: what a program that calls the tool gets.
    pub canonical: Canonical,
    /// The tool said that it failed.
    pub is_error: bool,
}

/// A tool result as values. `Debug` shows no content.
#[derive(Clone, PartialEq, Eq)]
pub enum Canonical {
    /// One text: [`Shaped::record_text`].
    Text,
    /// Several blocks, or one that is no text.
    Blocks(Vec<Block>),
    /// Structured content.
    Value(Value),
}

impl fmt::Debug for Canonical {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Text => "Text",
            Self::Blocks(_) => "Blocks(..)",
            Self::Value(_) => "Value(..)",
        })
    }
}

impl From<Source> for Canonical {
    fn from(source: Source) -> Self {
        match source {
            Source::Text => Self::Text,
            Source::Blocks(blocks) => Self::Blocks(blocks),
            Source::Structured(value) => Self::Value(value),
        }
    }
}

impl Shaped {
    /// The result as it came.
    pub(crate) fn kept(result: ToolResult, kept: Kept) -> Self {
        Opened::new(result).shaped(None, Verdict::Keep(kept), None)
    }
}

/// A result taken apart: its string for prompt and record, and its values.
pub(crate) struct Opened {
    pub(crate) text: SharedText,
    pub(crate) canonical: Canonical,
    pub(crate) is_error: bool,
}

impl Opened {
    pub(crate) fn new(result: ToolResult) -> Self {
        let (text, source) = result_string(result.blocks, result.structured);
        Self {
            text: text.into(),
            canonical: source.into(),
            is_error: result.is_error,
        }
    }

    /// The prompt gets `replacement`, or the result as it was.
    pub(crate) fn shaped(
        self,
        measured: Option<Bytes>,
        verdict: Verdict,
        replacement: Option<SharedText>,
    ) -> Shaped {
        Shaped {
            prompt: replacement.unwrap_or_else(|| self.text.clone()),
            record_text: self.text,
            measured,
            verdict,
            canonical: self.canonical,
            is_error: self.is_error,
        }
    }
}

/// One policy around a tool, or around all.
pub trait Policy: Send + Sync {
    /// The name that settings and reports use.
    fn name(&self) -> &'static str;

    /// Decides about a result and says what stands in the prompt for it. Never fails a call and never adds bytes.
    fn shape(&self, call: &Call<'_>, result: ToolResult) -> Shaped;

    /// Takes a text result while it is still arriving. What passes the limit goes to the store as it comes, where the policy
    /// has one outside memory; the replacement is the one that [`shape`](Self::shape) gives for the same text.
    fn begin<'a>(&'a self, call: Call<'a>) -> Box<dyn ArrivingResult + 'a> {
        Box::new(Gathered::new(self, call))
    }
}
