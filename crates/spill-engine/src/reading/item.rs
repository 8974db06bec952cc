//! A stored item as the readers of this module see it.

use std::ops::Range;

use super::{AskError, characters};
use crate::stores::{ByteRange, ItemKey, Millis, Reader, Slice, SpillStore};

/// Bytes looked at in one step of a scan.
const STEP_BYTES: u64 = 256 << 10;

pub(super) struct Item<'a> {
    pub(super) store: &'a dyn SpillStore,
    pub(super) key: ItemKey,
    pub(super) reader: &'a Reader,
    pub(super) now: Millis,
    pub(super) size: u64,
}

impl Item<'_> {
    pub(super) fn slice(&self, range: Range<u64>) -> Result<Slice, AskError> {
        let range = ByteRange {
            offset: range.start,
            length: range.end.saturating_sub(range.start),
        };
        Ok(self.store.read(self.key, self.reader, range, self.now)?)
    }

    /// Whole characters of `wanted`, at most `room` bytes also where bytes that are no characters are shown as U+FFFD.
    pub(super) fn characters(
        &self,
        wanted: Range<u64>,
        room: u64,
    ) -> Result<(u64, Vec<u8>), AskError> {
        let end = wanted.end.min(wanted.start.saturating_add(room));
        let (start, bytes) = self.cut(wanted.start..end)?;
        if str::from_utf8(&bytes).is_ok() {
            return Ok((start, bytes));
        }
        let end = end.min(wanted.start.saturating_add(room / 3));
        self.cut(wanted.start..end)
    }

    fn cut(&self, wanted: Range<u64>) -> Result<(u64, Vec<u8>), AskError> {
        let from = wanted.start.saturating_sub(characters::REACH);
        // Room for a whole character at the start and for what its neighbours need to be judged.
        let to = wanted.end.saturating_add(3 * characters::REACH);
        let slice = self.slice(from..to)?;
        let bytes = slice.bytes();
        let place = |position: u64| {
            usize::try_from(position - from).expect("a position inside bytes in memory")
        };
        let end = place(wanted.end.min(self.size));
        let whole = characters::whole(bytes, place(wanted.start)..end);
        Ok((from + whole.start as u64, bytes[whole].to_vec()))
    }

    /// Calls `step` with the bytes from `from` on, piece by piece, until it has an answer.
    pub(super) fn scan<T>(
        &self,
        from: u64,
        mut step: impl FnMut(u64, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, AskError> {
        let mut at = from;
        while at < self.size {
            let slice = self.slice(at..at.saturating_add(STEP_BYTES))?;
            if let Some(answer) = step(at, slice.bytes()) {
                return Ok(Some(answer));
            }
            at += slice.bytes().len() as u64;
        }
        Ok(None)
    }

    /// The same from the end backwards; pieces come last first.
    pub(super) fn scan_back<T>(
        &self,
        mut step: impl FnMut(u64, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, AskError> {
        let mut end = self.size;
        while end > 0 {
            let start = end.saturating_sub(STEP_BYTES);
            if let Some(answer) = step(start, self.slice(start..end)?.bytes()) {
                return Ok(Some(answer));
            }
            end = start;
        }
        Ok(None)
    }
}
