use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use spill_record::MANIFEST_FILE;

use crate::error::RemoteError;

/// A place on an object store: a run folder, or what holds some.
#[derive(Clone, Debug)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    at: Path,
    url: String,
}

impl Remote {
    /// The place `prefix` of `store`, called `url` in messages.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str, url: String) -> Self {
        Self {
            store,
            at: Path::from(prefix),
            url,
        }
    }

    /// How people call it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The place `name` below it.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self {
            store: self.store.clone(),
            at: self.at.clone().join(name),
            url: self.url_of(name),
        }
    }

    /// The place that it lies in, and its own name there; `None` at the bucket's root.
    #[must_use]
    pub fn parent(&self) -> Option<(Self, String)> {
        let name = self.at.filename()?.to_owned();
        let up: Path = self.at.parts().take(self.at.parts_count() - 1).collect();
        let url = self.url.strip_suffix(&*name).unwrap_or(&self.url);
        let remote = Self {
            store: self.store.clone(),
            at: up,
            url: url.trim_end_matches('/').to_owned(),
        };
        Some((remote, name))
    }

    /// Names of the run folders directly below it, sorted.
    ///
    /// # Errors
    ///
    /// Fails when the store does not answer.
    pub async fn folders(&self) -> Result<Vec<String>, RemoteError> {
        let listed = self
            .store
            .list_with_delimiter(Some(&self.at))
            .await
            .map_err(|error| RemoteError::store("list", self.url.clone(), &error))?;
        let mut names = Vec::new();
        for prefix in listed.common_prefixes {
            let name = prefix.filename().unwrap_or_default();
            if self.child(name).manifest().await?.is_some() {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The bytes of its manifest; `None` where it is no run folder.
    ///
    /// # Errors
    ///
    /// Fails when the store does not answer.
    pub async fn manifest(&self) -> Result<Option<Bytes>, RemoteError> {
        self.get(MANIFEST_FILE).await
    }

    /// Whether it was published to its end.
    ///
    /// # Errors
    ///
    /// Fails when the store does not answer.
    pub async fn is_complete(&self) -> Result<bool, RemoteError> {
        Ok(self.get(crate::layout::COMPLETE).await?.is_some())
    }

    /// Objects directly in it, with their sizes.
    pub(crate) async fn objects(&self) -> Result<BTreeMap<String, u64>, RemoteError> {
        let listed = self
            .store
            .list_with_delimiter(Some(&self.at))
            .await
            .map_err(|error| RemoteError::store("list", self.url.clone(), &error))?;
        let named = listed.objects.into_iter();
        Ok(named
            .filter_map(|object| Some((object.location.filename()?.to_owned(), object.size)))
            .collect())
    }

    /// An object's bytes; `None` where there is none.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        let failed =
            |error: &object_store::Error| RemoteError::store("read", self.url_of(name), error);
        match self.store.get(&self.at.clone().join(name)).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(|error| failed(&error))?)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Writes an object over one that may be there.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        let at = self.at.clone().join(name);
        match self.store.put(&at, bytes.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(RemoteError::store("write", self.url_of(name), &error)),
        }
    }

    /// Writes an object that is not there. One with the same bytes is ours, written by a request whose answer was lost.
    pub(crate) async fn create(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        let at = self.at.clone().join(name);
        let create = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&at, bytes.clone().into(), create).await {
            Ok(_) => Ok(()),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => match self.get(name).await? {
                Some(held) if held == bytes => Ok(()),
                Some(_) | None => Err(RemoteError::Taken {
                    url: self.url_of(name),
                }),
            },
            Err(error) => Err(RemoteError::store("write", self.url_of(name), &error)),
        }
    }

    /// Removes an object, which may be gone already.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        match self.store.delete(&self.at.clone().join(name)).await {
            Err(error) if !is_missing(&error) => {
                Err(RemoteError::store("remove", self.url_of(name), &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }
}

/// A bucket that is not there is another matter.
fn is_missing(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
        && !error.to_string().contains("<Code>NoSuchBucket</Code>")
}
