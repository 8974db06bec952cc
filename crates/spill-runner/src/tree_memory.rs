//! What a tree of processes takes of memory: the kernel's figure for a cgroup, or samples.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::tree;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(50);

/// How the memory of the whole tree is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeMemory {
    /// Not at all: the largest process is enough to know.
    Not,
    /// By samples, each the sum over its processes: a lower bound.
    Sampled,
    /// By a cgroup of its own below this one, of version 2, with the memory controller for its children;
    /// by samples where none can be made.
    Group(PathBuf),
}

/// What was measured of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeFigures {
    /// `memory.peak` of the tree's cgroup, the launcher's own few MiB included.
    pub(crate) cgroup_peak_bytes: Option<u64>,
    /// The largest sample: a lower bound of the peak.
    pub(crate) sampled_bytes: Option<u64>,
}

/// A measurement that goes on until it is read.
pub(crate) enum Meter {
    None,
    Samples(Sampler),
    Group(Group),
}

impl Meter {
    /// Starts measuring all that this process starts from now on.
    pub(crate) fn start(how: &TreeMemory) -> Self {
        match how {
            TreeMemory::Not => Self::None,
            TreeMemory::Sampled => Self::Samples(Sampler::start()),
            TreeMemory::Group(parent) => match Group::enter(&leaf(parent, std::process::id())) {
                Ok(group) => Self::Group(group),
                Err(_none) => Self::Samples(Sampler::start()),
            },
        }
    }

    pub(crate) fn read(self) -> Option<TreeFigures> {
        match self {
            Self::None => None,
            Self::Samples(sampler) => Some(TreeFigures {
                sampled_bytes: sampler.stop(),
                ..TreeFigures::default()
            }),
            Self::Group(group) => Some(TreeFigures {
                cgroup_peak_bytes: group.peak(),
                ..TreeFigures::default()
            }),
        }
    }
}

/// The cgroup of the launcher that is process `launcher`.
pub(crate) fn leaf(parent: &Path, launcher: u32) -> PathBuf {
    parent.join(format!("spillgate-{launcher}"))
}

/// A cgroup that this process is in.
pub(crate) struct Group {
    leaf: PathBuf,
}

impl Group {
    /// Makes the cgroup and moves this process into it, so that its children start there.
    fn enter(leaf: &Path) -> io::Result<Self> {
        match fs::create_dir(leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let group = Self {
            leaf: leaf.to_owned(),
        };
        let entered = match group.peak() {
            Some(_) => fs::write(leaf.join("cgroup.procs"), std::process::id().to_string()),
            None => Err(io::Error::other("its parent has no memory controller")),
        };
        if entered.is_err() {
            // One that nobody is in is no use to anyone.
            drop(fs::remove_dir(leaf));
        }
        entered.map(|()| group)
    }

    fn peak(&self) -> Option<u64> {
        let text = fs::read_to_string(self.leaf.join("memory.peak")).ok()?;
        text.trim().parse().ok()
    }
}

/// A thread that looks at the tree from time to time.
pub(crate) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Option<u64>>,
}

impl Sampler {
    fn start() -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || largest(&stopped, || sample(Pid::this())));
        Self { stop, thread }
    }

    fn stop(self) -> Option<u64> {
        drop(self.stop);
        self.thread.join().ok().flatten()
    }
}

/// The largest of the samples taken until `stopped` says so; `None` when none saw a process.
fn largest(stopped: &Receiver<()>, mut sample: impl FnMut() -> u64) -> Option<u64> {
    let mut most = 0;
    loop {
        most = most.max(sample());
        match stopped.recv_timeout(PERIOD) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return (most > 0).then_some(most),
        }
    }
}

/// Resident memory of all descendants of `root`, pages that several share counted once (`Pss`).
fn sample(root: Pid) -> u64 {
    let shares = tree::descendants(root).into_iter().filter_map(|process| {
        let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        share_in(&rollup)
    });
    shares.sum()
}

fn share_in(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_with_a_memory_controller_is_entered_and_read() {
        let parent = tempfile::tempdir().expect("a folder");
        let leaf = parent.path().join("leaf");
        fs::create_dir(&leaf).expect("a group");
        fs::write(leaf.join("memory.peak"), "123456789\n").expect("a controller");
        let group = Group::enter(&leaf).expect("it is entered");
        let inside = fs::read_to_string(leaf.join("cgroup.procs")).expect("a member");
        assert_eq!(inside, std::process::id().to_string());
        assert_eq!(group.peak(), Some(123_456_789));
        fs::write(leaf.join("memory.peak"), "max\n").expect("no number");
        assert_eq!(group.peak(), None);
    }

    #[test]
    fn without_a_controller_or_a_place_there_are_samples_and_no_group_is_left() {
        let parent = tempfile::tempdir().expect("a folder");
        for place in [parent.path().to_owned(), parent.path().join("nowhere")] {
            match Meter::start(&TreeMemory::Group(place)) {
                Meter::Samples(sampler) => drop(sampler.stop()),
                Meter::None | Meter::Group(_) => panic!("there is no group to enter"),
            }
        }
        let left = fs::read_dir(parent.path()).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn samples_keep_the_largest_and_nothing_is_no_figure() {
        let check = |samples: &[u64], most: Option<u64>| {
            let (stop, stopped) = channel();
            let mut left = samples.iter();
            let mut stop = Some(stop);
            let found = largest(&stopped, || {
                let sample = left.next().copied();
                if left.len() == 0 {
                    stop = None;
                }
                sample.unwrap_or(0)
            });
            assert_eq!(found, most, "{samples:?}");
        };
        check(&[3, 9, 5], Some(9));
        check(&[0, 0], None);
    }

    #[test]
    fn a_sample_is_the_sum_over_a_tree_and_not_its_largest_process() {
        // A shell that waits for another, each with pages of its own.
        let script = "sh -c 'sleep 60 & wait' & wait";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("a shell starts");
        let until = std::time::Instant::now() + Duration::from_secs(30);
        let root = Pid::from_raw(i32::try_from(child.id()).expect("a process id fits"));
        while tree::descendants(root).len() < 2 && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let below = tree::descendants(root);
        assert_eq!(below.len(), 2, "a shell and its sleep");
        let (all, part) = (sample(root), sample(below[0]));
        assert!(all > part && part > 0, "{all} {part}");
        for process in below {
            // One that has ended meanwhile is as good.
            let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
        }
        child.kill().expect("it is killed");
        child.wait().expect("it is reaped");
    }

    #[test]
    fn a_share_that_is_not_told_is_missing() {
        assert_eq!(
            share_in("Rss: 9 kB\nPss:      12 kB\nPss_Dirty: 4 kB\n"),
            Some(12 * 1024)
        );
        for none in ["", "Pss: x kB", "Pss: 5", "Rss: 5 kB"] {
            assert_eq!(share_in(none), None, "{none}");
        }
    }
}
