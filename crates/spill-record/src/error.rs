use std::io;
use std::path::PathBuf;

use crate::SCHEMA;
use crate::prices_file::PricesError;

/// A run folder that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source} ({way_out})")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
        /// What to do about it.
        way_out: &'static str,
    },
    /// A file that should be a JSON record is not one.
    #[error(
        "{path}, line {line}: {message} (the folder cannot be judged; run again into a new folder)"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A file was written by a newer version of this program.
    #[error(
        "{path} has record schema {found}, this program reads up to {SCHEMA} (use the newer spillgate)"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
    /// The manifest is not the one that was written.
    #[error(
        "{path} was changed after it was written: its digest does not match (judge an unchanged copy, or run again)"
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A run's record and the records of its calls do not agree.
    #[error(
        "{path}: the calls of run {run_id} add up to {calls} {what}, its record in runs.jsonl says {run} (the folder was changed or cut; run again into a new one)"
    )]
    CallsDisagree {
        /// The file of the calls.
        path: PathBuf,
        /// The run.
        run_id: String,
        /// Which figure.
        what: &'static str,
        /// What the calls say.
        calls: u64,
        /// What the run says.
        run: u64,
    },
    /// The records of an accepted run are not those that were accepted.
    #[error(
        "{path} is not what was accepted: its digest is not the one in baseline.json (take the committed folder, or accept another run with `spillgate accept --bless REASON`)"
    )]
    NotBlessed {
        /// The file of the records.
        path: PathBuf,
    },
    /// A folder that is to hold the accepted run holds something else.
    #[error(
        "{path} holds files and no baseline.json, so it is no accepted run to be replaced (move it away)"
    )]
    NoBaseline {
        /// The folder.
        path: PathBuf,
    },
    /// A file of records was taken away.
    #[error(
        "{path} is missing: a run folder has it from its beginning, so it was removed or not copied (restore it, judge a whole copy, or run again)"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A replay that was ended before its record was written.
    #[error(
        "{path} holds a replay that did not end: it has sessions.jsonl and no replay.json, so what was read is not known to be all (run `spillgate replay` again, and remove this folder)"
    )]
    ReplayNotEnded {
        /// The folder.
        path: PathBuf,
    },
    /// Another process writes the folder.
    #[error("{path} is being written by another process (wait until it has ended)")]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// An accepted run is not gone on with.
    #[error(
        "{path} is the accepted run, which stays as it is (resume the folder that was accepted, or run again)"
    )]
    Accepted {
        /// The folder.
        path: PathBuf,
    },
    /// Two records of one run differ.
    #[error(
        "{path}, line {line}: run {run_id} was recorded before with other values (one of the two must go)"
    )]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// Line of the second record, from 1.
        line: usize,
        /// The run.
        run_id: String,
    },
    /// The folder's price table cannot be used.
    #[error("{0}; or give another table with `spillgate report --prices FILE`, or remove this one")]
    Prices(#[from] PricesError),
    /// A record belongs to no planned run.
    #[error("{path}, line {line}: run {run_id} is not in the plan of this folder's manifest")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The run.
        run_id: String,
    },
}
