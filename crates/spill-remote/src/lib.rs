//! Run folders on an object store, such as S3: published in parts while they grow, and fetched back.
//!
//! An object store cannot append. So [`Publisher`] puts what was appended to a local run folder since the last time as
//! parts of their own, which are never written again:
//!
//! ```text
//! <prefix>/<acceptance id>/manifest.json            before anything else
//!                          calls-01-000001.jsonl    the calls of runs before the runs
//!                          runs-01-000002.jsonl
//!                          …
//!                          verdict.json, report.html, …
//!                          complete.json            after everything else: what there is, with sizes and digests
//! ```
//!
//! Going on with a folder begins a generation of parts of its own (`runs-02-…`), which holds the records that stay. A
//! reader takes the newest generation that has runs, so a process killed at any moment costs the records it had not
//! published and nothing else. [`fetch()`] makes a local folder of it, and refuses a folder that is not as
//! `complete.json` says or lacks a part in the middle.
//!
//! What it refuses to do: it reads no clock and no environment, starts no task, judges nothing, and puts nothing of what a
//! store answers into its messages but the error's code: an answer can hold a key's id.

mod error;
mod fetch;
#[cfg(feature = "s3")]
mod http;
mod layout;
mod publish;
mod remote;
#[cfg(feature = "s3")]
mod s3;
#[cfg(test)]
mod tests;
mod url;

pub use error::RemoteError;
pub use fetch::{Fetched, fetch};
pub use publish::{Publisher, refresh};
pub use remote::Remote;
#[cfg(feature = "s3")]
pub use s3::connect;
pub use url::{StoreUrl, UrlError};
