//! How a policy, which waits for nobody, uses a store that has to be awaited.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use spill_engine::{
    ByteRange, Bytes, Call, Content, ItemHead, ItemKey, ItemName, ItemWriter, Kept, Millis, Owner,
    Policy, ReadFailure, Reader, Shaped, Slice, SpillStore, StoreError, StoreUsage, StoredItem,
    Swept, ToolResult, Verdict, Warning,
};

use crate::store::ObjectSpillStore;

/// The store to make a policy with. What the policy puts is held in memory, under a name of the object store, until
/// [`shape`](Self::shape) has stored it there or given it up.
///
/// It is no store to use by itself: without `shape` nothing is ever stored, and it reads back nothing.
///
/// ```
/// use std::sync::Arc;
/// use object_store::memory::InMemory;
/// use serde_json::json;
/// use spill_engine::{Call, CallId, Owner, ToolResult, configure};
/// use spill_store_object::{ObjectOptions, ObjectSpillStore, Staging};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let store = Arc::new(ObjectSpillStore::new(Arc::new(InMemory::new()), ObjectOptions::new("spill")));
/// let staging = Arc::new(Staging::new(store.clone()));
/// let policy = configure("inline-cap", &json!({"maxInlineBytes": 1_000}), staging.clone())?;
///
/// let session = Owner::new("session 1");
/// let call = Call::new("run_tests", CallId { iteration: 1, index: 0 }).owned_by(&session);
/// let shaped = staging.shape(&*policy, &call, ToolResult::text("x".repeat(5_000))).await;
/// assert!(shaped.prompt.len() <= 1_000, "stored, and only then replaced");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Staging {
    store: Arc<ObjectSpillStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    staged: HashMap<ItemKey, (ItemHead, Content)>,
    /// What calls under way read back, as the object store has said, and how many calls.
    read_back: HashMap<(ItemKey, Option<Owner>), u32>,
}

impl Staging {
    /// In front of `store`.
    pub fn new(store: Arc<ObjectSpillStore>) -> Self {
        Self {
            store,
            state: Mutex::default(),
        }
    }

    /// The object store.
    pub fn store(&self) -> &Arc<ObjectSpillStore> {
        &self.store
    }

    /// Shapes a result by `policy`, which was made with this staging, and stores what it replaces. When that fails the result
    /// stays, with a warning.
    pub async fn shape(&self, policy: &dyn Policy, call: &Call<'_>, result: ToolResult) -> Shaped {
        let noted = self.note_read_backs(call).await;
        let shaped = policy.shape(call, result);
        {
            let mut state = self.lock();
            for known in noted {
                if let Entry::Occupied(mut calls) = state.read_back.entry(known) {
                    match calls.get() {
                        0 | 1 => drop(calls.remove()),
                        more => *calls.get_mut() = more - 1,
                    }
                }
            }
        }
        let Verdict::Replace { spilled, .. } = &shaped.verdict else {
            return shaped;
        };
        let staged = spilled
            .key
            .and_then(|key| Some((key, self.lock().staged.remove(&key)?)));
        let stored = match staged {
            Some((key, (head, content))) => {
                let name = ItemName::new(key, key.to_string());
                self.store.put(name, head, content).await
            }
            None => Err(StoreError::Unusable {
                place: "the staging".to_owned(),
                fact: "the policy was made with another store".to_owned(),
            }),
        };
        match stored {
            Ok(_) => shaped,
            Err(error) => kept(shaped, call, &error),
        }
    }

    /// Asks the object store about the keys among the arguments, so that the policy knows a read-back when it sees one.
    async fn note_read_backs(&self, call: &Call<'_>) -> Vec<(ItemKey, Option<Owner>)> {
        let mut keys = HashSet::new();
        keys_in(call.arguments, &mut keys);
        let reader = call.owner.cloned().map_or(Reader::Stranger, Reader::Of);
        let mut noted = Vec::new();
        for key in keys {
            if self.store.describe(key, &reader, call.now).await.is_ok() {
                noted.push((key, call.owner.cloned()));
            }
        }
        let mut state = self.lock();
        for known in &noted {
            *state.read_back.entry(known.clone()).or_default() += 1;
        }
        drop(state);
        noted
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys alone, or behind the last slash of a URI and before its question mark.
fn keys_in(value: &Value, into: &mut HashSet<ItemKey>) {
    match value {
        Value::String(text) => {
            let last = text.rsplit('/').next().unwrap_or_default();
            let id = last.split('?').next().unwrap_or_default();
            into.extend(id.parse::<ItemKey>());
        }
        Value::Array(items) => items.iter().for_each(|item| keys_in(item, into)),
        Value::Object(map) => map.values().for_each(|item| keys_in(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The result as it came, and why.
fn kept(shaped: Shaped, call: &Call<'_>, error: &StoreError) -> Shaped {
    let (tool, reason) = (call.tool.to_owned(), error.to_string());
    let warning = match error {
        StoreError::TooLarge { .. } | StoreError::Full { .. } => Warning::NoRoom { tool, reason },
        StoreError::Taken
        | StoreError::Latched { .. }
        | StoreError::Unusable { .. }
        | StoreError::Io { .. } => Warning::StoreFailed { tool, reason },
    };
    Shaped {
        prompt: shaped.record_text.clone(),
        verdict: Verdict::Keep(Kept::Warned(warning)),
        ..shaped
    }
}

impl SpillStore for Staging {
    fn name(&self, _label: &str) -> Result<ItemName, StoreError> {
        self.store.name()
    }

    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        let stored = StoredItem {
            key: name.key(),
            locator: name.locator().to_owned(),
            media_type: head.media_type.clone(),
            size: content.size(),
            expires_at: head.expires_at(),
        };
        self.lock().staged.insert(name.key(), (head, content));
        Ok(stored)
    }

    /// Refused, so that a result that is still arriving is gathered: shape it whole.
    fn begin<'a>(
        &'a self,
        _name: ItemName,
        _head: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        Err(StoreError::Unusable {
            place: "the staging".to_owned(),
            fact: "it takes whole results only".to_owned(),
        })
    }

    /// Knows what the call that is being shaped reads back, and nothing else.
    fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        _now: Millis,
    ) -> Result<StoredItem, ReadFailure> {
        let owner = match reader {
            Reader::Of(owner) => Some(owner.clone()),
            Reader::Stranger => None,
        };
        if !self.lock().read_back.contains_key(&(key, owner)) {
            return Err(ReadFailure::NotFound);
        }
        Ok(StoredItem {
            key,
            locator: key.to_string(),
            media_type: String::new(),
            size: Bytes::new(0),
            expires_at: None,
        })
    }

    fn read(
        &self,
        _key: ItemKey,
        _reader: &Reader,
        _range: ByteRange,
        _now: Millis,
    ) -> Result<Slice, ReadFailure> {
        Err(ReadFailure::NotFound)
    }

    fn key_of(&self, locator: &str) -> Option<ItemKey> {
        self.store.key_of(locator)
    }

    /// Nothing: release the object store.
    fn release(&self, _owner: &Owner) {}

    /// Nothing: sweep the object store.
    fn sweep(&self, _now: Millis) -> Swept {
        Swept::default()
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}
