//! The small process between runner and subjects.
//!
//! The kernel's peak memory of a child starts at the peak of the process that forked it, so a
//! subject started by the runner, which holds a tokenizer, would never read below that. The
//! launcher is a process that holds nothing: it starts one subject after another, each in a process
//! group of its own, reaps it, tells its peak memory and processor time, and kills the group as soon as
//! its standard input, a socket to the runner, closes, however the runner ended.

mod pool;
mod wire;

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::{Deserialize, Serialize};
use wait4::{ResUse, Wait4};

pub(crate) use pool::Launchers;
use wire::END;
pub(crate) use wire::{Reply, Request};

use crate::confine::confine;
use crate::tree::{self, Rest};
use crate::tree_memory::{Meter, TreeFigures, TreeMemory};

/// What helps where the runs' own folders cannot be made or written.
pub(crate) const TEMP_WAY_OUT: &str =
    "free space there, or set TMPDIR to a folder that can be written and has some";

/// What the launcher saw of the subject's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchReport {
    /// Exit code, unless a signal ended the process.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Peak resident memory of the process and of those below it that were waited for, the largest one.
    pub(crate) peak_rss_bytes: u64,
    /// Processor time of the same, user and system, in microseconds.
    pub(crate) cpu_us: u64,
    /// Whether the kernel kept the process from writing anywhere but in the folders that were named.
    pub(crate) confined: bool,
    /// Memory of the whole tree of processes, where that was asked for.
    pub(crate) tree: Option<TreeFigures>,
}

/// The subject's standard output and standard error, which come beside a request.
const STREAMS: usize = 2;

/// Starts the commands that come on standard input, a socket, one after another, and replies with what it
/// saw of each.
///
/// A child has the streams that came with its request, and reads nothing from standard input. Whatever it
/// leaves behind is killed, in its process group or out of it. With folders to write in, it may write below
/// these and nowhere else, where the kernel has Landlock; the reply says whether it was so.
///
/// # Errors
///
/// Fails when standard input is no socket, or what comes on it no request.
pub fn launch() -> io::Result<()> {
    tree::adopt()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut replies = socket.try_clone()?;
    let current = Current::default();
    let (sender, orders) = channel();
    let listener = {
        let current = current.clone();
        std::thread::spawn(move || {
            let heard = listen(&socket, &current, &sender);
            // However it ended, nobody is there any more.
            current.signal(Signal::SIGKILL);
            heard
        })
    };
    while let Ok(order) = orders.recv() {
        let reply = order.carry_out(&current);
        let told = replies.write_all(&reply.to_bytes()?);
        // A runner that was killed is told nothing.
        if told.is_err() || !reply.reusable {
            return Ok(());
        }
    }
    let heard = listener.join();
    heard.unwrap_or_else(|_| Err(io::Error::other("the listening thread panicked")))
}

/// A request and its streams.
struct Order {
    request: Request,
    streams: [OwnedFd; STREAMS],
}

/// Hands over orders until the runner's side of the socket closes.
fn listen(socket: &UnixStream, current: &Current, orders: &Sender<Order>) -> io::Result<()> {
    let (mut bytes, mut streams) = (Vec::new(), Vec::new());
    loop {
        while let Some(first) = bytes.first() {
            match *first {
                END => {
                    bytes.remove(0);
                    current.signal(Signal::SIGTERM);
                }
                _ => {
                    let Some(request) = Request::take(&mut bytes)? else {
                        break;
                    };
                    let streams = std::mem::take(&mut streams);
                    let streams = streams.try_into();
                    let streams = streams.map_err(|_| io::Error::other("streams are missing"))?;
                    if orders.send(Order { request, streams }).is_err() {
                        return Ok(());
                    }
                }
            }
        }
        if receive(socket, &mut bytes, &mut streams)? == 0 {
            return Ok(());
        }
    }
}

/// Appends what has come; returns how many bytes that is, 0 at the end.
fn receive(
    socket: &UnixStream,
    bytes: &mut Vec<u8>,
    streams: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut piece = [0; 16 << 10];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [io::IoSliceMut::new(&mut piece)];
    let received =
        rustix::io::retry_on_intr(|| recvmsg(socket, into, &mut beside, RecvFlags::CMSG_CLOEXEC));
    let received = match received {
        Ok(received) => received,
        // A runner that ended with a reply unread.
        Err(Errno::CONNRESET) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            streams.extend(descriptors);
        }
    }
    bytes.extend_from_slice(&piece[..received.bytes]);
    Ok(received.bytes)
}

impl Order {
    fn carry_out(self, current: &Current) -> Reply {
        // In a cgroup of its own it stays, so its figures are of one subject alone.
        let stays = !matches!(self.request.tree_memory, TreeMemory::Group(_));
        match self.run(current) {
            Ok((report, all_gone)) => Reply {
                seen: Ok(report),
                reusable: stays && all_gone,
            },
            Err(error) => Reply {
                seen: Err(error.to_string()),
                reusable: false,
            },
        }
    }

    /// What was seen, and whether nothing is left of it.
    fn run(self, current: &Current) -> io::Result<(LaunchReport, bool)> {
        let meter = Meter::start(&self.request.tree_memory);
        let (child, confined) = self.start()?;
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        current.begin(group);
        let ended = child.wait4();
        let tree = meter.read();
        signal_group(group, Signal::SIGKILL);
        current.end();
        let ended = ended?;
        let rest = tree::kill_rest();
        let report = report(&ended, &rest, confined, tree);
        Ok((report, rest.all_gone))
    }

    /// The child, and whether it is confined.
    fn start(self) -> io::Result<(Child, bool)> {
        let [stdout, stderr] = self.streams;
        let Some((program, arguments)) = self.request.command.split_first() else {
            return Err(io::Error::other("no command was given"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.request.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.request.folder)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        let mut spawn = |confined| command.spawn().map(|child| (child, confined));
        let started = match &self.request.writable {
            None => spawn(false),
            // A thread's restrictions are those of what it starts; the next subject has its own.
            Some(writable) => std::thread::scope(|scope| {
                let start = scope.spawn(|| spawn(confine(writable)));
                start
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
            }),
        };
        started.map_err(|error| {
            let program = Path::new(self.request.program()).display();
            io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
        })
    }
}

fn report(ended: &ResUse, rest: &Rest, confined: bool, tree: Option<TreeFigures>) -> LaunchReport {
    let own = ended.rusage;
    let cpu = own.utime + own.stime + rest.cpu;
    LaunchReport {
        exit_code: ended.status.code(),
        signal: ended.status.signal(),
        peak_rss_bytes: own.maxrss.max(rest.peak_rss_bytes),
        cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
        confined,
        tree,
    }
}

/// The process group that is running, and what was asked of it before it was there.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<(Option<Pid>, Option<Signal>)>>);

impl Current {
    /// Sends a signal to the group, as soon as there is one.
    fn signal(&self, signal: Signal) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match current.0 {
            Some(group) => signal_group(group, signal),
            None => current.1 = Some(signal),
        }
    }

    fn begin(&self, group: Pid) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 = Some(group);
        if let Some(signal) = current.1 {
            signal_group(group, signal);
        }
    }

    fn end(&self) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 = None;
    }
}

fn signal_group(group: Pid, signal: Signal) {
    // The group is often empty by now; that is what ESRCH says.
    let _ = killpg(group, signal);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A process that says itself how much memory it took at most, in KiB, is reported with no less, and
    /// not with a thousand times as much.
    ///
    /// Known fault 83: nix-rust/nix #2331; psf/pyperf PR #173; wildcat-finance/skills #822.
    #[test]
    fn peak_memory_has_one_unit_everywhere() {
        let mut child = Command::new("grep")
            .args(["VmHWM", "/proc/self/status"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("grep starts");
        let mut said = String::new();
        let mut stdout = child.stdout.take().expect("it is piped");
        stdout.read_to_string(&mut said).expect("a line");
        let kib: u64 = said
            .split_whitespace()
            .nth(1)
            .expect("a number")
            .parse()
            .expect("KiB");
        let ended = child.wait4().expect("it ends");
        let report = report(&ended, &Rest::default(), false, None);
        let bytes = kib * 1024..1 << 30;
        assert!(bytes.contains(&report.peak_rss_bytes), "{report:?}, {said}");
        assert_eq!((report.exit_code, report.signal), (Some(0), None));
    }

    #[test]
    fn what_was_left_of_a_tree_counts() {
        let child = Command::new("true").spawn().expect("true starts");
        let ended = child.wait4().expect("it ends");
        let rest = Rest {
            cpu: std::time::Duration::from_secs(7),
            peak_rss_bytes: 1 << 40,
            all_gone: true,
        };
        let report = report(&ended, &rest, true, None);
        assert_eq!(report.peak_rss_bytes, 1 << 40);
        assert!(report.cpu_us >= 7_000_000 && report.confined, "{report:?}");
    }
}
