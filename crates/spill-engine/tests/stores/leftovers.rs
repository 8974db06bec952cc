//! What a crash leaves behind, and what only looks like it.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use spill_engine::{ItemKey, ReadFailure, SpillStore, SweepOnce, Swept};

use super::{NOW, bytes_in, files, head, keep, names_in, put, read, root_in, store_in};

const KEY: &str = "0123456789abcdef";

/// A directory as a crash between write and name leaves it: with `left` under [`KEY`].
fn crashed(left: &[(&str, &str)]) -> (tempfile::TempDir, ItemKey) {
    let (home, store) = files();
    let kept = keep(&store, "kept".to_owned());
    for (suffix, content) in left {
        fs::write(root_in(&home).join(format!("{KEY}{suffix}")), content).expect("a file");
    }
    (home, kept)
}

#[test]
fn each_state_that_a_crash_leaves_is_swept() {
    for left in [
        &[(".part", "")][..],
        &[(".part", "half of it")],
        &[(".part", "all of it"), (".meta", "")],
        &[(".part", "all of it"), (".meta", "half a descr")],
    ] {
        let (home, kept) = crashed(left);
        let root = root_in(&home);
        let store = store_in(&root);
        let key = KEY.parse().expect("a key");
        assert_ne!(
            read(&store, key).map(|_| ()),
            Ok(()),
            "never whole: {left:?}"
        );
        let swept = store.sweep_leftovers(&|| true).expect("a usable place");
        assert_eq!(swept.leftovers, 1, "{left:?}");
        assert_eq!(
            swept.bytes,
            left.iter()
                .map(|(_, content)| content.len() as u64)
                .sum::<u64>()
        );
        assert_eq!(
            names_in(&root).len(),
            3,
            "the item, its description, the lock: {left:?}"
        );
        assert_eq!(store.usage().bytes, bytes_in(&root));
        assert_eq!(read(&store, key), Err(ReadFailure::NotFound));
        assert_eq!(read(&store, kept), Ok(b"kept".to_vec()));
        assert_eq!(store.sweep(NOW), Swept::default(), "nothing is left");
    }
}

#[test]
fn an_ordinary_sweep_takes_them_too() {
    let (home, _) = crashed(&[(".part", "half")]);
    assert_eq!(store_in(&root_in(&home)).sweep(NOW).leftovers, 1);
}

#[test]
fn an_item_that_is_arriving_is_not_a_leftover() {
    let (home, store) = files();
    let mut writer = store
        .begin(store.name("stream").expect("a name"), head())
        .expect("room");
    writer.write(b"half").expect("room");
    let other = store_in(&root_in(&home));
    assert_eq!(other.sweep(NOW), Swept::default());
    assert_eq!(other.sweep_leftovers(&|| true), Ok(Swept::default()));
    writer.write(b" whole").expect("room");
    let key = writer.finish().expect("room").key;
    assert_eq!(read(&other, key), Ok(b"half whole".to_vec()));
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing() {
    let (home, store) = files();
    let kept = keep(&store, "kept".to_owned());
    let before = names_in(&root_in(&home));
    let mut writer = store
        .begin(store.name("stream").expect("a name"), head())
        .expect("room");
    writer.write(&vec![1; 3 << 20]).expect("room");
    assert!(store.usage().bytes > 3 << 20, "counted while it arrives");
    drop(writer);
    assert_eq!(names_in(&root_in(&home)), before);
    assert_eq!(store.usage().bytes, bytes_in(&root_in(&home)));
    assert_eq!(read(&store, kept), Ok(b"kept".to_vec()));
}

#[test]
fn look_alikes_stay() {
    let (home, store) = files();
    let root = root_in(&home);
    keep(&store, "kept".to_owned());
    let outside = home.path().join("outside");
    fs::write(&outside, "untouched").expect("a file");
    let alike = [
        "0123456789abcde.part",
        "0123456789abcdefg.part",
        "0123456789ABCDEF.part",
        "0123456789abcdei.part",
        "0123456789abcdef.part.txt",
        "0123456789abcdef.partial",
        "my-0123456789abcdef.part",
        "0123456789abcdef",
        "0123456789abcdef-notes.txt",
        "notes.meta",
        ".part",
    ];
    for name in alike {
        fs::write(root.join(name), "mine").expect("a file");
    }
    fs::create_dir(root.join("1123456789abcdef.part")).expect("a directory");
    symlink(&outside, root.join("2123456789abcdef.part")).expect("a link");
    let before = names_in(&root);
    store.sweep(NOW);
    store_in(&root)
        .sweep_leftovers(&|| true)
        .expect("a usable place");
    store.release(&super::owner());
    let after = names_in(&root);
    let gone: Vec<&String> = before.iter().filter(|name| !after.contains(name)).collect();
    assert_eq!(
        gone.len(),
        2,
        "only the released item and its description: {gone:?}"
    );
    assert_eq!(fs::read_to_string(outside).expect("a file"), "untouched");
    assert_eq!(store.usage().bytes, 0, "foreign files are not counted");
}

#[test]
fn a_sweep_stops_when_told() {
    let (home, _) = crashed(&[(".part", "half")]);
    fs::write(root_in(&home).join("1123456789abcdef.part"), "half").expect("a file");
    let root = root_in(&home);
    let steps = |allowed: u32| {
        let asked = Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= allowed
        };
        store_in(&root)
            .sweep_leftovers(&go_on)
            .expect("a usable place")
            .leftovers
    };
    assert_eq!([steps(0), steps(1), steps(2), steps(9)], [0, 0, 1, 1]);
}

#[test]
fn a_sweep_names_what_stands_in_its_way() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    fs::write(&root, "a file").expect("a file");
    let warning = store_in(&root)
        .sweep_leftovers(&|| true)
        .expect_err("not a directory")
        .to_string();
    assert!(warning.contains(&root.display().to_string()), "{warning}");
    assert!(Path::new(&root).is_file());
}

#[test]
fn a_count_that_a_crash_left_wrong_heals() {
    let (home, store) = files();
    put(&store, head(), "x".repeat(5_000)).expect("room");
    let root = root_in(&home);
    drop(store);
    for wrong in [&b""[..], b"short", &[0xff; 16], &[0; 16], &[0; 400]] {
        fs::write(root.join(".lock"), wrong).expect("a file");
        assert_eq!(store_in(&root).usage().bytes, bytes_in(&root), "{wrong:?}");
    }
}

/// Once in a process and directory; a sweep that was cut short is taken up again.
#[test]
fn leftovers_are_swept_once() {
    let (home, _) = crashed(&[(".part", "half")]);
    let root = root_in(&home);
    let (guard, store) = (SweepOnce::new(), store_in(&root));
    let swept = |guard: &SweepOnce, go_on: &dyn Fn() -> bool| {
        let swept = guard.sweep(&store, go_on);
        swept.map(|swept| swept.expect("a usable place").leftovers)
    };
    assert_eq!(swept(&guard, &|| false), Some(0), "no time at all");
    let asked = Cell::new(0);
    let stops_inside = || {
        asked.set(asked.get() + 1);
        asked.get() < 2
    };
    assert_eq!(swept(&guard, &stops_inside), Some(0));
    assert_eq!(swept(&guard, &|| true), Some(1));
    fs::write(root.join(format!("{KEY}.part")), "half").expect("a file");
    assert_eq!(swept(&guard, &|| true), None, "not again in this process");
    let (_other_home, other) = files();
    assert!(guard.sweep(&other, &|| true).is_some(), "another directory");
    assert_eq!(
        swept(&SweepOnce::new(), &|| true),
        Some(1),
        "another process"
    );
}

/// A place that cannot be used is told once, and nothing is swept in it.
#[test]
fn a_link_in_the_directorys_place_is_told_once() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    symlink(home.path(), &root).expect("a link");
    let (guard, store) = (SweepOnce::new(), store_in(&root));
    let told = guard.sweep(&store, &|| true).expect("the first time");
    let told = told.expect_err("a link").to_string();
    assert!(
        told.contains("symbolic link") && told.contains("spill"),
        "{told}"
    );
    assert!(guard.sweep(&store, &|| true).is_none());
}

/// Another process that holds the lock keeps nobody longer than there is time.
#[test]
fn a_sweep_that_waits_stops_when_it_is_told_to() {
    let (home, _) = crashed(&[(".part", "half")]);
    let store = store_in(&root_in(&home));
    keep(&store, "opened".to_owned());
    let lock = fs::File::open(root_in(&home).join(".lock")).expect("the lock file");
    let held = rustix::fs::FlockOperation::LockExclusive;
    rustix::fs::flock(&lock, held).expect("nobody else has it");
    let asked = Cell::new(0);
    let five_times = || {
        asked.set(asked.get() + 1);
        asked.get() < 5
    };
    let swept = store.sweep_leftovers(&five_times).expect("no failure");
    assert_eq!((swept.leftovers, asked.get()), (0, 5));
    drop(lock);
    let swept = store.sweep_leftovers(&|| true).expect("a usable place");
    assert_eq!(swept.leftovers, 1);
}
