//! What was read, and what was read again.

use std::collections::HashMap;
use std::ops::Range;

use crate::coverage::Coverage;
use crate::stores::ItemKey;

/// Sums over the answers of one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Answers given.
    pub answers: u64,
    /// Bytes of items in them.
    pub bytes: u64,
    /// Of these, bytes that an earlier answer held already.
    pub reread_bytes: u64,
    /// Items read at least once.
    pub distinct_items: u64,
    /// Asks that failed.
    pub failures: u64,
    /// Of these, asks for an item for which an ask had failed in the same way before.
    pub repeated_failures: u64,
}

#[derive(Default)]
pub(super) struct ReadLog {
    items: HashMap<ItemKey, Coverage>,
    failed: HashMap<ItemKey, std::mem::Discriminant<super::AskError>>,
    pub(super) counts: ReadCounts,
}

impl ReadLog {
    pub(super) fn note(&mut self, key: ItemKey, range: Range<u64>) {
        let bytes = range.end - range.start;
        let again = self.items.entry(key).or_default().add(range);
        self.counts.answers += 1;
        self.counts.bytes += bytes;
        self.counts.reread_bytes += again.bytes;
        self.counts.distinct_items += u64::from(again.first);
    }

    pub(super) fn note_failure(&mut self, key: ItemKey, error: &super::AskError) {
        let kind = std::mem::discriminant(error);
        self.counts.failures += 1;
        let before = self.failed.insert(key, kind);
        self.counts.repeated_failures += u64::from(before == Some(kind));
    }
}
