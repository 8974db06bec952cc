//! Several processes: this test binary runs itself again, in a part that a variable names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use spill_engine::{
    Bytes, Call, CallId, FileOptions, FileStore, InlineCap, InlineCapOptions, Owner, Policy,
    ReadFailure, SpillStore, StoreError, WhenFull,
};

use super::{NOW, bytes_in, head, keep, names_in, options, put, read, root_in, store_in};

const PART: &str = "SPILL_ENGINE_TEST_PART";
const ROOT: &str = "SPILL_ENGINE_TEST_ROOT";
const QUOTA: u64 = 200_000;

fn command(part: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--exact", "children::plays_its_part", "--nocapture"])
        .env(PART, part)
        .env(ROOT, root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn told(child: &mut Child, word: &str) {
    let out = child.stdout.as_mut().expect("piped");
    let mut lines = BufReader::new(out).lines();
    assert!(
        lines.any(|line| line.expect("text").contains(word)),
        "the child never said {word}"
    );
}

/// Does nothing unless it was started as a child.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let root = PathBuf::from(std::env::var_os(ROOT).expect("the parent sets it"));
    match part.as_str() {
        "stream half and wait" => {
            let store = store_in(&root);
            let mut writer = store
                .begin(store.name("stream").expect("a name"), head())
                .expect("room");
            writer.write(&vec![1; 100_000]).expect("room");
            say("half");
            std::io::stdin()
                .read_line(&mut String::new())
                .expect("the parent's word");
        }
        "fill" => {
            let store = shared(&root);
            say("ready");
            std::io::stdin()
                .read_line(&mut String::new())
                .expect("the parent's word");
            for _ in 0..30 {
                let _ = put(&store, head(), vec![1; 9_000]);
            }
            say(&format!("stored {}", store.usage().stored));
        }
        "meet a limit" => {
            let store = store_in(&root);
            let small = keep(&store, vec![1; 1_000]);
            let before = names_in(&root);
            let failed =
                put(&store, head(), vec![1; 1 << 20]).expect_err("beyond the file size limit");
            assert!(matches!(failed, StoreError::Io { .. }), "{failed:?}");
            assert_eq!(names_in(&root), before, "the partial file is gone");
            assert_eq!(store.usage().bytes, bytes_in(&root));
            let next = put(&store, head(), vec![1; 10]);
            assert!(matches!(next, Err(StoreError::Latched { .. })), "{next:?}");
            assert!(
                put(&store, super::head_of("other"), vec![1; 10]).is_ok(),
                "another execution"
            );
            assert!(read(&store, small).is_ok(), "what was promised is there");
            store.release(&super::owner());
            assert!(put(&store, head(), vec![1; 10]).is_ok(), "a new execution");
            say("done");
        }
        "fill the disk" => {
            let store = store_in(&root);
            let small = keep(&store, vec![1; 1_000]);
            let before = names_in(&root);
            let failed = put(&store, head(), vec![1; 1 << 20]).expect_err("beyond the disk");
            assert!(
                matches!(
                    &failed,
                    StoreError::Io {
                        kind: std::io::ErrorKind::StorageFull,
                        ..
                    }
                ),
                "{failed:?}"
            );
            assert_eq!(names_in(&root), before, "the partial file is gone");
            assert_eq!(store.usage().bytes, bytes_in(&root));
            assert!(read(&store, small).is_ok(), "what was promised is there");
            stream_into_a_full_disk(&root);
            store.release(&super::owner());
            assert!(put(&store, head(), vec![1; 10]).is_ok(), "a new execution");
            say("done");
        }
        "fill and evict" => {
            let store = evicting(&root);
            for round in 0..40_u8 {
                let stored = put(&store, head(), vec![round; 9_000]).expect("room is made");
                match read(&store, stored.key) {
                    Ok(bytes) => assert_eq!(bytes, vec![round; 9_000]),
                    Err(failure) => assert_eq!(failure, ReadFailure::Evicted, "by the other"),
                }
            }
            say("done");
        }
        "store without end" => {
            let store = store_in(&root);
            for round in 0_u32.. {
                let content = format!("{round} ").repeat(3_000);
                let stored = put(&store, head(), content).expect("room");
                say(&format!("stored {} {round}", stored.key));
            }
        }
        "be refused" => {
            let home = tempfile::tempdir().expect("a directory");
            let closed = home
                .path()
                .canonicalize()
                .expect("it exists")
                .join("closed");
            std::fs::create_dir(&closed).expect("a directory");
            let allow = |mode| {
                std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode))
                    .expect("ours");
            };
            allow(0o555);
            let failed = store_in(&closed.join("spill"))
                .probe()
                .expect_err("not writable");
            assert!(
                matches!(&failed, StoreError::Io { kind: std::io::ErrorKind::PermissionDenied, action, .. } if action.contains("closed/spill")),
                "{failed:?}"
            );
            let store = store_in(&closed.join("spill"));
            assert_eq!(put(&store, head(), "text".to_owned()), Err(failed));
            allow(0o755);
            let store = store_in(&closed.join("spill"));
            let stored = put(&store, head(), "text".to_owned()).expect("writable now");
            std::fs::set_permissions(&stored.locator, std::fs::Permissions::from_mode(0o000))
                .expect("ours");
            let failure = read(&store, stored.key)
                .expect_err("not readable")
                .to_string();
            assert!(failure.contains("ermission denied"), "{failure}");
            say("done");
        }
        other => panic!("no part {other}"),
    }
}

/// A result that is bounded while it arrives stays whole when the disk is full.
fn stream_into_a_full_disk(root: &Path) {
    let store = Arc::new(store_in(root));
    let policy = InlineCap::new(InlineCapOptions::capped(2_000), store);
    let other = Owner::new("another execution");
    let call = CallId {
        iteration: 1,
        index: 0,
    };
    let mut arriving = policy.begin(Call::new("tool", call).owned_by(&other));
    let text = "0123456789".repeat(100_000);
    text.as_bytes()
        .chunks(10_000)
        .for_each(|piece| arriving.push(piece));
    let streamed = arriving.finish(false);
    assert_eq!(*streamed.prompt, text);
    let warning = streamed.verdict.warning().expect("a warning").to_string();
    assert!(warning.contains("keeping the inline content"), "{warning}");
}

fn say(word: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{word}").expect("the parent listens");
    out.flush().expect("the parent listens");
}

fn evicting(root: &Path) -> FileStore {
    let options = FileOptions {
        quota: Bytes::new(QUOTA),
        when_full: WhenFull::Evict,
        ..options(root)
    };
    FileStore::new(options).expect("a path")
}

fn shared(root: &Path) -> FileStore {
    let options = FileOptions {
        quota: Bytes::new(QUOTA),
        when_full: WhenFull::Refuse,
        ..options(root)
    };
    FileStore::new(options).expect("a path")
}

#[test]
fn a_killed_writer_is_swept_and_a_living_one_is_not() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    let store = store_in(&root);
    let kept = keep(&store, "kept".to_owned());
    let before = names_in(&root);
    let mut child = command("stream half and wait", &root)
        .spawn()
        .expect("a child");
    told(&mut child, "half");
    assert_eq!(store.sweep(NOW).leftovers, 0, "it lives");
    assert_eq!(names_in(&root).len(), before.len() + 1);
    child.kill().expect("a child");
    child.wait().expect("a child");
    assert_eq!(store.sweep(NOW).leftovers, 1);
    assert_eq!(names_in(&root), before);
    assert_eq!(store.usage().bytes, bytes_in(&root));
    assert_eq!(read(&store, kept), Ok(b"kept".to_vec()));
}

#[test]
fn two_processes_share_one_quota() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    let mut children = [0; 2].map(|_| command("fill", &root).spawn().expect("a child"));
    for child in &mut children {
        told(child, "ready");
    }
    for child in &mut children {
        let words = child.stdin.as_mut().expect("piped");
        words.write_all(b"go\n").expect("the child listens");
    }
    let stored: u64 = children
        .into_iter()
        .map(|child| {
            let out = child.wait_with_output().expect("a child");
            assert!(out.status.success());
            let out = String::from_utf8(out.stdout).expect("text");
            let count = out.lines().find_map(|line| line.strip_prefix("stored "));
            count.expect("a count").parse::<u64>().expect("a number")
        })
        .sum();
    assert!(bytes_in(&root) <= QUOTA);
    let usage = shared(&root).usage();
    assert_eq!((usage.items, usage.bytes), (stored, bytes_in(&root)));
    assert_eq!(stored, 21, "as many as fit, whoever stored them");
}

/// A short write and then none: the file size limit stands in for a full disk.
#[test]
fn a_write_that_fails_half_way_leaves_nothing_and_latches() {
    let home = tempfile::tempdir().expect("a directory");
    let child = command("meet a limit", &root_in(&home));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\""])
        .arg(child.get_program())
        .args(child.get_args())
        .envs(
            child
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let out = shell.output().expect("a shell");
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("done"),
        "{out:?}"
    );
}

/// A disk that is full: a file system of 256 KiB in a name space of the child's own.
#[test]
fn a_full_disk_loses_nothing_that_was_promised() {
    let alone = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("-rm").args(arguments);
        command
    };
    if !alone(&["true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        // Name spaces are not allowed here. The file size limit and the store's own tests of each call stand in.
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let child = command("fill the disk", &root_in(&home));
    let out = alone(&["sh", "-c"])
        .arg("mount -t tmpfs -o size=256k,mode=700 tmpfs \"$HOME_OF_STORE\" && exec \"$0\" \"$@\"")
        .arg(child.get_program())
        .args(child.get_args())
        .env(
            "HOME_OF_STORE",
            home.path().canonicalize().expect("it exists"),
        )
        .envs(
            child
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .expect("a shell");
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("done"),
        "{out:?}"
    );
}

/// Killed wherever it happens to be, ten times in one directory: every item that was announced is whole, and what was not is
/// whole or gone.
#[test]
fn a_process_that_is_killed_at_work_keeps_its_promises() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    let mut promised = Vec::new();
    for round in 0..10 {
        let mut child = command("store without end", &root)
            .spawn()
            .expect("a child");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut lines = out.lines().map(|line| line.expect("text"));
        let mut next = || {
            lines
                .by_ref()
                .find_map(|line| Some(line.split_once("stored ")?.1.to_owned()))
        };
        promised.extend((0..=round % 4).map_while(|_| next()));
        child.kill().expect("a child");
        promised.extend(std::iter::from_fn(next));
        child.wait().expect("a child");
    }
    assert!(promised.len() >= 20, "it was at work: {}", promised.len());
    let store = store_in(&root);
    store.sweep(NOW);
    for announced in &promised {
        let (key, round) = announced.split_once(' ').expect("key and round");
        let content = format!("{round} ").repeat(3_000);
        let key = key.parse().expect("a key");
        assert_eq!(read(&store, key), Ok(content.into_bytes()), "{announced}");
    }
    let usage = store.usage();
    assert_eq!(usage.bytes, bytes_in(&root));
    let arriving = names_in(&root)
        .into_iter()
        .filter(|name| name.ends_with(".part"));
    assert_eq!(arriving.count(), 0);
    assert!(usage.items >= promised.len() as u64);
}

/// Two processes whose full store makes room: what is there is whole, and the quota holds.
#[test]
fn two_processes_that_evict_keep_to_one_quota() {
    let home = tempfile::tempdir().expect("a directory");
    let root = root_in(&home);
    let children = [0; 2].map(|_| command("fill and evict", &root).spawn().expect("a child"));
    for child in children {
        let out = child.wait_with_output().expect("a child");
        assert!(
            out.status.success() && String::from_utf8_lossy(&out.stdout).contains("done"),
            "{out:?}"
        );
    }
    assert!(bytes_in(&root) <= QUOTA);
    assert_eq!(evicting(&root).usage().bytes, bytes_in(&root));
}

/// A place that cannot be written fails at the probe, and at run time leaves the result inline.
#[test]
fn fault_20_a_root_that_cannot_be_written_is_reported() {
    let home = tempfile::tempdir().expect("a directory");
    let mut child = command("be refused", &root_in(&home));
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere, so the part is played by nobody.
        child.uid(65_534).gid(65_534).env("TMPDIR", "/tmp");
    }
    let out = child.output().expect("a child");
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("done"),
        "{out:?}"
    );
}
