//! Which bytes of a stored text were read already.

use std::ops::Range;

/// Disjoint, non-touching ranges in rising order.
#[derive(Default)]
pub(crate) struct Coverage {
    ranges: Vec<Range<u64>>,
    reads: u64,
}

/// How a read stands to the reads before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Again {
    /// No read of this text came before.
    pub(crate) first: bool,
    /// Bytes of the range that an earlier read returned.
    pub(crate) bytes: u64,
}

impl Coverage {
    pub(crate) fn add(&mut self, range: Range<u64>) -> Again {
        let first = self.reads == 0;
        self.reads += 1;
        if range.is_empty() {
            return Again { first, bytes: 0 };
        }
        let from = self.ranges.partition_point(|known| known.end < range.start);
        let to = self
            .ranges
            .partition_point(|known| known.start <= range.end);
        let mut joined = range.clone();
        let mut bytes = 0;
        for known in &self.ranges[from..to] {
            bytes += known
                .end
                .min(range.end)
                .saturating_sub(known.start.max(range.start));
            joined = joined.start.min(known.start)..joined.end.max(known.end);
        }
        self.ranges.splice(from..to, [joined]);
        Again { first, bytes }
    }
}
