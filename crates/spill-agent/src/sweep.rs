//! Removes what dead processes left in a store's directory: once per process and directory, and
//! never longer than the step that does it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use spill_engine::FileStore;

use crate::open_store::file_options;

/// The directories that this process has swept.
static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Stops the sweep when the step that waits for it is cut off.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn is_first(directory: &Path) -> bool {
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    swept.insert(directory.to_owned())
}

/// Sweeps `directory`, unless this process has. A place that cannot be used is named in a warning;
/// it never ends a step.
pub(crate) async fn sweep_once(directory: PathBuf) {
    if !is_first(&directory) {
        return;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let work = move || {
        FileStore::new(file_options(&directory))?.sweep_leftovers(&|| !stop.load(Ordering::Relaxed))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(swept)) if swept.leftovers > 0 => {
            tracing::info!(
                leftovers = swept.leftovers,
                bytes = swept.bytes,
                "Leftovers of dead processes removed"
            );
        }
        Ok(Ok(_nothing)) => {}
        Ok(Err(error)) => tracing::warn!("leftovers are not removed: {error}"),
        Err(_ended) => tracing::warn!("leftovers are not removed: the sweep was cut off"),
    }
    drop(guard);
}
