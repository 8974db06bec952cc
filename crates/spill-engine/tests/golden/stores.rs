//! Replays what the golden files say about stores: names, files and modes of one, eviction, expiry and files of the other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use spill_engine::{
    ByteRange, Bytes, FileOptions, FileStore, ItemHead, ItemKey, MemoryOptions, MemoryStore,
    Millis, Owner, Reader, SeededNames, SpillStore, Visibility,
};

use super::support::{self, Row, check_differences};
use super::{dsh, nitrostack};

fn head(now: u64, ttl_ms: u64) -> ItemHead {
    ItemHead {
        visibility: Visibility::Anyone,
        media_type: "text/plain".to_owned(),
        now: Millis::new(now),
        time_to_live: Some(Millis::new(ttl_ms)),
    }
}

fn put(store: &dyn SpillStore, label: &str, head: ItemHead, text: &str) -> Result<ItemKey, String> {
    let name = store.name(label).map_err(|error| error.to_string())?;
    let stored = store.put(name, head, text.to_owned().into());
    stored
        .map(|stored| stored.key)
        .map_err(|error| error.to_string())
}

fn is_there(store: &dyn SpillStore, key: ItemKey, now: u64) -> bool {
    let read = store.read(key, &Reader::Stranger, ByteRange::ALL, Millis::new(now));
    read.is_ok()
}

fn files(root: &Path) -> FileStore {
    let options = FileOptions {
        names: Arc::new(SeededNames::new(7)),
        ..FileOptions::new(root)
    };
    FileStore::new(options).expect("a good place")
}

/// A folder for one test, removed before it is used.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("our own folder");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder.canonicalize().expect("a folder that exists")
}

fn mode(path: &Path) -> String {
    let mode = fs::metadata(path).expect("it exists").permissions().mode();
    format!("{:o}", mode & 0o777)
}

/// The only item's file below `root`.
fn data_file(root: &Path) -> PathBuf {
    let mut names: Vec<_> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.to_string_lossy().contains('-') && path.extension().is_none_or(|end| end != "meta")
        })
        .collect();
    names.retain(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().as_bytes().get(16) == Some(&b'-'))
    });
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

fn compare(found: &mut Vec<(String, String)>, case: &str, observed: &Value, ours: &Value) {
    for (what, value) in observed.as_object().unwrap_or(&Map::new()) {
        if ours[what] != *value {
            found.push((case.to_owned(), what.clone()));
        }
    }
}

#[test]
fn the_local_store_differs_where_a_weakness_is_mended() {
    let golden = support::golden(dsh::GOLDEN);
    let local = &golden["localStore"];
    let mut found = Vec::new();
    let root = folder("golden-local");
    let store = files(&root.join("names"));
    let names = local["encodeSegment"].as_object().expect("names");
    assert_eq!(names.len(), 17);
    for (name, encoded) in names {
        let item = store.name(name).expect("a name");
        let file = item
            .locator()
            .rsplit('/')
            .next()
            .expect("a file name")
            .to_owned();
        compare(
            &mut found,
            &format!("encodeSegment {name:?}"),
            &json!({"segment": encoded}),
            &json!({"segment": file[17..]}),
        );
    }
    let sessions = local["sessionDir"].as_object().expect("sessions");
    assert_eq!(sessions.len(), 6);
    for session in sessions.keys() {
        let path = store.name("x").expect("a name").locator().to_owned();
        let parent = Path::new(&path).parent().expect("a folder");
        assert_eq!(
            parent,
            root.join("names"),
            "one folder, whatever the session {session:?}"
        );
    }
    found.push(("sessionDir".to_owned(), "folder".to_owned()));
    let cases = local["files"].as_array().expect("files");
    assert_eq!(cases.len(), 5);
    for (number, case) in cases.iter().enumerate() {
        let name = case["name"].as_str().expect("a name");
        let place = root.join(format!("case{number}"));
        compare(
            &mut found,
            name,
            &observed_file(case),
            &saved_file(number, &place),
        );
    }
    assert_eq!(local["privateRoot"]["mode"], "700");
    // `FileOptions::new` takes the root, so there is none to be made up.
    found.push(("privateRoot".to_owned(), "prefix".to_owned()));
    check_differences("local store", &found, LOCAL);
    assert_eq!(LOCAL.len(), 7);
}

fn observed_file(case: &Value) -> Value {
    let mut observed = case.clone();
    let fields = observed.as_object_mut().expect("an object");
    fields.remove("name");
    fields.remove("relPattern");
    observed
}

fn saved_file(number: usize, place: &Path) -> Value {
    let (label, text) = match number {
        0 => ("r.txt".to_owned(), "čau"),
        1 => ("r.txt".to_owned(), "\u{fffd}x"),
        2 => ("n".repeat(300), "x"),
        _ => ("r.txt".to_owned(), "x"),
    };
    if number == 3 {
        fs::write(place, "a file").expect("writable");
    }
    if number == 4 {
        fs::create_dir(place).expect("writable");
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let saved = FileStore::new(FileOptions::new(place))
        .map_err(|error| error.to_string())
        .and_then(|store| {
            let owner = Owner::new("sess-1");
            put(
                &store,
                &label,
                ItemHead::text_of(&owner, Millis::new(0)),
                text,
            )
        });
    match saved {
        Err(error) => json!({"error": error}),
        Ok(_) => {
            let file = data_file(place);
            let bytes = fs::read(&file).expect("readable");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({
                "bytes": bytes.len(), "hex": hex, "text": text,
                "fileMode": mode(&file), "dirMode": mode(place),
            })
        }
    }
}

#[test]
fn the_record_stores_differ_where_a_weakness_is_mended() {
    let golden = support::golden(nitrostack::GOLDEN);
    let scenarios = golden["scenarios"].as_array().expect("scenarios");
    assert_eq!(scenarios.len(), 10);
    let ours = [
        least_recently_used(),
        too_large(),
        overwritten(),
        pruned(),
        record_file(),
        sanitised(),
        corrupt(),
        expired(),
        left_over(),
        over_quota(),
    ];
    let mut found = Vec::new();
    for (scenario, ours) in scenarios.iter().zip(ours) {
        let name = scenario["name"].as_str().expect("a name");
        compare(&mut found, name, &scenario["result"], &ours);
        let refused = scenario.get("error").is_some();
        compare(
            &mut found,
            name,
            &json!({"refused": refused}),
            &json!({"refused": ours["refused"] == json!(true)}),
        );
    }
    check_differences("record stores", &found, RECORDS);
    assert_eq!(RECORDS.len(), 6);
}

fn shared(quota: u64) -> MemoryStore {
    MemoryStore::new(MemoryOptions::shared(Bytes::new(quota)))
}

fn least_recently_used() -> Value {
    let store = shared(1_024);
    let save = |text: &str| put(&store, "x", head(0, 1_000), &text.repeat(400)).expect("stored");
    let (a, b) = (save("a"), save("b"));
    assert!(is_there(&store, a, 0));
    let c = save("c");
    let there = |key| {
        store
            .describe(key, &Reader::Stranger, Millis::new(0))
            .is_ok()
    };
    let usage = store.usage();
    json!({"a": there(a), "b": there(b), "c": there(c), "size": usage.bytes, "count": usage.items})
}

fn too_large() -> Value {
    let store = shared(10);
    let kept = put(&store, "x", head(0, 1_000), "12345").expect("stored");
    let refused = put(&store, "x", head(0, 1_000), "12345678901").is_err();
    json!({"kept": is_there(&store, kept, 0), "size": store.usage().bytes, "refused": refused})
}

fn overwritten() -> Value {
    let options = MemoryOptions::shared(Bytes::new(100));
    let store = MemoryStore::new(options.with_names(Arc::new(Same)));
    put(&store, "x", head(0, 1_000), "long").expect("stored");
    let again = put(&store, "x", head(0, 1_000), "ab");
    assert!(again.is_err(), "a name is written once");
    json!({"size": store.usage().bytes, "count": store.usage().items})
}

/// Draws one name again and again.
struct Same;

impl spill_engine::Names for Same {
    fn draw(&self) -> std::io::Result<u128> {
        Ok(1)
    }
}

fn pruned() -> Value {
    let store = shared(100);
    for ttl in [1_000, 1_000, 9_000] {
        put(&store, "x", head(0, ttl), "x").expect("stored");
    }
    let swept = store.sweep(Millis::new(1_001));
    json!({"pruned": swept.expired, "count": store.usage().items})
}

fn record_file() -> Value {
    let root = folder("golden-record").join("store");
    put(&files(&root), "spill-1", head(0, 60_000), "hé\"llo").expect("stored");
    let file = data_file(&root);
    let text = fs::read_to_string(&file).expect("readable");
    json!({"file": "a generated name", "text": text, "fileMode": mode(&file), "dirMode": mode(&root)})
}

fn sanitised() -> Value {
    let store = files(&folder("golden-names").join("store"));
    let labels = ["../../evil/../k", "nosess", "spill-1", ""];
    let names: Vec<_> = labels
        .iter()
        .map(|label| store.name(label).expect("a name").locator().to_owned())
        .collect();
    json!({"files": names})
}

fn corrupt() -> Value {
    let root = folder("golden-corrupt").join("store");
    let store = files(&root);
    let key = put(&store, "x", head(0, 60_000), "whole").expect("stored");
    fs::write(data_file(&root), "other").expect("writable");
    fs::write(root.join("other.txt"), "x").expect("writable");
    let read = store.read(key, &Reader::Stranger, ByteRange::ALL, Millis::new(0));
    let said = read.expect_err("damaged").to_string();
    assert!(said.starts_with("corrupt"), "{said}");
    let swept = store.sweep(Millis::new(0));
    assert!(root.join("other.txt").exists() && data_file(&root).exists());
    json!({"get": "corrupt", "pruned": swept.expired, "files": "all"})
}

fn expired() -> Value {
    let root = folder("golden-expired").join("store");
    let store = files(&root);
    for _ in 0..5 {
        put(&store, "x", head(0, 60_000), "x").expect("stored");
    }
    for foreign in ["other.txt", "x.json.tmp.1.z"] {
        fs::write(root.join(foreign), "x").expect("writable");
    }
    let swept = store.sweep(Millis::new(61_000));
    let mut left: Vec<_> = fs::read_dir(&root)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !name.starts_with('.'))
        .collect();
    left.sort();
    json!({"pruned": swept.expired, "files": left})
}

fn left_over() -> Value {
    let root = folder("golden-left").join("store");
    let store = files(&root);
    put(&store, "x", head(0, 60_000), "x").expect("stored");
    fs::write(root.join("x.json.tmp.1.z"), "foreign").expect("writable");
    let swept = store.sweep(Millis::new(0));
    assert!(root.join("x.json.tmp.1.z").exists());
    json!({"pruned": swept.leftovers, "files": "all"})
}

fn over_quota() -> Value {
    let root = folder("golden-quota").join("store");
    let options = FileOptions {
        quota: Bytes::new(300),
        ..FileOptions::new(&root)
    };
    let store = FileStore::new(options).expect("a good place");
    json!({"refused": put(&store, "x", head(0, 60_000), &"x".repeat(301)).is_err()})
}

/// Differences of the local file store.
pub(crate) const LOCAL: &[Row] = &[
    Row {
        case: "encodeSegment \".\"",
        what: &["segment"],
        weakness: 12,
        ours: "the label is a readable suffix behind a generated key, so a dot alone is harmless",
    },
    Row {
        case: "encodeSegment \"..\"",
        what: &["segment"],
        weakness: 12,
        ours: "the label is a readable suffix behind a generated key, so two dots are harmless",
    },
    Row {
        case: "sessionDir",
        what: &["folder"],
        weakness: 11,
        ours: "no session is in any path; who may read is checked at each read",
    },
    Row {
        case: "300-char suggested name fails at the file system",
        what: &["error"],
        weakness: 12,
        ours: "the suffix is cut to 64 bytes, so the result is stored",
    },
    Row {
        case: "root is a file",
        what: &["error"],
        weakness: 10,
        ours: "the refusal names what stands in the directory's place",
    },
    Row {
        case: "an existing session directory with mode 755 is used as is",
        what: &["dirMode"],
        weakness: 10,
        ours: "a directory that is open to others is refused",
    },
    Row {
        case: "privateRoot",
        what: &["prefix"],
        weakness: 10,
        ours: "the directory is always given, so nothing is made in a shared temporary folder",
    },
];

/// Differences of the record stores.
pub(crate) const RECORDS: &[Row] = &[
    Row {
        case: "memory: overwriting an id replaces its size",
        what: &["size"],
        weakness: 7,
        ours: "a name is written once, and a second result under it is refused",
    },
    Row {
        case: "fs: record file content and modes",
        what: &["file", "text"],
        weakness: 5,
        ours: "the bytes stand in a file as they are, the description beside it; the modes are the same",
    },
    Row {
        case: "fs: id sanitising",
        what: &["files"],
        weakness: 7,
        ours: "names are generated, so no two ids share a file",
    },
    Row {
        case: "fs: corrupt record reads as missing; cleanup removes it and counts it; fresh temp and non-json files are kept",
        what: &["get", "pruned", "files"],
        weakness: 17,
        ours: "a damaged record is said to be damaged, and is not removed before its time",
    },
    Row {
        case: "fs: cleanup after 61 s prunes the 60 s records",
        what: &["files"],
        weakness: 15,
        ours: "a swept record leaves its description, so that a late reader learns that it expired; foreign files stay",
    },
    Row {
        case: "fs: temp file older than 5 minutes is swept and counted",
        what: &["pruned", "files"],
        weakness: 16,
        ours: "a file that the store did not make is left alone; its own are swept when their writer is dead",
    },
];
