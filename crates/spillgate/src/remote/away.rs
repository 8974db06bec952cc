//! A run folder that is made here and published to an object store while it grows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use spill_remote::{Publisher, Remote, RemoteError, fetch};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::block_on;
use crate::out;

/// Least time between two times that new records are put.
const EVERY: Duration = Duration::from_secs(1);
/// Records are put again after this part of the time that the acceptance has taken: a kill costs that much at most, and the
/// number of objects grows with the logarithm of the time.
const SHARE: u32 = 20;

/// Where the folder is published, and where it is made.
pub(crate) struct Away {
    /// What holds the published folder.
    place: Remote,
    /// The local folder in which the run folder is made.
    work: PathBuf,
    /// Whether it is ours, to be removed once all is published.
    is_ours: bool,
}

impl Away {
    /// To `place`, by a folder in `work`, or in a temporary one.
    pub(crate) fn to(place: Remote, work: Option<&Path>) -> anyhow::Result<Self> {
        let (path, is_ours) = match work {
            Some(path) => (path.to_owned(), false),
            None => {
                let temp = tempfile::Builder::new().prefix("spillgate-work-").tempdir();
                let temp = temp
                    .context("no temporary folder can be made (set TMPDIR, or give --work-dir)")?;
                (temp.keep(), true)
            }
        };
        Ok(Self {
            place,
            work: path,
            is_ours,
        })
    }

    /// The local folder in which the run folder is made.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// What holds the published folder.
    pub(crate) fn place(&self) -> &Remote {
        &self.place
    }

    /// Makes a local folder of the published folder `name`, to go on with it.
    pub(crate) fn fetch(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.work.join(name);
        std::fs::create_dir_all(&self.work)
            .and_then(|()| std::fs::create_dir(&path))
            .with_context(|| {
                format!(
                    "{} cannot be made (remove it, or name another --work-dir)",
                    path.display()
                )
            })?;
        block_on(fetch(&self.place.child(name), &path))??;
        Ok(path)
    }

    /// Begins to publish `folder`, and goes on with that in the background.
    pub(crate) async fn begin(&self, folder: &Path) -> Result<Publishing, RemoteError> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let publisher = Publisher::begin(self.place.child(&name), folder).await?;
        let url = publisher.remote().url().to_owned();
        let (stop, stopped) = oneshot::channel();
        Ok(Publishing {
            url,
            folder: folder.to_owned(),
            stop,
            task: tokio::spawn(now_and_then(publisher, stopped)),
        })
    }

    /// Publishes a folder that does not grow any more, and returns what people call it there.
    pub(crate) fn publish(&self, folder: &Path) -> anyhow::Result<String> {
        let published = block_on(async {
            let publishing = self.begin(folder).await?;
            let url = publishing.url().to_owned();
            publishing.end(true).await?;
            anyhow::Ok(url)
        });
        published?
    }

    /// What people call the local `folder` once it is published.
    pub(crate) fn url_of(&self, folder: &Path) -> String {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        self.place.child(&name).url().to_owned()
    }

    /// Removes the local folder when it is ours and holds nothing that is not published.
    pub(crate) fn end(&self, published: bool) {
        if !self.is_ours {
            return;
        }
        if published || !holds_records(&self.work) {
            // What cannot be removed stays.
            drop(std::fs::remove_dir_all(&self.work));
        } else {
            out::note(format_args!(
                "the local run folder is kept, in {}",
                self.work.display()
            ));
        }
    }
}

/// Whether a folder in `work` has a run's record.
fn holds_records(work: &Path) -> bool {
    let entries = std::fs::read_dir(work).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| std::fs::metadata(entry.path().join(spill_record::RUNS_FILE)).ok())
        .any(|runs| runs.len() > 0)
}

/// A folder that is being published.
pub(crate) struct Publishing {
    url: String,
    folder: PathBuf,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Publisher>,
}

impl Publishing {
    /// What people call the published folder.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Publishes what is left. Where something is missing of the plan, nobody is told that the folder is complete.
    pub(crate) async fn end(self, whole: bool) -> anyhow::Result<()> {
        // It has ended when it does not listen.
        let _ = self.stop.send(());
        let published = async {
            let mut publisher = self
                .task
                .await
                .context("publishing ended before its time")?;
            if whole {
                publisher.finish().await?;
            } else {
                publisher.close().await?;
            }
            anyhow::Ok(())
        };
        published.await.with_context(|| {
            format!(
                "{} is not published whole; the run folder is kept in {} (with the same flags, `--resume {}` publishes it)",
                self.url,
                self.folder.display(),
                self.folder.display()
            )
        })
    }
}

/// Puts new records now and then until it is stopped. A store that fails is asked again the next time.
async fn now_and_then(mut publisher: Publisher, mut stopped: oneshot::Receiver<()>) -> Publisher {
    let began = Instant::now();
    let mut said = false;
    loop {
        let next = Instant::now() + EVERY.max(began.elapsed() / SHARE);
        tokio::select! {
            _ = &mut stopped => return publisher,
            () = sleep_until(next) => {}
        }
        match publisher.publish().await {
            Ok(()) => said = false,
            Err(error) if !said => {
                said = true;
                out::note(format_args!(
                    "note: {error}; the runs go on, and it is tried again"
                ));
            }
            Err(_) => {}
        }
    }
}
