//! Where a file store may and may not write.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use spill_engine::{FileOptions, FileStore, ItemKey, ReadFailure, SpillStore, StoreError};

use super::{files, head, keep, names_in, put, read, root_in, store_in};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").mode() & 0o7777
}

#[track_caller]
fn check_unusable(root: &Path, place: &Path, fact: &str) {
    let store = store_in(root);
    match put(&store, head(), "text".to_owned()) {
        Err(StoreError::Unusable {
            place: named,
            fact: said,
        }) => {
            assert_eq!(named, place.display().to_string());
            assert!(said.contains(fact), "{said}");
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
    let again = put(&store, head(), "text".to_owned());
    assert!(
        matches!(again, Err(StoreError::Latched { .. })),
        "{again:?}"
    );
    assert_eq!(
        read(&store, ItemKey::from_number(1)),
        Err(ReadFailure::NotFound)
    );
}

#[test]
fn nothing_is_made_before_the_first_put() {
    let (home, store) = files();
    let key = store.name("tool").expect("a name").key();
    assert_eq!(read(&store, key), Err(ReadFailure::NotFound));
    store.sweep(super::NOW);
    store.release(&super::owner());
    store.sweep_leftovers(&|| true).expect("nothing to sweep");
    assert_eq!(store.usage().items, 0);
    assert!(!root_in(&home).exists());
}

/// Others cannot guess a name nor open a file.
#[test]
fn fault_31_names_are_random_and_files_private() {
    let (home, store) = files();
    let root = root_in(&home);
    let keys: Vec<ItemKey> = (0..20).map(|_| keep(&store, "text".to_owned())).collect();
    assert_eq!(mode(&root), 0o700);
    for name in names_in(&root) {
        assert_eq!(mode(&root.join(&name)), 0o600, "{name}");
    }
    let distinct: std::collections::BTreeSet<&ItemKey> = keys.iter().collect();
    assert_eq!(distinct.len(), 20);
    let (_other_home, other) = files();
    assert!(
        !keys.contains(&keep(&other, "text".to_owned())),
        "no two stores draw the same names"
    );
}

#[test]
fn what_stands_in_a_names_place_is_left_alone() {
    let (home, store) = files();
    let root = root_in(&home);
    keep(&store, "text".to_owned());
    let victim = home.path().join("victim");
    fs::write(&victim, "untouched").expect("a file");
    for part in ["part", "meta"] {
        let name = store.name("tool").expect("a name");
        let planted = root.join(format!("{}.{part}", name.key()));
        symlink(&victim, &planted).expect("a link");
        assert_eq!(
            store.put(name, head(), "text".to_owned().into()),
            Err(StoreError::Taken)
        );
        assert!(planted.is_symlink());
    }
    let name = store.name("tool").expect("a name");
    symlink(&victim, name.locator()).expect("a link");
    let planted = Path::new(name.locator()).to_owned();
    assert_eq!(
        store.put(name, head(), "text".to_owned().into()),
        Err(StoreError::Taken)
    );
    assert!(planted.is_symlink());
    assert_eq!(fs::read_to_string(victim).expect("a file"), "untouched");
    assert!(
        put(&store, head(), "text".to_owned()).is_ok(),
        "a taken name latches nothing"
    );
}

#[test]
fn a_link_at_any_level_is_named_and_not_followed() {
    let home = tempfile::tempdir().expect("a directory");
    let base = home.path().canonicalize().expect("it exists");
    let real = base.join("real");
    fs::create_dir_all(real.join("b/c")).expect("directories");
    for (level, root) in [("a", "a"), ("x/a", "x/a/b"), ("y/a", "y/a/b/c/d")] {
        let link = base.join(level);
        fs::create_dir_all(link.parent().expect("a parent")).expect("directories");
        symlink(&real, &link).expect("a link");
        check_unusable(&base.join(root), &link, "symbolic link");
    }
    symlink(base.join("nowhere"), base.join("dangling")).expect("a link");
    check_unusable(
        &base.join("dangling"),
        &base.join("dangling"),
        "symbolic link",
    );
    assert!(!base.join("nowhere").exists());
    assert_eq!(
        fs::read_dir(real.join("b/c")).expect("a directory").count(),
        0
    );
}

#[test]
fn a_link_in_the_lock_files_place_is_not_followed() {
    let (home, store) = files();
    let root = root_in(&home);
    fs::create_dir(&root).expect("a directory");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("ours");
    let victim = home.path().join("victim");
    fs::write(&victim, "untouched").expect("a file");
    symlink(&victim, root.join(".lock")).expect("a link");
    assert!(put(&store, head(), "text".to_owned()).is_err());
    fs::remove_file(root.join(".lock")).expect("a link");
    fs::hard_link(&victim, root.join(".lock")).expect("a link");
    assert!(put(&store_in(&root), head(), "text".to_owned()).is_err());
    assert_eq!(fs::read_to_string(victim).expect("a file"), "untouched");
}

#[test]
fn a_link_in_the_datas_place_is_not_read() {
    let (home, store) = files();
    let stored = put(&store, head(), "text".to_owned()).expect("room");
    let secret = home.path().join("secret");
    fs::write(&secret, "else").expect("a file");
    fs::remove_file(&stored.locator).expect("its data");
    symlink(&secret, &stored.locator).expect("a link");
    assert!(matches!(
        read(&store, stored.key),
        Err(ReadFailure::Corrupt(_))
    ));
}

#[test]
fn other_things_in_the_directorys_place_are_named() {
    let home = tempfile::tempdir().expect("a directory");
    let base = home.path().canonicalize().expect("it exists");
    let file = base.join("file");
    fs::write(&file, "untouched").expect("a file");
    check_unusable(&file, &file, "a file");
    check_unusable(&file.join("below"), &file, "a file");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "untouched");
    let loose = base.join("loose");
    fs::create_dir(&loose).expect("a directory");
    fs::set_permissions(&loose, fs::Permissions::from_mode(0o755)).expect("ours");
    check_unusable(&loose, &loose, "0755");
    assert_eq!(mode(&loose), 0o755, "not ours to change");
    let relative = Path::new("relative/spill");
    check_unusable(relative, relative, "not absolute");
    let up = base.join("a/../b");
    check_unusable(&up, &up, "..");
    check_unusable(Path::new("/"), Path::new("/"), "root");
}

/// A directory in memory is allowed, but whoever probes is told.
#[test]
fn fault_32_a_directory_in_memory_is_noticed() {
    let shm = Path::new("/dev/shm");
    let home = tempfile::tempdir_in(shm).expect("every Linux has this directory");
    let in_memory = |root: &Path| store_in(root).probe().expect("a usable place").in_memory;
    assert!(in_memory(&root_in(&home)));
    let here = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    assert!(!in_memory(&root_in(&here)));
}

#[test]
fn a_root_may_end_in_a_slash() {
    let home = tempfile::tempdir().expect("a directory");
    let root = format!("{}/", root_in(&home).display());
    let store = FileStore::new(super::options(Path::new(&root))).expect("text");
    let stored = put(&store, head(), "text".to_owned()).expect("room");
    assert!(!stored.locator.contains("//"));
    assert_eq!(fs::read(stored.locator).expect("a path"), b"text");
}

/// A locator leads to the item it names and to nothing else.
#[test]
fn fault_48_a_locator_cannot_leave_the_directory() {
    let (home, store) = files();
    let stored = put(&store, head(), "text".to_owned()).expect("room");
    let name = stored.locator.rsplit('/').next().expect("a name");
    assert_eq!(store.key_of(&stored.locator), Some(stored.key));
    assert_eq!(store.key_of(name), Some(stored.key));
    assert_eq!(store.key_of(stored.key.as_str()), Some(stored.key));
    let root = root_in(&home);
    let root = root.display();
    for locator in [
        format!("{root}/../spill/{name}"),
        format!("{root}/x/{name}"),
        format!("{root}x/{name}"),
        format!("/elsewhere/{name}"),
        format!("../{name}"),
        format!("{root}/.lock"),
        format!("{root}/{}.meta", stored.key),
        format!("{name}\0"),
        name.to_uppercase(),
    ] {
        assert_eq!(store.key_of(&locator), None, "{locator}");
    }
}

/// The directory's path may differ from run to run, what the model is told does not.
#[test]
fn locators_may_name_the_directory_by_another_name() {
    let home = tempfile::tempdir().expect("a directory");
    let options = FileOptions {
        shown_root: Some("spill".to_owned()),
        ..FileOptions::new(root_in(&home))
    };
    let store = FileStore::new(options).expect("a path");
    let stored = put(&store, head(), "text".to_owned()).expect("room");
    let file = stored.locator.strip_prefix("spill/").expect("that name");
    assert!(root_in(&home).join(file).exists());
    assert_eq!(store.key_of(&stored.locator), Some(stored.key));
    assert_eq!(store.key_of(file), Some(stored.key));
    let path = root_in(&home).join(file);
    assert_eq!(store.key_of(&path.display().to_string()), None);
}

/// The directory is held by its handle: a link that is planted in its place later leads nothing there.
#[test]
fn a_link_that_takes_the_directorys_place_later_is_not_followed() {
    let (home, store) = files();
    let root = root_in(&home);
    let before = keep(&store, "before".to_owned());
    let victim = home.path().join("victim");
    fs::create_dir(&victim).expect("a directory");
    fs::rename(&root, home.path().join("moved")).expect("ours");
    symlink(&victim, &root).expect("a link");
    let after = keep(&store, "after".to_owned());
    assert_eq!(read(&store, before), Ok(b"before".to_vec()));
    assert_eq!(read(&store, after), Ok(b"after".to_vec()));
    store.sweep(super::NOW);
    store.release(&super::owner());
    assert_eq!(fs::read_dir(&victim).expect("a directory").count(), 0);
    check_unusable(&root, &root, "symbolic link");
}

#[test]
fn a_link_in_the_descriptions_place_is_not_read() {
    let (home, store) = files();
    let root = root_in(&home);
    let key = keep(&store, "text".to_owned());
    let other = keep(&store, "else".to_owned());
    let meta = root.join(format!("{key}.meta"));
    fs::remove_file(&meta).expect("its description");
    symlink(root.join(format!("{other}.meta")), &meta).expect("a link");
    assert!(matches!(
        read(&store_in(&root), key),
        Err(ReadFailure::Corrupt(_))
    ));
}

/// Links among the items are nobody's: no sweep and no release follows or removes one.
#[test]
fn planted_links_survive_sweep_and_release() {
    let (home, store) = files();
    let root = root_in(&home);
    keep(&store, "text".to_owned());
    let victim = home.path().join("victim");
    fs::write(&victim, "untouched").expect("a file");
    let planted = [
        "0123456789abcdef.part",
        "0123456789abcdef.meta",
        "0123456789abcdef-x",
    ]
    .map(|name| root.join(name));
    for link in &planted {
        symlink(&victim, link).expect("a link");
    }
    store.sweep(super::NOW);
    store.sweep_leftovers(&|| true).expect("a usable place");
    store.release(&super::owner());
    assert!(planted.iter().all(|link| link.is_symlink()));
    assert_eq!(fs::read_to_string(victim).expect("a file"), "untouched");
    let left = names_in(&root);
    assert_eq!(left.len(), 4, "the lock and three links: {left:?}");
}
