//! What a process leaves behind, its own process group or not.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// How long killed processes may take to be reaped.
const REAP: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Makes this process the parent of all its descendants whose own parent ends.
pub(crate) fn adopt() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)
}

/// What was left of a tree, and killed.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Processor time of all of it.
    pub(crate) cpu: Duration,
    /// Peak memory of the largest.
    pub(crate) peak_rss_bytes: u64,
    /// Whether all of it was reaped.
    pub(crate) all_gone: bool,
}

/// Kills and reaps every child that is left: an orphan becomes one, so nothing of a tree survives.
pub(crate) fn kill_rest() -> Rest {
    let mut rest = Rest::default();
    let until = Instant::now() + REAP;
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while Instant::now() < until {
        match waitid(Id::All, flags) {
            Err(Errno::ECHILD) => {
                rest.all_gone = true;
                break;
            }
            Ok(WaitStatus::Exited(child, _) | WaitStatus::Signaled(child, _, _)) => {
                rest.reap(child);
            }
            Ok(WaitStatus::StillAlive) => {
                for child in children_of(Pid::this()) {
                    // One that has ended meanwhile is reaped by the next turn.
                    let _ = kill(child, Signal::SIGKILL);
                }
                std::thread::sleep(PAUSE);
            }
            Ok(_) | Err(_) => {}
        }
    }
    rest
}

impl Rest {
    fn reap(&mut self, child: Pid) {
        let id = u32::try_from(child.as_raw()).unwrap_or(0);
        // It has ended, and nobody else waits for it.
        if let Ok(Some(used)) = wait4::try_wait4_pid(id) {
            self.cpu += used.rusage.utime + used.rusage.stime;
            self.peak_rss_bytes = self.peak_rss_bytes.max(used.rusage.maxrss);
        }
    }
}

/// Kills every process whose environment names a place below `folder`, until there is none: what a launcher that
/// was killed itself has left.
pub(crate) fn kill_those_of(folder: &Path) {
    let mut needle = folder.as_os_str().as_bytes().to_vec();
    needle.push(b'/');
    let until = Instant::now() + REAP;
    loop {
        let named = |process: &i32| {
            // That of a process of others cannot be read, that of one that has ended is empty.
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            memchr::memmem::find(&environment, &needle).is_some()
        };
        let own = Pid::this().as_raw();
        let left: Vec<i32> = processes()
            .filter(|one| *one != own)
            .filter(named)
            .collect();
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for process in left {
            // One that has ended meanwhile is what is wanted.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Has a process go on that another has stopped. `None` is one that has ended.
pub(crate) fn go_on(process: Option<u32>) {
    if let Some(process) = process.and_then(|process| i32::try_from(process).ok()) {
        // One that has ended meanwhile need not.
        let _ = kill(Pid::from_raw(process), Signal::SIGCONT);
    }
}

/// Processes whose parent is `parent`.
fn children_of(parent: Pid) -> Vec<Pid> {
    processes()
        .filter(|number| parent_of(*number) == Some(parent.as_raw()))
        .map(Pid::from_raw)
        .collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// All processes below `root`, children before their own.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let parents: Vec<(i32, i32)> = processes()
        .filter_map(|process| Some((process, parent_of(process)?)))
        .collect();
    let mut found = vec![root.as_raw()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        let new: Vec<i32> = children
            .map(|(process, _)| *process)
            .filter(|process| !found.contains(process))
            .collect();
        found.extend(new);
        next += 1;
    }
    found.into_iter().skip(1).map(Pid::from_raw).collect()
}

fn parent_of(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    parent_in(&stat)
}

/// The parent's number in a line of `stat`; the name before it may hold anything.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a) S 1 (b) R 9 1"), Some(9));
        assert_eq!(parent_in("12"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn a_child_is_among_its_parents_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep starts");
        let id = i32::try_from(child.id()).expect("a process id fits");
        assert!(children_of(Pid::this()).contains(&Pid::from_raw(id)));
        child.kill().expect("it is killed");
        child.wait().expect("it is reaped");
        assert!(!children_of(Pid::this()).contains(&Pid::from_raw(id)));
    }
}
