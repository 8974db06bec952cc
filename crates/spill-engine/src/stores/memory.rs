//! Items in memory: for one execution with a budget, or shared with a quota, eviction and expiry.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    ByteRange, Content, ItemHead, ItemKey, ItemName, ItemWriter, Millis, Names, OsNames, Owner,
    ReadFailure, Reader, Slice, SpillStore, StoreError, StoreUsage, StoredItem, Swept, Visibility,
    WhenFull,
};
use crate::measure::Bytes;

/// How many removed items are remembered, so that a late reader is told why.
const REMEMBERED: usize = 4_096;

/// How a memory store behaves.
#[derive(Clone)]
pub struct MemoryOptions {
    /// The most bytes of content held.
    pub quota: Bytes,
    /// What happens beyond.
    pub when_full: WhenFull,
    /// Where names come from.
    pub names: Arc<dyn Names>,
}

impl MemoryOptions {
    /// For one execution: within `budget`, and nothing stored ever goes before the end.
    pub fn per_execution(budget: Bytes) -> Self {
        Self {
            quota: budget,
            when_full: WhenFull::Refuse,
            names: Arc::new(OsNames),
        }
    }

    /// For many sessions: within `quota`, the least recently used goes first.
    pub fn shared(quota: Bytes) -> Self {
        Self {
            when_full: WhenFull::Evict,
            ..Self::per_execution(quota)
        }
    }

    /// Takes its names from `names`.
    #[must_use]
    pub fn with_names(self, names: Arc<dyn Names>) -> Self {
        Self { names, ..self }
    }
}

/// Holds items in memory, sharing the caller's allocation.
pub struct MemoryStore {
    options: MemoryOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    items: HashMap<ItemKey, Held>,
    /// Keys by last use; the numbers only rise.
    by_use: BTreeMap<u64, ItemKey>,
    uses: u64,
    gone: Gone,
    usage: StoreUsage,
}

struct Held {
    content: Content,
    visibility: Visibility,
    media_type: String,
    expires_at: Option<Millis>,
    used: u64,
}

impl Held {
    fn expired(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|last| now > last)
    }

    fn describe(&self, key: ItemKey) -> StoredItem {
        StoredItem {
            key,
            locator: key.to_string(),
            media_type: self.media_type.clone(),
            size: self.content.size(),
            expires_at: self.expires_at,
        }
    }
}

/// What was removed, the latest [`REMEMBERED`]: an owner still learns why a reference is dead, a stranger learns nothing.
#[derive(Default)]
struct Gone {
    why: HashMap<ItemKey, (Visibility, ReadFailure)>,
    order: VecDeque<ItemKey>,
}

impl Gone {
    fn note(&mut self, key: ItemKey, visibility: Visibility, why: ReadFailure) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.why.remove(&oldest);
        }
        self.order.push_back(key);
        self.why.insert(key, (visibility, why));
    }

    fn failure(&self, key: ItemKey, reader: &Reader) -> ReadFailure {
        match self.why.get(&key) {
            Some((visibility, why)) if visibility.admits(reader) => why.clone(),
            _ => ReadFailure::NotFound,
        }
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        let state = State {
            usage: StoreUsage {
                quota_bytes: options.quota.get(),
                ..StoreUsage::default()
            },
            ..State::default()
        };
        Self {
            options,
            state: Mutex::new(state),
        }
    }

    /// A panic elsewhere leaves no half-made state behind, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpillStore for MemoryStore {
    fn name(&self, _label: &str) -> Result<ItemName, StoreError> {
        let number = self
            .options
            .names
            .draw()
            .map_err(|error| StoreError::io("drawing a name", &error))?;
        let key = ItemKey::from_number(number);
        Ok(ItemName {
            key,
            locator: key.to_string(),
            suffix: String::new(),
        })
    }

    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        let mut state = self.lock();
        let stored = state.insert(name.key, head, content, &self.options);
        match stored {
            Ok(_) => state.usage.stored += 1,
            Err(_) => state.usage.refused += 1,
        }
        stored
    }

    fn begin<'a>(
        &'a self,
        name: ItemName,
        head: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        Ok(Box::new(Arriving {
            store: self,
            name: Some(name),
            head,
            bytes: Vec::new(),
            failed: None,
        }))
    }

    fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<StoredItem, ReadFailure> {
        let mut state = self.lock();
        state
            .visible(key, reader, now)
            .map(|held| held.describe(key))
    }

    fn read(
        &self,
        key: ItemKey,
        reader: &Reader,
        range: ByteRange,
        now: Millis,
    ) -> Result<Slice, ReadFailure> {
        let mut state = self.lock();
        let held = state.visible(key, reader, now)?;
        let range = range.within(held.content.size())?;
        let content = held.content.clone();
        state.touch(key);
        drop(state);
        let place =
            |position| usize::try_from(position).expect("a position inside bytes in memory");
        Ok(Slice::shared(content, place(range.start)..place(range.end)))
    }

    fn key_of(&self, locator: &str) -> Option<ItemKey> {
        locator.parse().ok()
    }

    fn release(&self, owner: &Owner) {
        let mut state = self.lock();
        let theirs = Visibility::Only(owner.clone());
        let keys = state.keys(|held| held.visibility == theirs);
        let dropped: Vec<_> = keys.into_iter().map(|key| state.remove(key)).collect();
        state.gone.forget(&theirs);
        drop(state);
        drop(dropped);
    }

    fn sweep(&self, now: Millis) -> Swept {
        self.lock().drop_expired(now)
    }

    fn usage(&self) -> StoreUsage {
        self.lock().usage
    }
}

impl Gone {
    fn forget(&mut self, visibility: &Visibility) {
        self.why.retain(|_, (theirs, _)| theirs != visibility);
        self.order.retain(|key| self.why.contains_key(key));
    }
}

impl State {
    fn insert(
        &mut self,
        key: ItemKey,
        head: ItemHead,
        content: Content,
        options: &MemoryOptions,
    ) -> Result<StoredItem, StoreError> {
        if self.items.contains_key(&key) || self.gone.why.contains_key(&key) {
            return Err(StoreError::Taken);
        }
        self.make_room(content.size(), head.now, options)?;
        self.uses += 1;
        let held = Held {
            expires_at: head.expires_at(),
            content,
            visibility: head.visibility,
            media_type: head.media_type,
            used: self.uses,
        };
        let stored = held.describe(key);
        self.usage.items += 1;
        self.usage.bytes += stored.size.get();
        self.usage.peak_bytes = self.usage.peak_bytes.max(self.usage.bytes);
        self.by_use.insert(self.uses, key);
        self.items.insert(key, held);
        Ok(stored)
    }

    fn make_room(
        &mut self,
        size: Bytes,
        now: Millis,
        options: &MemoryOptions,
    ) -> Result<(), StoreError> {
        let (size, quota) = (size.get(), options.quota.get());
        if size > quota {
            return Err(StoreError::TooLarge { size, quota });
        }
        if self.usage.bytes.saturating_add(size) > quota {
            self.drop_expired(now);
        }
        while self.usage.bytes.saturating_add(size) > quota {
            let oldest = self.by_use.first_key_value().map(|(_, key)| *key);
            match (options.when_full, oldest) {
                (WhenFull::Evict, Some(key)) => self.retire(key, ReadFailure::Evicted),
                (WhenFull::Evict, None) | (WhenFull::Refuse, _) => {
                    return Err(StoreError::Full {
                        size,
                        used: self.usage.bytes,
                        quota,
                    });
                }
            };
        }
        Ok(())
    }

    fn visible(
        &mut self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<&Held, ReadFailure> {
        if self.items.get(&key).is_some_and(|held| held.expired(now)) {
            self.retire(key, ReadFailure::Expired);
        }
        match self.items.get(&key) {
            Some(held) if held.visibility.admits(reader) => Ok(held),
            Some(_) => Err(ReadFailure::NotFound),
            None => Err(self.gone.failure(key, reader)),
        }
    }

    fn touch(&mut self, key: ItemKey) {
        self.uses += 1;
        if let Some(held) = self.items.get_mut(&key) {
            self.by_use.remove(&held.used);
            held.used = self.uses;
            self.by_use.insert(self.uses, key);
        }
    }

    fn keys(&self, wanted: impl Fn(&Held) -> bool) -> Vec<ItemKey> {
        let items = self.items.iter();
        items
            .filter(|(_, held)| wanted(held))
            .map(|(key, _)| *key)
            .collect()
    }

    fn drop_expired(&mut self, now: Millis) -> Swept {
        let mut swept = Swept::default();
        for key in self.keys(|held| held.expired(now)) {
            swept.expired += 1;
            swept.bytes += self.retire(key, ReadFailure::Expired);
        }
        swept
    }

    /// Removes an item and remembers why; the bytes that became free.
    fn retire(&mut self, key: ItemKey, why: ReadFailure) -> u64 {
        let Some(held) = self.remove(key) else {
            return 0;
        };
        self.gone.note(key, held.visibility, why);
        held.content.size().get()
    }

    fn remove(&mut self, key: ItemKey) -> Option<Held> {
        let held = self.items.remove(&key)?;
        self.by_use.remove(&held.used);
        self.usage.items -= 1;
        self.usage.bytes -= held.content.size().get();
        Some(held)
    }
}

struct Arriving<'a> {
    store: &'a MemoryStore,
    /// Used up by the end.
    name: Option<ItemName>,
    head: ItemHead,
    bytes: Vec<u8>,
    failed: Option<StoreError>,
}

impl ItemWriter for Arriving<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let (size, quota) = (
            (self.bytes.len() + bytes.len()) as u64,
            self.store.options.quota.get(),
        );
        if size > quota {
            let failed = StoreError::TooLarge { size, quota };
            self.failed = Some(failed.clone());
            self.store.lock().usage.refused += 1;
            return Err(failed);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) -> Result<StoredItem, StoreError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let name = self.name.take().ok_or(StoreError::Taken)?;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        let content = match String::from_utf8(bytes) {
            Ok(text) => Content::from(text),
            Err(other) => Content::from(other.into_bytes()),
        };
        let stored = self.store.put(name, self.head.clone(), content.clone());
        if let Err(error) = &stored {
            self.failed = Some(error.clone());
            self.bytes = content.into_bytes();
        }
        stored
    }

    fn take_back(self: Box<Self>) -> Result<Vec<u8>, StoreError> {
        Ok(self.bytes)
    }
}
