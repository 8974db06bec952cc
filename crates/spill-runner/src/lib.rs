//! Executes a plan: starts the mock servers, launches one process per run, measures, scores,
//! searches for leaks, and hands over records.
//!
//! The order of things in a run: register it with the mocks, make its empty folders, watch them,
//! launch the subject through a process that is in [`launch`], read its step result, take the servers' journal, plant
//! control tokens and search, score the answer, compare the subject's figures with the journal.
//!
//! It writes no run folder, judges nothing and prints nothing; records go to the caller's sink.

mod assemble;
mod call_record;
mod confine;
mod dirs;
mod ended;
mod execute;
mod executions;
mod expected;
mod folder_events;
mod foreign;
mod job;
mod launcher;
mod leaks;
mod log;
mod meter;
mod probe;
mod process;
mod score;
mod servers_alone;
mod sidecar;
mod step_result;
mod subject;
mod tree;
mod tree_memory;
mod watch;

pub use execute::{FinishedRun, Harness, Options, RunError, Sink, pairs_of};
pub use launcher::launch;
pub use meter::{Caps, Meter};
pub use probe::{ProbeError, effective_settings};
pub use subject::{Foreign, Subject};
