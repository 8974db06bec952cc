//! The stores from outside: memory and files under one set of laws, and files under every fault.

mod children;
mod corruption;
mod laws;
mod leftovers;
mod memory;
mod places;
mod quota;

use std::path::Path;
use std::sync::Arc;

use spill_engine::{
    ByteRange, Bytes, Content, FileOptions, FileStore, ItemHead, ItemKey, MemoryOptions,
    MemoryStore, Millis, Owner, ReadFailure, Reader, SeededNames, SpillStore, StoreError,
    StoredItem, Visibility, WhenFull,
};
use tempfile::TempDir;

const NOW: Millis = Millis::new(1_000_000);

fn memory(quota: u64, when_full: WhenFull) -> MemoryStore {
    MemoryStore::new(MemoryOptions {
        quota: Bytes::new(quota),
        when_full,
        names: Arc::new(SeededNames::new(1)),
    })
}

fn options(root: &Path) -> FileOptions {
    FileOptions::new(root)
}

fn store_in(root: &Path) -> FileStore {
    FileStore::new(options(root)).expect("a path that is text")
}

/// A file store in a directory of its own, which lives as long as the first value.
fn files() -> (TempDir, FileStore) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let store = store_in(&root_in(&home));
    (home, store)
}

fn root_in(home: &TempDir) -> std::path::PathBuf {
    let path = home.path().canonicalize().expect("an existing directory");
    path.join("spill")
}

fn both(check: impl Fn(&dyn SpillStore)) {
    check(&memory(1 << 30, WhenFull::Refuse));
    let (home, store) = files();
    check(&store);
    drop(home);
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

fn head_of(owner: &str) -> ItemHead {
    ItemHead::text_of(&Owner::new(owner), NOW)
}

fn open_to_all() -> ItemHead {
    ItemHead {
        visibility: Visibility::Anyone,
        ..head()
    }
}

fn put(
    store: &dyn SpillStore,
    head: ItemHead,
    content: impl Into<Content>,
) -> Result<StoredItem, StoreError> {
    let name = store.name("read_file.txt")?;
    let (key, locator) = (name.key(), name.locator().to_owned());
    let stored = store.put(name, head, content.into())?;
    assert_eq!(
        (stored.key, &stored.locator),
        (key, &locator),
        "known before"
    );
    Ok(stored)
}

fn keep(store: &dyn SpillStore, content: impl Into<Content>) -> ItemKey {
    put(store, head(), content).expect("room for it").key
}

fn read(store: &dyn SpillStore, key: ItemKey) -> Result<Vec<u8>, ReadFailure> {
    let slice = store.read(key, &us(), ByteRange::ALL, NOW)?;
    Ok(slice.bytes().to_vec())
}

/// Names in the store's directory, sorted.
fn names_in(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).expect("the store's directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("names of ours are text"))
        .collect();
    names.sort();
    names
}

/// Bytes of all files of items, as the file system counts them.
fn bytes_in(root: &Path) -> u64 {
    let size = |name: &String| {
        let path = root.join(name);
        path.symlink_metadata().expect("an entry").len()
    };
    let names = names_in(root);
    names.iter().filter(|name| *name != ".lock").map(size).sum()
}
