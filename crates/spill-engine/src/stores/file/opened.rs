//! Reads an item's bytes and checks them against what was written.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::description::{Description, PAGE_BYTES, page_sum};
use super::disk::Disk;
use super::file_name;
use crate::measure::Bytes;
use crate::stores::{ByteRange, Damage, ItemKey, Millis, ReadFailure, Reader, Slice};

/// How many items stay open.
const KEPT_OPEN: usize = 32;

/// An item whose file is open.
pub(super) struct Opened {
    pub(super) description: Description,
    file: File,
}

/// An open item as it is found now.
pub(super) struct Now {
    pub(super) opened: Arc<Opened>,
    /// Bytes that its file has.
    bytes: u64,
}

/// The items read last.
#[derive(Default)]
pub(super) struct OpenItems(Mutex<Vec<(ItemKey, Arc<Opened>)>>);

impl OpenItems {
    /// The item, if it is there, `reader` may see it and its time is not over.
    pub(super) fn get(
        &self,
        disk: &Disk,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<Now, ReadFailure> {
        let found = match self.known(key) {
            Some(found) => found,
            None => self.keep(key, find(disk, key, reader, now)?)?,
        };
        let opened = &found.opened;
        if !opened.description.visibility.admits(reader) {
            return Err(ReadFailure::NotFound);
        }
        if opened.description.expired(now) {
            return Err(ReadFailure::Expired);
        }
        Ok(found)
    }

    pub(super) fn forget(&self, keys: &[ItemKey]) {
        self.lock().retain(|(key, _)| !keys.contains(key));
    }

    /// Also finds out when the file was removed meanwhile, here or by another process.
    fn known(&self, key: ItemKey) -> Option<Now> {
        let mut items = self.lock();
        let place = items.iter().position(|(known, _)| *known == key)?;
        let status = rustix::fs::fstat(&items[place].1.file).ok();
        let Some(status) = status.filter(|status| status.st_nlink > 0) else {
            items.remove(place);
            return None;
        };
        items[..=place].rotate_right(1);
        Some(Now {
            opened: items[0].1.clone(),
            bytes: bytes_of(&status),
        })
    }

    fn keep(&self, key: ItemKey, opened: Opened) -> Result<Now, ReadFailure> {
        let status = rustix::fs::fstat(&opened.file).map_err(|error| unreadable(&error.into()))?;
        let opened = Arc::new(opened);
        let mut items = self.lock();
        items.truncate(KEPT_OPEN - 1);
        items.insert(0, (key, opened.clone()));
        let bytes = bytes_of(&status);
        Ok(Now { opened, bytes })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(ItemKey, Arc<Opened>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(disk: &Disk, key: ItemKey, reader: &Reader, now: Millis) -> Result<Opened, ReadFailure> {
    let description = disk
        .description(key)
        .map_err(|error| unreadable(&error))?
        .ok_or(ReadFailure::NotFound)?
        .ok_or(ReadFailure::Corrupt(Damage::Description))?;
    if !description.visibility.admits(reader) {
        return Err(ReadFailure::NotFound);
    }
    match disk.open_file(&file_name::data(key, &description.suffix)) {
        Ok(file) => Ok(Opened { description, file }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreadable(&error)),
        Err(_) if disk.exists(&file_name::arriving(key)) => Err(ReadFailure::NotFound),
        Err(_) if description.expired(now) => Err(ReadFailure::Expired),
        Err(_) => Err(ReadFailure::Evicted),
    }
}

impl Now {
    /// The bytes of `range`, every page that they touch checked.
    pub(super) fn read(&self, range: ByteRange) -> Result<Slice, ReadFailure> {
        let expected = self.opened.description.size;
        let found = self.bytes;
        if found != expected {
            return Err(ReadFailure::Corrupt(Damage::Length { expected, found }));
        }
        self.opened.read(range)
    }
}

fn bytes_of(status: &rustix::fs::Stat) -> u64 {
    u64::try_from(status.st_size).unwrap_or(0)
}

impl Opened {
    fn read(&self, range: ByteRange) -> Result<Slice, ReadFailure> {
        let size = self.description.size;
        let wanted = range.within(Bytes::new(size))?;
        let page = PAGE_BYTES as u64;
        let start = wanted.start / page * page;
        let end = wanted.end.next_multiple_of(page).min(size);
        if wanted.is_empty() {
            return Ok(Slice::copied(
                wanted.start,
                Bytes::new(size),
                Vec::new(),
                0..0,
            ));
        }
        let place = |position: u64| {
            usize::try_from(position - start).map_err(|_| too_large_for_memory(position))
        };
        let bytes = self
            .bytes_at(start, place(end)?)
            .map_err(|error| unreadable(&error))?;
        self.check(&bytes, start)?;
        Ok(Slice::copied(
            wanted.start,
            Bytes::new(size),
            bytes,
            place(wanted.start)?..place(wanted.end)?,
        ))
    }

    /// Exactly `length` bytes, into memory that is not cleared first.
    fn bytes_at(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = start + bytes.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn check(&self, bytes: &[u8], start: u64) -> Result<(), ReadFailure> {
        let first =
            usize::try_from(start / PAGE_BYTES as u64).map_err(|_| too_large_for_memory(start))?;
        let sums = self.description.sums.get(first..).unwrap_or_default();
        for ((page, sum), index) in bytes.chunks(PAGE_BYTES).zip(sums).zip(0_u64..) {
            if page_sum(page) != *sum {
                let start = start + index * PAGE_BYTES as u64;
                let end = start + page.len() as u64;
                return Err(ReadFailure::Corrupt(Damage::Page { start, end }));
            }
        }
        Ok(())
    }
}

fn too_large_for_memory(position: u64) -> ReadFailure {
    let message = format!("position {position} is beyond this machine's memory");
    ReadFailure::Corrupt(Damage::Unreadable { message })
}

/// Says what the system said, and guesses nothing.
fn unreadable(error: &io::Error) -> ReadFailure {
    ReadFailure::Corrupt(Damage::Unreadable {
        message: error.to_string(),
    })
}
