//! Sweeps what crashes left behind once in a process, however many executions begin in it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::{FileStore, StoreError, Swept};

/// Remembers which directories were swept. One for the whole process: make it a `static`, and sweep at each start of an
/// execution, also with spilling off.
///
/// ```
/// use spill_engine::{FileOptions, FileStore, SweepOnce};
///
/// static SWEPT: SweepOnce = SweepOnce::new();
///
/// # let home = tempfile::tempdir()?;
/// # let root = home.path().canonicalize()?.join("spill");
/// let store = FileStore::new(FileOptions::new(root))?;
/// let deadline_is_far = || true;
/// if let Some(swept) = SWEPT.sweep(&store, &deadline_is_far) {
///     swept?;
/// }
/// assert!(SWEPT.sweep(&store, &deadline_is_far).is_none(), "not again");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct SweepOnce {
    swept: Mutex<BTreeSet<PathBuf>>,
}

impl SweepOnce {
    /// Nothing was swept yet.
    pub const fn new() -> Self {
        Self {
            swept: Mutex::new(BTreeSet::new()),
        }
    }

    /// [`FileStore::sweep_leftovers`] for a directory that nobody has swept through this value, `None` for any other. A sweep
    /// that `go_on` cut short is not done, so the next one takes it up.
    pub fn sweep(
        &self,
        store: &FileStore,
        go_on: &dyn Fn() -> bool,
    ) -> Option<Result<Swept, StoreError>> {
        if !self.lock().insert(store.root().to_owned()) {
            return None;
        }
        let cut_short = Cell::new(false);
        let swept = store.sweep_leftovers(&|| {
            let goes_on = go_on();
            cut_short.set(cut_short.get() || !goes_on);
            goes_on
        });
        if cut_short.get() {
            self.lock().remove(store.root());
        }
        Some(swept)
    }

    /// A panic elsewhere leaves no half-made set behind.
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.swept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
