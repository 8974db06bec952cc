//! Run folders on an object store: where they are, and what is done with them.

mod away;
mod fetched;

use std::path::{Path, PathBuf};

use anyhow::Context;
use spill_remote::{Remote, StoreUrl};

pub(crate) use away::{Away, Publishing};
pub(crate) use fetched::Folders;

/// What begins a URL of the file system.
const FILE_URL: &str = "file://";

/// Where a flag says that run folders are or go.
pub(crate) enum Place {
    /// A path.
    Folder(PathBuf),
    /// An object store.
    Store(Remote),
}

impl Place {
    /// Reads a path or a URL. Nothing is asked of a store yet.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        Ok(match named(path)? {
            Named::Path(path) => Self::Folder(path),
            Named::Url(url) => Self::Store(connect(&url)?),
        })
    }
}

/// What a text spells.
enum Named {
    Path(PathBuf),
    Url(StoreUrl),
}

fn named(path: &Path) -> anyhow::Result<Named> {
    let Some(text) = path.to_str() else {
        return Ok(Named::Path(path.to_owned()));
    };
    if let Some(path) = text.strip_prefix(FILE_URL) {
        anyhow::ensure!(
            path.starts_with('/'),
            "{text} names no absolute path (write file:///folder, or the path itself)"
        );
        return Ok(Named::Path(path.into()));
    }
    Ok(match StoreUrl::parse(text)? {
        None => Named::Path(path.to_owned()),
        Some(url) => Named::Url(url),
    })
}

#[cfg(feature = "s3")]
fn connect(url: &StoreUrl) -> anyhow::Result<Remote> {
    let variables = std::env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(spill_remote::connect(url, variables)?)
}

#[cfg(not(feature = "s3"))]
fn connect(url: &StoreUrl) -> anyhow::Result<Remote> {
    anyhow::bail!(
        "{url} cannot be reached: this program was built without the feature s3 (name a path, or build with it)"
    )
}

/// A path for what cannot be on a store; `what` is named when it is asked to be.
pub(crate) fn path_only(what: &str, path: &Path) -> anyhow::Result<PathBuf> {
    match named(path)? {
        Named::Path(path) => Ok(path),
        Named::Url(url) => anyhow::bail!(
            "{what} is a folder of this machine, and {url} is a URL (name a path; the folders of `accept` and `merge` can be on a store)"
        ),
    }
}

/// Waits for what a store is asked, outside any runtime.
pub(crate) fn block_on<T>(asked: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime can be made")?;
    Ok(runtime.block_on(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_url_is_its_path() {
        let path = |text: &str| match Place::of(Path::new(text)) {
            Ok(Place::Folder(path)) => path.to_str().map(str::to_owned),
            Ok(Place::Store(_)) | Err(_) => None,
        };
        assert_eq!(path("file:///a/b").as_deref(), Some("/a/b"));
        assert_eq!(path("a/b").as_deref(), Some("a/b"));
        assert_eq!(path("file://a/b"), None);
        assert_eq!(path("gs://bucket/a"), None);
    }
}
