use std::sync::{Arc, Barrier};

use spill_engine::{
    ByteRange, ItemHead, ItemKey, MemoryStore, Millis, Owner, ReadFailure, Reader, SpillStore,
    StoreError, Swept, WhenFull,
};

use super::{NOW, both, files, head, head_of, keep, memory, open_to_all, put, read, us};

fn state(store: &dyn SpillStore, keys: &[ItemKey]) -> Vec<Option<ReadFailure>> {
    keys.iter().map(|key| read(store, *key).err()).collect()
}

fn ten(store: &MemoryStore) -> ItemKey {
    keep(store, "x".repeat(10))
}

#[test]
fn a_budget_refuses_and_keeps_what_it_promised() {
    let store = memory(25, WhenFull::Refuse);
    let kept = [ten(&store), ten(&store)];
    let refused = put(&store, head(), "x".repeat(6));
    assert_eq!(
        refused,
        Err(StoreError::Full {
            size: 6,
            used: 20,
            quota: 25
        })
    );
    keep(&store, "x".repeat(5));
    assert_eq!(state(&store, &kept), [None, None]);
    assert_eq!(
        put(&store, head(), "x".repeat(26)),
        Err(StoreError::TooLarge {
            size: 26,
            quota: 25
        })
    );
}

#[test]
fn the_least_recently_used_goes_first() {
    let store = memory(30, WhenFull::Evict);
    let keys = [ten(&store), ten(&store), ten(&store)];
    read(&store, keys[0]).expect("there");
    ten(&store);
    assert_eq!(
        state(&store, &keys),
        [None, Some(ReadFailure::Evicted), None]
    );
    assert_eq!(store.usage().bytes, 30);
}

#[test]
fn an_item_beyond_the_quota_evicts_nothing() {
    let store = memory(30, WhenFull::Evict);
    let key = ten(&store);
    assert!(put(&store, head(), "x".repeat(31)).is_err());
    assert_eq!(state(&store, &[key]), [None]);
}

#[test]
fn expired_items_go_before_older_ones() {
    let store = memory(30, WhenFull::Evict);
    let old = ten(&store);
    let brief = ItemHead {
        time_to_live: Some(Millis::new(5)),
        ..head()
    };
    let brief = put(&store, brief, "x".repeat(10)).expect("room").key;
    let later = ItemHead {
        now: NOW.after(Millis::new(6)),
        ..head()
    };
    put(&store, later, "x".repeat(15)).expect("room");
    assert_eq!(
        state(&store, &[old, brief]),
        [None, Some(ReadFailure::Expired)]
    );
}

/// Expired is its own answer, and it ends the search.
#[test]
fn fault_51_expired_is_terminal_and_says_what_to_do() {
    both(|store| {
        let brief = ItemHead {
            time_to_live: Some(Millis::new(100)),
            ..head()
        };
        let key = put(store, brief, "text".to_owned()).expect("room").key;
        let at = |after| store.read(key, &us(), ByteRange::ALL, NOW.after(Millis::new(after)));
        assert!(at(100).is_ok(), "the last millisecond");
        assert_eq!(at(101), Err(ReadFailure::Expired));
        store.sweep(NOW.after(Millis::new(101)));
        assert_eq!(store.usage().items, 0);
        assert_eq!(at(102), Err(ReadFailure::Expired), "also after the sweep");
        let text = ReadFailure::Expired.to_string();
        assert!(text.contains("call the original tool again") && text.contains("will not help"));
    });
}

/// Without a span, time ends nothing: an item lives as long as its owner.
#[test]
fn fault_52_data_in_use_does_not_expire() {
    both(|store| {
        let key = keep(store, "text".to_owned());
        for minutes in [1, 6, 31, 100_000] {
            let now = NOW.after(Millis::new(minutes * 60_000));
            store.sweep(now);
            assert!(
                store.read(key, &us(), ByteRange::ALL, now).is_ok(),
                "{minutes} minutes"
            );
        }
        store.release(&Owner::new("session"));
        assert_eq!(read(store, key), Err(ReadFailure::NotFound));
    });
}

/// Nothing stored goes while its owner lives, where the store is set to refuse.
#[test]
fn fault_56_the_first_of_many_is_still_there() {
    both(|store| {
        let keys: Vec<ItemKey> = (0..51)
            .map(|index| keep(store, format!("{index}")))
            .collect();
        assert_eq!(read(store, keys[0]), Ok(b"0".to_vec()));
    });
}

#[test]
fn visibility_is_the_owners() {
    both(|store| {
        let ours = keep(store, "ours".to_owned());
        let anyones = put(store, open_to_all(), "anyone's".to_owned())
            .expect("room")
            .key;
        let see = |key, reader: &Reader| store.read(key, reader, ByteRange::ALL, NOW).is_ok();
        let other = Reader::Of(Owner::new("other"));
        let seen = [&us(), &other, &Reader::Stranger]
            .map(|reader| (see(ours, reader), see(anyones, reader)));
        assert_eq!(seen, [(true, true), (false, true), (false, true)]);
        assert_eq!(
            store.describe(ours, &other, NOW),
            Err(ReadFailure::NotFound)
        );
        let unknown = ItemKey::from_number(7);
        assert_eq!(
            store.read(unknown, &us(), ByteRange::ALL, NOW),
            Err(ReadFailure::NotFound)
        );
    });
}

/// A stranger does not learn that something was there: not by expiry, not by eviction.
#[test]
fn a_stranger_learns_nothing_from_the_dead() {
    let store = memory(10, WhenFull::Evict);
    let evicted = ten(&store);
    ten(&store);
    let read_as = |reader: &Reader| store.read(evicted, reader, ByteRange::ALL, NOW).err();
    assert_eq!(read_as(&us()), Some(ReadFailure::Evicted));
    assert_eq!(read_as(&Reader::Stranger), Some(ReadFailure::NotFound));
    both(|store| {
        let brief = ItemHead {
            time_to_live: Some(Millis::new(1)),
            ..head()
        };
        let key = put(store, brief, "text".to_owned()).expect("room").key;
        let later = NOW.after(Millis::new(9));
        store.sweep(later);
        assert_eq!(
            store.read(key, &Reader::Stranger, ByteRange::ALL, later),
            Err(ReadFailure::NotFound)
        );
        assert_eq!(
            store.read(key, &us(), ByteRange::ALL, later),
            Err(ReadFailure::Expired)
        );
    });
}

#[test]
fn release_takes_one_owners_items_alone() {
    both(|store| {
        let ours = keep(store, "ours".to_owned());
        let theirs = put(store, head_of("other"), "theirs".to_owned())
            .expect("room")
            .key;
        let anyones = put(store, open_to_all(), "anyone's".to_owned())
            .expect("room")
            .key;
        read(store, ours).expect("there, and open from now on");
        store.release(&Owner::new("session"));
        store.release(&Owner::new("nobody"));
        assert_eq!(read(store, ours), Err(ReadFailure::NotFound));
        assert!(
            store
                .read(
                    theirs,
                    &Reader::Of(Owner::new("other")),
                    ByteRange::ALL,
                    NOW
                )
                .is_ok()
        );
        assert!(read(store, anyones).is_ok());
        assert_eq!(store.usage().items, 2);
    });
}

#[test]
fn a_sweep_reports_what_it_removed() {
    let store = memory(100, WhenFull::Evict);
    let brief = ItemHead {
        time_to_live: Some(Millis::new(0)),
        ..head()
    };
    put(&store, brief, "x".repeat(30)).expect("room");
    ten(&store);
    assert_eq!(
        store.sweep(NOW),
        Swept::default(),
        "equal is still readable"
    );
    let swept = store.sweep(NOW.after(Millis::new(1)));
    assert_eq!(
        swept,
        Swept {
            expired: 1,
            bytes: 30,
            ..Swept::default()
        }
    );
}

/// The same node name and text in two executions, both stored before either reads.
#[test]
fn fault_17_and_18_executions_share_a_store_but_no_data() {
    let run = |store: &dyn SpillStore| {
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for index in 0..8 {
                let barrier = &barrier;
                scope.spawn(move || {
                    let who = format!("execution {index}");
                    let text = who.repeat(3_000);
                    let key = put(store, head_of(&who), text.clone()).expect("room").key;
                    barrier.wait();
                    let mine = store.read(key, &Reader::Of(Owner::new(&who)), ByteRange::ALL, NOW);
                    assert_eq!(mine.expect("mine").bytes(), text.as_bytes());
                    let next = Reader::Of(Owner::new(&format!("execution {}", (index + 1) % 8)));
                    assert_eq!(
                        store.read(key, &next, ByteRange::ALL, NOW),
                        Err(ReadFailure::NotFound)
                    );
                });
            }
        });
        assert_eq!(store.usage().items, 8);
    };
    run(&memory(1 << 30, WhenFull::Refuse));
    let (home, store) = files();
    run(&store);
    drop(home);
}

#[test]
fn parallel_puts_never_pass_the_quota() {
    let store = Arc::new(memory(1_000, WhenFull::Refuse));
    let barrier = Barrier::new(8);
    let stored: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    (0..10)
                        .filter(|_| put(&*store, head(), "x".repeat(30)).is_ok())
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!((stored, store.usage().bytes), (33, 990));
}
