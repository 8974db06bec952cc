//! Keeps oversized tool results out of the prompt.
//!
//! A [`StepSpill`] lives as long as one execution of one agentic step. Every tool result passes through
//! [`StepSpill::admit`]: small ones come back untouched, one whose JSON serialisation reaches the [`Threshold`] is kept in
//! memory and replaced in the prompt by a summary of at most [`SUMMARY_LIMIT_BYTES`] bytes with a [`Reference`]. The model
//! reads slices back through [`StepSpill::read`], at most one threshold per read.
//!
//! Three parts that do not know each other: `policy` decides (a pure function), `store` holds, `preview` renders.
//! `step` joins them under one lock.
//!
//! Beside the step's own store there are stores for other policies behind [`SpillStore`]: [`MemoryStore`] with budget or
//! quota, and [`FileStore`], a private directory that several processes share.
//!
//! What it refuses to do: it reads no environment, clock or network, and no file outside a file store's directory, logs nothing, counts for nobody (an [`Observer`]
//! is told), and never fails a step: whatever cannot be stored stays in the prompt.
//!
//! ```
//! use spill_engine::{CallId, PromptText, Settings, StepId, StepSpill, ToolResult};
//!
//! let step = StepSpill::new(Settings::DEFAULT, StepId::new("review")?, StepSpill::unobserved());
//! let call = CallId { iteration: 1, index: 0 };
//! let admitted = step.admit(call, "read_file", ToolResult::text("x".repeat(300 * 1024)));
//! assert!(matches!(admitted.prompt, PromptText::Preview { .. }));
//!
//! let answer = step.read(&serde_json::json!({
//!     "spillover_ref": "spillover://review/i1c0.json",
//!     "range": {"offset": 0, "length": 4},
//! }))?;
//! assert_eq!(answer.text(), "xxxx");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Other policies
//!
//! [`InlineCap`] bounds a text with its own ends and one notice, [`Envelope`] puts a JSON envelope in a result's place. Both
//! keep results in a [`SpillStore`] and answer with the same [`Verdict`] and [`Decision`]; `differences` lists where they
//! differ from the systems that they come from. [`Pipeline`] puts a [`Policy`] around one tool or all, always after every
//! other [`Transform`], and [`configure`] makes one from JSON options, [`open_policy`] with the store that they name.
//!
//! A result may be bounded while it is still arriving ([`Policy::begin`]), previews may go by content ([`Previews`]), the
//! copies for a session's log are side work of a [`DispatchQueue`], and what crashes left in a file store is swept once in a
//! process ([`SweepOnce`]).
//!
//! What is stored is the final formatted result: what the model would have seen, after every transform, and not what the
//! tool's source sent. The bounds that a provider puts on a request, and those that a tool puts on what it acquires, stay
//! mandatory and separate: a policy bounds one result in the prompt, not memory, disk or the sum of a conversation.

mod arriving;
mod by_content;
mod content;
mod coverage;
pub mod differences;
mod dispatch;
mod envelope;
mod expand;
mod hint;
mod inline_cap;
mod measure;
mod observer;
mod policy;
mod preview;
mod read;
mod reading;
mod reference;
mod result;
mod retain;
mod settings;
mod shaped;
mod share;
mod shared_text;
mod step;
mod store;
mod stores;
mod turn;
mod wrap;

pub use arriving::{ArrivingResult, Streamed};
pub use by_content::Previews;
pub use content::{ContentKind, ContentPreview, Place, detect_content, preview_content};
pub use coverage::{Again, Coverage};
pub use dispatch::{DispatchFull, DispatchQueue, Dispatched};
pub use envelope::{Envelope, EnvelopeOptions, Form, Payload, Resource, Storage, decide_envelope};
pub use expand::{ExpandError, Expanded, Expansion, Fetch, SPILL_KEY};
pub use inline_cap::{InlineCap, InlineCapOptions, Layout, Mixed, OptionsError, decide_inline_cap};
pub use measure::{Bytes, line_count, serialised_size};
pub use observer::{BudgetWarning, Observer, Usage};
pub use policy::{Decision, decide};
pub use preview::SUMMARY_LIMIT_BYTES;
pub use read::{READ_TOOL, ReadAnswer, ReadError, read_tool_schema};
pub use reading::{
    Answer, AnswerCap, Ask, AskError, FirstLine, Hit, ItemRange, LineAsk, Part, Pattern,
    PointerAsk, ReadCounts, Reading, SearchAsk,
};
pub use reference::{CallId, MalformedReference, Reference, StepId, StepIdError};
pub use result::{Block, ToolResult};
pub use retain::{
    BudgetError, ItemRetainer, Omitted, Pushed, Retained, RetainedItems, Strategy, TextRetainer,
    budget, notice,
};
pub use settings::{
    BUDGET_VAR, Budget, DEFAULT_BUDGET_BYTES, DEFAULT_ENABLED, DEFAULT_THRESHOLD_BYTES,
    ENABLED_VAR, MAX_BUDGET_BYTES, MAX_THRESHOLD_BYTES, MIN_BUDGET_BYTES, MIN_THRESHOLD_BYTES,
    OutOfBounds, SettingWarning, Settings, Switch, THRESHOLD_VAR, Threshold,
};
pub use shaped::{Arm, Call, Canonical, Kept, Policy, Shaped, Spilled, Verdict, Warning};
pub use share::PreviewShare;
pub use shared_text::SharedText;
pub use step::{Admitted, InlineReason, Placement, PromptText, StepSpill};
pub use stores::{
    ByteRange, Content, Damage, Durability, FileOptions, FileStore, ItemHead, ItemKey, ItemName,
    ItemWriter, MalformedKey, MemoryOptions, MemoryStore, Millis, Names, OsNames, Owner, Probe,
    ReadFailure, Reader, SeededNames, Slice, SpillStore, StoreError, StoreUsage, StoredItem,
    SweepOnce, Swept, Visibility, WhenFull,
};
pub use turn::{TurnPlan, TurnResult, bound_turn};
pub use wrap::{
    Accepted, Around, Passed, Pipeline, Transform, Transformed, configure, open_policy,
};
