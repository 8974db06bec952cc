//! The temporary folder of an acceptance, and those that killed ones left behind.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "spillgate-";
/// Held locked for as long as the acceptance lives.
const LOCK: &str = "lock";
const LOCK_UNNAMED: &str = "lock.new";

/// A folder that goes with the acceptance. Should the process be killed, the next acceptance
/// removes it.
pub(crate) struct Temp {
    folder: TempDir,
    /// The lock goes with the file.
    _lock: File,
}

impl Temp {
    pub(crate) fn create() -> io::Result<Self> {
        let root = std::env::temp_dir();
        sweep(&root);
        Self::create_in(&root)
    }

    fn create_in(root: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?;
        // It is locked before it has its name: one that is there and not locked is that of the dead.
        let unnamed = folder.path().join(LOCK_UNNAMED);
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes folders whose owner is surely dead: their lock is there and nobody holds it.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let lock = entry.path().join(LOCK);
        if is_ours && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok()) {
            // One that cannot be removed is another user's, or somebody was faster.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test that cannot set up its folders has failed"
    )]

    use super::*;

    /// Whatever the moment at which another acceptance looks, a folder that was made is there.
    #[test]
    fn a_folder_outlives_those_that_sweep_while_it_is_made() {
        let done = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(relaxed) {
                    sweep(root.path());
                }
            });
            let lost = (0..3000).filter(|_| {
                let made = Temp::create_in(root.path());
                !made.is_ok_and(|temp| temp.path().join(LOCK).exists())
            });
            let lost = lost.count();
            done.store(true, relaxed);
            assert_eq!(lost, 0);
        });
    }

    #[test]
    fn only_folders_of_the_dead_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "spillgate-dead",
            "spillgate-alive",
            "spillgate-starting",
            "other-dead",
        ] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["spillgate-dead", "spillgate-alive", "other-dead"] {
            File::create(at(name).join(LOCK)).unwrap();
        }
        let alive = File::open(at("spillgate-alive").join(LOCK)).unwrap();
        alive.lock().unwrap();
        sweep(root.path());
        let mut left: Vec<_> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["other-dead", "spillgate-alive", "spillgate-starting"]
        );
    }
}
