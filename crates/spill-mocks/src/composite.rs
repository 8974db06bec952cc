//! The text of a composite result: several diffs, each behind a line that names its file.

use crate::rules::Cuts;

const HEADING: &str = "=== ";

/// The line before the diff of `path`. No line of a diff begins like it.
pub(crate) fn heading_of(path: &str) -> String {
    format!("{HEADING}{path}\n")
}

/// What is visible of one diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    pub(crate) path: &'t str,
    pub(crate) text: &'t str,
    pub(crate) cuts: Cuts,
}

/// The diffs in a visible part of such a text. What stands before the first whole heading belongs to a file that
/// nobody can name.
pub(crate) fn parts(text: &str, cuts: Cuts) -> Vec<Part<'_>> {
    let mut headings = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        // Behind a cut, nobody can say that the first line is whole.
        let is_whole = line.ends_with('\n') && (at > 0 || !cuts.start);
        if let Some(path) = line.strip_prefix(HEADING).filter(|_| is_whole) {
            headings.push((path.trim_end(), at, at + line.len()));
        }
        at += line.len();
    }
    let ends = headings.iter().skip(1).map(|(_, start, _)| (*start, false));
    let ends = ends.chain(std::iter::once((text.len(), cuts.end)));
    let bounded = headings.iter().zip(ends);
    bounded
        .map(|((path, _, start), (end, is_cut))| Part {
            path,
            text: &text[*start..end],
            cuts: Cuts {
                start: false,
                end: is_cut,
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, start: bool, end: bool, expected: &[(&str, &str, bool)]) {
        let found: Vec<_> = parts(text, Cuts { start, end })
            .into_iter()
            .map(|part| {
                assert!(!part.cuts.start);
                (part.path, part.text, part.cuts.end)
            })
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn each_diff_stands_behind_its_heading() {
        let text = format!("{}+1\n{}+2\n+3\n", heading_of("a b.rs"), heading_of("c"));
        let all = [("a b.rs", "+1\n", false), ("c", "+2\n+3\n", false)];
        check(&text, false, false, &all);
        check(&text, false, true, &[all[0], ("c", "+2\n+3\n", true)]);
        // Cut at the start, a first line cannot be known to be whole.
        check(&text, true, false, &all[1..]);
        check(&text[1..], false, false, &all[1..]);
        check("+1\n+2\n", false, false, &[]);
        check("=== a", false, true, &[]);
        check("=== a\n", false, true, &[("a", "", true)]);
        check("+ === a\n", false, false, &[]);
        check("", false, false, &[]);
    }
}
