use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use spill_record::{APPENDED_FILES, MANIFEST_FILE};

use crate::error::RemoteError;
use crate::layout::{COMPLETE, COMPLETE_SCHEMA, Complete, Listed, Part, is_file_name};
use crate::remote::Remote;

/// Bytes of one part at most, but for a single longer line.
const PIECE_BYTES: u64 = 8 << 20;

/// Publishes a local run folder that grows.
///
/// A call that failed can be made again: what was put counts, and nothing is put twice.
#[derive(Debug)]
pub struct Publisher {
    remote: Remote,
    folder: PathBuf,
    generation: u32,
    numbers: u32,
    /// How much of each appended file is in parts.
    read: [u64; APPENDED_FILES.len()],
    pending: VecDeque<Piece>,
    parts: Vec<Listed>,
    /// Objects of former generations.
    old: Vec<String>,
}

/// Lines of a file that become a part.
#[derive(Debug)]
struct Piece {
    part: Part,
    start: u64,
    end: u64,
}

impl Publisher {
    /// Begins to publish `folder`: the manifest, and what else it holds already. A place that holds the same acceptance is
    /// gone on with; nobody takes it for complete from then on.
    ///
    /// # Errors
    ///
    /// Fails when the store refuses, or the place holds another acceptance.
    pub async fn begin(remote: Remote, folder: &Path) -> Result<Self, RemoteError> {
        let manifest = read(&folder.join(MANIFEST_FILE))?;
        let found = remote.objects().await?;
        if found.contains_key(MANIFEST_FILE) {
            if remote.get(MANIFEST_FILE).await? != Some(manifest) {
                return Err(RemoteError::Other {
                    url: remote.url().to_owned(),
                });
            }
            remote.delete(COMPLETE).await?;
        } else {
            remote.create(MANIFEST_FILE, manifest).await?;
        }
        let before = found.keys().filter_map(|name| Part::of(name));
        let generation = before.map(|part| part.generation).max().unwrap_or(0) + 1;
        let (old, whole): (Vec<String>, Vec<String>) = found
            .into_keys()
            .filter(|name| name != MANIFEST_FILE && name != COMPLETE)
            .partition(|name| Part::of(name).is_some());
        let mut publisher = Self {
            remote,
            folder: folder.to_owned(),
            generation,
            numbers: 0,
            read: [0; APPENDED_FILES.len()],
            pending: VecDeque::new(),
            parts: Vec::new(),
            old,
        };
        // What was derived from the records as they were goes.
        let here = put_whole(&publisher.remote, folder).await?;
        for name in whole {
            if !here.iter().any(|listed| listed.name == name) {
                publisher.remote.delete(&name).await?;
            }
        }
        publisher.publish().await?;
        Ok(publisher)
    }

    /// The place.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The local folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts the whole lines that were appended since the last time.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read or the store refuses.
    pub async fn publish(&mut self) -> Result<(), RemoteError> {
        if self.pending.is_empty() {
            self.look()?;
        }
        while let Some(piece) = self.pending.front() {
            let bytes = read_range(&self.folder.join(piece.part.file), piece.start, piece.end)?;
            let name = piece.part.name();
            let listed = Listed::of(&name, &bytes);
            self.remote.create(&name, bytes).await?;
            self.parts.push(listed);
            self.pending.pop_front();
        }
        Ok(())
    }

    /// Puts what is left and the whole files, of a folder that lacks something: nobody takes it for complete.
    ///
    /// # Errors
    ///
    /// As [`Publisher::publish`].
    pub async fn close(&mut self) -> Result<(), RemoteError> {
        self.put_rest().await.map(drop)
    }

    /// Puts what is left, the whole files, and last what says that all is there.
    ///
    /// # Errors
    ///
    /// As [`Publisher::publish`].
    pub async fn finish(&mut self) -> Result<(), RemoteError> {
        let mut objects = self.put_rest().await?;
        objects.extend(self.parts.iter().cloned());
        put_complete(&self.remote, &self.folder, objects).await?;
        while let Some(name) = self.old.last() {
            self.remote.delete(name).await?;
            self.old.pop();
        }
        Ok(())
    }

    async fn put_rest(&mut self) -> Result<Vec<Listed>, RemoteError> {
        self.publish().await?;
        // A batch that had failed before may have been followed by more lines.
        self.publish().await?;
        put_whole(&self.remote, &self.folder).await
    }

    /// Finds the new lines of each file. The calls of a run stand in their file before the run does in its own, so files are
    /// looked at in the order of `APPENDED_FILES` and put in the reverse one: no run is there without its calls.
    fn look(&mut self) -> Result<(), RemoteError> {
        let mut found = Vec::new();
        for (index, file) in APPENDED_FILES.into_iter().enumerate() {
            let ends = piece_ends(&self.folder.join(file), self.read[index])?;
            found.push((index, file, ends));
        }
        for (index, file, ends) in found.into_iter().rev() {
            for end in ends {
                self.numbers += 1;
                let part = Part {
                    file,
                    generation: self.generation,
                    number: self.numbers,
                };
                let start = std::mem::replace(&mut self.read[index], end);
                self.pending.push_back(Piece { part, start, end });
            }
        }
        Ok(())
    }
}

/// Puts the derived files of a fetched folder over those that are there, as after it was rendered again.
///
/// # Errors
///
/// As [`Publisher::publish`].
pub async fn refresh(remote: &Remote, folder: &Path) -> Result<(), RemoteError> {
    let complete = match remote.get(COMPLETE).await? {
        None => None,
        Some(text) => Some(crate::fetch::complete(remote, &text)?),
    };
    remote.delete(COMPLETE).await?;
    let mut objects = put_whole(remote, folder).await?;
    match complete {
        None => Ok(()),
        Some(complete) => {
            let parts = complete.objects.into_iter();
            objects.extend(parts.filter(|listed| Part::of(&listed.name).is_some()));
            put_complete(remote, folder, objects).await
        }
    }
}

async fn put_complete(
    remote: &Remote,
    folder: &Path,
    mut objects: Vec<Listed>,
) -> Result<(), RemoteError> {
    objects.push(Listed::of(
        MANIFEST_FILE,
        &read(&folder.join(MANIFEST_FILE))?,
    ));
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let complete = Complete {
        schema: COMPLETE_SCHEMA,
        objects,
    };
    let mut text =
        serde_json::to_vec_pretty(&complete).expect("names and numbers have a JSON form");
    text.push(b'\n');
    remote.put(COMPLETE, text.into()).await
}

/// Puts every file that is neither the manifest nor appended to.
async fn put_whole(remote: &Remote, folder: &Path) -> Result<Vec<Listed>, RemoteError> {
    let mut put = Vec::new();
    for (name, path) in whole_files(folder)? {
        let bytes = read(&path)?;
        put.push(Listed::of(&name, &bytes));
        remote.put(&name, bytes).await?;
    }
    Ok(put)
}

fn whole_files(folder: &Path) -> Result<BTreeMap<String, PathBuf>, RemoteError> {
    let failed = |source| RemoteError::Local {
        action: "list",
        path: folder.to_owned(),
        source,
    };
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let whole = name != MANIFEST_FILE && name != COMPLETE && !APPENDED_FILES.contains(&&*name);
        if whole && is_file_name(&name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            files.insert(name, entry.path());
        }
    }
    Ok(files)
}

/// Where the pieces behind `start` end: at the ends of lines. A torn last line is not there yet.
fn piece_ends(path: &Path, start: u64) -> Result<Vec<u64>, RemoteError> {
    let mut ends = Vec::new();
    let mut from = start;
    loop {
        let bytes = match read_range(path, from, from + PIECE_BYTES) {
            Err(RemoteError::Local { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                return Ok(ends);
            }
            read => read?,
        };
        let lines = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map(|at| at as u64 + 1);
        let is_full = bytes.len() as u64 == PIECE_BYTES;
        match lines {
            Some(length) => from += length,
            // Part of one very long line.
            None if is_full => from += PIECE_BYTES,
            None => return Ok(ends),
        }
        ends.push(from);
        if !is_full {
            return Ok(ends);
        }
    }
}

fn local(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RemoteError {
    move |source| RemoteError::Local {
        action,
        path: path.to_owned(),
        source,
    }
}

fn read(path: &Path) -> Result<Bytes, RemoteError> {
    Ok(std::fs::read(path).map_err(local("read", path))?.into())
}

/// Bytes of a file from `start` to `end`, or to its own end.
fn read_range(path: &Path, start: u64, end: u64) -> Result<Bytes, RemoteError> {
    let failed = local("read", path);
    let mut file = File::open(path).map_err(&failed)?;
    file.seek(SeekFrom::Start(start)).map_err(&failed)?;
    let mut bytes = Vec::new();
    file.take(end - start)
        .read_to_end(&mut bytes)
        .map_err(&failed)?;
    Ok(bytes.into())
}
