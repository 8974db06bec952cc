use proptest::collection::vec;
use proptest::prelude::*;
use spill_engine::{
    ByteRange, Bytes, Content, ItemHead, ItemKey, Millis, Owner, ReadFailure, Reader, SpillStore,
    Visibility,
};

use super::{NOW, both, head, keep, put, read, us};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..200),
        any::<String>().prop_map(String::into_bytes),
        (vec(any::<u8>(), 1..50), 1..1_000_usize).prop_map(|(piece, times)| piece.repeat(times)),
        (4_094..4_099_usize).prop_map(|length| vec![7; length]),
        (8_190..8_195_usize).prop_map(|length| vec![9; length]),
    ]
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..60_000_u64,
        any::<u64>(),
        (0..4_u64).prop_map(|less| u64::MAX - less),
        (0..8_u64).prop_map(|page| page * 4_096),
    ]
}

fn slices(store: &dyn SpillStore, key: ItemKey, lengths: &[u64]) -> Vec<u8> {
    let (mut joined, mut next) = (Vec::new(), Some(0));
    let mut lengths = lengths.iter().cycle();
    while let Some(offset) = next {
        let length = *lengths.next().expect("a cycle");
        let slice = store
            .read(key, &us(), ByteRange { offset, length }, NOW)
            .expect("a range inside");
        assert_eq!(slice.offset, offset);
        joined.extend_from_slice(slice.bytes());
        next = slice.next_offset();
    }
    joined
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn slices_concatenate_to_the_bytes(bytes in bytes(), lengths in vec(1..20_000_u64, 1..5)) {
        both(|store| {
            let key = keep(store, bytes.clone());
            assert_eq!(slices(store, key, &lengths), bytes);
            assert_eq!(store.describe(key, &us(), NOW).expect("it is there").size.get(), bytes.len() as u64);
        });
    }

    #[test]
    fn any_range_is_a_true_slice_or_out_of_range(bytes in bytes(), offset in numbers(), length in numbers()) {
        both(|store| {
            let key = keep(store, bytes.clone());
            let size = bytes.len() as u64;
            match store.read(key, &us(), ByteRange { offset, length }, NOW) {
                Ok(slice) => {
                    let start = usize::try_from(offset).expect("inside");
                    assert_eq!(slice.bytes(), &bytes[start..start + slice.bytes().len()]);
                    assert_eq!(slice.bytes().len() as u64, length.min(size - offset));
                }
                Err(failure) => {
                    assert!(offset > size);
                    assert_eq!(failure, ReadFailure::OutOfRange { offset, size });
                }
            }
        });
    }

    #[test]
    fn arriving_in_pieces_is_arriving_whole(bytes in bytes(), piece in 1..9_000_usize) {
        both(|store| {
            let name = store.name("stream").expect("a name");
            let (key, locator) = (name.key(), name.locator().to_owned());
            let mut writer = store.begin(name, head()).expect("room");
            assert_eq!(store.read(key, &us(), ByteRange::ALL, NOW), Err(ReadFailure::NotFound), "not before it is whole");
            for piece in bytes.chunks(piece) {
                writer.write(piece).expect("room");
            }
            let stored = writer.finish().expect("room");
            assert_eq!((stored.key, stored.locator), (key, locator.clone()));
            assert_eq!(read(store, key), Ok(bytes.clone()));
            assert_eq!(store.key_of(&locator), Some(key));
        });
    }

    #[test]
    fn any_label_owner_and_media_type_will_do(label in any::<String>(), owner in any::<String>(), media_type in any::<String>(), times in 1..3_000_usize) {
        both(|store| {
            let owner = Owner::new(&owner.repeat(times)[..]);
            let name = store.name(&label.repeat(times)).expect("a name");
            assert!(name.locator().rsplit('/').next().expect("a segment").len() <= 81);
            let head = ItemHead { visibility: Visibility::Only(owner.clone()), media_type: media_type.clone(), now: NOW, time_to_live: Some(Millis::new(u64::MAX)) };
            let stored = store.put(name, head, Content::from("text".to_owned())).expect("room");
            assert_eq!(stored.media_type, media_type);
            let slice = store.read(stored.key, &Reader::Of(owner), ByteRange::ALL, NOW).expect("ours");
            assert_eq!(slice.bytes(), b"text");
            assert_eq!(store.read(stored.key, &Reader::Stranger, ByteRange::ALL, NOW), Err(ReadFailure::NotFound));
        });
    }

    #[test]
    fn no_text_leads_out_of_the_store(text in any::<String>()) {
        both(|store| {
            for locator in [text.clone(), format!("../{text}"), format!("/etc/{text}"), format!("{text}/../../x")] {
                assert_eq!(store.key_of(&locator), None);
            }
        });
    }

    #[test]
    fn equal_seeds_give_equal_names(seed in any::<u64>()) {
        use spill_engine::{Names, SeededNames};
        let (one, other) = (SeededNames::new(seed), SeededNames::new(seed));
        let drawn: std::collections::BTreeSet<u128> = (0..50).map(|_| {
            let number = one.draw().expect("a seeded source");
            assert_eq!(number, other.draw().expect("a seeded source"));
            number
        }).collect();
        prop_assert_eq!(drawn.len(), 50);
    }
}

#[test]
fn names_are_written_once() {
    both(|store| {
        let key = keep(store, "first".to_owned());
        assert_eq!(read(store, key), Ok(b"first".to_vec()));
        assert_ne!(keep(store, "second".to_owned()), key);
        assert_eq!(read(store, key), Ok(b"first".to_vec()));
    });
}

#[test]
fn memory_shares_the_allocation() {
    let store = super::memory(1 << 20, spill_engine::WhenFull::Refuse);
    let text = spill_engine::SharedText::from("x".repeat(5_000));
    let key = keep(&store, text.clone());
    assert_eq!(text.owners(), 2);
    let slice = store.read(key, &us(), ByteRange::ALL, NOW).expect("there");
    assert_eq!((text.owners(), slice.size), (3, Bytes::new(5_000)));
}

#[test]
fn nothing_prints_content() {
    both(|store| {
        let content = Content::from("secret".to_owned());
        let key = put(store, head(), content.clone()).expect("room").key;
        let slice = store.read(key, &us(), ByteRange::ALL, NOW).expect("there");
        assert!(!format!("{content:?} {slice:?}").contains("secret"));
    });
}

/// A reference is short, and made of characters that are not mistaken for one another.
#[test]
fn fault_16_a_reference_does_not_grow_with_the_id() {
    both(|store| {
        for length in [0, 1, 1_400, 65_536] {
            let name = store.name(&"i".repeat(length)).expect("a name");
            assert_eq!(name.key().as_str().len(), 16);
            assert!(!name.key().as_str().contains(['i', 'l', 'o', 'u']));
        }
    });
}

/// A name is never derived from an id, so that no id is too long for the file system.
#[test]
fn fault_15_long_call_ids_are_stored() {
    both(|store| {
        for length in [0, 255, 256, 1_400, 65_536] {
            let name = store.name(&"é".repeat(length)).expect("a name");
            let key = name.key();
            let stored = store.put(name, head(), "text".to_owned().into());
            assert!(stored.is_ok(), "{length}: {stored:?}");
            assert_eq!(read(store, key), Ok(b"text".to_vec()));
        }
    });
}

/// The reference that the store hands out is the one that reads.
#[test]
fn fault_53_each_reference_reads_right_after_it_was_made() {
    both(|store| {
        for round in 0..50 {
            let text = format!("result {round}");
            let stored = put(store, head(), text.clone()).expect("room");
            let key = store.key_of(&stored.locator).expect("its own locator");
            assert_eq!(read(store, key), Ok(text.into_bytes()));
        }
    });
}

/// Figures add up: attempts are items plus failures.
#[test]
fn fault_54_attempts_are_items_plus_failures() {
    let small = |store: &dyn SpillStore| {
        let sizes = [10_usize, 1 << 20, 20, 2 << 20];
        let stored = sizes.map(|size| put(store, head(), "x".repeat(size)).is_ok());
        assert_eq!(stored, [true, false, true, false]);
        let usage = store.usage();
        assert_eq!((usage.stored, usage.refused, usage.items), (2, 2, 2));
    };
    small(&super::memory(100_000, spill_engine::WhenFull::Refuse));
    let (home, _) = super::files();
    let options = spill_engine::FileOptions {
        quota: Bytes::new(100_000),
        ..super::options(&super::root_in(&home))
    };
    small(&spill_engine::FileStore::new(options).expect("a path"));
}

/// Bytes stay bytes: NUL, escapes that look like escapes, and mixed line ends come back as they went in.
#[test]
fn fault_27_and_46_bytes_are_preserved() {
    both(|store| {
        for text in [
            "a\0b",
            "\\u0000",
            "\\\\u0000",
            "\\\\\\u0000",
            "a\r\nb\nc\rd\r\n",
            "\u{feff}bom",
            "\u{ffff}",
        ] {
            let key = keep(store, text.to_owned());
            assert_eq!(read(store, key), Ok(text.as_bytes().to_vec()), "{text:?}");
        }
    });
}

/// One item that cannot be stored does not take others with it.
#[test]
fn fault_28_a_bad_item_does_not_block_the_batch() {
    let (home, _) = super::files();
    let options = spill_engine::FileOptions {
        quota: Bytes::new(50_000),
        when_full: spill_engine::WhenFull::Refuse,
        ..super::options(&super::root_in(&home))
    };
    let store = spill_engine::FileStore::new(options).expect("a path");
    let stored: Vec<bool> = (0..10)
        .map(|index| {
            let size = if index == 4 { 60_000 } else { 1_000 };
            put(&store, head(), vec![0; size]).is_ok()
        })
        .collect();
    assert_eq!(stored.iter().filter(|stored| **stored).count(), 9);
    assert!(!stored[4]);
}
