//! Which parts of stored results a profile reads back.

use std::iter::once;
use std::ops::Range;

use spill_scenario::{ModelSpec, Profile, is_canary};

use crate::ranges::{difference, first, union};
use crate::result::Hunk;
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
    let size = stored.size;
    let whole = union(once(0..size));
    let in_view = stored.in_view();
    match (profile, subject) {
        (Profile::Hasty, _) => Vec::new(),
        (Profile::Diligent, _)
        | (Profile::Selective | Profile::Forgetful | Profile::Loopy, Subject::List) => {
            difference(&whole, &in_view)
        }
        (
            Profile::Selective | Profile::Forgetful | Profile::Loopy,
            Subject::Diffs
            | Subject::Diff
            | Subject::Document
            | Subject::Rows
            | Subject::Csv
            | Subject::Log
            | Subject::Recorded,
        ) => {
            let targets = from_start_and_end(stored, spec.reading_budget_bytes, slice);
            within_budget(difference(&targets, &in_view), stored, spec)
        }
        (Profile::Selective | Profile::Forgetful | Profile::Loopy, Subject::File) => {
            let targets = around_hunks(stored, hunks, spec.window_lines);
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
fn from_start_and_end(stored: &Stored<'_>, budget: u64, slice: u64) -> Vec<Range<u64>> {
    let start = stored.preview.head.len() as u64;
    let end = stored.size.saturating_sub(stored.preview.tail.len() as u64);
    if stored.size <= budget {
        return union(once(start..end));
    }
    let last = slice.min(budget);
    union([
        start..end.min(start.saturating_add(budget - last)),
        end.saturating_sub(last).max(start)..end,
    ])
}

/// A window of `window_lines` lines, or the hunk's own if those are more, around where each hunk is
/// expected: by the share of lines before it, at the text's mean length of a line.
fn around_hunks(stored: &Stored<'_>, hunks: &[Hunk], window_lines: u64) -> Vec<Range<u64>> {
    let size = stored.size;
    let lines = lines_without_canaries(stored).max(1);
    let bytes_of = |count: u64| {
        let bytes = u128::from(count.min(lines)) * u128::from(size) / u128::from(lines);
        u64::try_from(bytes).unwrap_or(size)
    };
    let windows = hunks.iter().map(|hunk| {
        let window = bytes_of(window_lines.max(hunk.lines));
        let middle = bytes_of(hunk.first_line.saturating_add(hunk.lines / 2));
        let start = middle
            .saturating_sub(window / 2)
            .min(size.saturating_sub(window));
        start..size.min(start.saturating_add(window))
    });
    union(windows)
}

/// The text's lines without those that the harness wove in, which the line numbers of a diff do
/// not know: one at the start, one at the end, one for each KiB.
fn lines_without_canaries(stored: &Stored<'_>) -> u64 {
    let lines = stored.preview.lines(stored.size);
    if stored.preview.head.lines().next().is_some_and(is_canary) {
        lines.saturating_sub(stored.size / 1041 + 2)
    } else {
        lines
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "sets of one range are meant"
)]
mod tests {
    use super::*;
    use crate::result::{Form, ToolText};
    use crate::seen::Piece;
    use crate::testing::spec;

    /// A stored text of 100,000 bytes in 1,000 lines; head and tail of 1,000 bytes are in view.
    fn check(
        subject: Subject,
        profile: Profile,
        slices: &[Range<u64>],
        hunks: &[(u64, u64)],
        expected: &[Range<u64>],
    ) {
        let shown = "x".repeat(1000);
        let preview = format!(
            r#"{{"spilled":true,"spillover_ref":"r","size_bytes":100000,"lines":1000,"head":"{shown}","tail":"{shown}"}}"#
        );
        let parsed = ToolText::parse(&preview);
        let Form::Preview(preview) = &parsed.form else {
            panic!("a preview")
        };
        let text = "y".repeat(100_000);
        let mut stored = Stored::new(preview, &parsed);
        for slice in slices {
            let len = usize::try_from(slice.end - slice.start).expect("small");
            stored.read_bytes += len as u64;
            stored.pieces.push(Piece::at(slice.start, &text[..len]));
        }
        let hunks: Vec<_> = hunks
            .iter()
            .map(|(first_line, lines)| Hunk {
                first_line: *first_line,
                lines: *lines,
            })
            .collect();
        let spec = ModelSpec {
            reading_budget_bytes: 20_000,
            ..spec()
        };
        let found = wanted(subject, &stored, &hunks, profile, &spec, 4000);
        assert_eq!(found, expected, "{subject:?} {profile:?} {slices:?}");
    }

    #[test]
    fn a_hasty_model_reads_nothing() {
        check(Subject::File, Profile::Hasty, &[], &[(500, 1)], &[]);
        check(Subject::List, Profile::Hasty, &[], &[], &[]);
    }

    #[test]
    fn a_diligent_model_reads_what_is_not_in_view() {
        check(Subject::File, Profile::Diligent, &[], &[], &[1000..99_000]);
        check(
            Subject::Diff,
            Profile::Diligent,
            &[1000..5000, 9000..98_000],
            &[],
            &[5000..9000, 98_000..99_000],
        );
        check(
            Subject::Document,
            Profile::Diligent,
            &[500..99_500],
            &[],
            &[],
        );
    }

    #[test]
    fn a_selective_model_reads_the_start_and_keeps_a_slice_for_the_end() {
        check(
            Subject::Document,
            Profile::Selective,
            &[],
            &[],
            &[1000..17_000, 95_000..99_000],
        );
        check(
            Subject::Diff,
            Profile::Selective,
            &[1000..9000],
            &[],
            &[9000..17_000, 95_000..99_000],
        );
        check(
            Subject::Diff,
            Profile::Selective,
            &[1000..17_000],
            &[],
            &[95_000..99_000],
        );
        check(
            Subject::Document,
            Profile::Selective,
            &[1000..17_000, 95_000..99_000],
            &[],
            &[],
        );
        check(Subject::List, Profile::Selective, &[], &[], &[1000..99_000]);
    }

    #[test]
    fn a_selective_model_reads_files_around_hunks() {
        check(Subject::File, Profile::Selective, &[], &[], &[]);
        check(
            Subject::File,
            Profile::Selective,
            &[],
            &[(500, 0)],
            &[48_000..52_000],
        );
        check(
            Subject::File,
            Profile::Selective,
            &[],
            &[(490, 20)],
            &[48_000..52_000],
        );
        check(
            Subject::File,
            Profile::Selective,
            &[],
            &[(500, 0), (520, 0)],
            &[48_000..54_000],
        );
        check(
            Subject::File,
            Profile::Selective,
            &[48_000..52_000],
            &[(500, 0), (520, 0)],
            &[52_000..54_000],
        );
        // Clamped to the text, and what head and tail show is not read again.
        check(
            Subject::File,
            Profile::Selective,
            &[],
            &[(0, 0)],
            &[1000..4000],
        );
        check(
            Subject::File,
            Profile::Selective,
            &[],
            &[(5000, 9)],
            &[96_000..99_000],
        );
    }

    #[test]
    fn a_selective_model_stops_at_its_budget() {
        let hunks: Vec<_> = (1..10).map(|number| (number * 100, 0)).collect();
        let first: Vec<_> = (1..6)
            .map(|number| number * 10_000 - 2000..number * 10_000 + 2000)
            .collect();
        check(Subject::File, Profile::Selective, &[], &hunks, &first);
        check(Subject::File, Profile::Selective, &first, &hunks, &[]);
    }
}
