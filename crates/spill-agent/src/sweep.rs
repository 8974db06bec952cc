//! Removes what dead processes left in a store's directory: once per process and directory, and
//! never longer than the step that does it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use spill_engine::{
    FileOptions, FileStore, SpillStore as _, StoreError, SweepOnce, Swept, WhenFull,
};

use crate::{open_store::file_options, stored::Clock};

static SWEPT: SweepOnce = SweepOnce::new();

/// Stops the sweep when the step that waits for it is cut off.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sweeps `directory`, unless this process has. A place that cannot be used is named in a warning;
/// it never ends a step.
pub(crate) async fn sweep_once(directory: PathBuf) {
    let now = Clock::start().now();
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let work = move || -> Result<Swept, StoreError> {
        // What has not expired may be somebody's: the sweep makes no room.
        let store = FileStore::new(FileOptions {
            when_full: WhenFull::Refuse,
            ..file_options(&directory)
        })?;
        let go_on = || !stop.load(Ordering::Relaxed);
        let Some(swept) = SWEPT.sweep(&store, &go_on) else {
            return Ok(Swept::default());
        };
        let mut swept = swept?;
        if go_on() {
            let expired = store.sweep(now);
            swept.leftovers += expired.leftovers;
            swept.expired += expired.expired;
            swept.bytes += expired.bytes;
        }
        Ok(swept)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(swept)) if swept.leftovers + swept.expired > 0 => {
            tracing::info!(
                leftovers = swept.leftovers,
                expired = swept.expired,
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
