//! What stands between subject and servers in one run: started before the subject, ended after it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spill_record::{SidecarBefore, SidecarRecord, SidecarRun};
use spill_scenario::{SidecarPlace, sidecar_declares_state};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::dirs::{RunDirs, STATE};
use crate::launcher::Launchers;
use crate::leaks::Needles;
use crate::process::{self, Ended, Finished, Launch};
use crate::tree_memory::TreeMemory;
use crate::watch::{Own, State, Watch, WatchError};

/// How often a port is tried.
const POLL: Duration = Duration::from_millis(5);
/// Time beyond the subject's and all starts after which a sidecar is stopped, if nobody did.
const SPARE: Duration = Duration::from_secs(60);

/// What all sidecars of one run share.
pub(crate) struct Ground<'a> {
    pub(crate) launchers: &'a Launchers,
    /// The run's own folder; theirs stand beside it.
    pub(crate) root: &'a Path,
    pub(crate) run_timeout: Duration,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The servers of one run, as the subject reaches them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    /// The model's address without `/v1`.
    pub(crate) llm_root: String,
    /// The tools' address.
    pub(crate) tools_url: String,
}

impl Servers {
    pub(crate) fn llm_url(&self) -> String {
        format!("{}/v1", self.llm_root)
    }

    fn of(&mut self, before: SidecarBefore) -> &mut String {
        match before {
            SidecarBefore::Llm => &mut self.llm_root,
            SidecarBefore::Tools => &mut self.tools_url,
        }
    }
}

/// The sidecars of one run.
#[derive(Default)]
pub(crate) struct Sidecars {
    /// The nearest to its server first.
    running: Vec<Running>,
    /// Why they did not all start.
    failure: Option<String>,
}

struct Running {
    record: SidecarRecord,
    dirs: Arc<RunDirs>,
    watch: Watch,
    port: u16,
    quit: oneshot::Sender<()>,
    task: JoinHandle<io::Result<Ended>>,
}

/// What sidecars left.
#[derive(Default)]
pub(crate) struct Left {
    /// In the configuration's order.
    pub(crate) runs: Vec<SidecarRun>,
    /// Why the run is not the subject's to answer for.
    pub(crate) failure: Option<String>,
    /// Whether one was killed since the acceptance was told to stop: the run says nothing then.
    pub(crate) cancelled: bool,
    /// A search that cannot be trusted.
    pub(crate) unsearched: Option<String>,
}

impl Sidecars {
    /// Starts `records`, and points `servers` at them. The first failure ends the start and is kept for
    /// [`Sidecars::end`]; returns whether there was none.
    pub(crate) async fn start(
        &mut self,
        ground: &Ground<'_>,
        records: &[SidecarRecord],
        servers: &mut Servers,
    ) -> bool {
        self.failure = self.start_all(ground, records, servers).await.err();
        self.failure.is_none()
    }

    async fn start_all(
        &mut self,
        ground: &Ground<'_>,
        records: &[SidecarRecord],
        servers: &mut Servers,
    ) -> Result<(), String> {
        let starts: u64 = records.iter().map(|one| one.start_timeout_ms).sum();
        let timeout = ground.run_timeout + Duration::from_millis(starts) + SPARE;
        for (number, record) in records.iter().enumerate().rev() {
            let url = servers.of(record.before);
            let (origin, path) = split(url);
            let root = beside(ground.root, number);
            let one = Running::start(ground, record, origin, root, timeout).await;
            let mut one = one.map_err(|error| format!("{} {error}", shown(record)))?;
            *url = format!("http://{}:{}{path}", Ipv4Addr::LOCALHOST, one.port);
            let listens = one.listens(ground.stop.clone()).await;
            self.running.push(one);
            listens?;
        }
        Ok(())
    }

    /// Ends them, the nearest to the subject first, and searches what they left.
    pub(crate) async fn end(self, needles: &Needles, control: &str) -> Left {
        let mut left = Left::default();
        for one in self.running.into_iter().rev() {
            one.end(needles, control, &mut left).await;
        }
        // How one ended says more than that it did.
        left.failure = left.failure.or(self.failure);
        left
    }
}

/// The sidecar's folder beside the run's own.
fn beside(root: &Path, number: usize) -> PathBuf {
    let mut name = root.as_os_str().to_owned();
    name.push(format!(".sidecar{number}"));
    name.into()
}

/// An address and the path below it.
fn split(url: &str) -> (&str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..].find('/');
    url.split_at(path.map_or(url.len(), |at| authority + at))
}

/// How messages name a sidecar: as its file does, since what is filled in differs from run to run.
fn shown(record: &SidecarRecord) -> String {
    format!(
        "the sidecar `{}` (before {}; command {:?})",
        record.name,
        record.before.as_str(),
        record.command
    )
}

impl Running {
    async fn start(
        ground: &Ground<'_>,
        record: &SidecarRecord,
        upstream: &str,
        root: PathBuf,
        timeout: Duration,
    ) -> io::Result<Self> {
        let dirs = Arc::new(RunDirs::create(root)?);
        let state = if sidecar_declares_state(record) {
            State::Declared
        } else {
            State::Undeclared
        };
        let watch = Watch::start(&dirs, state, Own::default(), ground.stop.clone())?;
        let port = free_port().await?;
        let folder = |name: &str| dirs.place(name).to_string_lossy().into_owned();
        let place = SidecarPlace {
            listen_port: port,
            upstream_url: upstream.to_owned(),
            work: folder("work"),
            tmp: folder("tmp"),
            state: folder(STATE),
        };
        let command = record.command.iter();
        let command = command.map(|word| place.fill(word).into()).collect();
        let env = record.env.iter();
        let env = env
            .map(|(name, value)| (name.clone(), place.fill(value)))
            .collect();
        let (quit, asked) = oneshot::channel();
        let (launchers, stop) = (ground.launchers.clone(), ground.stop.clone());
        let places = Arc::clone(&dirs);
        let task = tokio::spawn(async move {
            let launch = Launch {
                launchers: &launchers,
                command,
                env,
                timeout,
                confined: false,
                tree_memory: TreeMemory::Not,
            };
            // A sender that is gone asks as one that sends does.
            let quit = async { drop(asked.await) };
            process::run_until(&places, launch, stop, quit).await
        });
        Ok(Self {
            record: record.clone(),
            dirs,
            watch,
            port,
            quit,
            task,
        })
    }

    /// Waits until its port accepts a connection.
    async fn listens(&mut self, mut stop: watch::Receiver<bool>) -> Result<(), String> {
        let (port, limit) = (self.port, self.record.start_timeout_ms);
        let accepted = async {
            while !self.task.is_finished() {
                if accepts(port).await {
                    return true;
                }
                tokio::time::sleep(POLL).await;
            }
            false
        };
        tokio::select! {
            listens = accepted => match listens {
                true => Ok(()),
                false => Err(format!("{} ended before it accepted a connection", shown(&self.record))),
            },
            _ = stop.wait_for(|stop| *stop) => Ok(()),
            () = tokio::time::sleep(Duration::from_millis(limit)) => Err(format!(
                "{} accepted no connection on 127.0.0.1:{port} within start_timeout_ms = {limit}",
                shown(&self.record)
            )),
        }
    }

    async fn end(self, needles: &Needles, control: &str, left: &mut Left) {
        let early = self.task.is_finished();
        // A task that is over takes no word.
        let _ = self.quit.send(());
        let shown = shown(&self.record);
        let finished = match self.task.await {
            // One that did not end when it was asked to is killed when its time is over.
            Ok(Ok(Ended::Exited(finished) | Ended::TimedOut(finished))) => {
                if early {
                    let how = how(&finished);
                    fail(left, format!("{shown} ended before the subject: {how}"));
                }
                Some(finished)
            }
            Ok(Ok(Ended::OutputTooLarge(finished))) => {
                fail(left, format!("{shown} printed more than 256 MiB"));
                Some(finished)
            }
            Ok(Ok(Ended::Cancelled)) => {
                left.cancelled = true;
                None
            }
            Ok(Err(error)) => {
                fail(left, format!("{shown} could not be watched: {error}"));
                None
            }
            Err(error) => {
                fail(left, format!("{shown} could not be watched: {error}"));
                None
            }
        };
        let mut run = SidecarRun {
            name: self.record.name,
            peak_rss_bytes: None,
            cpu_ms: None,
            log_bytes: None,
            files_written: None,
            state_files: None,
            state_bytes: None,
            leak_findings: Vec::new(),
        };
        if let Some(finished) = finished {
            fill(&mut run, &finished);
            match self
                .watch
                .finish(&self.dirs, &finished.log, needles, control)
            {
                Ok((traces, _)) => {
                    run.files_written = Some(traces.files_written);
                    run.state_files = u64::try_from(traces.state_files.len()).ok();
                    run.state_bytes = Some(traces.state_files.iter().map(|file| file.bytes).sum());
                    let printed = needles.find(&finished.stdout);
                    let printed = printed.map(|what| format!("{what} in standard output"));
                    run.leak_findings = traces.findings.into_iter().chain(printed).collect();
                }
                Err(WatchError::Stopped) => left.cancelled = true,
                Err(error) => left.unsearched = Some(format!("{shown}: {error}")),
            }
        }
        left.runs.push(run);
    }
}

/// The first failure is the one that is told.
fn fail(left: &mut Left, why: String) {
    left.failure.get_or_insert(why);
}

fn fill(run: &mut SidecarRun, finished: &Finished) {
    let printed = finished.stdout.len() + finished.log.text().len();
    run.log_bytes = u64::try_from(printed).ok();
    if let Ok(report) = &finished.report {
        run.peak_rss_bytes = Some(report.peak_rss_bytes);
        run.cpu_ms = Some(Duration::from_micros(report.cpu_us).as_secs_f64() * 1000.0);
    }
}

/// How it ended, without a word of what it printed.
fn how(finished: &Finished) -> String {
    let report = match &finished.report {
        Ok(report) => report,
        Err(said) => return said.clone(),
    };
    match (report.exit_code, report.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// A port that nobody listens on now.
async fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?.port())
}

/// Whether somebody listens there. A connection of a port with itself, which the kernel allows, is none.
async fn accepts(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(stream) = TcpStream::connect(address).await else {
        return false;
    };
    stream.local_addr().is_ok_and(|own| own != address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_before_its_path() {
        let check = |url, want| assert_eq!(split(url), want);
        check(
            "http://127.0.0.1:80/run/1/mcp",
            ("http://127.0.0.1:80", "/run/1/mcp"),
        );
        check("http://127.0.0.1:80", ("http://127.0.0.1:80", ""));
        check("", ("", ""));
    }
}
