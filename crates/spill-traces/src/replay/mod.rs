//! What a transcript would have sent under another policy, threshold or size of replacements.
//!
//! The rules, which hold for every figure here:
//! - The engine itself makes every replacement and answers every read; nothing about their size is estimated.
//! - A result is replaced when it is created: every call that was sent it is sent the replacement, so the start of the
//!   context stays the same from call to call, and a prompt cache holds it. A result that was never sent saves nothing.
//! - Reads are calls of their own, one after the other. Each sends what the call that it comes before is sent, as replaced,
//!   with what was read so far. What the model writes to ask for a read is not counted.
//! - A result is read back before the first call that was sent it, or, under *when used*, before the first call whose answer
//!   repeats a part of it that the replacement does not show; one that no answer repeats is not read.
//! - What was read stands behind the last message of the call that it was read for, and leaves the context with that message.
//! - The prompt cache holds every input of the transcript from its call on, in whole blocks from a least length on.
//! - Calls that were copied from another transcript send nothing here, and fill no cache.
//! - Images and documents weigh nothing.

mod engine;
mod outcome;
mod overlap;
mod policy;
mod read_back;
mod replaced;
mod requests;
mod size;
mod weighed;

pub use outcome::{ModelInput, Outcome};
pub use policy::{Policy, PolicyError, PolicyName};
pub use read_back::{Amount, ReadBack, ReadBackError, When};
pub use replaced::{Replaced, Replacement};
pub use size::Size;
pub use weighed::{Cache, Replay};
