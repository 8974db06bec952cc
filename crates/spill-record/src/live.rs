//! Follows a run folder that may still be written: each look reads the new lines alone.

use std::fs::TryLockError;
use std::io::{self, Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::call::CallRecord;
use crate::error::FolderError;
use crate::files::{check_schema, malformed, open_regular};
use crate::folder::{CALLS, RUNS, RunSet, read_manifest};
use crate::run::RunRecord;

/// Bytes that one look at a file reads at most; the next look goes on behind them.
const LOOK_BYTES: u64 = 64 << 20;

/// A run folder and the records that it holds so far.
///
/// Unlike [`RunFolder::read`](crate::RunFolder::read) it does not compare runs with their calls:
/// what it shows is provisional.
#[derive(Debug)]
pub struct LiveFolder {
    path: PathBuf,
    set: RunSet,
    /// Place in the plan of each record of `set.runs`.
    places: Vec<usize>,
    by_id: std::collections::HashMap<String, usize>,
    runs: Tail<RunRecord>,
    calls: Tail<CallRecord>,
}

impl LiveFolder {
    /// Reads the manifest; no record yet.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read`](crate::RunFolder::read) does for the manifest.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let manifest = read_manifest(path)?;
        let ids = manifest.plan.runs.iter().enumerate();
        let by_id = ids
            .map(|(index, run)| (run.run_id.clone(), index))
            .collect();
        Ok(Self {
            runs: Tail::new(path.join(RUNS)),
            calls: Tail::new(path.join(CALLS)),
            path: path.to_owned(),
            set: RunSet {
                manifest,
                runs: Vec::new(),
                sensitivity: Vec::new(),
                executions: Vec::new(),
                torn: Vec::new(),
                prices: None,
                spending: None,
            },
            places: Vec::new(),
            by_id,
        })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan and the records read so far, in plan order.
    #[must_use]
    pub fn set(&self) -> &RunSet {
        &self.set
    }

    /// Reads the runs that were recorded since the last look, hands each new one to `each`, and returns how many there were.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read, or a line is no record or of no planned run.
    pub fn look(&mut self, mut each: impl FnMut(&RunRecord)) -> Result<usize, FolderError> {
        let fresh = self.runs.look()?;
        let count = fresh.len();
        for (line, record) in fresh {
            let Some(&place) = self.by_id.get(&record.run_id) else {
                return Err(FolderError::Foreign {
                    path: self.path.join(RUNS),
                    line,
                    run_id: record.run_id,
                });
            };
            match self.places.binary_search(&place) {
                Ok(at) => self.set.runs[at] = record,
                Err(at) => {
                    each(&record);
                    self.places.insert(at, place);
                    self.set.runs.insert(at, record);
                }
            }
        }
        Ok(count)
    }

    /// Reads the LLM calls that were recorded since the last look.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or a line is no record.
    pub fn look_at_calls(&mut self) -> Result<Vec<CallRecord>, FolderError> {
        let fresh = self.calls.look()?;
        Ok(fresh.into_iter().map(|(_, call)| call).collect())
    }

    /// Whether a process has the folder open for writing. One that was killed has not.
    #[must_use]
    pub fn is_being_written(&self) -> bool {
        let Ok(file) = open_regular(&self.path.join(RUNS)) else {
            return false;
        };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// The lines of a growing file.
#[derive(Debug)]
struct Tail<T> {
    path: PathBuf,
    offset: u64,
    lines: usize,
    of: PhantomData<T>,
}

impl<T: DeserializeOwned> Tail<T> {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            lines: 0,
            of: PhantomData,
        }
    }

    /// The whole lines behind the last look, with their numbers; a torn last line waits.
    fn look(&mut self) -> Result<Vec<(usize, T)>, FolderError> {
        let mut bytes = Vec::new();
        let read = open_regular(&self.path).and_then(|mut file| {
            if file.metadata()?.len() == self.offset {
                return Ok(0);
            }
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(LOOK_BYTES).read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(FolderError::Io {
                    action: "read",
                    path: self.path.clone(),
                    source,
                    way_out: "make the folder readable, or remove it from the reports",
                });
            }
        }
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut records = Vec::new();
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let number = self.lines + 1;
            check_schema(&self.path, number, line)?;
            let record = serde_json::from_slice(line)
                .map_err(|error| malformed(&self.path, number, &error))?;
            records.push((number, record));
            self.lines = number;
        }
        self.offset += whole as u64;
        Ok(records)
    }
}
