//! One process per run: its folders, its environment, its output, its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, watch};

use spill_scenario::{OwnFolder, OwnPlace, STATE_PLACEHOLDER};

use crate::launcher::LaunchReport;
use crate::tree_memory::{TreeMemory, leaf};

/// The folders of one run. Those of the subject start empty and are watched and searched.
#[derive(Debug)]
pub(crate) struct RunDirs {
    root: PathBuf,
}

/// The subject's folders by the name that findings use.
pub(crate) const PLACES: [&str; 4] = ["home", "tmp", "out", "work"];

/// The declared state folder, by the name that findings use.
pub(crate) const STATE: &str = "state";
/// The name that findings use for one of a subject's folders.
pub(crate) fn folder_name(folder: OwnFolder) -> &'static str {
    match folder {
        OwnFolder::Home => "home",
        OwnFolder::Work => "work",
        OwnFolder::Tmp => "tmp",
        OwnFolder::Output => "out",
    }
}

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

impl RunDirs {
    pub(crate) fn create(root: PathBuf) -> io::Result<Self> {
        fs::create_dir(&root)?;
        for place in PLACES.iter().chain(&[STATE, "harness"]) {
            fs::create_dir(root.join(place))?;
        }
        // A store keeps results only where nobody else can read them.
        fs::set_permissions(root.join(STATE), fs::Permissions::from_mode(0o700))?;
        Ok(Self { root })
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where a place of the subject's own stands.
    pub(crate) fn own(&self, own: &OwnPlace) -> PathBuf {
        self.place(folder_name(own.folder)).join(&own.path)
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
    pub(crate) stderr: Vec<u8>,
    pub(crate) wall: Duration,
    /// `None` when the launcher could not start the process or was killed itself.
    pub(crate) report: Option<LaunchReport>,
}

/// A subject that prints more than this on one stream is stopped.
const STREAM_LIMIT_BYTES: usize = 256 << 20;
/// How long the launcher may take to kill and reap after its pipe was closed.
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
    let report_path = dirs.harness_file("launch.json");
    let started = Instant::now();
    let mut deadline = tokio::time::Instant::now() + launch.timeout;
    let mut child = spawn(dirs, &launch, &report_path)?;
    let group = match (&launch.tree_memory, child.id()) {
        (TreeMemory::Group(parent), Some(id)) => Some(leaf(parent, id)),
        (TreeMemory::Not | TreeMemory::Sampled | TreeMemory::Group(_), _) => None,
    };
    let mut leash = child.stdin.take();
    let stdout = child.stdout.take().expect("standard output is piped");
    let stderr = child.stderr.take().expect("standard error is piped");
    let overflow = Notify::new();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let why = {
        let streams = async {
            tokio::join!(
                read_bounded(stdout, &mut out, &overflow),
                read_bounded(stderr, &mut err, &overflow)
            )
        };
        tokio::pin!(streams, quit);
        let (mut drained, mut asked) = (false, false);
        let why: fn(Finished) -> Ended = loop {
            tokio::select! {
                _ = &mut streams, if !drained => drained = true,
                _ = child.wait() => break Ended::Exited,
                () = tokio::time::sleep_until(deadline) => break Ended::TimedOut,
                () = overflow.notified() => break Ended::OutputTooLarge,
                () = &mut quit, if !asked => {
                    asked = true;
                    deadline = tokio::time::Instant::now() + QUIT_GRACE;
                    if let Some(leash) = &mut leash {
                        // A launcher that is gone already has nobody to ask.
                        drop(leash.write_all(b".").await);
                    }
                }
                () = stopped(&mut cancel) => break |_| Ended::Cancelled,
            }
        };
        // Closing the pipe makes the launcher kill the subject's process group.
        drop(leash);
        if tokio::time::timeout(REAP_GRACE, child.wait())
            .await
            .is_err()
        {
            // A launcher that does not end is stopped itself.
            child.kill().await?;
        }
        if !drained {
            // What is left stands in the pipe already, unless a process that left the group holds
            // it open.
            drop(tokio::time::timeout(DRAIN_GRACE, streams).await);
        }
        why
    };
    let wall = started.elapsed();
    if let Some(group) = group {
        // Nobody is in it any more; it may never have been.
        drop(fs::remove_dir(group));
    }
    let report = fs::read(&report_path)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    Ok(why(Finished {
        stdout: out,
        stderr: err,
        wall,
        report,
    }))
}

/// Waits until the acceptance is told to stop.
async fn stopped(cancel: &mut watch::Receiver<bool>) {
    drop(cancel.wait_for(|stop| *stop).await);
}

fn spawn(dirs: &RunDirs, launch: &Launch<'_>, report: &Path) -> io::Result<Child> {
    Command::new(launch.spillgate)
        .arg("launch")
        .arg("--report")
        .arg(report)
        .args(writable(dirs, launch))
        .args(tree_flags(&launch.tree_memory))
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
        .envs(&launch.env)
        .current_dir(dirs.place("work"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that an interrupt typed at the terminal reaches the runner alone.
        .process_group(0)
        .spawn()
}

/// The launcher's flags that name the folders which a confined process may write in.
fn writable(dirs: &RunDirs, launch: &Launch<'_>) -> Vec<OsString> {
    if !launch.confined {
        return Vec::new();
    }
    [dirs.place("out"), dirs.place(STATE)]
        .into_iter()
        .flat_map(|place| ["--writable".into(), place.into_os_string()])
        .collect()
}

/// The launcher's flags for the memory of the tree.
fn tree_flags(tree_memory: &TreeMemory) -> Vec<OsString> {
    match tree_memory {
        TreeMemory::Not => Vec::new(),
        TreeMemory::Sampled => vec!["--tree-memory".into()],
        TreeMemory::Group(parent) => vec!["--cgroup".into(), parent.into()],
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
        let dirs = RunDirs {
            root: "/runs/1".into(),
        };
        let check = |value, want| {
            let want = env(&[("A", want), (STORE_SEED, "7")]);
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
