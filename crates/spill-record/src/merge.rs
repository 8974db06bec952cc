//! Joins the folders of a plan's shards into the folder of the whole.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::call::CallRecord;
use crate::error::FolderError;
use crate::files::io_error;
use crate::folder::{RunFolder, RunSet};
use crate::live::LiveFolder;
use crate::manifest::Manifest;
use crate::merge_spending::spending;
use crate::run::{Outcome, RunRecord};

/// Run ids that a message names at most.
const NAMED: usize = 3;

/// Folders that do not join into one whole plan.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A folder cannot be read, or the joined one cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Nothing to join.
    #[error("no folder to merge (name the run folders of a plan's shards)")]
    Nothing,
    /// A folder is no shard's.
    #[error(
        "{path} is no shard: it was not made with `spillgate accept --shard m/n` (judge it as it is)"
    )]
    Whole {
        /// The folder.
        path: PathBuf,
    },
    /// Two folders are not parts of one acceptance.
    #[error(
        "{} and {} are not of one acceptance: their {} are {} and {} (merge shards of one plan, run with one version)",
        .0.first.display(), .0.other.display(), .0.what, .0.first_value, .0.other_value
    )]
    Unlike(Box<Difference>),
    /// An earlier merge of these shards.
    #[error(
        "{path} is there already, from an earlier merge (judge it with `spillgate judge`, remove it, or name another folder with --out)"
    )]
    There {
        /// The folder.
        path: PathBuf,
    },
    /// Parts of the plan are missing.
    #[error(
        "the plan has a gap: {missing} of {planned} runs have no record, first {first} (of shard {shards}{torn}; run it, or go on with `spillgate accept --resume DIR`)"
    )]
    Gap {
        /// Planned runs without a record.
        missing: usize,
        /// Planned runs.
        planned: usize,
        /// The first of them, by id.
        first: String,
        /// The shards they belong to.
        shards: String,
        /// Torn lines that may be the cause, or nothing.
        torn: String,
    },
    /// Two folders hold different results of one run.
    #[error(
        "run {run_id} has different results in {} and in {}: {} is {} and {} (a run is decided by its seed: one of the two is not of this plan, or the machines differ in more than speed)",
        .difference.first.display(), .difference.other.display(), .difference.what,
        .difference.first_value, .difference.other_value
    )]
    Contradiction {
        /// The run.
        run_id: String,
        /// In what they differ.
        difference: Box<Difference>,
    },
    /// A record of a run that its shard does not hold.
    #[error(
        "{path} is shard {shard} and holds run {run_id}, which belongs to another shard (the folder was changed, or made by a version with another rule)"
    )]
    Misplaced {
        /// The folder.
        path: PathBuf,
        /// Its shard.
        shard: String,
        /// The run.
        run_id: String,
    },
}

/// The first thing in which two folders differ.
#[derive(Debug)]
pub struct Difference {
    /// A folder.
    pub first: PathBuf,
    /// The one that differs.
    pub other: PathBuf,
    /// In what.
    pub what: String,
    /// The first folder's.
    pub first_value: String,
    /// The other's.
    pub other_value: String,
}

/// A joined folder.
#[derive(Debug)]
pub struct Merged {
    /// Where it is.
    pub folder: PathBuf,
    /// What was noticed and did no harm.
    pub notes: Vec<String>,
}

struct Part {
    path: PathBuf,
    set: RunSet,
}

/// Joins the folders of a plan's shards into a new folder below `reports`: records in plan order,
/// as one process would have left them. A shard may be there several times, as after a kill and a
/// second try.
///
/// # Errors
///
/// See [`MergeError`]. Nothing is written then.
pub fn merge(folders: &[PathBuf], reports: &Path) -> Result<Merged, MergeError> {
    let parts: Vec<Part> = folders
        .iter()
        .map(|path| {
            let path = path.clone();
            RunFolder::read(&path).map(|set| Part { path, set })
        })
        .collect::<Result<_, _>>()?;
    let first = parts.first().ok_or(MergeError::Nothing)?;
    let mut warnings = Vec::new();
    for part in &parts {
        alike(first, part)?;
        for torn in &part.set.torn {
            warnings.push(format!(
                "{}: {} ends in a torn line (line {}, {} bytes), which is left out",
                part.path.display(),
                torn.file,
                torn.line,
                torn.bytes
            ));
        }
    }
    let mut notes = warnings.clone();
    let runs = join(&parts, |set| &set.runs, &mut notes)?;
    let extra = join(&parts, |set| &set.sensitivity, &mut Vec::new())?;
    no_gap(&first.set.manifest, &runs, &warnings)?;
    let mut calls: HashMap<String, Vec<CallRecord>> = HashMap::new();
    let mut read = HashSet::new();
    for part in &parts {
        // One that is named twice has its calls once.
        if !read.insert(&part.path) {
            continue;
        }
        let from_here = |id: &str| runs.get(id).is_some_and(|(path, _)| *path == part.path);
        RunFolder::each_call_of(&part.path, from_here, |call| {
            calls.entry(call.run_id.clone()).or_default().push(call);
        })?;
    }
    let manifest = joined_manifest(&parts);
    let all = parts.iter().map(|part| (part.path.as_path(), &part.set));
    let spending = spending(all, &mut notes)?;
    let path = reports.join(&manifest.acceptance_id);
    if path.exists() {
        return Err(MergeError::There { path });
    }
    // Under another name until it is whole: a half-written folder would be taken for a run that lacks records.
    let staging = Staging::begin(reports, &manifest.acceptance_id)?;
    let written = write(&staging.path, &manifest, first, &runs, extra, calls)?;
    if let Some(spending) = spending {
        RunFolder::write_spending(&written, &spending)?;
    }
    std::fs::rename(&written, &path).map_err(|source| io_error("make folder", &path, source))?;
    Ok(Merged {
        folder: path,
        notes,
    })
}

/// A folder that no reader looks into; it goes with this. What a killed merge left of it is removed by the next.
struct Staging {
    path: PathBuf,
}

impl Staging {
    fn begin(reports: &Path, id: &str) -> Result<Self, FolderError> {
        let path = reports.join(format!(".merging-{id}"));
        let fail = |source| io_error("make folder", &path, source);
        if path.exists() {
            let busy =
                LiveFolder::open(&path.join(id)).is_ok_and(|folder| folder.is_being_written());
            if busy {
                return Err(FolderError::Busy { path });
            }
            std::fs::remove_dir_all(&path).map_err(fail)?;
        }
        std::fs::create_dir_all(&path).map_err(fail)?;
        Ok(Self { path })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next merge.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// Writes the joined folder, and returns its path.
fn write(
    reports: &Path,
    manifest: &Manifest,
    first: &Part,
    runs: &Found<'_>,
    extra: Found<'_>,
    mut calls: HashMap<String, Vec<CallRecord>>,
) -> Result<PathBuf, FolderError> {
    let mut folder = RunFolder::create(reports, manifest)?;
    if let Some(prices) = &first.set.prices {
        RunFolder::write_prices(folder.path(), prices)?;
    }
    for planned in &manifest.plan.runs {
        if let Some((_, run)) = runs.get(&*planned.run_id) {
            let calls = calls.remove(&*planned.run_id).unwrap_or_default();
            folder.append(run, &calls)?;
        }
    }
    let mut extra: Vec<&RunRecord> = extra.into_values().map(|(_, run)| run).collect();
    extra.sort_by_key(|run| (&run.scenario, &run.input, run.repetition, &run.run_id));
    for run in extra {
        folder.append_sensitivity(run)?;
    }
    Ok(folder.path().to_owned())
}

/// The manifest of the whole: the earliest shard's, of no shard.
fn joined_manifest(parts: &[Part]) -> Manifest {
    let mut manifests: Vec<&Manifest> = parts.iter().map(|part| &part.set.manifest).collect();
    manifests.sort_by_key(|manifest| (&manifest.started_at, &manifest.acceptance_id));
    let mut manifest = manifests[0].clone();
    manifest.shard = None;
    manifest.acceptance_id = format!("{}-merged", manifest.acceptance_id);
    manifest.sealed()
}

/// Whether two folders are parts of one acceptance.
fn alike(first: &Part, other: &Part) -> Result<(), MergeError> {
    let (a, b) = (&first.set.manifest, &other.set.manifest);
    if b.shard.is_none() {
        return Err(MergeError::Whole {
            path: other.path.clone(),
        });
    }
    let of = |manifest: &Manifest| manifest.shard.map_or(0, |shard| shard.of).to_string();
    let settings = |manifest: &Manifest| {
        let all = manifest.plan.configurations.iter();
        let all: Vec<_> = all.map(|one| &one.effective_settings).collect();
        serde_json::to_string(&all).expect("settings are JSON")
    };
    let endpoint = |manifest: &Manifest| {
        let endpoint = manifest.endpoint.as_ref();
        endpoint.map_or("none".to_owned(), |endpoint| endpoint.host.clone())
    };
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let rows = [
        ("plan hashes", a.plan_hash.clone(), b.plan_hash.clone()),
        (
            "versions",
            a.versions.spillgate.clone(),
            b.versions.spillgate.clone(),
        ),
        (
            "tokenizers",
            a.versions.tokenizer.clone(),
            b.versions.tokenizer.clone(),
        ),
        ("record schemas", a.schema.to_string(), b.schema.to_string()),
        ("numbers of shards", of(a), of(b)),
        ("subjects", a.subject.clone(), b.subject.clone()),
        ("endpoints", endpoint(a), endpoint(b)),
        ("stages", text(&a.stage), text(&b.stage)),
        ("modes", text(&a.mode), text(&b.mode)),
        ("effective settings", settings(a), settings(b)),
        (
            "price tables",
            text(&first.set.prices),
            text(&other.set.prices),
        ),
    ];
    for (what, first_value, other_value) in rows {
        if first_value != other_value {
            return Err(MergeError::Unlike(Box::new(Difference {
                first: first.path.clone(),
                other: other.path.clone(),
                what: what.to_owned(),
                first_value,
                other_value,
            })));
        }
    }
    Ok(())
}

type Found<'a> = HashMap<&'a str, (&'a Path, &'a RunRecord)>;

/// The records of all parts, one of each run; a finished one goes before one that the harness failed.
fn join<'a>(
    parts: &'a [Part],
    pick: fn(&RunSet) -> &Vec<RunRecord>,
    notes: &mut Vec<String>,
) -> Result<Found<'a>, MergeError> {
    let mut found: Found<'a> = HashMap::new();
    for part in parts {
        let shard = part.set.manifest.shard.expect("parts are shards");
        let mut again = 0;
        for run in pick(&part.set) {
            if !shard.holds(&run.pair_id) {
                return Err(MergeError::Misplaced {
                    path: part.path.clone(),
                    shard: shard.to_string(),
                    run_id: run.run_id.clone(),
                });
            }
            let lost = |run: &RunRecord| run.outcome == Outcome::Infrastructure;
            match found.get(&*run.run_id) {
                Some((_, known)) if lost(known) || lost(run) => {
                    if lost(known) {
                        found.insert(&run.run_id, (&part.path, run));
                    }
                }
                Some((path, known)) => {
                    again += 1;
                    agree(path, known, &part.path, run)?;
                }
                None => {
                    found.insert(&run.run_id, (&part.path, run));
                }
            }
        }
        if again > 0 {
            notes.push(format!(
                "{}: {again} {} recorded before with the same results; each counts once",
                part.path.display(),
                if again == 1 { "run was" } else { "runs were" }
            ));
        }
    }
    Ok(found)
}

/// Two records of one run differ in what is measured alone.
fn agree(first: &Path, a: &RunRecord, other: &Path, b: &RunRecord) -> Result<(), MergeError> {
    if a.unmeasured() == b.unmeasured() {
        return Ok(());
    }
    let fields = |run: &RunRecord| {
        let value = serde_json::to_value(run.unmeasured()).expect("records are JSON");
        value.as_object().cloned().unwrap_or_default()
    };
    let (a_fields, b_fields) = (fields(a), fields(b));
    let (what, value) = a_fields
        .iter()
        .find(|(name, value)| b_fields.get(*name) != Some(value))
        .expect("records that differ differ in a field");
    Err(MergeError::Contradiction {
        run_id: a.run_id.clone(),
        difference: Box::new(Difference {
            first: first.to_owned(),
            other: other.to_owned(),
            what: what.clone(),
            first_value: value.to_string(),
            other_value: b_fields
                .get(what)
                .map_or_else(String::new, ToString::to_string),
        }),
    })
}

fn no_gap(manifest: &Manifest, runs: &Found<'_>, torn: &[String]) -> Result<(), MergeError> {
    let planned = &manifest.plan.runs;
    let missing: Vec<_> = planned
        .iter()
        .filter(|run| !runs.contains_key(&*run.run_id))
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let of = manifest.shard.map_or(1, |shard| shard.of);
    let shards: BTreeSet<u32> = missing
        .iter()
        .filter_map(|run| {
            (1..=of).find(|n| crate::Shard::new(*n, of).is_some_and(|s| s.holds(&run.pair_id)))
        })
        .collect();
    let mut named: Vec<String> = shards
        .iter()
        .take(NAMED)
        .map(|n| format!("{n}/{of}"))
        .collect();
    if shards.len() > NAMED {
        named.push(format!("and {} more", shards.len() - NAMED));
    }
    Err(MergeError::Gap {
        missing: missing.len(),
        planned: planned.len(),
        first: first.run_id.clone(),
        shards: named.join(", "),
        torn: torn.iter().map(|line| format!("; {line}")).collect(),
    })
}
