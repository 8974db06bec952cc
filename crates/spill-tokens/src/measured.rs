use std::ops::Range;

/// The counts of a text's parts, summed up, so that those of a slice are one subtraction. In order of the text.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Where each part ends, and the tokens up to there.
    ends: Vec<(usize, u64)>,
}

/// The parts that a range holds whole.
pub(crate) struct WholeParts {
    pub(crate) bytes: Range<usize>,
    pub(crate) tokens: u64,
}

impl Measured {
    pub(crate) fn of(parts: Vec<(usize, u64)>) -> Self {
        let mut ends = parts;
        let mut sum = 0;
        for (_, tokens) in &mut ends {
            sum += *tokens;
            *tokens = sum;
        }
        Self { ends }
    }

    /// Tokens of the whole text.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.ends.last().map_or(0, |(_, tokens)| *tokens)
    }

    /// The parts inside of `range`; `None` when there is no bound between two parts in it.
    pub(crate) fn whole_parts(&self, range: &Range<usize>) -> Option<WholeParts> {
        let first = if range.start == 0 {
            (0, 0)
        } else {
            let from = self.ends.partition_point(|(end, _)| *end < range.start);
            *self.ends.get(from)?
        };
        let behind = self.ends.partition_point(|(end, _)| *end <= range.end);
        let last = *self.ends.get(behind.checked_sub(1)?)?;
        (first.0 <= last.0).then(|| WholeParts {
            bytes: first.0..last.0,
            tokens: last.1 - first.1,
        })
    }
}
