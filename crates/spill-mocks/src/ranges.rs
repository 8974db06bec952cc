//! Sets of byte ranges, as sorted vectors of ranges that neither touch nor overlap.

use std::ops::Range;

/// Sorts and joins ranges; empty ones go.
pub(crate) fn union(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let filled = ranges.into_iter().filter(|range| range.start < range.end);
    let mut ranges: Vec<_> = filled.collect();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => joined.push(range),
        }
    }
    joined
}

/// What of `wanted` is not in `held`; both are sets as [`union`] gives them.
pub(crate) fn difference(wanted: &[Range<u64>], held: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in wanted {
        let mut start = range.start;
        let from = held.partition_point(|held| held.end <= start);
        for held in &held[from..] {
            if held.start >= range.end {
                break;
            }
            if held.start > start {
                left.push(start..held.start);
            }
            start = start.max(held.end);
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

/// The first `bytes` bytes of a set.
pub(crate) fn first(ranges: Vec<Range<u64>>, mut bytes: u64) -> Vec<Range<u64>> {
    let mut kept = Vec::new();
    for range in ranges {
        let len = (range.end - range.start).min(bytes);
        if len == 0 {
            break;
        }
        kept.push(range.start..range.start + len);
        bytes -= len;
    }
    kept
}

/// Cuts a set into ranges of at most `len` bytes.
pub(crate) fn slices(ranges: &[Range<u64>], len: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let len = len.max(1);
    ranges.iter().flat_map(move |range| {
        let end = range.end;
        let step = usize::try_from(len).unwrap_or(usize::MAX);
        (range.start..end)
            .step_by(step)
            .map(move |start| start..end.min(start.saturating_add(len)))
    })
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "sets of one range are meant"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members(ranges: &[Range<u64>]) -> Vec<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    #[test]
    fn touching_ranges_join() {
        assert_eq!(union([4..6, 0..2, 2..3, 5..9, 7..7]), [0..3, 4..9]);
    }

    #[test]
    fn slices_are_cut_at_the_length() {
        let cut: Vec<_> = slices(&[0..5, 7..9], 2).collect();
        assert_eq!(cut, [0..2, 2..4, 4..5, 7..9]);
        assert_eq!(first(vec![0..5, 7..9], 6), [0..5, 7..8]);
        assert_eq!(first(vec![0..5], 0), []);
    }

    proptest! {
        #[test]
        fn difference_is_that_of_the_members(
            wanted in prop::collection::vec((0u64..60, 0u64..9), 0..6),
            held in prop::collection::vec((0u64..60, 0u64..9), 0..6),
        ) {
            let set = |ranges: Vec<(u64, u64)>| {
                union(ranges.into_iter().map(|(start, len)| start..start + len))
            };
            let (wanted, held) = (set(wanted), set(held));
            let expected: Vec<u64> = members(&wanted)
                .into_iter()
                .filter(|member| !members(&held).contains(member))
                .collect();
            prop_assert_eq!(members(&difference(&wanted, &held)), expected);
        }
    }
}
