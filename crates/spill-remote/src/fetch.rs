use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use spill_record::{APPENDED_FILES, MANIFEST_FILE};

use crate::error::RemoteError;
use crate::layout::{COMPLETE, COMPLETE_SCHEMA, Complete, Listed, Part, is_file_name};
use crate::remote::Remote;

/// What a fetched folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// All that its process made.
    Complete,
    /// What a process had published that has not ended, or was killed.
    Unfinished,
}

/// Makes a local folder of a published one, in `into`, which is empty.
///
/// # Errors
///
/// Fails when there is no run folder, when it is not as it was published, or a file cannot be written.
pub async fn fetch(remote: &Remote, into: &Path) -> Result<Fetched, RemoteError> {
    let found = remote.objects().await?;
    if !found.contains_key(MANIFEST_FILE) {
        return Err(RemoteError::NoFolder {
            url: remote.url().to_owned(),
        });
    }
    let listed = match remote.get(COMPLETE).await? {
        None => None,
        Some(text) => {
            let listed = complete(remote, &text)?.objects.into_iter();
            Some(
                listed
                    .map(|one| (one.name.clone(), one))
                    .collect::<BTreeMap<_, _>>(),
            )
        }
    };
    let (parts, whole) = wanted(remote, &found, listed.as_ref())?;
    for name in whole {
        let bytes = object(remote, &name, listed.as_ref()).await?;
        write(&into.join(&name), &bytes)?;
    }
    for file in APPENDED_FILES {
        let path = into.join(file);
        let failed = |source| RemoteError::Local {
            action: "write",
            path: path.clone(),
            source,
        };
        let mut parts = parts.iter().filter(|part| part.file == file).peekable();
        // A file for retried runs is there when there are some.
        if parts.peek().is_none() && file == spill_record::RETRIED_FILE {
            continue;
        }
        let mut out = File::create(&path).map_err(failed)?;
        for part in parts {
            let bytes = object(remote, &part.name(), listed.as_ref()).await?;
            out.write_all(&bytes).map_err(failed)?;
        }
    }
    Ok(match listed {
        Some(_) => Fetched::Complete,
        None => Fetched::Unfinished,
    })
}

/// The parts in their order, and the whole files.
fn wanted(
    remote: &Remote,
    found: &BTreeMap<String, u64>,
    listed: Option<&BTreeMap<String, Listed>>,
) -> Result<(Vec<Part>, Vec<String>), RemoteError> {
    let damaged = |fact: String| RemoteError::Damaged {
        url: remote.url().to_owned(),
        fact,
    };
    let names: Vec<&String> = match listed {
        Some(listed) => {
            for (name, one) in listed {
                match found.get(name) {
                    None => return Err(damaged(format!("{name} is missing"))),
                    Some(bytes) if *bytes != one.bytes => {
                        let words =
                            format!("{name} has {bytes} bytes, {} were published", one.bytes);
                        return Err(damaged(words));
                    }
                    Some(_) => {}
                }
            }
            listed.keys().collect()
        }
        None => found.keys().collect(),
    };
    let all: Vec<Part> = names.iter().filter_map(|name| Part::of(name)).collect();
    // One that was killed before its first run was put has taken over from nobody.
    let newest = |with_runs: bool| {
        let parts = all
            .iter()
            .filter(|part| !with_runs || part.file == spill_record::RUNS_FILE);
        parts.map(|part| part.generation).max()
    };
    let generation = newest(true).or_else(|| newest(false));
    let mut parts: Vec<Part> = all
        .into_iter()
        .filter(|part| Some(part.generation) == generation)
        .collect();
    parts.sort_by_key(|part| part.number);
    for (expected, part) in (1..).zip(&parts) {
        if part.number != expected {
            return Err(damaged(format!(
                "part {expected} is missing, {} is there",
                part.name()
            )));
        }
    }
    let whole = names.into_iter().filter(|name| {
        Part::of(name).is_none()
            && *name != COMPLETE
            && is_file_name(name)
            && !APPENDED_FILES.contains(&&***name)
    });
    Ok((parts, whole.cloned().collect()))
}

async fn object(
    remote: &Remote,
    name: &str,
    listed: Option<&BTreeMap<String, Listed>>,
) -> Result<Bytes, RemoteError> {
    let damaged = |fact: String| RemoteError::Damaged {
        url: remote.url().to_owned(),
        fact,
    };
    let bytes = remote.get(name).await?;
    let bytes = bytes.ok_or_else(|| damaged(format!("{name} went while it was read")))?;
    let known = listed.and_then(|listed| listed.get(name));
    if known.is_some_and(|known| *known != Listed::of(name, &bytes)) {
        return Err(damaged(format!("{name} holds other bytes")));
    }
    Ok(bytes)
}

/// Reads what says that all is there.
pub(crate) fn complete(remote: &Remote, text: &[u8]) -> Result<Complete, RemoteError> {
    let damaged = |fact: String| RemoteError::Damaged {
        url: remote.url().to_owned(),
        fact,
    };
    let complete: Complete = serde_json::from_slice(text)
        .map_err(|error| damaged(format!("{COMPLETE} is not readable: {error}")))?;
    if complete.schema > COMPLETE_SCHEMA {
        let words = format!(
            "{COMPLETE} has schema {}, this program reads up to {COMPLETE_SCHEMA}; use the newer spillgate",
            complete.schema
        );
        return Err(damaged(words));
    }
    Ok(complete)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), RemoteError> {
    std::fs::write(path, bytes).map_err(|source| RemoteError::Local {
        action: "write",
        path: path.to_owned(),
        source,
    })
}
