//! What is visible of a result that an agent saved to a file, and which lines a profile still wants.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use spill_scenario::{ModelSpec, Profile, is_canary};

use crate::conversation::Call;
use crate::result::{Hunk, hunks_in};
use crate::rules::Cuts;
use crate::saved::{FileLines, FileReader, SavedFile, asked_lines, insisting, text_line};
use crate::seen::Subject;

/// Reads that may fail for one file before it is given up.
const FAILURES: u32 = 2;
/// The length of a line that nothing is known about.
const LINE_BYTES: u64 = 40;
/// Lines that one read asks for at most: what agents' own tools allow.
const MOST_LINES: u64 = 2000;
/// A served text has a line of the harness's own in each KiB, which a diff's line numbers do not know.
const CANARY_STRIDE_BYTES: u64 = 1041;

/// One saved result.
#[derive(Debug)]
pub(crate) struct Filed<'v> {
    pub(crate) saved: &'v SavedFile,
    lines: BTreeMap<u64, &'v str>,
    /// Lines that were read of it under another path: before the agent put another stub in its place, which has a file
    /// of its own.
    earlier: BTreeMap<u64, &'v str>,
    /// How many lines the file has, once that is known.
    total: Option<u64>,
    read_bytes: u64,
    failures: u32,
    /// The argument with which a read that was refused for its size is granted, where the refusal named one.
    insists: Option<&'static str>,
}

impl<'v> Filed<'v> {
    pub(crate) fn new(saved: &'v SavedFile) -> Self {
        Self {
            saved,
            lines: BTreeMap::new(),
            earlier: BTreeMap::new(),
            total: None,
            read_bytes: 0,
            failures: 0,
            insists: None,
        }
    }

    /// Takes what a read returned; `None` for an error or no answer.
    pub(crate) fn take(&mut self, call: &Call, answer: Option<&'v str>) {
        let (first, asked) = asked_lines(call);
        let read = answer.map(|text| FileLines::parse(text, first));
        let known = self.lines.len();
        if let Some(read) = read {
            let is_short = asked.is_some_and(|asked| (read.lines.len() as u64) < asked);
            let last = read.lines.last().map_or(first - 1, |(number, _)| *number);
            // A reader with a cap of its own says that there is more.
            self.total = read.total.or(self.total).or(is_short.then_some(last));
            for (number, line) in read.lines {
                if self.lines.insert(number, line).is_none() {
                    self.read_bytes += line.len() as u64 + 1;
                }
            }
        }
        self.failures += u32::from(self.lines.len() == known);
    }

    /// Takes a read's refusal.
    pub(crate) fn refuse(&mut self, call: &Call, refusal: &str) {
        self.insists = insisting(refusal).or(self.insists);
        self.take(call, None);
    }

    /// Name and arguments of the call that reads `lines` with the agent's own tool.
    pub(crate) fn call(&self, reader: &FileReader<'_>, lines: &Range<u64>) -> (String, String) {
        reader.call(&self.saved.path, lines, self.insists)
    }

    /// Takes what a read of the file returned that it had before.
    pub(crate) fn take_earlier(&mut self, call: &Call, answer: &'v str) {
        let (first, _) = asked_lines(call);
        self.earlier.extend(FileLines::parse(answer, first).lines);
    }

    /// The visible parts, in order.
    pub(crate) fn parts(&self) -> Vec<(String, Cuts)> {
        let mut parts = self.saved.shown.clone();
        for lines in [&self.earlier, &self.lines] {
            add_parts(&mut parts, lines);
        }
        parts
    }

    /// Hunks that the visible parts of a diff name.
    pub(crate) fn hunks(&self) -> Vec<Hunk> {
        let parts = self.parts();
        parts.iter().flat_map(|(text, _)| hunks_in(text)).collect()
    }

    /// Lines to be read next, the first of them first.
    pub(crate) fn wanted(
        &self,
        subject: Subject,
        hunks: &[Hunk],
        profile: Profile,
        spec: &ModelSpec,
    ) -> Vec<Range<u64>> {
        if self.failures >= FAILURES {
            return Vec::new();
        }
        let is_within_budget = self.read_bytes < spec.reading_budget_bytes;
        match (profile, subject) {
            (Profile::Hasty, _) => Vec::new(),
            (Profile::Diligent, _) | (_, Subject::List) => self.next_unread(spec),
            (Profile::Selective | Profile::Forgetful | Profile::Loopy, _) if !is_within_budget => {
                Vec::new()
            }
            (Profile::Selective | Profile::Forgetful | Profile::Loopy, Subject::File) => {
                self.around(hunks, spec)
            }
            (Profile::Selective | Profile::Forgetful | Profile::Loopy, _) => self.next_unread(spec),
        }
    }

    fn mean_line(&self) -> u64 {
        let shown = self.saved.shown.iter().map(|(text, _)| text.as_str());
        let (bytes, lines) =
            shown
                .chain(self.lines.values().copied())
                .fold((0, 0), |(bytes, lines), text| {
                    (
                        bytes + text.len() as u64 + 1,
                        lines + text.lines().count() as u64,
                    )
                });
        let mean: Option<u64> = bytes.checked_div(lines);
        mean.map_or(LINE_BYTES, |mean| mean.max(1))
    }

    fn next_unread(&self, spec: &ModelSpec) -> Vec<Range<u64>> {
        let mut first = 1;
        while self.lines.contains_key(&first) {
            first += 1;
        }
        if self.total.is_some_and(|total| first > total) {
            return Vec::new();
        }
        let most = (spec.slice_bytes / self.mean_line()).clamp(1, MOST_LINES);
        let gap = self.lines.range(first..).next().map(|(line, _)| *line);
        let end = gap.map_or(first + most, |next| next.min(first + most));
        std::iter::once(first..end).collect()
    }

    /// A window of lines around each hunk that is not in view.
    fn around(&self, hunks: &[Hunk], spec: &ModelSpec) -> Vec<Range<u64>> {
        let windows = hunks.iter().filter_map(|hunk| {
            let size = spec.window_lines.max(hunk.lines).max(1);
            let middle = self.place_of(hunk.first_line.saturating_add(hunk.lines / 2));
            let start = middle.saturating_sub(size / 2).max(1);
            let end = self
                .total
                .map_or(u64::MAX, |total| total + 1)
                .min(start.saturating_add(size));
            let first = (start..end).find(|line| !self.lines.contains_key(line))?;
            let last = (first..end)
                .rev()
                .find(|line| !self.lines.contains_key(line))?;
            Some(first..last + 1)
        });
        windows.collect()
    }

    /// Where a line of the text stands among those of the file.
    fn place_of(&self, line: u64) -> u64 {
        let shown = self.saved.shown.first().map(|(text, _)| text.as_str());
        let first = shown.or_else(|| self.lines.get(&1).copied()).unwrap_or("");
        if !first.lines().next().is_some_and(is_canary) {
            return line;
        }
        let before = line.saturating_mul(self.mean_line());
        line.saturating_add(before / CANARY_STRIDE_BYTES + 1)
    }
}

/// Adds lines, those that follow each other in one part.
fn add_parts(parts: &mut Vec<(String, Cuts)>, lines: &BTreeMap<u64, &str>) {
    let mut next = None;
    for (number, line) in lines {
        // A result that was saved as JSON has its text in one line.
        let text = text_line(line).map_or(Cow::Borrowed(*line), Cow::Owned);
        match parts.last_mut() {
            Some((part, _)) if next == Some(*number) => part.push_str(&text),
            Some(_) | None => parts.push((text.into_owned(), Cuts::default())),
        }
        if let Some((text, _)) = parts.last_mut() {
            text.push('\n');
        }
        next = Some(number + 1);
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "sets of one range are meant"
)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::OfferedTool;
    use crate::testing::spec;

    fn saved() -> SavedFile {
        SavedFile {
            path: "/a".to_owned(),
            shown: vec![(
                "x".repeat(39),
                Cuts {
                    start: false,
                    end: true,
                },
            )],
        }
    }

    fn read(filed: &mut Filed<'static>, first: u64, count: u64, answer: Option<&'static str>) {
        let arguments = json!({"file_path": "/a", "offset": first, "limit": count});
        let call = Call::written(String::new(), "Read".to_owned(), arguments.to_string());
        filed.take(&call, answer);
    }

    #[test]
    fn a_file_is_read_until_its_end() {
        let saved = Box::leak(Box::new(saved()));
        let mut filed = Filed::new(saved);
        let wanted =
            |filed: &Filed<'_>, profile| filed.wanted(Subject::Document, &[], profile, &spec());
        assert_eq!(wanted(&filed, Profile::Diligent), [1..103]);
        assert_eq!(wanted(&filed, Profile::Selective), [1..103]);
        assert_eq!(wanted(&filed, Profile::Hasty), []);
        read(&mut filed, 1, 2, Some("1→a\n2→b\n"));
        assert_eq!(wanted(&filed, Profile::Diligent)[0].start, 3);
        read(&mut filed, 3, 2, Some("3→c\n"));
        assert_eq!(wanted(&filed, Profile::Diligent), []);
        let parts: Vec<_> = filed.parts().into_iter().map(|(text, _)| text).collect();
        assert_eq!(parts[1..], ["a\nb\nc\n"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_given_up() {
        let saved = Box::leak(Box::new(saved()));
        let mut filed = Filed::new(saved);
        for _ in 0..FAILURES {
            assert!(
                !filed
                    .wanted(Subject::List, &[], Profile::Selective, &spec())
                    .is_empty()
            );
            read(&mut filed, 1, 100, None);
        }
        assert_eq!(
            filed.wanted(Subject::List, &[], Profile::Selective, &spec()),
            []
        );
    }

    /// Claude Code's words; other refusals name no way.
    #[test]
    fn a_file_that_is_too_large_is_read_the_way_the_refusal_names() {
        let saved = Box::leak(Box::new(saved()));
        let mut filed = Filed::new(saved);
        let parameters = json!({"properties": {"file_path": {}, "offset": {}, "limit": {}}});
        let tools = [OfferedTool::new("Read".to_owned(), parameters)];
        let reader = FileReader::of(&tools).expect("it reads files");
        let asked = |filed: &Filed<'_>| filed.call(&reader, &(1..3)).1;
        let plain = r#"{"file_path":"/a","offset":1,"limit":2}"#;
        assert_eq!(asked(&filed), plain);
        let call = Call::written(String::new(), "Read".to_owned(), plain.to_owned());
        filed.refuse(&call, "No such file");
        assert_eq!(asked(&filed), plain);
        let refusal = "File content (100042 tokens) exceeds maximum allowed tokens (25000). To read it anyway, call Read again with allow_large: true";
        filed.refuse(&call, refusal);
        let insisting = r#"{"file_path":"/a","offset":1,"limit":2,"allow_large":true}"#;
        assert_eq!(asked(&filed), insisting);
    }

    #[test]
    fn windows_stand_around_hunks() {
        let saved = Box::leak(Box::new(saved()));
        let mut filed = Filed::new(saved);
        let hunks = [Hunk {
            first_line: 100,
            lines: 0,
        }];
        let wanted =
            |filed: &Filed<'_>| filed.wanted(Subject::File, &hunks, Profile::Selective, &spec());
        assert_eq!(wanted(&filed), [80..120]);
        read(&mut filed, 80, 2, Some("80→a\n81→b\n"));
        assert_eq!(wanted(&filed), [82..120]);
    }
}
