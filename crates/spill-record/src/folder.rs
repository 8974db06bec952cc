use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::baseline::Blessing;
use crate::call::{CallRecord, PromptTokens};
use crate::error::FolderError;
use crate::executions::ExecutionsRecord;
use crate::files::{
    append_to, check_schema, each_line, each_raw_line, io_error, malformed, read_bounded,
    read_lines, read_whole, to_line, unreadable, write_lines, write_whole,
};
use crate::manifest::Manifest;
use crate::prices::Prices;
use crate::prices_file::PricesError;
use crate::replay::is_replay_without_end;
use crate::run::RunRecord;
use crate::spending::Spending;
use crate::{csv_table, digest};

/// A last line that was cut off, as a killed writer leaves it; it is not counted as a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornLine {
    /// Name of the file within the folder.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Bytes of the torn line.
    pub bytes: usize,
}

/// What a run folder holds: the plan, and the records made so far.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSet {
    /// The manifest.
    pub manifest: Manifest,
    /// Records of planned runs in plan order, at most one for each; a missing run has none.
    pub runs: Vec<RunRecord>,
    /// Records of the extra pairs that show each pure profile, in the order they were written.
    pub sensitivity: Vec<RunRecord>,
    /// What many executions of one step take of one host, where that was measured.
    pub executions: Vec<ExecutionsRecord>,
    /// Torn last lines.
    pub torn: Vec<TornLine>,
    /// What tokens cost, where a price table was given.
    pub prices: Option<Prices>,
    /// What was spent at a real endpoint; `None` in simulated mode.
    pub spending: Option<Spending>,
}

/// An open run folder, for writing.
///
/// Records are appended one line at a time with one `write` each, so that a kill tears at most the
/// line being written.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    runs: File,
    calls: File,
    sensitivity: File,
}

/// The plan; written before anything else.
pub const MANIFEST_FILE: &str = MANIFEST;
/// Records of planned runs.
pub const RUNS_FILE: &str = RUNS;
/// Records of runs that the harness failed and that were run once more; there when there are some.
pub const RETRIED_FILE: &str = RETRIED;
/// Files that are appended to and never changed, each before the one whose lines are written earlier: whoever reads them
/// in this order finds the calls of every run that it found.
pub const APPENDED_FILES: [&str; 4] = [RUNS, SENSITIVITY, RETRIED, CALLS];

const MANIFEST: &str = "manifest.json";
pub(crate) const RUNS: &str = "runs.jsonl";
pub(crate) const CALLS: &str = "calls.jsonl";
pub(crate) const SENSITIVITY: &str = "sensitivity.jsonl";
pub(crate) const RETRIED: &str = "retried.jsonl";
const EXECUTIONS: &str = "executions.jsonl";
const BLESSING: &str = "baseline.json";
const PRICES: &str = "prices.toml";

impl RunFolder {
    /// Makes `<reports>/<acceptance id>/` with the manifest and empty record files.
    ///
    /// # Errors
    ///
    /// Fails when the folder exists already, or cannot be made or written.
    pub fn create(reports: &Path, manifest: &Manifest) -> Result<Self, FolderError> {
        fs::create_dir_all(reports).map_err(|source| io_error("make folder", reports, source))?;
        let path = reports.join(&manifest.acceptance_id);
        fs::create_dir(&path).map_err(|source| io_error("make folder", &path, source))?;
        let mut text = to_line(manifest);
        text.push('\n');
        // The lock goes with the process, however that ends: whoever looks on can tell a folder that
        // is being written from one whose writer was killed. It stands before the manifest does.
        let runs = append_to(&path.join(RUNS))?;
        // Where the file system has no locks, an onlooker takes the folder for an unfinished one.
        drop(runs.lock());
        let calls = append_to(&path.join(CALLS))?;
        let sensitivity = append_to(&path.join(SENSITIVITY))?;
        write_whole(&path, MANIFEST, text.as_bytes())?;
        Ok(Self {
            runs,
            calls,
            sensitivity,
            path,
        })
    }

    /// A folder whose files are open already.
    pub(crate) fn over(path: PathBuf, runs: File, calls: File, sensitivity: File) -> Self {
        Self {
            path,
            runs,
            calls,
            sensitivity,
        }
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the record of a planned run, after the records of its calls.
    ///
    /// # Errors
    ///
    /// Fails when a line cannot be written whole, for instance on a full disk.
    pub fn append(&mut self, run: &RunRecord, calls: &[CallRecord]) -> Result<(), FolderError> {
        let mut lines = String::new();
        for call in calls {
            lines.push_str(&to_line(call));
            lines.push('\n');
        }
        write_lines(&mut self.calls, &self.path.join(CALLS), &lines)?;
        write_lines(
            &mut self.runs,
            &self.path.join(RUNS),
            &(to_line(run) + "\n"),
        )
    }

    /// Appends the record of an extra run made to show a pure profile.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::append`].
    pub fn append_sensitivity(&mut self, run: &RunRecord) -> Result<(), FolderError> {
        write_lines(
            &mut self.sensitivity,
            &self.path.join(SENSITIVITY),
            &(to_line(run) + "\n"),
        )
    }

    /// Writes a derived file whole: beside it first, then renamed over it.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be written; an older file of the name then stands untouched.
    pub fn write_derived(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        write_whole(folder, name, bytes)
    }

    /// Reads a derived file whole. A pipe, a device or a file too large in its place is an error, not something to wait for.
    ///
    /// # Errors
    ///
    /// Fails when the file is not there or cannot be read.
    pub fn read_derived(folder: &Path, name: &str) -> Result<Vec<u8>, FolderError> {
        let path = folder.join(name);
        read_bounded(&path).map_err(|source| FolderError::Io {
            action: "read",
            path,
            source,
            way_out: "render the folder again with `spillgate report`",
        })
    }

    /// Points `<reports>/latest` at `folder` by a relative symbolic link.
    ///
    /// # Errors
    ///
    /// Fails when something other than a link stands there, or the link cannot be made.
    pub fn mark_latest(reports: &Path, folder: &Path) -> Result<(), FolderError> {
        let link = reports.join("latest");
        let fail = |source| io_error("make link", &link, source);
        if let Ok(found) = fs::symlink_metadata(&link)
            && !found.file_type().is_symlink()
        {
            return Err(fail(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "something that is not a link stands there",
            )));
        }
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        let fresh = reports.join(format!(".latest-{}", name.to_string_lossy()));
        std::os::unix::fs::symlink(name, &fresh).map_err(fail)?;
        fs::rename(&fresh, &link).map_err(fail)
    }

    /// Reads a run folder back.
    ///
    /// # Errors
    ///
    /// Fails when the manifest or a line before the last is not a record, when a record belongs to
    /// no planned run, and when two records of one run differ.
    pub fn read(folder: &Path) -> Result<RunSet, FolderError> {
        let manifest = read_manifest(folder)?;
        let blessing = Self::read_blessing(folder)?;
        // The accepted run is kept without its calls.
        let is_kept_so = |file| blessing.is_some() && file == CALLS;
        for file in [RUNS, CALLS, SENSITIVITY] {
            let path = folder.join(file);
            if !is_kept_so(file) && fs::symlink_metadata(&path).is_err() {
                return Err(FolderError::Missing { path });
            }
        }
        let mut torn = Vec::new();
        let planned: HashMap<&str, usize> = manifest
            .plan
            .runs
            .iter()
            .enumerate()
            .map(|(index, run)| (run.run_id.as_str(), index))
            .collect();
        let mut slots: Vec<Option<RunRecord>> = vec![None; planned.len()];
        let path = folder.join(RUNS);
        for (line, record) in read_lines::<RunRecord>(folder, RUNS, &mut torn)? {
            let Some(&index) = planned.get(record.run_id.as_str()) else {
                return Err(FolderError::Foreign {
                    path,
                    line,
                    run_id: record.run_id,
                });
            };
            match &slots[index] {
                Some(known) if *known != record => {
                    return Err(FolderError::Contradiction {
                        path,
                        line,
                        run_id: record.run_id,
                    });
                }
                Some(_) | None => slots[index] = Some(record),
            }
        }
        let runs: Vec<RunRecord> = slots.into_iter().flatten().collect();
        match blessing {
            Some(blessing) if !folder.join(CALLS).exists() => {
                if blessing.records_digest != records_digest(folder)? {
                    return Err(FolderError::NotBlessed { path });
                }
            }
            Some(_) | None => compare_calls(folder, &runs, &mut torn)?,
        }
        let sensitivity = read_lines(folder, SENSITIVITY, &mut torn)?
            .into_iter()
            .map(|(_, record)| record)
            .collect();
        let executions = read_lines(folder, EXECUTIONS, &mut torn)?
            .into_iter()
            .map(|(_, record)| record)
            .collect();
        Ok(RunSet {
            manifest,
            runs,
            sensitivity,
            executions,
            torn,
            prices: Self::read_prices(folder)?,
            spending: Self::read_spending(folder)?,
        })
    }

    /// Reads the LLM calls of all runs, in the order they were written.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or a line before the last is not a record.
    pub fn read_calls(folder: &Path) -> Result<Vec<CallRecord>, FolderError> {
        let lines = read_lines(folder, CALLS, &mut Vec::new())?;
        Ok(lines.into_iter().map(|(_, record)| record).collect())
    }

    /// Hands over the LLM calls of the runs that `wanted` picks by their id, in the order they were
    /// written; the others are not kept, so that a large folder can be read for a few runs.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_calls`].
    pub fn each_call_of(
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(CallRecord),
    ) -> Result<(), FolderError> {
        #[derive(serde::Deserialize)]
        struct Owner {
            run_id: String,
        }
        let path = folder.join(CALLS);
        each_raw_line(folder, CALLS, &mut Vec::new(), |number, line| {
            let fail = |error| malformed(&path, number, &error);
            let owner: Owner = serde_json::from_slice(line).map_err(fail)?;
            if wanted(&owner.run_id) {
                check_schema(&path, number, line)?;
                take(serde_json::from_slice(line).map_err(fail)?);
            }
            Ok(())
        })
    }

    /// Reads why the run of a folder was accepted; `None` for a folder that is no baseline.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or is not one that this program writes.
    pub fn read_blessing(folder: &Path) -> Result<Option<Blessing>, FolderError> {
        let path = folder.join(BLESSING);
        let text = match read_bounded(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unreadable(&path, source)),
            Ok(text) => text,
        };
        check_schema(&path, 1, &text)?;
        let blessing = serde_json::from_slice(&text);
        blessing
            .map(Some)
            .map_err(|error| malformed(&path, error.line(), &error))
    }

    /// Makes `baseline` the folder of the run in `folder`: its manifest and records without the
    /// calls, and `blessing` with the digest of the records.
    ///
    /// The blessing is written last, so that a folder that was being replaced is refused by
    /// [`RunFolder::read`].
    ///
    /// # Errors
    ///
    /// Fails when `baseline` holds something that is no accepted run, or a file cannot be read or
    /// written.
    pub fn bless(folder: &Path, baseline: &Path, blessing: &Blessing) -> Result<(), FolderError> {
        fs::create_dir_all(baseline).map_err(|error| io_error("make folder", baseline, error))?;
        let mut files = fs::read_dir(baseline).map_err(|error| unreadable(baseline, error))?;
        if files.next().is_some() && Self::read_blessing(baseline)?.is_none() {
            return Err(FolderError::NoBaseline {
                path: baseline.to_owned(),
            });
        }
        for name in [MANIFEST, RUNS, SENSITIVITY] {
            write_whole(baseline, name, &read_whole(&folder.join(name))?)?;
        }
        let blessing = Blessing {
            records_digest: records_digest(baseline)?,
            ..blessing.clone()
        };
        let mut text = serde_json::to_string_pretty(&blessing)
            .expect("a blessing has string keys and no numbers that are none");
        text.push('\n');
        write_whole(baseline, BLESSING, text.as_bytes())
    }

    /// Puts a price table into a folder, in the place of one that it has.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::write_derived`].
    pub fn write_prices(folder: &Path, prices: &Prices) -> Result<(), FolderError> {
        write_whole(folder, PRICES, prices.text().as_bytes())
    }

    /// Reads a folder's price table; `None` where none was given.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or is no price table.
    pub fn read_prices(folder: &Path) -> Result<Option<Prices>, FolderError> {
        match Prices::read(&folder.join(PRICES)) {
            Ok(prices) => Ok(Some(prices)),
            Err(PricesError::Unreadable { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts what many executions take of one host into a folder, in the place of what it has of it.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::write_derived`].
    pub fn write_executions(
        folder: &Path,
        records: &[ExecutionsRecord],
    ) -> Result<(), FolderError> {
        let lines: String = records.iter().map(|one| to_line(one) + "\n").collect();
        write_whole(folder, EXECUTIONS, lines.as_bytes())
    }

    /// Writes `runs.csv` beside the records.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::write_derived`].
    pub fn write_runs_csv(folder: &Path, set: &RunSet) -> Result<(), FolderError> {
        write_whole(folder, "runs.csv", csv_table::runs_csv(set).as_bytes())
    }
}

pub(crate) fn read_manifest(folder: &Path) -> Result<Manifest, FolderError> {
    let path = folder.join(MANIFEST);
    let text = read_bounded(&path).map_err(|source| {
        if is_replay_without_end(folder) {
            return FolderError::ReplayNotEnded {
                path: folder.to_owned(),
            };
        }
        FolderError::Io {
            action: "read",
            path: path.clone(),
            source,
            way_out: "name a folder that `spillgate accept` made, such as reports/latest",
        }
    })?;
    check_schema(&path, 1, &text)?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| malformed(&path, error.line(), &error))?;
    if manifest.manifest_digest != manifest.computed_digest() {
        return Err(FolderError::Changed { path });
    }
    Ok(manifest)
}

/// Compares what the calls of each run add up to with the run's record.
///
/// Calls are appended before their run, so a run without its calls was not written by us; calls
/// without their run are those of a writer that was killed in between.
fn compare_calls(
    folder: &Path,
    runs: &[RunRecord],
    torn: &mut Vec<TornLine>,
) -> Result<(), FolderError> {
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    each_line(folder, CALLS, torn, |_, call: CallRecord| {
        let (answered, tokens) = sums.entry(call.run_id).or_default();
        if call.status == 200 {
            *answered += 1;
            *tokens += call.tokens.map_or(0, PromptTokens::input_tokens);
        }
        Ok(())
    })?;
    for run in runs.iter().filter(|run| run.same_as.is_none()) {
        let (answered, tokens) = sums.get(&run.run_id).copied().unwrap_or_default();
        for (what, calls, run_says) in [
            ("answered LLM calls", answered, run.llm_calls),
            ("input tokens", tokens, run.input_tokens),
        ] {
            if let Some(run_says) = run_says.filter(|says| *says != calls) {
                return Err(FolderError::CallsDisagree {
                    path: folder.join(CALLS),
                    run_id: run.run_id.clone(),
                    what,
                    calls,
                    run: run_says,
                });
            }
        }
    }
    Ok(())
}

/// Digest of a folder's run records, the extra ones included.
fn records_digest(folder: &Path) -> Result<String, FolderError> {
    let mut bytes = read_whole(&folder.join(RUNS))?;
    bytes.extend(read_whole(&folder.join(SENSITIVITY))?);
    Ok(digest(&bytes))
}
