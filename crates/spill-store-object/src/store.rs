//! The store: put once, read by range, swept.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes as Shared;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};
use serde::{Deserialize, Serialize};
use spill_engine::{
    ByteRange, Bytes, Content, Damage, ItemHead, ItemKey, ItemName, Millis, Names, OsNames, Owner,
    ReadFailure, Reader, Slice, StoreError, StoredItem, Swept, Visibility, WhenFull,
};

use crate::object::{self, Description, Found, PAGE_BYTES};

/// What the first request for an item asks for: most descriptions, and small items whole.
const FIRST_BYTES: u64 = 8 << 10;
/// How many descriptions are remembered. Items never change, so a remembered one is true.
const REMEMBERED: usize = 1_024;
/// How many removed items are remembered in the store, so that a late reader is told why.
const GRAVES: usize = 4_096;
/// Requests of one sweep that are under way together.
const TOGETHER: usize = 8;

/// How an object store is used.
#[derive(Clone)]
pub struct ObjectOptions {
    /// What all objects' names begin with: other objects are not touched.
    pub prefix: String,
    /// The most bytes of all items after a sweep, and of one item at once.
    pub quota: Bytes,
    /// What a sweep does beyond.
    pub when_full: WhenFull,
    /// Where names come from. Replicas must not draw the same.
    pub names: Arc<dyn Names>,
}

impl ObjectOptions {
    /// Below `prefix`, 4 GiB, the oldest goes when full, names from the operating system.
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            quota: Bytes::new(4 << 30),
            when_full: WhenFull::Evict,
            names: Arc::new(OsNames),
        }
    }
}

/// Holds items as objects. Any number of these, in any number of processes, may share one prefix.
pub struct ObjectSpillStore {
    objects: Arc<dyn ObjectStore>,
    options: ObjectOptions,
    known: Mutex<HashMap<ItemKey, Arc<Description>>>,
}

/// Why an item is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Why {
    Expired,
    Evicted,
}

/// What is left of a removed item.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grave {
    owner: Option<String>,
    why: Why,
}

impl ObjectSpillStore {
    /// Asks for nothing yet.
    pub fn new(objects: Arc<dyn ObjectStore>, options: ObjectOptions) -> Self {
        Self {
            objects,
            options,
            known: Mutex::default(),
        }
    }

    /// Picks a name and stores nothing. The locator is the key.
    ///
    /// # Errors
    /// [`StoreError`] when the source of names fails.
    pub fn name(&self) -> Result<ItemName, StoreError> {
        let key = ItemKey::from_number(self.draw()?);
        Ok(ItemName::new(key, key.to_string()))
    }

    /// Stores `content` under `name`: created, never overwritten.
    ///
    /// # Errors
    /// [`StoreError`] when it is not stored: [`StoreError::Taken`] when the name has another item.
    pub async fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        let (size, quota) = (content.size().get(), self.options.quota.get());
        if size > quota {
            return Err(StoreError::TooLarge { size, quota });
        }
        let key = name.key();
        let nonce = format!("{:032x}", self.draw()?);
        let (bytes, description) = object::encode(&head, nonce, content.as_bytes());
        drop(content);
        let create = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(bytes);
        match self
            .objects
            .put_opts(&self.item(key), payload, create)
            .await
        {
            Ok(_) => {}
            Err(object_store::Error::AlreadyExists { .. }) => {
                // It may be ours: a put is tried again when its answer was lost.
                let there = self.fetch(key).await;
                if !there.is_ok_and(|there| there.is_some_and(|there| *there == description)) {
                    return Err(StoreError::Taken);
                }
            }
            Err(error) => return Err(refused("storing a result", &error)),
        }
        let stored = description.stored(key);
        self.remember(key, Arc::new(description));
        Ok(stored)
    }

    /// What is known of an item. One that another replica has removed meanwhile may still be known; its bytes are gone.
    ///
    /// # Errors
    /// [`ReadFailure`]; an item that `reader` may not see is not found.
    pub async fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<StoredItem, ReadFailure> {
        let description = self.visible(key, reader, now).await?;
        Ok(description.stored(key))
    }

    /// Exactly the bytes of `range` that exist, every page that they touch checked. One request where the item is known.
    ///
    /// # Errors
    /// [`ReadFailure`]; an item that `reader` may not see is not found.
    pub async fn read(
        &self,
        key: ItemKey,
        reader: &Reader,
        range: ByteRange,
        now: Millis,
    ) -> Result<Slice, ReadFailure> {
        let description = self.visible(key, reader, now).await?;
        let size = Bytes::new(description.size);
        let wanted = range.within(size)?;
        if wanted.is_empty() {
            return Ok(Slice::part(wanted.start, size, Content::from(Vec::new())));
        }
        let start = wanted.start / PAGE_BYTES * PAGE_BYTES;
        let end = wanted
            .end
            .checked_next_multiple_of(PAGE_BYTES)
            .map_or(description.size, |end| end.min(description.size));
        let data_at = description.data_at;
        let (pages, object_bytes) = match self.get(key, data_at + start..data_at + end).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Err(self.gone(key, reader).await),
            Err(error) => return Err(unreadable(&error)),
        };
        let (expected, found) = (description.size, object_bytes.saturating_sub(data_at));
        if expected != found || pages.len() as u64 != end - start {
            return Err(ReadFailure::Corrupt(Damage::Length { expected, found }));
        }
        description
            .check(&pages, start)
            .map_err(ReadFailure::Corrupt)?;
        let place = |position: u64| {
            usize::try_from(position - start).expect("a position inside bytes in memory")
        };
        let bytes = pages[place(wanted.start)..place(wanted.end)].to_vec();
        Ok(Slice::part(wanted.start, size, Content::from(bytes)))
    }

    /// The key that a locator names.
    pub fn key_of(&self, locator: &str) -> Option<ItemKey> {
        locator.parse().ok()
    }

    /// Removes what only `owner` may read; how many items that was. Asks for the description of each item.
    ///
    /// # Errors
    /// [`StoreError`] when the items cannot be listed or removed.
    pub async fn release(&self, owner: &Owner) -> Result<u64, StoreError> {
        let theirs = Visibility::Only(owner.clone());
        let mut released = 0;
        for item in self.items().await? {
            if item
                .description
                .is_some_and(|known| known.visibility == theirs)
            {
                self.remove(&self.item(item.key)).await?;
                self.lock().remove(&item.key);
                released += 1;
            }
        }
        Ok(released)
    }

    /// Removes what has expired, then the oldest as far as the quota asks for. Replicas may sweep at the same time. Asks for
    /// the description of each item.
    ///
    /// # Errors
    /// [`StoreError`] when the items cannot be listed or removed; what was removed until then stays removed.
    pub async fn sweep(&self, now: Millis) -> Result<Swept, StoreError> {
        let mut items = self.items().await?;
        let mut used: u64 = items.iter().map(|item| item.bytes).sum();
        // Nobody can read a damaged item: it goes first.
        let created = |item: &Item| item.description.as_ref().map(|known| known.created);
        items.sort_by_key(|item| (!item.expired(now), created(item), item.key));
        let mut swept = Swept::default();
        for item in items {
            let over = used > self.options.quota.get() && self.options.when_full == WhenFull::Evict;
            let why = match (item.expired(now), over) {
                (true, _) => Why::Expired,
                (false, true) => Why::Evicted,
                (false, false) => continue,
            };
            self.retire(&item, why).await?;
            used -= item.bytes;
            swept.bytes += item.bytes;
            match why {
                Why::Expired => swept.expired += 1,
                Why::Evicted => swept.evicted += 1,
            }
        }
        self.forget_graves().await?;
        Ok(swept)
    }

    fn draw(&self) -> Result<u128, StoreError> {
        let drawn = self.options.names.draw();
        drawn.map_err(|error| StoreError::Io {
            action: "drawing a name".to_owned(),
            kind: error.kind(),
            message: error.to_string(),
        })
    }

    fn item(&self, key: ItemKey) -> Path {
        self.folder("items").join(key.as_str())
    }

    fn grave(&self, key: ItemKey) -> Path {
        self.folder("gone").join(key.as_str())
    }

    fn folder(&self, name: &str) -> Path {
        Path::from(self.options.prefix.as_str()).join(name)
    }

    async fn visible(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<Arc<Description>, ReadFailure> {
        let remembered = self.lock().get(&key).cloned();
        let description = match remembered {
            Some(description) => description,
            None => match self.fetch(key).await? {
                Some(description) => description,
                None => return Err(self.gone(key, reader).await),
            },
        };
        if !description.visibility.admits(reader) {
            return Err(ReadFailure::NotFound);
        }
        if description.expired(now) {
            return Err(ReadFailure::Expired);
        }
        Ok(description)
    }

    /// Asks for a description; `None` when there is no such item.
    async fn fetch(&self, key: ItemKey) -> Result<Option<Arc<Description>>, ReadFailure> {
        let mut most = FIRST_BYTES;
        loop {
            let (bytes, object_bytes) = match self.get(key, 0..most).await {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(unreadable(&error)),
            };
            match object::decode(&bytes, object_bytes).map_err(ReadFailure::Corrupt)? {
                Found::Whole(description) => {
                    let description = Arc::new(description);
                    self.remember(key, description.clone());
                    return Ok(Some(description));
                }
                Found::Longer(needed) if needed > most => most = needed,
                // It has grown shorter between two requests.
                Found::Longer(_) => return Err(ReadFailure::Corrupt(Damage::Description)),
            }
        }
    }

    /// Bytes of an object, and how many it has.
    async fn get(
        &self,
        key: ItemKey,
        range: std::ops::Range<u64>,
    ) -> object_store::Result<(Shared, u64)> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let found = self.objects.get_opts(&self.item(key), options).await?;
        let object_bytes = found.meta.size;
        Ok((found.bytes().await?, object_bytes))
    }

    /// Why an item is not there: its owner learns it, a stranger learns nothing.
    async fn gone(&self, key: ItemKey, reader: &Reader) -> ReadFailure {
        self.lock().remove(&key);
        let Ok(found) = self.objects.get(&self.grave(key)).await else {
            return ReadFailure::NotFound;
        };
        let Ok(bytes) = found.bytes().await else {
            return ReadFailure::NotFound;
        };
        let Ok(grave) = serde_json::from_slice::<Grave>(&bytes) else {
            return ReadFailure::NotFound;
        };
        let visibility = grave.owner.map_or(Visibility::Anyone, |owner| {
            Visibility::Only(Owner::new(&owner))
        });
        match (visibility.admits(reader), grave.why) {
            (false, _) => ReadFailure::NotFound,
            (true, Why::Expired) => ReadFailure::Expired,
            (true, Why::Evicted) => ReadFailure::Evicted,
        }
    }

    /// Every item of ours. Objects with other names are somebody else's.
    async fn items(&self) -> Result<Vec<Item>, StoreError> {
        let listed = self.objects.list(Some(&self.folder("items")));
        let listed: Vec<(ItemKey, u64)> = listed
            .try_filter_map(|meta| async move {
                let key = meta.location.filename().and_then(|name| name.parse().ok());
                Ok(key.map(|key| (key, meta.size)))
            })
            .try_collect()
            .await
            .map_err(|error| refused("listing the store", &error))?;
        let described = futures::stream::iter(listed).map(|(key, bytes)| async move {
            let remembered = self.lock().get(&key).cloned();
            let description = match remembered {
                Some(description) => Some(description),
                // No range can be asked of it.
                None if bytes == 0 => None,
                None => match self.fetch(key).await {
                    Ok(Some(description)) => Some(description),
                    Err(ReadFailure::Corrupt(Damage::Unreadable { .. })) | Ok(None) => return None,
                    Err(_) => None,
                },
            };
            Some(Item {
                key,
                bytes,
                description,
            })
        });
        let items = described.buffer_unordered(TOGETHER);
        Ok(items.filter_map(|item| async move { item }).collect().await)
    }

    /// The grave first: a reader is never told less than the truth.
    async fn retire(&self, item: &Item, why: Why) -> Result<(), StoreError> {
        if let Some(description) = &item.description {
            let owner = match &description.visibility {
                Visibility::Anyone => None,
                Visibility::Only(owner) => Some(owner.as_str().to_owned()),
            };
            let grave = serde_json::to_vec(&Grave { owner, why }).expect("texts have a JSON form");
            self.objects
                .put(&self.grave(item.key), PutPayload::from(grave))
                .await
                .map_err(|error| refused("noting a removal", &error))?;
        }
        self.remove(&self.item(item.key)).await?;
        self.lock().remove(&item.key);
        Ok(())
    }

    async fn remove(&self, object: &Path) -> Result<(), StoreError> {
        match self.objects.delete(object).await {
            // Another replica was faster.
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(refused("removing an item", &error)),
        }
    }

    async fn forget_graves(&self) -> Result<(), StoreError> {
        let graves = self.objects.list(Some(&self.folder("gone")));
        let graves: Vec<_> = graves
            .try_collect()
            .await
            .map_err(|error| refused("listing the store", &error))?;
        let mut graves: Vec<_> = graves
            .into_iter()
            .map(|meta| (meta.last_modified, meta.location))
            .collect();
        graves.sort();
        let spare = graves.len().saturating_sub(GRAVES);
        for (_, grave) in graves.into_iter().take(spare) {
            self.remove(&grave).await?;
        }
        Ok(())
    }

    fn remember(&self, key: ItemKey, description: Arc<Description>) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, description);
    }

    /// A panic elsewhere leaves no half-made state behind, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, HashMap<ItemKey, Arc<Description>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An item as it is listed.
struct Item {
    key: ItemKey,
    bytes: u64,
    /// `None` for a damaged one.
    description: Option<Arc<Description>>,
}

impl Item {
    fn expired(&self, now: Millis) -> bool {
        self.description
            .as_ref()
            .is_none_or(|known| known.expired(now))
    }
}

/// Says what the object store said, no more than a line of it.
fn words(error: &object_store::Error) -> String {
    let words = error.to_string();
    let line = words.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}

fn refused(action: &str, error: &object_store::Error) -> StoreError {
    StoreError::Io {
        action: action.to_owned(),
        kind: match error {
            object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        },
        message: words(error),
    }
}

fn unreadable(error: &object_store::Error) -> ReadFailure {
    ReadFailure::Corrupt(Damage::Unreadable {
        message: words(error),
    })
}
