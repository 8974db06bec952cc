//! Executes a plan: starts the mock servers, launches one process per run, measures, scores,
//! searches for leaks, and hands over records.
//!
//! The order of things in a run: register it with the mocks, make its empty folders, watch them,
//! launch the subject through [`launch`], read its step result, take the servers' journal, plant
//! control tokens and search, score the answer, compare the subject's figures with the journal.
//!
//! It writes no run folder, judges nothing and prints nothing; records go to the caller's sink.

mod assemble;
mod call_record;
mod confine;
mod execute;
mod expected;
mod foreign;
mod launcher;
mod leaks;
mod probe;
mod process;
mod rss;
mod score;
mod servers_alone;
mod step_result;
mod tree;
mod watch;

pub use execute::{FinishedRun, Foreign, Harness, Options, RunError, Sink, Subject, pairs_of};
pub use launcher::{LaunchReport, launch};
pub use probe::{ProbeError, effective_settings};
