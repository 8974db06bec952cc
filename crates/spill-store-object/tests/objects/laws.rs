//! What holds for every item: it comes back exactly, in slices or whole, to those who may see it.

use object_store::memory::InMemory;
use proptest::collection::vec;
use proptest::prelude::*;
use spill_engine::{Owner, SeededNames};

use super::*;

async fn slices(store: &ObjectSpillStore, key: ItemKey, length: u64) -> Vec<u8> {
    let (mut joined, mut next) = (Vec::new(), Some(0));
    while let Some(offset) = next {
        let slice = store
            .read(key, &us(), ByteRange { offset, length }, NOW)
            .await
            .expect("a range inside");
        assert_eq!(slice.offset, offset);
        joined.extend_from_slice(slice.bytes());
        next = slice.next_offset();
    }
    joined
}

#[test]
fn what_one_replica_stored_another_reads() {
    both(async |objects| {
        let (one, other) = (store(&objects), store(&objects));
        for length in [0, 1, 65_535, 65_536, 65_537, 300_000] {
            let written = bytes(length);
            let key = keep(&one, written.clone()).await;
            for store in [&one, &other] {
                assert_eq!(read(store, key).await, Ok(written.clone()), "{length}");
                assert_eq!(slices(store, key, 50_000).await, written);
                let found = store.describe(key, &us(), NOW).await.expect("there");
                assert_eq!(found.size.get(), length as u64);
                assert_eq!(found.media_type, "text/plain");
            }
        }
    });
}

#[test]
fn ranges_at_their_ends() {
    both(async |objects| {
        let store = store(&objects);
        let key = keep(&store, bytes(100)).await;
        let at = async |offset, length| {
            let slice = store
                .read(key, &us(), ByteRange { offset, length }, NOW)
                .await;
            slice.map(|slice| (slice.bytes().len(), slice.next_offset()))
        };
        assert_eq!(at(0, u64::MAX).await, Ok((100, None)));
        assert_eq!(at(99, u64::MAX).await, Ok((1, None)));
        assert_eq!(at(100, 1).await, Ok((0, None)), "the end is no error");
        assert_eq!(at(10, 5).await, Ok((5, Some(15))));
        for offset in [101, u64::MAX] {
            let refusal = ReadFailure::OutOfRange { offset, size: 100 };
            assert_eq!(at(offset, u64::MAX).await, Err(refusal));
        }
    });
}

#[test]
fn only_the_owner_sees_an_item() {
    both(async |objects| {
        let store = store(&objects);
        let ours = keep(&store, "ours".to_owned()).await;
        let common = put(&store, open_to_all(), "common".to_owned())
            .await
            .expect("room")
            .key;
        let sees = async |key, reader: &Reader| {
            store
                .read(key, reader, ByteRange::ALL, NOW)
                .await
                .map(|_| ())
        };
        let other = Reader::Of(Owner::new("another"));
        for reader in [&us(), &other, &Reader::Stranger] {
            assert_eq!(sees(common, reader).await, Ok(()));
            let expected = if *reader == us() {
                Ok(())
            } else {
                Err(ReadFailure::NotFound)
            };
            assert_eq!(sees(ours, reader).await, expected);
        }
        let missing = ItemKey::from_number(7);
        assert_eq!(sees(missing, &us()).await, Err(ReadFailure::NotFound));
    });
}

/// Two replicas that draw the same names: the second item is refused, whatever it holds, and the first stays.
#[test]
fn a_name_is_written_once() {
    both(async |objects| {
        let seeded = || {
            ObjectSpillStore::new(
                objects.clone(),
                ObjectOptions {
                    names: Arc::new(SeededNames::new(4)),
                    ..ObjectOptions::new("spill")
                },
            )
        };
        let (one, other) = (seeded(), seeded());
        let name = other.name().expect("a name");
        let key = keep(&one, "first".to_owned()).await;
        assert_eq!(name.key(), key);
        let second = other.put(name, head(), "second".to_owned().into()).await;
        assert_eq!(second, Err(StoreError::Taken));
        assert_eq!(read(&other, key).await, Ok(b"first".to_vec()));
    });
}

#[test]
fn ids_and_owners_of_any_length() {
    both(async |objects| {
        let store = store(&objects);
        for length in [0, 1, 9_000, 65_536] {
            let owner = Owner::new(&"é/..\0".repeat(length / 4));
            let stored = put(&store, ItemHead::text_of(&owner, NOW), "text".to_owned()).await;
            let key = stored.expect("room").key;
            let fresh = super::store(&objects);
            let found = fresh
                .read(key, &Reader::Of(owner), ByteRange::ALL, NOW)
                .await;
            assert_eq!(
                found.map(|slice| slice.bytes().to_vec()),
                Ok(b"text".to_vec())
            );
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn slices_concatenate_to_the_bytes(piece in vec(any::<u8>(), 1..50), times in 0..4_000_usize, length in 1..150_000_u64, offset in any::<u64>(), most in any::<u64>()) {
        let bytes = piece.repeat(times);
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        runtime().block_on(async {
            let store = store(&objects);
            let key = keep(&store, bytes.clone()).await;
            assert_eq!(slices(&store, key, length).await, bytes);
            let size = bytes.len() as u64;
            for offset in [offset, offset % (size + 2)] {
                match store.read(key, &us(), ByteRange { offset, length: most }, NOW).await {
                    Ok(slice) => {
                        let start = usize::try_from(offset).expect("inside");
                        assert_eq!(slice.bytes(), &bytes[start..start + slice.bytes().len()]);
                        assert_eq!(slice.bytes().len() as u64, most.min(size - offset));
                    }
                    Err(failure) => assert_eq!(failure, ReadFailure::OutOfRange { offset, size }),
                }
            }
        });
    }
}
