//! Counts tokens with one fixed tokenizer, cached by content.
//!
//! [`TokenCounter`] is shared between threads and asked again and again for the same texts: a text
//! of [`CACHED_FROM_BYTES`] or more is tokenised once and known by its content hash afterwards, so
//! that counting a growing context costs what is new in it.
//!
//! The vocabulary is OpenAI's `o200k_base`; for any other model the figure is an estimate, and
//! [`TokenCounter::name`] says so in the record. It takes about 70 MB of memory once loaded, which
//! is why no measured process depends on this crate.

mod counter;
mod known;
mod measured;
mod tokenizer;

pub use counter::{CACHED_FROM_BYTES, TokenCounter};
pub use measured::Measured;
pub use tokenizer::{O200kBase, Tokenizer};
