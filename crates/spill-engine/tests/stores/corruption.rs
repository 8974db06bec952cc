//! What is stored is not what was written.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use spill_engine::{ByteRange, Damage, ReadFailure, SpillStore, StoredItem};

use super::{NOW, files, head, put, read, root_in, us};

fn stored_text(store: &dyn SpillStore, bytes: usize) -> (StoredItem, PathBuf) {
    let stored = put(store, head(), "x".repeat(bytes)).expect("room");
    let path = PathBuf::from(&stored.locator);
    (stored, path)
}

fn overwrite(path: &PathBuf, offset: u64, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("a file");
    file.seek(SeekFrom::Start(offset)).expect("a position");
    file.write_all(bytes).expect("a write");
}

/// A change of the same length is noticed, on the page where it is and only there, opened before or not.
#[test]
fn fault_57_a_changed_byte_of_any_page_is_noticed() {
    let (_home, store) = files();
    for opened_before in [false, true] {
        let (stored, path) = stored_text(&store, 10_000);
        if opened_before {
            read(&store, stored.key).expect("whole");
        }
        overwrite(&path, 5_000, b"y");
        let page = Damage::Page {
            start: 4_096,
            end: 8_192,
        };
        assert_eq!(
            read(&store, stored.key),
            Err(ReadFailure::Corrupt(page.clone()))
        );
        let part = |offset, length| {
            store
                .read(stored.key, &us(), ByteRange { offset, length }, NOW)
                .err()
        };
        assert_eq!(part(0, 4_096), None);
        assert_eq!(part(4_095, 2), Some(ReadFailure::Corrupt(page)));
        assert_eq!(part(8_192, 4_096), None);
    }
    let (stored, path) = stored_text(&store, 10_000);
    overwrite(&path, 9_999, b"y");
    let last = Damage::Page {
        start: 8_192,
        end: 10_000,
    };
    assert_eq!(read(&store, stored.key), Err(ReadFailure::Corrupt(last)));
}

#[test]
fn another_length_is_noticed() {
    let (_home, store) = files();
    for opened_before in [false, true] {
        for length in [0, 9_999, 10_001] {
            let (stored, path) = stored_text(&store, 10_000);
            if opened_before {
                read(&store, stored.key).expect("whole");
            }
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .expect("a file")
                .set_len(length)
                .expect("ours");
            let damage = Damage::Length {
                expected: 10_000,
                found: length,
            };
            assert_eq!(read(&store, stored.key), Err(ReadFailure::Corrupt(damage)));
        }
    }
}

#[test]
fn a_damaged_description_is_noticed() {
    let (home, store) = files();
    let (stored, _) = stored_text(&store, 10_000);
    let path = root_in(&home).join(format!("{}.meta", stored.key));
    overwrite(&path, 20, b"9");
    assert_eq!(
        read(&store, stored.key),
        Err(ReadFailure::Corrupt(Damage::Description))
    );
    fs::write(&path, "").expect("a file");
    assert_eq!(
        read(&store, stored.key),
        Err(ReadFailure::Corrupt(Damage::Description))
    );
}

/// What is known is said, and no cause is invented.
#[test]
fn fault_55_each_failure_says_what_is_known() {
    let (home, store) = files();
    let (stored, path) = stored_text(&store, 100);
    fs::remove_file(&path).expect("a file");
    assert_eq!(read(&store, stored.key), Err(ReadFailure::Evicted));
    fs::create_dir(&path).expect("a directory");
    let failure = read(&store, stored.key).expect_err("no file").to_string();
    assert!(failure.contains("regular file"), "{failure}");
    fs::remove_dir(&path).expect("a directory");
    fs::remove_file(root_in(&home).join(format!("{}.meta", stored.key))).expect("a file");
    assert_eq!(read(&store, stored.key), Err(ReadFailure::NotFound));
    let texts = [
        ReadFailure::NotFound,
        ReadFailure::Expired,
        ReadFailure::Evicted,
        ReadFailure::Corrupt(Damage::Description),
        ReadFailure::OutOfRange { offset: 9, size: 4 },
    ]
    .map(|failure| failure.to_string());
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn an_item_removed_while_open_is_evicted() {
    let (_home, store) = files();
    let (stored, path) = stored_text(&store, 100);
    read(&store, stored.key).expect("whole, and open from now on");
    fs::remove_file(path).expect("a file");
    assert_eq!(read(&store, stored.key), Err(ReadFailure::Evicted));
}
