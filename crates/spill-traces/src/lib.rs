//! Reads recorded agent transcripts of many formats into one model.
//!
//! An [`Import`] takes a file or a folder, finds the format of each file by its content, unpacks what is compressed, and hands
//! on one [`Transcript`] after the other: ordered LLM calls with what was in the context of each, tool results, recorded
//! usage. Memory is bounded by the largest single transcript, and by the largest single JSON document.
//!
//! What a file does not hold is `None`, never 0. What could not be understood is a [`Problem`] with its kind and place, and is
//! counted; what was left out on purpose (duplicates, bookkeeping) is counted by kind. Nothing is dropped without a trace.
//!
//! A [`Replay`] says what a transcript would have sent under a [`Policy`] of the engine; [`session()`] makes the record of one
//! transcript under a whole [`ReplayPlan`], and [`replay_files`] those of many files, on several threads and in order.
//!
//! What it refuses to do: it follows no links, reads no clock and no network, counts no tokens (the caller's counter does), and
//! never panics on any input.
//!
//! ```
//! use spill_traces::{Import, Imported, Limits, counts};
//!
//! let session = r#"[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]"#;
//! Import::new(Limits::DEFAULT).stream("session.json", session.as_bytes(), &mut |imported| {
//!     if let Imported::Transcript(transcript) = imported {
//!         assert_eq!(counts(&transcript).calls, 1);
//!     }
//! });
//! ```

mod copies;
mod counts;
mod limits;
mod model;
mod problem;
mod replay;
mod spans;
mod text;
mod time;
mod usage;
mod weights;

mod detect;
mod input;
mod json;
mod lines;
mod listing;
mod packing;
mod reading;
mod seen;
mod source;

mod blocks;
mod builder;
mod chain;
mod chat;
mod cut;
mod cut_zip;
mod import;
mod message;

mod files;
mod session;

pub use counts::{Counts, counts};
pub use files::{FilesAmount, ReplayedFile, ReplayedItem, replay_files};
pub use input::{FileReport, Import, Imported};
pub use limits::Limits;
pub use model::{
    Boundary, BoundaryKind, Call, Completeness, ContextSource, Format, Message, Missing, Origin,
    Parent, Piece, Role, Standing, ToolResult, Transcript,
};
pub use problem::{Place, Problem, ProblemKind, Problems};
pub use replay::{
    Amount, Cache, ModelInput, Outcome, Policy, PolicyError, PolicyName, ReadBack, ReadBackError,
    Replaced, Replacement, Replay, Size, When,
};
pub use seen::SeenCalls;
pub use session::{InputPrice, PricedInput, ReplayPlan, session};
pub use spans::Spans;
pub use text::Text;
pub use time::Timestamp;
pub use usage::Usage;
pub use weights::{ByOrigin, Weights};
