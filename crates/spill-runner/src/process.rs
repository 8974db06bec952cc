//! One process per run: its folders, its environment, its output, its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::launcher::LaunchReport;

/// The folders of one run. Those of the subject start empty and are watched and searched.
#[derive(Debug)]
pub(crate) struct RunDirs {
    root: PathBuf,
}

/// The subject's folders by the name that findings use.
pub(crate) const PLACES: [&str; 4] = ["home", "tmp", "out", "work"];

impl RunDirs {
    pub(crate) fn create(root: PathBuf) -> io::Result<Self> {
        fs::create_dir(&root)?;
        for place in PLACES.iter().chain(&["harness"]) {
            fs::create_dir(root.join(place))?;
        }
        Ok(Self { root })
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn harness_file(&self, name: &str) -> PathBuf {
        self.root.join("harness").join(name)
    }
}

impl Drop for RunDirs {
    fn drop(&mut self) {
        // What cannot be removed goes with the acceptance's temporary folder.
        drop(fs::remove_dir_all(&self.root));
    }
}

/// What is run, with what.
pub(crate) struct Launch<'a> {
    /// This program, which is its own launcher.
    pub(crate) spillgate: &'a Path,
    pub(crate) command: Vec<OsString>,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) timeout: Duration,
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
    pub(crate) stderr: Vec<u8>,
    pub(crate) wall: Duration,
    /// `None` when the launcher could not start the process or was killed itself.
    pub(crate) report: Option<LaunchReport>,
}

/// A subject that prints more than this on one stream is stopped.
const STREAM_LIMIT_BYTES: usize = 256 << 20;
/// How long the launcher may take to kill and reap after its pipe was closed.
const REAP_GRACE: Duration = Duration::from_secs(10);
/// Where a subject finds the programs of the system; nothing else is inherited.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs one process to its end.
pub(crate) async fn run(
    dirs: &RunDirs,
    launch: Launch<'_>,
    mut cancel: watch::Receiver<bool>,
) -> io::Result<Ended> {
    let report_path = dirs.harness_file("launch.json");
    let started = Instant::now();
    let mut child = spawn(dirs, &launch, &report_path)?;
    let leash = child.stdin.take();
    let stdout = child.stdout.take().expect("standard output is piped");
    let stderr = child.stderr.take().expect("standard error is piped");
    let streams = async { tokio::join!(read_bounded(stdout), read_bounded(stderr)) };
    tokio::pin!(streams);

    let why = tokio::select! {
        read = &mut streams => Stopped::Done(read),
        () = tokio::time::sleep(launch.timeout) => Stopped::Timeout,
        _ = cancel.wait_for(|stop| *stop) => Stopped::Cancel,
    };
    let overflow = matches!(&why, Stopped::Done((out, err)) if out.overflow || err.overflow);
    let timed_out = matches!(why, Stopped::Timeout);
    if overflow || !matches!(why, Stopped::Done(_)) {
        // Closing the pipe makes the launcher kill the subject's process group.
        drop(leash);
        let (out, err) = match why {
            Stopped::Done(read) => read,
            Stopped::Timeout | Stopped::Cancel => {
                match tokio::time::timeout(REAP_GRACE, streams).await {
                    Ok(read) => read,
                    Err(_) => Default::default(),
                }
            }
        };
        reap(&mut child).await?;
        let finished = finish(out, err, started, &report_path);
        return Ok(match (overflow, timed_out) {
            (true, _) => Ended::OutputTooLarge(finished),
            (false, true) => Ended::TimedOut(finished),
            (false, false) => Ended::Cancelled,
        });
    }
    let Stopped::Done((out, err)) = why else {
        unreachable!("the other endings returned above")
    };
    // Both streams are closed, but the process may live on: its time still runs.
    let left = launch.timeout.saturating_sub(started.elapsed());
    let in_time = tokio::time::timeout(left, child.wait()).await;
    drop(leash);
    reap(&mut child).await?;
    let finished = finish(out, err, started, &report_path);
    match in_time {
        Ok(_) => Ok(Ended::Exited(finished)),
        Err(_) => Ok(Ended::TimedOut(finished)),
    }
}

enum Stopped {
    Done((Stream, Stream)),
    Timeout,
    Cancel,
}

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    overflow: bool,
}

fn spawn(dirs: &RunDirs, launch: &Launch<'_>, report: &Path) -> io::Result<Child> {
    Command::new(launch.spillgate)
        .arg("launch")
        .arg("--report")
        .arg(report)
        .arg("--")
        .args(&launch.command)
        .env_clear()
        .env("PATH", SYSTEM_PATH)
        .env("LANG", "C.UTF-8")
        .env("HOME", dirs.place("home"))
        .env("TMPDIR", dirs.place("tmp"))
        .env("SPILLGATE_OUTPUT", dirs.place("out"))
        .env("SPILLGATE_BIN", launch.spillgate)
        .env("SPILLGATE_LOG", "trace")
        .envs(launch.env)
        .current_dir(dirs.place("work"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that an interrupt typed at the terminal reaches the runner alone.
        .process_group(0)
        .spawn()
}

async fn read_bounded(mut stream: impl AsyncRead + Unpin) -> Stream {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer).await {
            // A broken pipe ends the stream as its close does.
            Ok(0) | Err(_) => {
                return Stream {
                    bytes,
                    overflow: false,
                };
            }
            Ok(read) if bytes.len() + read > STREAM_LIMIT_BYTES => {
                return Stream {
                    bytes,
                    overflow: true,
                };
            }
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

async fn reap(child: &mut Child) -> io::Result<()> {
    if tokio::time::timeout(REAP_GRACE, child.wait())
        .await
        .is_err()
    {
        child.kill().await?;
    }
    Ok(())
}

fn finish(out: Stream, err: Stream, started: Instant, report: &Path) -> Finished {
    let report = fs::read(report)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    Finished {
        stdout: out.bytes,
        stderr: err.bytes,
        wall: started.elapsed(),
        report,
    }
}
