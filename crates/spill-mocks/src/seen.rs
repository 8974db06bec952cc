//! What the simulated model has asked for and what came, from the messages of one request.

use std::collections::HashMap;
use std::iter::once;
use std::ops::Range;

use serde_json::Value;
use spill_scenario::{recorded_tool, strip_canaries};

use crate::answer::segments;
use crate::composite;
use crate::conversation::{Call, Message};
use crate::filed::Filed;
use crate::preview::Preview;
use crate::ranges::{difference, union};
use crate::request::View;
use crate::result::{Form, Hunk, ToolText, hunks_in};
use crate::rules::Cuts;
use crate::saved::read_path;
use crate::slice::without_query;

/// What a tool call of the recipe is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The list of changed files, of documents or of tables.
    List,
    /// The diffs of several files in one text.
    Diffs,
    Diff,
    File,
    Document,
    /// Rows of a table, as JSON.
    Rows,
    /// A table's comma-separated values.
    Csv,
    Log,
    /// What a tool of a transcript returned.
    Recorded,
}

impl Subject {
    /// Of the subjects, the one that the tool named so returns; clients may put a prefix before
    /// the name.
    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        const SUFFIXES: [(&str, Subject); 10] = [
            ("list_changed_files", Subject::List),
            ("list_documents", Subject::List),
            ("read_diffs", Subject::Diffs),
            ("read_diff", Subject::Diff),
            ("read_file", Subject::File),
            ("read_document", Subject::Document),
            ("list_tables", Subject::List),
            ("query", Subject::Rows),
            ("export_csv", Subject::Csv),
            ("read_log", Subject::Log),
        ];
        if recorded_tool(name).is_some() {
            return Some(Self::Recorded);
        }
        let found = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
        found.map(|(_, subject)| *subject)
    }
}

/// One tool call and its result, where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenCall<'v> {
    pub(crate) call: &'v Call,
    pub(crate) result: Option<&'v ToolText>,
    /// Bytes of the messages behind the result.
    behind: u64,
    /// Which turn of the model asks for it, from 0.
    turn: u64,
}

/// Pairs each tool call with its result: the first one with its id after it.
pub(crate) fn calls(view: &View) -> Vec<SeenCall<'_>> {
    let mut seen: Vec<SeenCall<'_>> = Vec::new();
    let mut turns = 0;
    let mut follows = false;
    let mut behind: u64 = view.messages.iter().map(|item| item.message.bytes()).sum();
    for item in &view.messages {
        behind -= item.message.bytes();
        let is_assistant = item.message.is_assistant();
        turns += u64::from(is_assistant && !follows);
        follows = is_assistant;
        match &*item.message {
            Message::System(_) | Message::User(_) => {}
            Message::Assistant { calls, .. } => {
                seen.extend(calls.iter().map(|call| SeenCall {
                    call,
                    result: None,
                    behind: 0,
                    turn: turns - 1,
                }));
            }
            Message::Tool { call_id, result } => {
                let open = seen
                    .iter_mut()
                    .rev()
                    .find(|seen| seen.call.id == *call_id && seen.result.is_none());
                if let Some(open) = open {
                    open.result = Some(result);
                    open.behind = behind;
                }
            }
        }
    }
    seen
}

/// How a call that reads a stored result back names it: by `spillover_ref`, as a `uri`, as a file, or
/// as the `path` of a tool that is none of the recipes'.
///
/// A tool of a transcript never reads one, whatever its arguments are called.
pub(crate) fn reference_argument(call: &Call) -> Option<&str> {
    if recorded_tool(&call.name).is_some() {
        return None;
    }
    let path = || {
        let is_reader = Subject::of_tool(&call.name).is_none();
        call.text("path").filter(|_| is_reader)
    };
    call.text("spillover_ref")
        .or_else(|| call.text("uri").map(without_query))
        .or_else(|| read_path(call))
        .or_else(path)
}

/// What a result is, given the call it answers: only what the read tool returned is a slice, and
/// everything else can be a preview.
pub(crate) fn form_of<'v>(call: Option<&Call>, result: &'v ToolText) -> &'v Form {
    let is_read = call.is_some_and(|call| reference_argument(call).is_some());
    match &result.form {
        Form::Slice(_) if !is_read => &Form::Whole,
        form => form,
    }
}

/// A part of a stored text that is visible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'v> {
    pub(crate) start: u64,
    pub(crate) text: &'v str,
    /// Whether its place was told as the end, whatever the size.
    is_end: bool,
    /// Whether it is whole lines, however the text around it goes on.
    pub(crate) is_lines: bool,
}

impl<'v> Piece<'v> {
    pub(crate) fn at(start: u64, text: &'v str) -> Self {
        Self {
            start,
            text,
            is_end: false,
            is_lines: false,
        }
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.text.len() as u64)
    }
}

/// What is visible of one stored result, and how reading it went.
#[derive(Debug)]
pub(crate) struct Stored<'v> {
    pub(crate) preview: &'v Preview,
    /// Bytes of the stored text, as the newest answer that says it says.
    pub(crate) size: u64,
    /// Head, tail and slices, in the order in which they came.
    pub(crate) pieces: Vec<Piece<'v>>,
    /// Bytes that slices returned.
    pub(crate) read_bytes: u64,
    /// Turns with a read that failed or returned nothing new. The reads of one turn are asked for
    /// together, so that none of them can heed what another's error says.
    pub(crate) failures: u32,
    /// Whether a failed read of the last such turn said which smaller length would do.
    pub(crate) may_retry: bool,
    failed_turn: Option<u64>,
    hunks: Vec<Hunk>,
}

impl<'v> Stored<'v> {
    /// What a preview alone shows.
    pub(crate) fn new(preview: &'v Preview, result: &'v ToolText) -> Self {
        let head = Piece::at(0, &preview.head);
        let tail = Piece {
            start: preview.size - preview.tail.len() as u64,
            text: &preview.tail,
            is_end: true,
            is_lines: false,
        };
        let rows = preview.rows.iter().map(|row| Piece {
            is_lines: row.is_lines,
            ..Piece::at(row.offset, &row.text)
        });
        let shown = [head, tail].into_iter().chain(rows);
        Self {
            preview,
            size: preview.size,
            pieces: shown.filter(|piece| !piece.text.is_empty()).collect(),
            read_bytes: 0,
            failures: 0,
            may_retry: false,
            failed_turn: None,
            hunks: result.hunks().to_vec(),
        }
    }

    /// Takes over the size that a slice states: a preview may leave it open by a byte.
    fn is_as_long_as(&mut self, size: u64) {
        self.size = size;
        for piece in self.pieces.iter_mut().filter(|piece| piece.is_end) {
            piece.start = size.saturating_sub(piece.text.len() as u64);
        }
    }

    fn fail(&mut self, turn: u64, cap: Option<u64>) {
        if self.failed_turn != Some(turn) {
            self.failed_turn = Some(turn);
            self.failures += 1;
            self.may_retry = false;
        }
        self.may_retry |= cap.is_some();
    }

    /// Ranges in view, as a set.
    pub(crate) fn in_view(&self) -> Vec<Range<u64>> {
        union(self.pieces.iter().map(Piece::range))
    }
}

/// What came for one subject.
#[derive(Debug)]
pub(crate) enum Outcome<'v> {
    /// No result, or an error.
    Nothing,
    /// A whole result.
    Text(&'v ToolText),
    /// The preview of a stored result.
    Stored(Stored<'v>),
    /// A result that the agent saved to a file.
    Filed(Filed<'v>),
}

/// All calls for one subject.
#[derive(Debug)]
pub(crate) struct Entry<'v> {
    pub(crate) subject: Subject,
    /// The file's path, the document's or the table's name, the recorded call's key; empty for the list.
    pub(crate) name: &'v str,
    /// Calls so far.
    pub(crate) attempts: u32,
    /// Bytes of the messages behind the last result that shows something of it.
    pub(crate) behind: u64,
    /// The last outcome that is one.
    pub(crate) outcome: Outcome<'v>,
}

/// What the simulated model knows from a request.
#[derive(Debug)]
pub(crate) struct Seen<'v> {
    /// In the order of first calls.
    pub(crate) entries: Vec<Entry<'v>>,
    by_subject: HashMap<(Subject, &'v str), usize>,
    by_reference: HashMap<&'v str, usize>,
    /// Entries by the ids of the calls for them.
    by_call: HashMap<&'v str, usize>,
    /// The smallest length of a read that an error said is allowed.
    pub(crate) cap: Option<u64>,
}

impl<'v> Seen<'v> {
    /// Reads the messages of a request.
    pub(crate) fn new(view: &'v View) -> Self {
        let mut seen = Self {
            entries: Vec::new(),
            by_subject: HashMap::new(),
            by_reference: HashMap::new(),
            by_call: HashMap::new(),
            cap: None,
        };
        for call in calls(view) {
            if let Some(reference) = reference_argument(call.call) {
                seen.take_read(reference, call);
            } else if let Some(subject) = Subject::of_tool(&call.call.name) {
                seen.take_result(subject, call);
            }
        }
        seen
    }

    pub(crate) fn entry(&self, subject: Subject, name: &str) -> Option<&Entry<'v>> {
        self.by_subject
            .get(&(subject, name))
            .map(|index| &self.entries[*index])
    }

    /// Hunks that the visible parts of a file's diff name.
    pub(crate) fn hunks(&self, path: &str) -> Vec<Hunk> {
        let outcome = |subject, name| self.entry(subject, name).map(|entry| &entry.outcome);
        let mut found = match outcome(Subject::Diff, path) {
            Some(Outcome::Text(text)) => text.hunks().to_vec(),
            Some(Outcome::Stored(stored)) => stored.hunks.clone(),
            Some(Outcome::Filed(filed)) => filed.hunks(),
            Some(Outcome::Nothing) | None => Vec::new(),
        };
        let mut add = |text: &str, cuts| {
            let parts = composite::parts(text, cuts).into_iter();
            let of_path = parts.filter(|part| part.path == path);
            found.extend(of_path.flat_map(|part| hunks_in(part.text)));
        };
        match outcome(Subject::Diffs, "") {
            Some(Outcome::Text(text)) => add(&text.text, Cuts::default()),
            Some(Outcome::Stored(stored)) => {
                for segment in segments(stored) {
                    add(&segment.text, segment.cuts(stored.size));
                }
            }
            Some(Outcome::Filed(filed)) => {
                for (text, cuts) in filed.parts() {
                    add(&text, cuts);
                }
            }
            Some(Outcome::Nothing) | None => {}
        }
        found
    }

    fn take_result(&mut self, subject: Subject, seen: SeenCall<'v>) {
        let argument = match subject {
            Subject::List | Subject::Diffs => Some(""),
            Subject::Diff | Subject::File => seen.call.text("path"),
            Subject::Document | Subject::Log => seen.call.text("name"),
            Subject::Rows | Subject::Csv => seen.call.text("table"),
            Subject::Recorded => seen.call.recorded_key(),
        };
        let name = argument.unwrap_or_default();
        let index = *self.by_subject.entry((subject, name)).or_insert_with(|| {
            self.entries.push(Entry {
                subject,
                name,
                attempts: 0,
                behind: 0,
                outcome: Outcome::Nothing,
            });
            self.entries.len() - 1
        });
        self.by_call.insert(&seen.call.id, index);
        let entry = &mut self.entries[index];
        entry.attempts += 1;
        let Some(result) = seen.result else { return };
        entry.behind = seen.behind;
        match form_of(Some(seen.call), result) {
            // A recorded error is what the recorded agent got: it is read, and not asked for again.
            Form::Error if subject == Subject::Recorded => entry.outcome = Outcome::Text(result),
            Form::Error => {}
            Form::Whole | Form::Slice(_) => entry.outcome = Outcome::Text(result),
            Form::Preview(_) | Form::Saved(_) if matches!(entry.outcome, Outcome::Text(_)) => {}
            Form::Saved(saved) => {
                entry.outcome = Outcome::Filed(Filed::new(saved));
                self.by_reference.insert(&saved.path, index);
            }
            Form::Preview(preview) => {
                entry.outcome = Outcome::Stored(Stored::new(preview, result));
                self.by_reference.insert(&preview.reference, index);
            }
        }
    }

    fn take_read(&mut self, reference: &str, seen: SeenCall<'v>) {
        let asked = asked_range(seen.call);
        let error = seen.result.filter(|result| result.form == Form::Error);
        let cap = error.and_then(|error| named_cap(&error.text, asked.end - asked.start));
        if let Some(cap) = cap {
            self.cap = Some(self.cap.map_or(cap, |known| known.min(cap)));
        }
        let Some(index) = self.by_reference.get(reference) else {
            self.take_earlier_read(reference, seen);
            return;
        };
        let entry = &mut self.entries[*index];
        if seen.result.is_some_and(|result| result.form != Form::Error) {
            entry.behind = seen.behind;
        }
        let stored = match &mut entry.outcome {
            Outcome::Stored(stored) => stored,
            Outcome::Filed(filed) => {
                match seen.result {
                    Some(result) if result.form == Form::Error => {
                        filed.refuse(seen.call, &result.text);
                    }
                    answer => filed.take(seen.call, answer.map(|result| &*result.text)),
                }
                return;
            }
            Outcome::Nothing | Outcome::Text(_) => return,
        };
        let Some(result) = seen.result else {
            stored.fail(seen.turn, None);
            return;
        };
        let piece = match &result.form {
            Form::Slice(slice) => {
                if let Some(size) = slice.size {
                    stored.is_as_long_as(size);
                }
                Some(Piece::at(slice.offset, slice.text(&result.text)))
            }
            // A read tool of someone else's, which returns the bare bytes.
            Form::Whole => Some(Piece::at(asked.start, &result.text)),
            Form::Error | Form::Preview(_) | Form::Saved(_) => None,
        };
        let new = piece.filter(|piece| {
            let range = piece.range();
            range.end <= stored.size
                && !difference(&union(once(range)), &stored.in_view()).is_empty()
        });
        match new {
            Some(piece) => {
                stored.read_bytes += piece.text.len() as u64;
                stored.pieces.push(piece);
                stored.hunks.extend_from_slice(result.hunks());
            }
            None => stored.fail(seen.turn, cap),
        }
    }
}

impl<'v> Seen<'v> {
    /// Takes a read of a file that no message names any more: the agent has put another stub in the place of the one
    /// that did. What was read stands there all the same, and agents name such files by the call whose result it is.
    fn take_earlier_read(&mut self, reference: &str, seen: SeenCall<'v>) {
        /// Shorter ids stand in a path by chance.
        const ID_BYTES: usize = 12;
        let Some(result) = seen.result.filter(|result| result.form == Form::Whole) else {
            return;
        };
        let ids = self.by_call.keys().copied();
        let named = ids.filter(|id| id.len() >= ID_BYTES && reference.contains(id));
        // The longest, and of equals always the same one.
        let Some(id) = named.max_by_key(|id| (id.len(), *id)) else {
            return;
        };
        let entry = &mut self.entries[self.by_call[id]];
        match &mut entry.outcome {
            Outcome::Filed(filed) => {
                entry.behind = seen.behind;
                filed.take_earlier(seen.call, &result.text);
            }
            Outcome::Nothing | Outcome::Text(_) | Outcome::Stored(_) => {}
        }
    }
}

fn asked_range(call: &Call) -> Range<u64> {
    let range = call.arguments.get("range").unwrap_or(&call.arguments);
    let number = |name: &str| range.get(name).and_then(Value::as_u64);
    let start = number("offset").unwrap_or(0);
    let length = number("length").or_else(|| number("limit"));
    start..start.saturating_add(length.unwrap_or(u64::MAX))
}

/// The length that an error message says is allowed, when it is below the one that was asked for:
/// the number behind words such as "at most", else the smallest number of at least 256.
fn named_cap(message: &str, asked: u64) -> Option<u64> {
    const PHRASES: [&str; 6] = ["limited to", "at most", "limit", "maximum", "cap", "up to"];
    let lower = message.to_ascii_lowercase();
    let allowed = |number: &u64| (1..asked).contains(number);
    let behind = PHRASES.iter().find_map(|phrase| {
        lower
            .match_indices(phrase)
            .find_map(|(at, _)| numbers(&lower[at + phrase.len()..]).next().filter(allowed))
    });
    behind.or_else(|| {
        numbers(&lower)
            .filter(|number| *number >= 256)
            .filter(allowed)
            .min()
    })
}

/// Whole numbers in a text; commas between digits do not end one.
fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|word| word.replace(',', "").parse().ok())
}

/// One entry of the list tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) diff_is_whole: bool,
    /// What a table's stated format makes it.
    pub(crate) format: Option<Subject>,
    /// Stated number of a table's rows.
    pub(crate) rows: Option<u64>,
    /// Stated sizes: of the diff, of the file, of the document or table.
    pub(crate) diff_bytes: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) size_bytes: Option<u64>,
}

impl Listed {
    /// The size that the list states for a subject.
    pub(crate) fn stated(&self, subject: Subject) -> Option<u64> {
        match subject {
            Subject::List | Subject::Diffs | Subject::Recorded => None,
            Subject::Diff => self.diff_bytes,
            Subject::File => self.file_bytes,
            Subject::Document | Subject::Rows | Subject::Csv | Subject::Log => self.size_bytes,
        }
    }
}

/// Reads the visible text of a list: a JSON array, or where that is cut, what of its lines is
/// whole.
pub(crate) fn listed(text: &str) -> Vec<Listed> {
    let text = strip_canaries(text);
    let whole: Result<Vec<Value>, _> = serde_json::from_str(&text);
    let entries = whole.unwrap_or_else(|_| {
        let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    });
    entries.iter().filter_map(listed_entry).collect()
}

fn listed_entry(entry: &Value) -> Option<Listed> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let number = |name: &str| entry.get(name).and_then(Value::as_u64);
    Some(Listed {
        name: text("path").or_else(|| text("name"))?.to_owned(),
        diff_is_whole: matches!(
            text("status"),
            Some("added" | "new" | "A" | "deleted" | "removed" | "D")
        ),
        format: match text("format") {
            Some("rows") => Some(Subject::Rows),
            Some("csv") => Some(Subject::Csv),
            Some("log") => Some(Subject::Log),
            Some(_) | None => None,
        },
        rows: number("rows"),
        diff_bytes: number("diff_bytes"),
        file_bytes: number("file_bytes"),
        size_bytes: number("size_bytes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is visible of a document whose stub was put in the place of another one, and of which `path` was read.
    fn visible(path: &str) -> Vec<String> {
        let call = |id: &str, name: &str, arguments: Value| {
            let function = serde_json::json!({"name": name, "arguments": arguments.to_string()});
            serde_json::json!({"role": "assistant", "tool_calls": [{"id": id, "function": function}]})
        };
        let result = |id: &str, content: &str| serde_json::json!({"role": "tool", "tool_call_id": id, "content": content});
        let stub = "<tool_output_masked>\nThe start.\n\nFull output available at: /h/stub.txt\n</tool_output_masked>";
        let messages = [
            call(
                "call_0123456789abcdef",
                "read_document",
                serde_json::json!({"name": "r.md"}),
            ),
            result("call_0123456789abcdef", stub),
            call(
                "call_2",
                "read_file",
                serde_json::json!({"file_path": path, "start_line": 8, "end_line": 9}),
            ),
            result("call_2", "The limit is 200.\nIt is kept.\n"),
        ];
        let body = serde_json::json!({"model": "m", "messages": messages, "tools": []});
        let view = View::parse(body.to_string().as_bytes()).expect("a request");
        let seen = Seen::new(&view);
        let entry = seen
            .entry(Subject::Document, "r.md")
            .expect("it was asked for");
        let Outcome::Filed(filed) = &entry.outcome else {
            panic!("{:?}", entry.outcome);
        };
        filed.parts().into_iter().map(|(text, _)| text).collect()
    }

    /// The path that was read is named by no message any more.
    #[test]
    fn what_was_read_before_a_result_was_masked_is_still_seen() {
        let read = "The limit is 200.\nIt is kept.\n";
        let named_by_call = "/h/tool-outputs/read_document__call_0123456789abcdef.txt";
        assert_eq!(visible(named_by_call), [read]);
        assert_eq!(visible("/h/stub.txt"), [read]);
        let of_another = "/h/tool-outputs/read_document__call_0123456789abcdee.txt";
        assert_eq!(visible(of_another), [""; 0]);
    }

    fn check_cap(message: &str, asked: u64, cap: Option<u64>) {
        assert_eq!(named_cap(message, asked), cap, "{message:?}");
    }

    #[test]
    fn a_cap_is_taken_from_an_error_that_names_one() {
        check_cap(
            "range is limited to 32768 bytes, the result has 300000",
            65536,
            Some(32768),
        );
        check_cap(
            "65536 bytes asked, at most 32,768 allowed",
            65536,
            Some(32768),
        );
        check_cap("too long: 65536 > 4096 of 300000", 65536, Some(4096));
        check_cap("not found", 65536, None);
        check_cap("limited to 32768 bytes", 32768, None);
        check_cap("offset 9 is past the end", 65536, None);
    }

    #[test]
    fn a_cut_list_gives_its_whole_lines() {
        let text = "sgc0123456789abc\n[\n{\"path\":\"a\",\"status\":\"deleted\",\"diff_bytes\":7},\n{\"path\":\"b\"},\n{\"pa";
        let names: Vec<_> = listed(text).into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(listed(text)[0].diff_is_whole);
        assert_eq!(listed(text)[0].stated(Subject::Diff), Some(7));
        assert_eq!(
            listed("[{\"name\":\"d\",\"size_bytes\":3}]")[0].size_bytes,
            Some(3)
        );
        assert_eq!(listed("nothing"), []);
        assert_eq!(listed("[1,{}]"), []);
    }
}
