//! Writes one item: reserve, write beside, describe, then name it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rustix::fs::FlockOperation;

use super::FileOptions;
use super::description::{Description, PageSums};
use super::disk::{Disk, failed};
use super::file_name;
use super::sys::{self, Ask, ask};
use crate::stores::{ItemHead, ItemName, StoreError, StoredItem};

/// How many bytes a stream reserves ahead.
const AHEAD_BYTES: u64 = 1 << 20;

/// Bytes that are summed and then written while the processor's cache still holds them.
const PIECE_BYTES: usize = 256 << 10;

/// Whether a finished item survives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives the end of the process. Fast.
    Process,
    /// File and directory are flushed before the item is promised.
    Power,
}

pub(super) struct Writer {
    disk: Arc<Disk>,
    options: FileOptions,
    name: ItemName,
    head: ItemHead,
    file: File,
    sums: PageSums,
    written: u64,
    /// Bytes counted for this item: its data, and the most its description can take.
    reserved: u64,
    /// Bytes of data that the reservation covers.
    covers: u64,
    made: Made,
}

/// How far an item has come: what is ours to remove when it fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    Arriving,
    Described,
    Named,
    Promised,
}

impl Writer {
    /// Reserves room for `expected` bytes and makes the file.
    pub(super) fn start(
        disk: Arc<Disk>,
        options: &FileOptions,
        name: ItemName,
        head: ItemHead,
        expected: u64,
    ) -> Result<Self, StoreError> {
        let reserved = cost(&head, &name, expected);
        let locked = disk.locked()?;
        locked.reserve(reserved, options.quota.get(), options.when_full, head.now)?;
        let arriving = file_name::arriving(name.key);
        let made = disk.create(&arriving).and_then(|file| {
            let lock = || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            let reserve = || rustix::fs::ftruncate(&file, reserved);
            let ready = ask(Ask::Lock, lock).and_then(|()| ask(Ask::Truncate, reserve));
            ready.map(|()| file).map_err(|error| {
                disk.remove(&arriving);
                failed("reserving room", error)
            })
        });
        if made.is_err() {
            locked.give_back(reserved);
        }
        drop(locked);
        Ok(Self {
            file: made?,
            disk,
            options: options.clone(),
            name,
            head,
            sums: PageSums::default(),
            written: 0,
            reserved,
            covers: expected,
            made: Made::Arriving,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let after = self.written.saturating_add(bytes.len() as u64);
        if after > self.covers {
            self.extend(after)?;
        }
        for piece in bytes.chunks(PIECE_BYTES) {
            self.sums.add(piece);
            sys::write_all(&self.file, piece)
                .map_err(|error| StoreError::io("writing a result", &error))?;
        }
        self.written = after;
        Ok(())
    }

    /// Reserves ahead if the quota allows, else exactly what is needed now.
    fn extend(&mut self, needed: u64) -> Result<(), StoreError> {
        let locked = self.disk.locked()?;
        let mut last = None;
        for covers in [needed.saturating_add(AHEAD_BYTES), needed] {
            let more = cost(&self.head, &self.name, covers).saturating_sub(self.reserved);
            let quota = self.options.quota.get();
            match locked.reserve(more, quota, self.options.when_full, self.head.now) {
                Ok(()) => {
                    self.reserved += more;
                    self.covers = covers;
                    let reserve = || rustix::fs::ftruncate(&self.file, self.reserved);
                    return ask(Ask::Truncate, reserve)
                        .map_err(|error| failed("reserving room", error));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("two attempts were made"))
    }

    pub(super) fn finish(&mut self, locator: String) -> Result<StoredItem, StoreError> {
        let (description, takes) = self.describe()?;
        ask(Ask::Truncate, || {
            rustix::fs::ftruncate(&self.file, self.written)
        })
        .map_err(|error| failed("ending a result", error))?;
        self.flush()?;
        self.name(takes)?;
        if self.options.durability == Durability::Power {
            ask(Ask::Flush, || rustix::fs::fsync(&self.disk.directory))
                .map_err(|error| failed("flushing the directory", error))?;
        }
        self.made = Made::Promised;
        Ok(description.stored(self.name.key, locator))
    }

    /// The bytes written so far. What is on disk goes with the writer.
    pub(super) fn take_back(self) -> Result<Vec<u8>, StoreError> {
        let failed = |error: io::Error| StoreError::io("reading back a result", &error);
        let size = usize::try_from(self.written)
            .map_err(|_| failed(io::Error::from(io::ErrorKind::OutOfMemory)))?;
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        Ok(bytes)
    }

    /// Names the item, which takes `takes` bytes, and settles what was reserved.
    fn name(&mut self, takes: u64) -> Result<(), StoreError> {
        let data = file_name::data(self.name.key, &self.name.suffix);
        let locked = self.disk.locked()?;
        locked.rename(&file_name::arriving(self.name.key), &data)?;
        self.made = Made::Named;
        let unused = self.reserved.saturating_sub(takes);
        if unused > 0 {
            locked.give_back(unused);
        }
        drop(locked);
        self.reserved = takes;
        Ok(())
    }

    /// Writes the description; the bytes that it and the data take.
    fn describe(&mut self) -> Result<(Description, u64), StoreError> {
        let sums = std::mem::take(&mut self.sums).finish();
        let description = Description::new(&self.head, &self.name.suffix, self.written, sums);
        let bytes = description.encode();
        let file = self.disk.create(&file_name::description(self.name.key))?;
        self.made = Made::Described;
        sys::write_all(&file, &bytes)
            .map_err(|error| StoreError::io("describing a result", &error))?;
        if self.options.durability == Durability::Power {
            ask(Ask::Flush, || rustix::fs::fsync(&file))
                .map_err(|error| failed("flushing a description", error))?;
        }
        let takes = self.written + bytes.len() as u64;
        Ok((description, takes))
    }

    fn flush(&self) -> Result<(), StoreError> {
        match self.options.durability {
            Durability::Process => Ok(()),
            Durability::Power => ask(Ask::Flush, || rustix::fs::fdatasync(&self.file))
                .map_err(|error| failed("flushing a result", error)),
        }
    }
}

/// Removes whatever is there of an item that was not promised.
impl Drop for Writer {
    fn drop(&mut self) {
        if self.made == Made::Promised {
            return;
        }
        let locked = self.disk.locked();
        if self.made >= Made::Named {
            let data = file_name::data(self.name.key, &self.name.suffix);
            if !self.disk.remove(&data) {
                // A whole item that nobody was promised: it counts, and goes with its owner or its time.
                return;
            }
        }
        if self.made >= Made::Described {
            let description = file_name::description(self.name.key);
            self.disk.remove(&description);
        }
        self.disk.remove(&file_name::arriving(self.name.key));
        if let Ok(locked) = locked {
            locked.give_back(self.reserved);
        }
    }
}

fn cost(head: &ItemHead, name: &ItemName, size: u64) -> u64 {
    size.saturating_add(Description::most_bytes(head, &name.suffix, size))
}
