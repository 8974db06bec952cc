//! What a policy over a store did in one step, counted as the step's own store counts itself.

use std::collections::HashMap;
use std::ops::Range;

use spill_engine::{Coverage, ItemKey, Spilled};

use crate::result::SpillFigures;

/// The figures so far, and what was read of each stored result.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    figures: SpillFigures,
    read: HashMap<ItemKey, Coverage>,
    held_bytes: u64,
    touched: bool,
}

impl Counts {
    /// A result was stored and replaced in the prompt.
    pub(crate) fn stored(&mut self, spilled: &Spilled) {
        let figures = &mut self.figures;
        figures.persisted += 1;
        *figures
            .persisted_by_tool
            .entry(spilled.tool.clone())
            .or_default() += 1;
        figures.persisted_bytes += spilled.size.get();
        self.held(spilled);
    }

    /// A copy for the log was stored. It is held, but nothing in the prompt was replaced.
    pub(crate) fn held(&mut self, spilled: &Spilled) {
        self.held_bytes += spilled.size.get();
    }

    /// A result stayed in the prompt since the store had no room.
    pub(crate) fn over_budget(&mut self) {
        self.figures.over_budget += 1;
    }

    /// A read succeeded; `parts` are the bytes that it returned.
    pub(crate) fn read(
        &mut self,
        key: ItemKey,
        parts: impl IntoIterator<Item = Range<u64>>,
        with_range: bool,
    ) {
        let coverage = self.read.entry(key).or_default();
        let figures = &mut self.figures;
        figures.reads += 1;
        figures.reads_with_range += u64::from(with_range);
        // A search without a match reads nothing of the result, but it is the result that was read.
        figures.distinct_read += u64::from(coverage.add(0..0).first);
        for part in parts {
            figures.read_bytes += part.end - part.start;
            figures.reread_bytes += coverage.add(part).bytes;
        }
    }

    /// Whether a result has left the prompt.
    pub(crate) fn has_stored(&self) -> bool {
        self.figures.persisted > 0
    }

    /// Something may be stored from now on that is counted later or never.
    pub(crate) fn touch(&mut self) {
        self.touched = true;
    }

    /// Whether the store was never given anything.
    pub(crate) fn holds_nothing(&self) -> bool {
        self.held_bytes == 0 && !self.touched
    }

    /// The figures. What was stored counts as held to the end.
    pub(crate) fn figures(&self) -> SpillFigures {
        SpillFigures {
            store_peak_bytes: self.held_bytes,
            ..self.figures.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_counted_by_what_was_read_before() {
        let mut counts = Counts::default();
        let (one, other) = (ItemKey::from_number(1), ItemKey::from_number(2));
        counts.read(one, std::iter::once(0..10), true);
        counts.read(one, [5..15, 20..25], true);
        counts.read(other, [], false);
        let figures = counts.figures();
        assert_eq!((figures.reads, figures.reads_with_range), (3, 2));
        assert_eq!((figures.read_bytes, figures.reread_bytes), (25, 5));
        assert_eq!(figures.distinct_read, 2);
    }
}
