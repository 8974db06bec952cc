//! Which bytes of a stored text were read already.

use std::ops::Range;

/// What was read of one text: disjoint, non-touching ranges in rising order.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    ranges: Vec<Range<u64>>,
    reads: u64,
}

/// How a read stands to the reads before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// No read of this text came before.
    pub first: bool,
    /// Bytes of the range that an earlier read returned.
    pub bytes: u64,
}

impl Coverage {
    /// Adds a read of the bytes `range`.
    pub fn add(&mut self, range: Range<u64>) -> Again {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_bytes_again(reads: &[Range<u64>], expected: &[u64]) {
        let mut coverage = Coverage::default();
        let again: Vec<u64> = reads
            .iter()
            .map(|range| coverage.add(range.clone()).bytes)
            .collect();
        assert_eq!(again, expected, "{reads:?}");
    }

    #[test]
    fn counts_bytes_returned_before() {
        check_bytes_again(&[0..10, 10..20], &[0, 0]);
        check_bytes_again(&[0..10, 9..20], &[0, 1]);
        check_bytes_again(&[0..10, 0..10, 0..10], &[0, 10, 10]);
        check_bytes_again(&[0..2, 4..6, 8..10, 1..9], &[0, 0, 0, 4]);
        check_bytes_again(&[5..5, 0..10, 5..5], &[0, 0, 0]);
    }

    #[test]
    fn an_empty_read_is_a_first_read() {
        let mut coverage = Coverage::default();
        assert!(coverage.add(3..3).first);
        assert!(!coverage.add(0..1).first);
    }

    proptest! {
        #[test]
        fn agrees_with_marking_every_byte(reads in prop::collection::vec((0_usize..64, 0_usize..64), 0..20)) {
            let mut coverage = Coverage::default();
            let mut marks = [false; 128];
            for (start, length) in reads {
                let marked = &mut marks[start..start + length];
                let expected = marked.iter().filter(|mark| **mark).count() as u64;
                marked.fill(true);
                prop_assert_eq!(coverage.add(start as u64..(start + length) as u64).bytes, expected);
                prop_assert!(coverage.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
