//! One process per run: its environment, its output, its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};

use spill_scenario::STATE_PLACEHOLDER;

use crate::dirs::{RunDirs, STATE};
use crate::launcher::{LaunchReport, Launchers, Reply, Request};
use crate::log::Log;
use crate::tree;
use crate::tree_memory::{TreeMemory, leaf};

/// Where the built-in subject takes the seed of a store's names from.
const STORE_SEED: &str = "SPILLGATE_STORE_SEED";

/// Whether a configuration declares the state folder as its own.
pub(crate) fn declares_state(env: &BTreeMap<String, String>) -> bool {
    env.values().any(|value| value.contains(STATE_PLACEHOLDER))
}

/// The environment of one run: the state folder's path filled in, and the seed that names come from.
pub(crate) fn filled(
    env: &BTreeMap<String, String>,
    dirs: &RunDirs,
    seed: u64,
) -> BTreeMap<String, String> {
    let state = dirs.place(STATE);
    let state = state.to_string_lossy();
    let fill = |value: &String| value.replace(STATE_PLACEHOLDER, &state);
    let mut filled: BTreeMap<String, String> = env
        .iter()
        .map(|(name, value)| (name.clone(), fill(value)))
        .collect();
    filled
        .entry(STORE_SEED.to_owned())
        .or_insert_with(|| seed.to_string());
    filled
}

/// What is run, with what.
pub(crate) struct Launch<'a> {
    pub(crate) launchers: &'a Launchers,
    pub(crate) command: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) timeout: Duration,
    /// Whether the kernel is to keep the process from writing anywhere but in its declared folders.
    pub(crate) confined: bool,
    /// How the memory of the whole tree of processes is measured.
    pub(crate) tree_memory: TreeMemory,
}

/// How a process ended.
pub(crate) enum Ended {
    /// On its own.
    Exited(Finished),
    /// It was killed when its time was over.
    TimedOut(Finished),
    /// It was killed when one of its streams passed the bound.
    OutputTooLarge(Finished),
    /// It was killed since the acceptance was told to stop.
    Cancelled,
}

pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) log: Log,
    pub(crate) wall: Duration,
    /// Why there is none: the launcher's own words when it could not start the process.
    pub(crate) report: Result<LaunchReport, String>,
}

/// A subject that prints more than this on one stream is stopped.
const STREAM_LIMIT_BYTES: usize = 256 << 20;
/// How long the launcher may take to kill and reap.
const REAP_GRACE: Duration = Duration::from_secs(10);
/// How long a process that was asked to end may take before it is killed.
const QUIT_GRACE: Duration = Duration::from_secs(5);
/// How long streams may stay open after the process group is gone.
const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// Where a subject finds the programs of the system; nothing else is inherited.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs one process to its end.
pub(crate) async fn run(
    dirs: &RunDirs,
    launch: Launch<'_>,
    cancel: watch::Receiver<bool>,
) -> io::Result<Ended> {
    run_until(dirs, launch, cancel, std::future::pending()).await
}

/// Runs one process to its end, and asks it to end as soon as `quit` is there.
pub(crate) async fn run_until(
    dirs: &RunDirs,
    launch: Launch<'_>,
    mut cancel: watch::Receiver<bool>,
    quit: impl Future<Output = ()>,
) -> io::Result<Ended> {
    let mut launcher = launch.launchers.take()?;
    let launcher_id = launcher.id();
    let started = Instant::now();
    let mut deadline = tokio::time::Instant::now() + launch.timeout;
    let ((stdout, its_stdout), (stderr, its_stderr)) = (io::pipe()?, io::pipe()?);
    Log::plant_control(&its_stderr)?;
    let streams = [its_stdout.into(), its_stderr.into()];
    launcher
        .orders
        .send(&request(dirs, &launch), streams)
        .await?;
    let overflow = Notify::new();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut reusable = true;
    let (why, reply) = {
        let (stdout, stderr) = (receiver(stdout)?, receiver(stderr)?);
        let streams = async {
            tokio::join!(
                read_bounded(stdout, &mut out, &overflow),
                read_bounded(stderr, &mut err, &overflow)
            )
        };
        let orders = &mut launcher.orders;
        let reply = launcher.replies.next();
        tokio::pin!(streams, quit, reply);
        let mut drained = false;
        let ended: (fn(Finished) -> Ended, _) = loop {
            tokio::select! {
                _ = &mut streams, if !drained => drained = true,
                reply = &mut reply => break (Ended::Exited, Some(reply)),
                () = tokio::time::sleep_until(deadline) => break (Ended::TimedOut, None),
                () = overflow.notified() => break (Ended::OutputTooLarge, None),
                () = &mut quit, if reusable => {
                    // It is asked once, and what is asked late must not reach the next one.
                    reusable = false;
                    deadline = tokio::time::Instant::now() + QUIT_GRACE;
                    orders.ask_to_end().await;
                }
                () = stopped(&mut cancel) => break (|_| Ended::Cancelled, None),
            }
        };
        let (why, reply) = match ended {
            (why, Some(reply)) => (why, reply),
            (why, None) => {
                reusable = false;
                orders.kill().await;
                tree::go_on(launcher_id);
                let killed = tokio::time::timeout(REAP_GRACE, reply).await;
                (why, killed.ok().flatten())
            }
        };
        if !drained {
            // What is left stands in the pipe already, unless a process that left the group holds
            // it open.
            drop(tokio::time::timeout(DRAIN_GRACE, streams).await);
        }
        (why, reply)
    };
    let wall = started.elapsed();
    let (report, next) = match reply {
        Some(Reply { seen, reusable }) => (seen, reusable),
        None => (Err("it was ended from outside".to_owned()), false),
    };
    if reusable && next {
        launch.launchers.put_back(launcher);
    } else {
        let group = group(&launch.tree_memory, launcher_id);
        match report {
            Ok(_) => launcher.close().await,
            Err(_) => {
                launcher.kill().await;
                tree::kill_those_of(dirs.root());
            }
        }
        if let Some(group) = group {
            // Nobody is in it any more; it may never have been.
            drop(fs::remove_dir(group));
        }
    }
    Ok(why(Finished {
        stdout: out,
        log: Log::read(err),
        wall,
        report,
    }))
}

/// The cgroup that the launcher with this process id may have made.
fn group(tree_memory: &TreeMemory, launcher: Option<u32>) -> Option<PathBuf> {
    match (tree_memory, launcher) {
        (TreeMemory::Group(parent), Some(id)) => Some(leaf(parent, id)),
        (TreeMemory::Not | TreeMemory::Sampled | TreeMemory::Group(_), _) => None,
    }
}

/// Waits until the acceptance is told to stop.
async fn stopped(cancel: &mut watch::Receiver<bool>) {
    drop(cancel.wait_for(|stop| *stop).await);
}

fn receiver(end: io::PipeReader) -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(end.into())
}

fn request(dirs: &RunDirs, launch: &Launch<'_>) -> Request {
    let mut env: BTreeMap<OsString, OsString> = [
        ("PATH", SYSTEM_PATH.into()),
        ("LANG", "C.UTF-8".into()),
        ("HOME", dirs.place("home").into()),
        ("TMPDIR", dirs.place("tmp").into()),
        ("SPILLGATE_OUTPUT", dirs.place("out").into()),
        ("SPILLGATE_BIN", launch.launchers.program().into()),
        ("SPILLGATE_LOG", "trace".into()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into();
    let own = launch.env.iter();
    env.extend(own.map(|(name, value)| (name.into(), value.into())));
    let writable = || vec![dirs.place("out"), dirs.place(STATE)];
    Request {
        folder: dirs.place("work"),
        command: launch.command.clone(),
        env: env.into_iter().collect(),
        writable: launch.confined.then(writable),
        tree_memory: launch.tree_memory.clone(),
    }
}

/// Appends a stream to `bytes` until its end; past the bound, says so and throws the rest away.
async fn read_bounded(mut stream: impl AsyncRead + Unpin, bytes: &mut Vec<u8>, overflow: &Notify) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer).await {
            // A broken pipe ends the stream as its close does.
            Ok(0) | Err(_) => return,
            Ok(read) if bytes.len() + read > STREAM_LIMIT_BYTES => overflow.notify_one(),
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_the_state_folder_and_has_the_seed() {
        let env = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let root = tempfile::tempdir().expect("a folder");
        let dirs = RunDirs::create(root.path().join("1")).expect("folders");
        let check = |value, want: &str| {
            let want = want.replace("/runs", &root.path().to_string_lossy());
            let want = env(&[("A", &want), (STORE_SEED, "7")]);
            assert_eq!(filled(&env(&[("A", value)]), &dirs, 7), want);
        };
        check("{state}/spill", "/runs/1/state/spill");
        check("{home} {{ }}", "{home} {{ }}");
        let own = env(&[(STORE_SEED, "3")]);
        assert_eq!(filled(&own, &dirs, 7), own);
        assert!(declares_state(&env(&[("A", "{state}")])));
        assert!(!declares_state(&env(&[("A", "state")])));
    }
}
