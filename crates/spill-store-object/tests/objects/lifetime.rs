//! Expiry, quota, release: what goes, in which order, and what a late reader is told.

use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};
use spill_engine::{Bytes, Swept, WhenFull};

use super::*;

fn limited(objects: &Arc<dyn ObjectStore>, quota: u64, when_full: WhenFull) -> ObjectSpillStore {
    let options = ObjectOptions {
        quota: Bytes::new(quota),
        when_full,
        ..ObjectOptions::new("spill/results")
    };
    ObjectSpillStore::new(objects.clone(), options)
}

fn living(at: u64, span: u64) -> ItemHead {
    ItemHead {
        now: Millis::new(at),
        time_to_live: Some(Millis::new(span)),
        ..head()
    }
}

async fn told(
    store: &ObjectSpillStore,
    key: ItemKey,
    reader: &Reader,
    now: u64,
) -> Option<ReadFailure> {
    let slice = store
        .read(key, reader, ByteRange::ALL, Millis::new(now))
        .await;
    slice.err()
}

#[test]
fn an_item_expires_and_its_owner_learns_why() {
    both(async |objects| {
        let (one, other) = (store(&objects), store(&objects));
        let key = put(&one, living(1_000, 50), bytes(300))
            .await
            .expect("room")
            .key;
        let stranger = Reader::Of(Owner::new("another"));
        assert_eq!(
            told(&one, key, &us(), 1_050).await,
            None,
            "the last millisecond"
        );
        assert_eq!(
            told(&one, key, &us(), 1_051).await,
            Some(ReadFailure::Expired)
        );
        assert_eq!(one.sweep(Millis::new(1_050)).await, Ok(Swept::default()));
        let swept = other.sweep(Millis::new(1_051)).await.expect("a sweep");
        assert_eq!((swept.expired, swept.evicted), (1, 0));
        assert!(swept.bytes > 300);
        for store in [&one, &other] {
            assert_eq!(
                told(store, key, &us(), 1_000).await,
                Some(ReadFailure::Expired)
            );
            assert_eq!(
                told(store, key, &stranger, 1_000).await,
                Some(ReadFailure::NotFound)
            );
            assert!(
                store
                    .describe(key, &us(), Millis::new(1_051))
                    .await
                    .is_err()
            );
        }
        assert_eq!(
            one.sweep(Millis::new(2_000)).await,
            Ok(Swept::default()),
            "once"
        );
    });
}

#[test]
fn the_expired_go_first_and_then_the_oldest() {
    both(async |objects| {
        let store = limited(&objects, 7_000, WhenFull::Evict);
        let lasting = |at| ItemHead {
            now: Millis::new(at),
            ..head()
        };
        let mut keys = Vec::new();
        for head in [lasting(30), lasting(10), living(40, 5), lasting(20)] {
            keys.push(put(&store, head, bytes(3_000)).await.expect("room").key);
        }
        let swept = store.sweep(Millis::new(100)).await.expect("a sweep");
        assert_eq!((swept.expired, swept.evicted), (1, 1));
        let mut found = Vec::new();
        for key in keys {
            found.push(told(&store, key, &us(), 100).await);
        }
        assert_eq!(
            found,
            [
                None,
                Some(ReadFailure::Evicted),
                Some(ReadFailure::Expired),
                None
            ]
        );
    });
}

#[test]
fn a_store_that_refuses_evicts_nothing_and_takes_nothing_too_large() {
    both(async |objects| {
        let store = limited(&objects, 4_000, WhenFull::Refuse);
        let keys = [
            keep(&store, bytes(3_000)).await,
            keep(&store, bytes(3_000)).await,
        ];
        assert_eq!(store.sweep(NOW).await, Ok(Swept::default()));
        for key in keys {
            assert_eq!(told(&store, key, &us(), 1_000).await, None);
        }
        let refused = put(&store, head(), bytes(4_001)).await;
        assert_eq!(
            refused,
            Err(StoreError::TooLarge {
                size: 4_001,
                quota: 4_000
            })
        );
    });
}

#[test]
fn a_release_takes_the_owners_items_and_no_others() {
    both(async |objects| {
        let (one, other) = (store(&objects), store(&objects));
        let ours = [
            keep(&one, bytes(10)).await,
            keep(&other, bytes(9_000)).await,
        ];
        let theirs_head = ItemHead::text_of(&Owner::new("another"), NOW);
        let theirs = put(&one, theirs_head, bytes(20)).await.expect("room").key;
        let common = put(&one, open_to_all(), bytes(20)).await.expect("room").key;
        assert_eq!(other.release(&owner()).await, Ok(2));
        for key in ours {
            for store in [&one, &other] {
                assert_eq!(
                    told(store, key, &us(), 1_000).await,
                    Some(ReadFailure::NotFound)
                );
            }
        }
        let another = Reader::Of(Owner::new("another"));
        assert_eq!(told(&one, theirs, &another, 1_000).await, None);
        assert_eq!(told(&one, common, &us(), 1_000).await, None);
    });
}

/// Objects beside ours, and objects among ours that only look like one.
#[test]
fn what_is_not_ours_stays() {
    both(async |objects| {
        let store = limited(&objects, 100, WhenFull::Evict);
        let foreign = [
            "other/0123456789abcdef",
            "spill/results/notes.txt",
            "spill/results/items/0123456789abcdefg",
            "spill/results/items/0123456789ABCDEF",
            "spill/results-2/items/0123456789abcdef",
        ];
        for name in foreign {
            let payload = PutPayload::from_static(b"theirs");
            objects.put(&Path::from(name), payload).await.expect("room");
        }
        keep(&store, bytes(90)).await;
        let swept = store.sweep(Millis::new(u64::MAX)).await.expect("a sweep");
        assert_eq!(
            swept.evicted, 1,
            "with its description it is over the quota"
        );
        assert_eq!(store.release(&owner()).await, Ok(0));
        for name in foreign {
            let found = objects.get(&Path::from(name)).await.expect(name);
            assert_eq!(&found.bytes().await.expect(name)[..], b"theirs");
        }
    });
}
