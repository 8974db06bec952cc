//! The object store from outside: one set of checks, in memory and against an S3 endpoint on the loopback.

mod endpoint;
mod faults;
mod laws;
mod lifetime;
mod policies;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use spill_engine::{
    ByteRange, Content, ItemHead, ItemKey, Millis, Owner, ReadFailure, Reader, StoreError,
    StoredItem, Visibility,
};
use spill_store_object::{ObjectOptions, ObjectSpillStore};

use endpoint::Endpoint;

const NOW: Millis = Millis::new(1_000);

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// Runs `check` in memory and against S3, each time with an empty place for objects.
fn both(check: impl AsyncFn(Arc<dyn ObjectStore>)) {
    runtime().block_on(async {
        check(Arc::new(InMemory::new())).await;
        let endpoint = Endpoint::start().await;
        check(endpoint.bucket()).await;
    });
}

fn store(objects: &Arc<dyn ObjectStore>) -> ObjectSpillStore {
    ObjectSpillStore::new(objects.clone(), ObjectOptions::new("spill/results"))
}

fn owner() -> Owner {
    Owner::new("session")
}

fn us() -> Reader {
    Reader::Of(owner())
}

fn head() -> ItemHead {
    ItemHead::text_of(&owner(), NOW)
}

fn open_to_all() -> ItemHead {
    ItemHead {
        visibility: Visibility::Anyone,
        ..head()
    }
}

async fn put(
    store: &ObjectSpillStore,
    head: ItemHead,
    content: impl Into<Content>,
) -> Result<StoredItem, StoreError> {
    let name = store.name()?;
    let (key, locator) = (name.key(), name.locator().to_owned());
    let stored = store.put(name, head, content.into()).await?;
    assert_eq!((stored.key, &stored.locator), (key, &locator));
    assert_eq!(store.key_of(&locator), Some(key));
    Ok(stored)
}

async fn keep(store: &ObjectSpillStore, content: impl Into<Content>) -> ItemKey {
    put(store, head(), content).await.expect("room").key
}

async fn read(store: &ObjectSpillStore, key: ItemKey) -> Result<Vec<u8>, ReadFailure> {
    let slice = store.read(key, &us(), ByteRange::ALL, NOW).await?;
    Ok(slice.bytes().to_vec())
}

fn bytes(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}
