//! Run folders that flags name, as local ones.

use std::path::{Path, PathBuf};

use spill_remote::{Fetched, Remote, fetch, refresh};
use tempfile::TempDir;

use super::{Place, block_on};
use crate::{in_full, out};

/// Local folders: those that were named as paths, and copies of those on a store, which go with this.
pub(crate) struct Folders {
    paths: Vec<PathBuf>,
    copies: Vec<Copied>,
    _temp: Option<TempDir>,
}

struct Copied {
    path: PathBuf,
    remote: Remote,
}

impl Folders {
    /// The folders that `named` are; a place on a store that is no run folder stands for all those directly in it.
    pub(crate) fn of<'a>(named: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<Self> {
        let mut folders = Self {
            paths: Vec::new(),
            copies: Vec::new(),
            _temp: None,
        };
        for path in named {
            match Place::of(path)? {
                Place::Folder(path) => folders.paths.push(path),
                Place::Store(remote) => block_on(folders.copy(remote))??,
            }
        }
        Ok(folders)
    }

    /// One folder; a place that holds several is none.
    pub(crate) fn one(named: &PathBuf) -> anyhow::Result<Self> {
        let folders = Self::of([named])?;
        anyhow::ensure!(
            folders.paths.len() == 1,
            "{} holds {} run folders (name one of them)",
            named.display(),
            folders.paths.len()
        );
        Ok(folders)
    }

    async fn copy(&mut self, remote: Remote) -> anyhow::Result<()> {
        if remote.manifest().await?.is_some() {
            return self.copy_one(remote).await;
        }
        let names = remote.folders().await?;
        anyhow::ensure!(
            !names.is_empty(),
            "{} is no run folder and holds none (name one, or the prefix given to `spillgate accept --out`)",
            remote.url()
        );
        for name in names {
            self.copy_one(remote.child(&name)).await?;
        }
        Ok(())
    }

    async fn copy_one(&mut self, remote: Remote) -> anyhow::Result<()> {
        if self._temp.is_none() {
            self._temp = Some(
                tempfile::Builder::new()
                    .prefix("spillgate-fetched-")
                    .tempdir()?,
            );
        }
        let temp = self._temp.as_ref().map_or(Path::new(""), TempDir::path);
        // A folder of its own, so that no accepted run is found beside it.
        let path = temp.join(self.copies.len().to_string()).join("folder");
        std::fs::create_dir_all(&path)?;
        match fetch(&remote, &path).await? {
            Fetched::Complete => {}
            Fetched::Unfinished => out::note(format_args!(
                "note: {} is not finished: what its process has published so far is read",
                remote.url()
            )),
        }
        self.paths.push(path.clone());
        self.copies.push(Copied { path, remote });
        Ok(())
    }

    /// All of them, in the order in which they were named.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The first.
    pub(crate) fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// How people call a file of these folders.
    pub(crate) fn named(&self, path: &Path) -> String {
        self.renamed(&path.display().to_string())
    }

    /// A text in which copies have the names of what they are copies of.
    pub(crate) fn renamed(&self, text: &str) -> String {
        self.copies.iter().fold(text.to_owned(), |text, copy| {
            text.replace(&copy.path.display().to_string(), copy.remote.url())
        })
    }

    /// An error that names what people named.
    pub(crate) fn error(&self, error: impl Into<anyhow::Error>) -> anyhow::Error {
        let error = error.into();
        if self.copies.is_empty() {
            return error;
        }
        anyhow::Error::msg(self.renamed(&in_full(&error)))
    }

    /// Puts derived files, made anew in the copies, to where they were copied from.
    pub(crate) fn give_back(&self) -> anyhow::Result<()> {
        for copy in &self.copies {
            block_on(refresh(&copy.remote, &copy.path))??;
        }
        Ok(())
    }
}
