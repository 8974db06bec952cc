//! Every system call that a file store makes fails in turn, in every way, and the process ends at every one of them: nothing
//! that was promised is lost, and nothing that was lost is promised.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::sys::Ask;
use super::sys::plan::{How, with};
use super::{Durability, FileOptions, FileStore};
use crate::measure::Bytes;
use crate::stores::{
    ByteRange, ItemHead, ItemKey, Millis, Owner, ReadFailure, Reader, SeededNames, SpillStore,
    StoreError, StoredItem, WhenFull,
};

const NOW: Millis = Millis::new(5);
const PUT: usize = 5_000;
const STREAM: usize = 9_000;

fn options(root: &Path, durability: Durability) -> FileOptions {
    FileOptions {
        quota: Bytes::new(1 << 20),
        when_full: WhenFull::Refuse,
        durability,
        names: Arc::new(SeededNames::new(9)),
        ..FileOptions::new(root)
    }
}

fn store_in(root: &Path) -> FileStore {
    FileStore::new(options(root, Durability::Process)).expect("a path")
}

fn head(owner: &str) -> ItemHead {
    ItemHead::text_of(&Owner::new(owner), NOW)
}

fn read(store: &FileStore, key: ItemKey, owner: &str) -> Result<Vec<u8>, ReadFailure> {
    let reader = Reader::Of(Owner::new(owner));
    let slice = store.read(key, &reader, ByteRange::ALL, NOW)?;
    Ok(slice.bytes().to_vec())
}

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..=250).cycle().skip(seed.into()).take(length).collect()
}

/// A store with an item that was promised, and what a crash of somebody else left.
struct Scene {
    _home: tempfile::TempDir,
    root: PathBuf,
    kept: ItemKey,
}

/// What a store said about the items of one round.
struct Said {
    put: (ItemKey, Result<StoredItem, StoreError>),
    stream: (ItemKey, Result<StoredItem, StoreError>),
}

impl Scene {
    fn new() -> Self {
        // In memory, so that flushing costs nothing.
        let home = tempfile::tempdir_in("/dev/shm").expect("every Linux has this directory");
        let root = home.path().canonicalize().expect("it exists").join("spill");
        let store = store_in(&root);
        let name = store.name("kept").expect("a name");
        let kept = name.key();
        store
            .put(name, head("kept"), bytes(1, 4_500).into())
            .expect("room");
        std::fs::write(root.join("0123456789abcdef.part"), "half").expect("a file");
        Self {
            _home: home,
            root,
            kept,
        }
    }

    /// One round of everything: a put, a stream in pieces, a read, a sweep, a release.
    fn round(&self, durability: Durability) -> Option<Said> {
        let store = FileStore::new(options(&self.root, durability)).expect("a path");
        let put_name = store.name("put").ok()?;
        let put_key = put_name.key();
        let put = store.put(put_name, head("put"), bytes(2, PUT).into());
        let stream_name = store.name("stream").ok()?;
        let stream_key = stream_name.key();
        let stream = store
            .begin(stream_name, head("stream"))
            .and_then(|mut writer| {
                bytes(3, STREAM)
                    .chunks(3_500)
                    .try_for_each(|piece| writer.write(piece))?;
                writer.finish()
            });
        let gone_name = store.name("gone").ok()?;
        let _ = store.put(gone_name, head("gone"), bytes(4, 100).into());
        let _ = read(&store, self.kept, "kept");
        store.sweep(NOW);
        store.release(&Owner::new("gone"));
        Some(Said {
            put: (put_key, put),
            stream: (stream_key, stream),
        })
    }

    /// What is true whatever happened.
    fn check(&self, said: Option<&Said>, context: &str) {
        let store = store_in(&self.root);
        assert_eq!(
            read(&store, self.kept, "kept"),
            Ok(bytes(1, 4_500)),
            "what was promised is there: {context}"
        );
        if let Some(said) = said {
            let items = [
                ("put", &said.put, bytes(2, PUT)),
                ("stream", &said.stream, bytes(3, STREAM)),
            ];
            for (owner, (key, told), written) in items {
                match (told, read(&store, *key, owner)) {
                    (Ok(_), found) => assert_eq!(found, Ok(written), "{owner}: {context}"),
                    // A fault after the name was given may leave a whole item, never a half one.
                    (Err(_), Ok(found)) => assert_eq!(found, written, "{owner}: {context}"),
                    (Err(_), Err(failure)) => {
                        let gone =
                            matches!(failure, ReadFailure::NotFound | ReadFailure::Corrupt(_));
                        assert!(gone, "{owner}: {failure}, {context}");
                    }
                }
            }
        }
        store.sweep(NOW);
        let usage = store.usage();
        let on_disk = self.bytes_of_items();
        assert_eq!(usage.bytes, on_disk, "the count is true: {context}");
        let left = self
            .names()
            .into_iter()
            .filter(|name| name.ends_with(".part"));
        assert_eq!(left.count(), 0, "swept: {context}");
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.root).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("text"))
            .collect()
    }

    fn bytes_of_items(&self) -> u64 {
        let names = self.names().into_iter().filter(|name| name != ".lock");
        names
            .map(|name| self.root.join(name).metadata().expect("a file").len())
            .sum()
    }
}

/// Lets `how` happen at each ask in turn; how many asks there were.
fn each_ask(
    durability: Durability,
    how: How,
    checks: impl Fn(&Scene, Option<&Said>, Ask),
) -> usize {
    for at in 0.. {
        let scene = Scene::new();
        let mut said = None;
        let Some(met) = with(at, how, || said = scene.round(durability)) else {
            return at;
        };
        let context = format!("{how:?} at {at}, {met:?}");
        scene.check(said.as_ref(), &context);
        checks(&scene, said.as_ref(), met);
    }
    unreachable!("a round ends")
}

fn nothing(_: &Scene, _: Option<&Said>, _: Ask) {}

#[test]
fn a_call_that_fails_once_loses_nothing_that_was_promised() {
    for (durability, error) in [
        (Durability::Process, Errno::NOSPC),
        (Durability::Process, Errno::ACCESS),
        (Durability::Power, Errno::IO),
    ] {
        let asks = each_ask(durability, How::Fails(error), nothing);
        assert!(asks > 50, "a round asks often");
    }
}

#[test]
fn an_interrupted_call_is_made_again() {
    let asks = each_ask(
        Durability::Power,
        How::Fails(Errno::INTR),
        |_, said, met| {
            let said = said.expect("names are drawn");
            assert!(said.put.1.is_ok() && said.stream.1.is_ok(), "{met:?}");
        },
    );
    assert!(asks > 50, "a round asks often");
}

#[test]
fn short_writes_go_on() {
    for most in [1, 4_095] {
        let scene = Scene::new();
        let mut said = None;
        with(0, How::Short(most), || {
            said = scene.round(Durability::Process);
        });
        let said = said.expect("names are drawn");
        assert!(said.put.1.is_ok() && said.stream.1.is_ok());
        scene.check(Some(&said), "short writes");
    }
}

/// Full from some write on: what does not fit is refused, and the store says so.
#[test]
fn a_disk_that_fills_up_refuses_what_does_not_fit() {
    for error in [Errno::NOSPC, Errno::DQUOT] {
        let refused = std::cell::Cell::new(0);
        each_ask(Durability::Process, How::Full(error), |scene, said, _| {
            for told in said
                .into_iter()
                .flat_map(|said| [&said.put.1, &said.stream.1])
            {
                if let Err(error) = told {
                    refused.set(refused.get() + 1);
                    assert!(matches!(error, StoreError::Io { .. }), "{error}");
                }
            }
            assert!(scene.names().len() < 10);
        });
        assert!(refused.get() > 10, "it was full in the middle of items");
    }
}

/// The process ends at each call: between write and rename, too.
#[test]
fn a_process_that_ends_anywhere_leaves_whole_items_or_none() {
    let ended_at_rename = std::cell::Cell::new(0);
    let asks = each_ask(Durability::Power, How::Dies, |scene, _, met| {
        ended_at_rename.set(ended_at_rename.get() + usize::from(met == Ask::Rename));
        let store = store_in(&scene.root);
        let name = store.name("after").expect("a name");
        let key = name.key();
        store
            .put(name, head("after"), bytes(5, 500).into())
            .expect("the next process stores as before");
        assert_eq!(read(&store, key, "after"), Ok(bytes(5, 500)));
    });
    assert!(asks > 50 && ended_at_rename.get() >= 3, "{asks}");
}
