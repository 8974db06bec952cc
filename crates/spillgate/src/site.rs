//! Where an acceptance's run folder is made, and which folder is gone on with.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use spill_record::{LiveFolder, Manifest, Outcome};
use spill_remote::Remote;

use crate::out;
use crate::remote::{Away, Place, block_on};

/// What `--resume` says to go on with what there is, if there is something.
pub(crate) const AUTO: &str = "auto";

/// What the flags say.
pub(crate) struct Asked<'a> {
    pub(crate) out: &'a Path,
    pub(crate) resume: Option<&'a Path>,
    pub(crate) work_dir: Option<&'a Path>,
}

/// Where the folder is made.
pub(crate) struct Site {
    /// The local folder that holds it.
    pub(crate) reports: PathBuf,
    /// The local folder that is gone on with.
    pub(crate) resume: Option<PathBuf>,
    /// Where it is published.
    pub(crate) away: Option<Away>,
}

impl Site {
    /// Where the flags say; `is_ours` tells the folders that `--resume auto` can go on with.
    pub(crate) fn of(
        asked: &Asked<'_>,
        is_ours: impl Fn(&Manifest) -> bool,
    ) -> anyhow::Result<Self> {
        let resume = match asked.resume {
            None => None,
            Some(path) if path == Path::new(AUTO) => None,
            Some(path) => Some(Place::of(path)?),
        };
        let is_auto = asked.resume.is_some() && resume.is_none();
        match (Place::of(asked.out)?, resume) {
            (Place::Store(out), Some(Place::Store(folder))) => {
                let (place, name) = holder(&folder)?;
                ensure!(
                    out.url() == place.url(),
                    "--out {} and --resume {} are two places (leave --out out: it goes on where it is)",
                    out.url(),
                    folder.url()
                );
                Self::from_store(place, &name, asked.work_dir)
            }
            (Place::Folder(_), Some(Place::Store(folder))) => {
                let (place, name) = holder(&folder)?;
                Self::from_store(place, &name, asked.work_dir)
            }
            (Place::Store(out), Some(Place::Folder(path))) => Ok(Self {
                reports: beside(&path),
                resume: Some(path),
                away: Some(Away::to(out, asked.work_dir)?),
            }),
            (Place::Store(out), None) => {
                let name = if is_auto {
                    unfinished_there(&out, is_ours)?
                } else {
                    None
                };
                match name {
                    Some(name) => Self::from_store(out, &name, asked.work_dir),
                    None => {
                        let away = Away::to(out, asked.work_dir)?;
                        Ok(Self {
                            reports: away.work().to_owned(),
                            resume: None,
                            away: Some(away),
                        })
                    }
                }
            }
            (Place::Folder(_), _) if asked.work_dir.is_some() => {
                bail!(
                    "--work-dir is for an --out that is a URL (leave it out, or give --out s3://bucket/prefix)"
                )
            }
            (Place::Folder(_), Some(Place::Folder(path))) => Ok(Self {
                reports: beside(&path),
                resume: Some(path),
                away: None,
            }),
            (Place::Folder(out), None) => Ok(Self {
                resume: if is_auto {
                    unfinished_here(&out, is_ours)
                } else {
                    None
                },
                reports: out,
                away: None,
            }),
        }
    }

    /// A folder of a store is gone on with in a local copy.
    fn from_store(place: Remote, name: &str, work: Option<&Path>) -> anyhow::Result<Self> {
        let away = Away::to(place, work)?;
        let fetched = away.fetch(name);
        if fetched.is_err() {
            away.end(true);
        }
        Ok(Self {
            reports: away.work().to_owned(),
            resume: Some(fetched?),
            away: Some(away),
        })
    }
}

fn holder(folder: &Remote) -> anyhow::Result<(Remote, String)> {
    folder.parent().ok_or_else(|| {
        anyhow::anyhow!(
            "{} is a whole bucket (name a run folder in it)",
            folder.url()
        )
    })
}

/// A folder that was gone on with can lie elsewhere than new ones do.
fn beside(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// The newest folder of a store that is ours and was not published to its end.
fn unfinished_there(
    place: &Remote,
    is_ours: impl Fn(&Manifest) -> bool,
) -> anyhow::Result<Option<String>> {
    let found = async {
        for name in place.folders().await?.into_iter().rev() {
            let folder = place.child(&name);
            let manifest = folder.manifest().await?;
            let manifest = manifest.and_then(|text| serde_json::from_slice::<Manifest>(&text).ok());
            if manifest.is_some_and(|manifest| is_ours(&manifest)) && !folder.is_complete().await? {
                return anyhow::Ok(Some(name));
            }
        }
        Ok(None)
    };
    let found = block_on(found)??;
    say(found.as_deref(), place.url());
    Ok(found)
}

/// The newest folder in `reports` that is ours, lacks runs, and is written by nobody.
fn unfinished_here(reports: &Path, is_ours: impl Fn(&Manifest) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(reports).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    let found = folders.into_iter().rev().find(|path| {
        LiveFolder::open(path).is_ok_and(|mut folder| {
            is_ours(&folder.set().manifest) && !folder.is_being_written() && lacks_runs(&mut folder)
        })
    });
    let name = found.as_deref().map(|path| path.display().to_string());
    say(name.as_deref(), &reports.display().to_string());
    found
}

fn lacks_runs(folder: &mut LiveFolder) -> bool {
    if folder.look(|_| {}).is_err() {
        return false;
    }
    let set = folder.set();
    let ours = |pair: &str| set.manifest.shard.is_none_or(|shard| shard.holds(pair));
    let planned = set
        .manifest
        .plan
        .runs
        .iter()
        .filter(|run| ours(&run.pair_id))
        .count();
    let made = set.runs.iter().filter(|run| match run.outcome {
        Outcome::Succeeded | Outcome::Failed => true,
        Outcome::Infrastructure => false,
    });
    made.count() < planned
}

fn say(found: Option<&str>, place: &str) {
    match found {
        Some(name) => out::note(format_args!("going on with {name}")),
        None => out::note(format_args!(
            "nothing in {place} is to be gone on with: a new run folder is begun"
        )),
    }
}
