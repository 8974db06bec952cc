//! The small process between runner and subject.
//!
//! The kernel's peak memory of a child starts at the peak of the process that forked it, so a
//! subject started by the runner, which holds a tokenizer, would never read below that. The
//! launcher is a fresh process that holds nothing: it starts the subject in a process group of its
//! own, reaps it, writes down peak memory and processor time, and kills the group as soon as its
//! standard input, a pipe from the runner, closes, however the runner ended.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::confine::confine;
use crate::rss::peak_rss_bytes;
use crate::tree;
use crate::tree_memory::{Meter, TreeFigures, TreeMemory};

/// What helps where the runs' own folders cannot be made or written.
pub(crate) const TEMP_WAY_OUT: &str =
    "free space there, or set TMPDIR to a folder that can be written and has some";

/// What the launcher saw of the subject's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchReport {
    /// Exit code, unless a signal ended the process.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Peak resident memory of the process and of the children it waited for, the largest one.
    pub peak_rss_bytes: u64,
    /// Processor time of the same, user and system, in microseconds.
    pub cpu_us: u64,
    /// Whether the kernel kept the process from writing anywhere but in the folders that were named.
    #[serde(default)]
    pub confined: bool,
    /// Memory of the whole tree of processes, where that was asked for.
    #[serde(default)]
    pub tree: Option<TreeFigures>,
}

/// Starts `command`, waits for it, and writes a [`LaunchReport`] as JSON to `report`.
///
/// The child inherits standard output, standard error, environment and working folder, and reads
/// nothing from standard input. Each byte on the launcher's own standard input asks the child's process
/// group to end; when that input ends, the whole group is killed. Whatever the child leaves behind is killed too, in its group or out of it.
///
/// With `writable`, the child may write below these folders and nowhere else, where the kernel has
/// Landlock; the report says whether it was so. `tree_memory` says how the memory of the whole tree is
/// measured; that of the largest process always is.
///
/// # Errors
///
/// Fails when the command cannot be started or the report cannot be written.
pub fn launch(
    report: &Path,
    writable: Option<&[PathBuf]>,
    tree_memory: &TreeMemory,
    command: &[OsString],
) -> io::Result<()> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no command was given",
        ));
    };
    tree::adopt()?;
    let meter = Meter::start(tree_memory);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0);
    // A thread's restrictions are those of what it starts; the launcher itself has a report to write.
    let started = std::thread::scope(|scope| {
        let start = scope.spawn(|| {
            let confined = writable.is_some_and(confine);
            command.spawn().map(|child| (child, confined))
        });
        start
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
    });
    let (mut child, confined) = started.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot start {}: {error}", PathBuf::from(program).display()),
        )
    })?;
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    std::thread::spawn(move || {
        let mut asked = [0];
        // An error ends the wait as the end of the pipe does: the runner is not there any more.
        while io::stdin().read(&mut asked).is_ok_and(|read| read > 0) {
            // The group may be gone by now.
            let _ = killpg(group, Signal::SIGTERM);
        }
        kill_group(group);
    });
    let status = child.wait()?;
    let tree = meter.read();
    kill_group(group);
    tree::kill_rest();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    let seen = LaunchReport {
        exit_code: status.code(),
        signal: status.signal(),
        peak_rss_bytes: peak_rss_bytes(usage.max_rss()),
        cpu_us: micros(usage.user_time()) + micros(usage.system_time()),
        confined,
        tree,
    };
    std::fs::write(report, serde_json::to_vec(&seen)?).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!(
                "cannot write {}: {error} ({TEMP_WAY_OUT})",
                report.display()
            ),
        )
    })
}

fn kill_group(group: Pid) {
    // The group is usually empty by now; that is what ESRCH says.
    let _ = killpg(group, Signal::SIGKILL);
}
