//! A list of indices, kept as ranges.

use std::ops::Range;

/// Indices in a given order, adjacent ones joined. A conversation without boundaries is one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<Range<usize>>);

impl Spans {
    /// Appends an index.
    pub fn push(&mut self, index: usize) {
        match self.0.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => self.0.push(index..index + 1),
        }
    }

    /// The ranges in order; none is empty.
    #[must_use]
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }

    /// The indices in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().flat_map(Clone::clone)
    }

    /// How many indices there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when the index is among them.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.0.iter().any(|range| range.contains(&index))
    }

    /// True when `self` starts with all of `earlier`.
    #[must_use]
    pub fn starts_with(&self, earlier: &Self) -> bool {
        let Some((last, before)) = earlier.0.split_last() else {
            return true;
        };
        self.0.len() > before.len()
            && self.0[..before.len()] == *before
            && self.0[before.len()].start == last.start
            && self.0[before.len()].end >= last.end
    }
}

impl FromIterator<usize> for Spans {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut spans = Self::default();
        for index in indices {
            spans.push(index);
        }
        spans
    }
}
