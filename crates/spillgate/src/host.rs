//! Where and when: the only reader of clock, machine and checkout.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use spill_record::Host;

/// The time now, as the manifest spells it and as a folder's name does.
pub(crate) fn now() -> (String, String) {
    let now = Timestamp::now();
    let started_at = now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let for_name = now.strftime("%Y%m%dT%H%M%S%.3fZ").to_string();
    (started_at, for_name)
}

pub(crate) fn host() -> Host {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Host {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpus: u64::try_from(cpus).unwrap_or(1),
        memory_bytes: memory_bytes(),
    }
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Commit of the working folder and whether it has uncommitted changes; `None` outside a checkout.
pub(crate) fn commit() -> (Option<String>, Option<bool>) {
    let Some(commit) = git(&["rev-parse", "--verify", "HEAD"]) else {
        return (None, None);
    };
    let dirty = git(&["status", "--porcelain"]).map(|changes| !changes.is_empty());
    (Some(commit), dirty)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["--no-optional-locks"])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// This program's own path, to start it again.
pub(crate) fn this_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}
