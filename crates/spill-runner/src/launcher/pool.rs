//! The runner's side: launchers that wait for work.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

use super::STREAMS;
use super::wire::{END, Reply, Request};

/// How long a launcher may take to end after its socket was closed.
const END_GRACE: Duration = Duration::from_secs(10);

/// Starts launchers and keeps those that may be used again.
#[derive(Clone, Debug)]
pub(crate) struct Launchers {
    program: PathBuf,
    idle: Arc<Mutex<Vec<Launcher>>>,
}

impl Launchers {
    /// Launchers that are processes of `program`, which is this one.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self {
            program,
            idle: Arc::default(),
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// One that is idle, or a new one.
    pub(crate) fn take(&self) -> io::Result<Launcher> {
        while let Some(mut launcher) = self.idle().pop() {
            // One that was ended from outside is none.
            if matches!(launcher.process.try_wait(), Ok(None)) {
                return Ok(launcher);
            }
        }
        Launcher::start(&self.program)
    }

    pub(crate) fn put_back(&self, launcher: Launcher) {
        self.idle().push(launcher);
    }

    /// Ends those that are idle, and waits for it.
    pub(crate) async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for launcher in idle {
            launcher.close().await;
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Launcher>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A launcher's process, and the socket to it.
#[derive(Debug)]
pub(crate) struct Launcher {
    process: Child,
    pub(crate) replies: Replies,
    pub(crate) orders: Orders,
}

impl Launcher {
    fn start(program: &Path) -> io::Result<Self> {
        let (ours, its) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(ours)?.into_split();
        let mut command = Command::new(program);
        command
            .arg("launch")
            .env_clear()
            // What is left of a killed acceptance is found by its folder.
            .envs(std::env::var_os("TMPDIR").map(|place| ("TMPDIR", place)))
            .stdin(OwnedFd::from(its))
            .stdout(Stdio::null())
            // A group of its own, so that an interrupt typed at the terminal reaches the runner alone.
            .process_group(0);
        Ok(Self {
            process: command.spawn()?,
            replies: Replies(BufReader::new(read)),
            orders: Orders(write),
        })
    }

    /// Its process id, until it has ended.
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills it: one that said nothing when it should have may be stopped, or gone.
    pub(crate) async fn kill(mut self) {
        // What cannot be killed is nobody's to wait for.
        drop(self.process.kill().await);
    }

    /// Ends it, and what it started, and waits for that.
    pub(crate) async fn close(mut self) {
        drop((self.orders, self.replies));
        let ended = tokio::time::timeout(END_GRACE, self.process.wait()).await;
        if ended.is_err() {
            // One that does not end is killed; what cannot be killed is nobody's to wait for.
            drop(self.process.kill().await);
        }
    }
}

/// The side of the socket that the runner reads.
#[derive(Debug)]
pub(crate) struct Replies(BufReader<OwnedReadHalf>);

impl Replies {
    /// The reply to the request that was sent last; `None` when the launcher ended without one.
    pub(crate) async fn next(&mut self) -> Option<Reply> {
        let mut line = Vec::new();
        // A launcher that was killed has closed the socket, or reset it.
        self.0.read_until(b'\n', &mut line).await.ok()?;
        serde_json::from_slice(&line).ok()
    }
}

/// The side that it writes.
#[derive(Debug)]
pub(crate) struct Orders(OwnedWriteHalf);

impl Orders {
    /// Sends a request with the subject's standard output and standard error.
    pub(crate) async fn send(
        &mut self,
        request: &Request,
        streams: [OwnedFd; STREAMS],
    ) -> io::Result<()> {
        let bytes = request.to_bytes()?;
        let streams = streams.each_ref().map(AsFd::as_fd);
        let socket: &UnixStream = self.0.as_ref();
        let sent = socket
            .async_io(Interest::WRITABLE, || {
                let mut space =
                    [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
                let mut beside = SendAncillaryBuffer::new(&mut space);
                beside.push(SendAncillaryMessage::ScmRights(&streams));
                let piece = [io::IoSlice::new(&bytes)];
                Ok(sendmsg(socket, &piece, &mut beside, SendFlags::NOSIGNAL)?)
            })
            .await?;
        self.0.write_all(&bytes[sent..]).await
    }

    /// Asks the subject to end; the launcher is not to be used again.
    pub(crate) async fn ask_to_end(&mut self) {
        // A launcher that is gone has nobody to ask.
        drop(self.0.write_all(&[END]).await);
    }

    /// Has the subject killed; the launcher is not to be used again.
    pub(crate) async fn kill(&mut self) {
        drop(self.0.shutdown().await);
    }
}
