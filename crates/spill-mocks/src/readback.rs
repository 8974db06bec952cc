//! Which parts of stored results a profile reads back.

use std::iter::once;
use std::ops::Range;

use spill_scenario::{ModelSpec, Profile, is_canary};

use crate::ranges::{difference, first, union};
use crate::result::{Hunk, Preview};
use crate::seen::{Stored, Subject};

/// Reads that may fail for one result before it is given up.
const FAILURES: u32 = 2;

/// Ranges still to be read, sorted; `slice` is the longest that one read asks for.
pub(crate) fn wanted(
    subject: Subject,
    stored: &Stored<'_>,
    hunks: &[Hunk],
    profile: Profile,
    spec: &ModelSpec,
    slice: u64,
) -> Vec<Range<u64>> {
    let is_given_up = stored.failures >= FAILURES || (stored.failures > 0 && !stored.may_retry);
    if is_given_up {
        return Vec::new();
    }
    let size = stored.preview.size;
    let whole = union(once(0..size));
    let in_view = stored.in_view();
    match (profile, subject) {
        (Profile::Hasty, _) => Vec::new(),
        (Profile::Diligent, _) | (Profile::Selective, Subject::List) => {
            difference(&whole, &in_view)
        }
        (Profile::Selective, Subject::Diff | Subject::Document) => {
            let targets = from_start_and_end(stored.preview, spec.reading_budget_bytes, slice);
            within_budget(difference(&targets, &in_view), stored, spec)
        }
        (Profile::Selective, Subject::File) => {
            let targets = around_hunks(stored.preview, hunks, slice);
            within_budget(difference(&targets, &in_view), stored, spec)
        }
    }
}

fn within_budget(
    ranges: Vec<Range<u64>>,
    stored: &Stored<'_>,
    spec: &ModelSpec,
) -> Vec<Range<u64>> {
    first(
        ranges,
        spec.reading_budget_bytes.saturating_sub(stored.read_bytes),
    )
}

/// Everything between head and tail; of a text larger than the budget, its start and, with the
/// budget's last slice, its end.
fn from_start_and_end(preview: &Preview, budget: u64, slice: u64) -> Vec<Range<u64>> {
    let start = preview.head.len() as u64;
    let end = preview.size - preview.tail.len() as u64;
    if preview.size <= budget {
        return union(once(start..end));
    }
    let last = slice.min(budget);
    union([
        start..end.min(start.saturating_add(budget - last)),
        end.saturating_sub(last).max(start)..end,
    ])
}

/// One slice around where each hunk is expected, by the share of lines before it.
fn around_hunks(preview: &Preview, hunks: &[Hunk], slice: u64) -> Vec<Range<u64>> {
    let size = preview.size;
    let lines = lines_without_canaries(preview).max(1);
    let slices = hunks.iter().map(|hunk| {
        let line = hunk.first_line.saturating_add(hunk.lines / 2).min(lines);
        let middle = u128::from(line) * u128::from(size) / u128::from(lines);
        let middle = u64::try_from(middle).unwrap_or(size);
        let start = middle
            .saturating_sub(slice / 2)
            .min(size.saturating_sub(slice));
        start..size.min(start.saturating_add(slice))
    });
    union(slices)
}

/// The text's lines without those that the harness wove in, which the line numbers of a diff do
/// not know: one at the start, one at the end, one for each KiB.
fn lines_without_canaries(preview: &Preview) -> u64 {
    if preview.head.lines().next().is_some_and(is_canary) {
        preview.lines.saturating_sub(preview.size / 1041 + 2)
    } else {
        preview.lines
    }
}
