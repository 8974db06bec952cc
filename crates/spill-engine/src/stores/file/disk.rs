//! The opened directory: files in it, the lock that all processes share, and the count of bytes in use.
//!
//! The count stands in the lock file and is read and changed under the lock alone. A file that is still arriving has its
//! whole reserved length at once (a hole at first), so that counting the directory again gives what was promised to every
//! process, at any moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use xxhash_rust::xxh3::xxh3_64;

use super::description::Description;
use super::file_name::{self, Part};
use super::place::{self, Missing};
use super::sys::{self, Ask, ask};
use crate::stores::{ItemKey, StoreError};

/// How often the lock is tried before a put gives up, a millisecond apart: a stopped process must not hang a step.
const LOCK_ATTEMPTS: u32 = 2_000;
const COUNT_BYTES: usize = 16;

pub(super) struct Disk {
    pub(super) directory: OwnedFd,
    lock: Mutex<File>,
}

/// The files of one key.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) data: Option<(String, u64)>,
    pub(super) description: Option<u64>,
    pub(super) arriving: Option<u64>,
}

impl Found {
    /// True for an item that is whole.
    pub(super) fn is_item(&self) -> bool {
        self.data.is_some() && self.description.is_some()
    }

    /// The bytes that the quota counts. Data without a description is not ours.
    pub(super) fn bytes(&self) -> u64 {
        let data = self.data.as_ref().filter(|_| self.description.is_some());
        data.map_or(0, |(_, bytes)| *bytes)
            + self.description.unwrap_or(0)
            + self.arriving.unwrap_or(0)
    }
}

pub(super) type Listing = BTreeMap<ItemKey, Found>;

impl Disk {
    pub(super) fn open(root: &Path, missing: Missing) -> Result<Option<Self>, StoreError> {
        let Some(directory) = place::open(root, missing)? else {
            return Ok(None);
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = ask(Ask::Open, || {
            rustix::fs::openat(&directory, file_name::LOCK, flags, private_file())
        })
        .map_err(|error| failed("opening the lock file", error))?;
        let status =
            rustix::fs::fstat(&lock).map_err(|error| failed("examining the lock file", error))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || status.st_nlink != 1
        {
            return Err(StoreError::Unusable {
                place: root.join(file_name::LOCK).display().to_string(),
                fact: "it is not a file of this store".to_owned(),
            });
        }
        let disk = Self {
            directory,
            lock: Mutex::new(File::from(lock)),
        };
        disk.locked()?.recount()?;
        Ok(Some(disk))
    }

    /// Waits for all other threads and processes, for a bounded time.
    pub(super) fn locked(&self) -> Result<Locked<'_>, StoreError> {
        self.locked_while(&|| true)?.ok_or_else(held)
    }

    /// The same, but only as long as `go_on` says so; `None` when it said no.
    pub(super) fn locked_while(
        &self,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Locked<'_>>, StoreError> {
        let file = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..LOCK_ATTEMPTS {
            match ask(Ask::Lock, || {
                rustix::fs::flock(&*file, FlockOperation::NonBlockingLockExclusive)
            }) {
                Ok(()) => return Ok(Some(Locked { disk: self, file })),
                Err(Errno::WOULDBLOCK) if !go_on() => return Ok(None),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(failed("locking the store", error)),
            }
        }
        Err(held())
    }

    /// Makes a new file; whatever stands there already is left alone.
    pub(super) fn create(&self, name: &str) -> Result<File, StoreError> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match ask(Ask::Open, || {
            rustix::fs::openat(&self.directory, name, flags, private_file())
        }) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::EXIST) => Err(StoreError::Taken),
            Err(error) => Err(failed("creating a file", error)),
        }
    }

    /// Opens a regular file for reading; a link or anything else in its place is an error.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = ask(Ask::Open, || {
            rustix::fs::openat(&self.directory, name, flags, Mode::empty())
        })?;
        let status = ask(Ask::Examine, || rustix::fs::fstat(&file))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(File::from(file))
    }

    /// `Ok(None)` when there is none, `Err` when it cannot be read, `Ok(Some(None))` when it is damaged.
    pub(super) fn description(&self, key: ItemKey) -> io::Result<Option<Option<Description>>> {
        let mut bytes = Vec::new();
        match self.open_file(&file_name::description(key)) {
            Ok(mut file) => {
                ask(Ask::Read, || Ok(()))?;
                file.read_to_end(&mut bytes)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Description::decode(&bytes)))
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// True when the file was there and is gone.
    pub(super) fn remove(&self, name: &str) -> bool {
        ask(Ask::Remove, || {
            rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())
        })
        .is_ok()
    }

    /// True when no process is writing the arriving file `name`: each writer holds a lock on it from its creation, which
    /// happens under the store's lock, until its end.
    pub(super) fn writer_is_dead(&self, name: &str) -> bool {
        self.open_file(name).is_ok_and(|file| {
            ask(Ask::Lock, || {
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            })
            .is_ok()
        })
    }

    /// Regular files of ours by key, sizes included. Links, directories and foreign names do not appear.
    pub(super) fn list(&self) -> Result<Listing, StoreError> {
        let us = rustix::process::geteuid().as_raw();
        let mut listing = Listing::new();
        let entries = ask(Ask::List, || Dir::read_from(&self.directory))
            .map_err(|error| failed("listing the store", error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed("listing the store", error))?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let Some((key, part)) = file_name::parse(name) else {
                continue;
            };
            let status = match ask(Ask::Examine, || {
                rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            }) {
                Ok(status) => status,
                // Removed meanwhile.
                Err(Errno::NOENT) => continue,
                // Half a list would make an item look like the rest of one.
                Err(error) => return Err(failed("examining the store", error)),
            };
            if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile
                || status.st_uid != us
            {
                continue;
            }
            let bytes = u64::try_from(status.st_size).unwrap_or(0);
            let found = listing.entry(key).or_default();
            match part {
                Part::Data => found.data = Some((name.to_owned(), bytes)),
                Part::Description => found.description = Some(bytes),
                Part::Arriving => found.arriving = Some(bytes),
            }
        }
        Ok(listing)
    }
}

/// The store's lock, held until dropped.
pub(super) struct Locked<'a> {
    pub(super) disk: &'a Disk,
    file: MutexGuard<'a, File>,
}

impl Locked<'_> {
    /// Bytes in use by all processes.
    pub(super) fn used(&self) -> Result<u64, StoreError> {
        let mut count = [0; COUNT_BYTES];
        let read = self.file.read_exact_at(&mut count, 0);
        let (used, sum) = count.split_at(COUNT_BYTES / 2);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        if read.is_ok() && number(sum) == xxh3_64(used) {
            return Ok(number(used));
        }
        self.recount()
    }

    /// Gives `from` the name `to`, which nothing may have. Under the lock, so that no listing misses a file that changes its
    /// name meanwhile.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let directory = &self.disk.directory;
        let renamed = ask(Ask::Rename, || {
            rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)
        });
        match renamed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(StoreError::Taken),
            // File systems without this flag: a link refuses an existing name as well.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let linked = ask(Ask::Rename, || {
                    rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())
                });
                linked.map_err(|error| failed("naming a file", error))?;
                self.disk.remove(from);
                Ok(())
            }
            Err(error) => Err(failed("naming a file", error)),
        }
    }

    pub(super) fn set_used(&self, used: u64) -> Result<(), StoreError> {
        let mut count = [0; COUNT_BYTES];
        count[..8].copy_from_slice(&used.to_le_bytes());
        let sum = xxh3_64(&count[..8]);
        count[8..].copy_from_slice(&sum.to_le_bytes());
        sys::write_all_at(&self.file, &count, 0)
            .map_err(|error| StoreError::io("counting bytes", &error))
    }

    /// Counts the directory again, which heals whatever a crash left wrong.
    pub(super) fn recount(&self) -> Result<u64, StoreError> {
        let used = self.disk.list()?.values().map(Found::bytes).sum();
        self.set_used(used)?;
        Ok(used)
    }

    pub(super) fn give_back(&self, bytes: u64) {
        if let Ok(used) = self.used() {
            // A count that is too high is safe, and the next recount heals it.
            let _ = self.set_used(used.saturating_sub(bytes));
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&*self.file, FlockOperation::Unlock);
    }
}

fn held() -> StoreError {
    let error = io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock");
    StoreError::io("locking the store", &error)
}

pub(super) fn failed(action: &str, error: Errno) -> StoreError {
    StoreError::io(action, &error.into())
}

fn private_file() -> Mode {
    Mode::RUSR | Mode::WUSR
}
