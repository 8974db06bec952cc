//! Several processes: this test binary runs itself again, in a part that a variable names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use spill_engine::{Bytes, FileOptions, FileStore, SpillStore, StoreError, WhenFull};

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

fn say(word: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{word}").expect("the parent listens");
    out.flush().expect("the parent listens");
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
