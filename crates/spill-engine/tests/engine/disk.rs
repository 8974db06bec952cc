//! A step writes nothing to disk: it runs in a process that may write no file, in an empty directory.

use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};
use spill_engine::Placement;

use crate::{admit, low, plain, read, step};

const CHILD: &str = "SPILL_ENGINE_TEST_WRITES_NO_FILE";

/// Does nothing unless it was started as a child.
#[test]
fn plays_its_part() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // From here on a write to a file, wherever it is, ends the process by a signal.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Fsize, none).expect("a limit may always be lowered");
    let step = step(low());
    let admitted = admit(&step, 0, plain(100_000));
    assert_eq!(admitted.placement, Placement::Stored);
    assert!(read(&step, 0, 50_000, 1_000).is_ok());
    step.release();
}

#[test]
fn a_step_writes_nothing_to_disk() {
    let home = tempfile::tempdir().expect("a directory");
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "disk::plays_its_part"])
        .env(CHILD, "1")
        .env("TMPDIR", home.path())
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{} {said}",
        child.status
    );
    let left = std::fs::read_dir(home.path()).expect("a directory").count();
    assert_eq!(left, 0, "files left");
}
