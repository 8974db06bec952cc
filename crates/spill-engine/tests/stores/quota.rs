//! The quota of a file store, within one process.

use std::sync::Barrier;

use spill_engine::{
    Bytes, FileOptions, FileStore, ItemHead, ItemKey, Millis, ReadFailure, SpillStore, StoreError,
    WhenFull,
};

use super::{NOW, bytes_in, head, options, put, read, root_in};

fn limited(home: &tempfile::TempDir, quota: u64, when_full: WhenFull) -> FileStore {
    let options = FileOptions {
        quota: Bytes::new(quota),
        when_full,
        ..options(&root_in(home))
    };
    FileStore::new(options).expect("a path")
}

fn put_at(store: &FileStore, at: u64, bytes: usize) -> ItemKey {
    let head = ItemHead {
        now: NOW.after(Millis::new(at)),
        ..head()
    };
    put(store, head, vec![1; bytes]).expect("room").key
}

#[test]
fn all_files_count_and_the_oldest_goes() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 12_000, WhenFull::Evict);
    let keys = [
        put_at(&store, 2, 5_000),
        put_at(&store, 1, 5_000),
        put_at(&store, 3, 5_000),
        put_at(&store, 4, 5_000),
    ];
    let found = keys.map(|key| read(&store, key).err());
    assert_eq!(
        found,
        [
            Some(ReadFailure::Evicted),
            Some(ReadFailure::Evicted),
            None,
            None
        ]
    );
    assert_eq!(store.usage().bytes, bytes_in(&root_in(&home)));
    assert!(store.usage().bytes <= 12_000);
}

#[test]
fn a_store_that_refuses_keeps_what_it_promised() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 12_000, WhenFull::Refuse);
    let keys = [put_at(&store, 1, 5_000), put_at(&store, 2, 5_000)];
    let refused = put(&store, head(), vec![1; 5_000]);
    assert!(
        matches!(refused, Err(StoreError::Full { .. })),
        "{refused:?}"
    );
    assert!(keys.iter().all(|key| read(&store, *key).is_ok()));
    assert_eq!(
        put(&store, head(), vec![1; 500]).map(|_| ()),
        Ok(()),
        "being full latches nothing"
    );
    assert_eq!(store.usage().bytes, bytes_in(&root_in(&home)));
}

#[test]
fn expired_items_make_room_first() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 12_000, WhenFull::Evict);
    let old = put_at(&store, 0, 5_000);
    let brief = ItemHead {
        time_to_live: Some(Millis::new(3)),
        now: NOW.after(Millis::new(1)),
        ..head()
    };
    let brief = put(&store, brief, vec![1; 5_000]).expect("room").key;
    put_at(&store, 9, 5_000);
    assert_eq!(read(&store, old).err(), None);
    let later = NOW.after(Millis::new(9));
    let failure = store.describe(brief, &super::us(), later).err();
    assert_eq!(failure, Some(ReadFailure::Expired));
}

#[test]
fn a_stream_that_outgrows_the_quota_leaves_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 3 << 20, WhenFull::Refuse);
    let kept = put_at(&store, 0, 1 << 20);
    let mut writer = store
        .begin(store.name("stream").expect("a name"), head())
        .expect("room");
    let piece = vec![1; 100_000];
    let written = (0..100)
        .take_while(|_| writer.write(&piece).is_ok())
        .count();
    assert!((19..=20).contains(&written), "{written}");
    assert!(matches!(writer.finish(), Err(StoreError::Full { .. })));
    assert_eq!(store.usage().bytes, bytes_in(&root_in(&home)));
    assert_eq!(store.usage().items, 1);
    assert!(read(&store, kept).is_ok());
}

#[test]
fn descriptions_of_the_dead_do_not_pile_up() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 20_000, WhenFull::Evict);
    for at in 0..400 {
        put_at(&store, at, 1_000);
    }
    assert_eq!(store.usage().bytes, bytes_in(&root_in(&home)));
    assert!(store.usage().bytes <= 20_000);
    assert!(store.usage().items >= 1);
}

#[test]
fn a_lowered_quota_is_swept_down_to() {
    let home = tempfile::tempdir().expect("a directory");
    let store = limited(&home, 1 << 20, WhenFull::Evict);
    let keys: Vec<ItemKey> = (0..10).map(|at| put_at(&store, at, 10_000)).collect();
    let lower = limited(&home, 35_000, WhenFull::Evict);
    assert_eq!(lower.sweep(NOW).evicted, 7);
    assert_eq!(read(&store, keys[6]), Err(ReadFailure::Evicted));
    assert!(read(&store, keys[7]).is_ok());
    let kept = limited(&home, 5_000, WhenFull::Refuse);
    assert_eq!(
        kept.sweep(NOW).evicted,
        0,
        "a store that refuses evicts nothing"
    );
}

#[test]
fn parallel_puts_never_pass_the_quota() {
    let home = tempfile::tempdir().expect("a directory");
    let stores = [
        limited(&home, 100_000, WhenFull::Refuse),
        limited(&home, 100_000, WhenFull::Refuse),
    ];
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for index in 0..8 {
            let (stores, barrier) = (&stores, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..5 {
                    let _ = put(&stores[index % 2], head(), vec![1; 9_000]);
                }
            });
        }
    });
    assert!(bytes_in(&root_in(&home)) <= 100_000);
    let [one, other] = stores.map(|store| store.usage());
    assert_eq!((one.items, one.bytes), (other.items, other.bytes));
    assert_eq!(one.bytes, bytes_in(&root_in(&home)));
    assert_eq!((one.items, one.stored + other.stored), (10, 10));
}
