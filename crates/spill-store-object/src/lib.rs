//! Spilled results in an object store, such as S3, where several replicas share them.
//!
//! [`ObjectSpillStore`] is a store of `spill-engine` in all but one thing: it is asynchronous. An item is one object that is
//! created once, under a condition that the object store itself checks, and never written again; its description, with a
//! checksum for each page, stands before its bytes, so that an item is there whole or not at all. What a reader is told is
//! the engine's closed set of failures.
//!
//! The object store is the caller's to make: anything that implements [`object_store::ObjectStore`]. For S3 enable that
//! crate's `aws` feature, and leave conditional puts on, as they are unless they are switched off.
//!
//! A policy of the engine is synchronous and waits for nobody. [`Staging`] lets it decide and price its notice in memory, and
//! then awaits the store: the result is replaced only once it is stored.
//!
//! What it refuses to do: it blocks no thread, starts no task, reads no clock, and takes no results that are still arriving
//! (they are gathered first). A quota holds after each [`ObjectSpillStore::sweep`], not between them: a count that all
//! replicas share would cost a request for each put.

mod object;
mod staging;
mod store;

pub use staging::Staging;
pub use store::{ObjectOptions, ObjectSpillStore};
