//! Opens a run folder again, so that only what it lacks is run.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use crate::error::FolderError;
use crate::files::{append_to, each_raw_line, io_error, malformed, to_line, write_lines};
use crate::folder::{CALLS, RETRIED, RUNS, RunFolder, RunSet, SENSITIVITY, read_manifest};
use crate::run::{Outcome, RunRecord};

/// Files that are derived from the records of an acceptance or a sweep.
const DERIVED: [&str; 11] = [
    "verdict.json",
    "report.html",
    "runs.csv",
    "summary.csv",
    "rules.csv",
    "junit.xml",
    "summary.md",
    "leaks.sarif",
    "sweep.html",
    "sweep.csv",
    "sweep.json",
];

/// What an opened folder held.
#[derive(Debug)]
pub struct Reopened {
    /// The plan, and the records that stay: those of runs that succeeded or failed.
    pub set: RunSet,
    /// Records of runs that the harness failed. They went to `retried.jsonl`, and are to be run again.
    pub retried: Vec<RunRecord>,
}

impl RunFolder {
    /// Opens the folder of an acceptance that did not end, or lost runs to the harness.
    ///
    /// What is left of a killed writer goes: torn last lines, and the calls of runs without a record.
    /// Records of infrastructure failures move to `retried.jsonl`, and derived files are removed.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read`], and when another process writes the folder, when it is an accepted
    /// run, or when a file cannot be written.
    pub fn reopen(folder: &Path) -> Result<(Self, Reopened), FolderError> {
        // Nothing is written into what is no run folder.
        read_manifest(folder)?;
        let path = folder.join(RUNS);
        let held = append_to(&path)?;
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FolderError::Busy {
                    path: folder.to_owned(),
                });
            }
            // Where the file system has no locks, nobody can tell.
            Err(TryLockError::Error(_)) => {}
        }
        if Self::read_blessing(folder)?.is_some() {
            return Err(FolderError::Accepted {
                path: folder.to_owned(),
            });
        }
        let mut set = Self::read(folder)?;
        let stays = |run: &RunRecord| match run.outcome {
            Outcome::Succeeded | Outcome::Failed => true,
            Outcome::Infrastructure => false,
        };
        let (runs, mut retried): (Vec<_>, Vec<_>) = set.runs.into_iter().partition(stays);
        let (extra, retried_extra): (Vec<_>, Vec<_>) = set.sensitivity.into_iter().partition(stays);
        retried.extend(retried_extra);
        let kept: HashSet<&str> = runs.iter().map(|run| &*run.run_id).collect();
        let kept_extra: HashSet<&str> = extra.iter().map(|run| &*run.run_id).collect();
        remove_derived(folder)?;
        keep_retried(folder, &retried)?;
        // Runs first: calls without their run are known to be left over, a run without its calls is not.
        let runs_file = rewrite(folder, RUNS, |id| kept.contains(id))?;
        let calls_file = rewrite(folder, CALLS, |id| kept.contains(id))?;
        let sensitivity_file = rewrite(folder, SENSITIVITY, |id| kept_extra.contains(id))?;
        drop(held);
        let open = Self::over(folder.to_owned(), runs_file, calls_file, sensitivity_file);
        set.runs = runs;
        set.sensitivity = extra;
        Ok((open, Reopened { set, retried }))
    }
}

/// Removes what was derived from the records as they were: it would stand beside others.
fn remove_derived(folder: &Path) -> Result<(), FolderError> {
    for name in DERIVED {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error("remove", &path, error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn keep_retried(folder: &Path, retried: &[RunRecord]) -> Result<(), FolderError> {
    if retried.is_empty() {
        return Ok(());
    }
    let path = folder.join(RETRIED);
    let lines: String = retried.iter().map(|run| to_line(run) + "\n").collect();
    write_lines(&mut append_to(&path)?, &path, &lines)
}

/// Replaces a file of records by the lines whose run `keep` picks, and returns it locked, at its end.
fn rewrite(folder: &Path, name: &str, keep: impl Fn(&str) -> bool) -> Result<File, FolderError> {
    #[derive(serde::Deserialize)]
    struct Owner {
        run_id: String,
    }
    let path = folder.join(name);
    let fail = |source| io_error("write", &path, source);
    let fresh = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)
        .map_err(fail)?;
    let mut writer = std::io::BufWriter::new(fresh);
    each_raw_line(folder, name, &mut Vec::new(), |number, line| {
        let owner: Owner =
            serde_json::from_slice(line).map_err(|error| malformed(&path, number, &error))?;
        if keep(&owner.run_id) {
            writer.write_all(line).map_err(fail)?;
        }
        Ok(())
    })?;
    let fresh = writer
        .into_inner()
        .map_err(|error| fail(error.into_error()))?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fresh.as_file().set_permissions(permissions).map_err(fail)?;
    // Before it has its name, so that no onlooker finds it unlocked.
    drop(fresh.as_file().lock());
    fresh.persist(&path).map_err(|error| fail(error.error))
}
