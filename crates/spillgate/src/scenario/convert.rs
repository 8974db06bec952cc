//! From a transcript to recorded calls, facts, and notes of what is missing.

use std::collections::HashMap;
use std::path::Path;

use anyhow::ensure;
use serde_json::{Map, Value};
use spill_scenario::defaults::{
    ITERATION_LIMIT, MAX_DOCUMENT_BYTES, MAX_RECORDED_BYTES, MAX_RECORDED_CALLS,
};
use spill_scenario::{
    OCCURRENCE, RECORDED_THRESHOLDS, RecordedCall, RecordedFacts, RecordedScenario, Words,
    recorded_facts, recorded_key, recorded_tool_name,
};
use spill_traces::{BoundaryKind, Completeness, Origin, Piece, Role, ToolResult, Transcript};

use super::find::Found;
use super::unproven::{below_words, candidates_below};

/// Bytes of task and system message at most, each.
const SAID_BYTES: usize = 200 * 1024;
/// Bytes of results together from which on a context window may be too small; four bytes a token.
const LARGE_CONTEXT_BYTES: u64 = 4 * 400_000;
const NO_SYSTEM: &str =
    "You are an assistant in an automated workflow. You answer with the tools you are given.";
const NO_TASK: &str = "The recording holds no task. Call the tools, and report what they return.";

/// A scenario and its calls.
pub(crate) struct Recording {
    /// No candidate stores anything.
    pub(crate) proves_nothing: bool,
    pub(crate) scenario: RecordedScenario,
    pub(crate) calls: Vec<RecordedCall>,
}

/// A name for scenario and folder, of letters, digits, `.`, `_` and `-`.
pub(crate) fn name_of(file: &Path, session: Option<&str>) -> String {
    let stem = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').find(|part| !part.is_empty()).unwrap_or("");
    let both = match session {
        Some(session) => format!("{stem}-{session}"),
        None => stem.to_owned(),
    };
    let plain = |one: char| {
        if one.is_ascii_alphanumeric() {
            one
        } else {
            '-'
        }
    };
    let name: String = both.chars().map(plain).take(48).collect();
    let name = name.trim_matches('-');
    if name.is_empty() {
        "recording".to_owned()
    } else {
        name.to_owned()
    }
}

pub(crate) fn recording(found: &Found, name: &str, calls_file: &str) -> anyhow::Result<Recording> {
    let transcript = &found.transcript;
    let mut notes = Vec::new();
    let calls = calls(transcript, &mut notes)?;
    let said = said(transcript);
    let system = bounded(said.system.clone(), NO_SYSTEM, "system message", &mut notes);
    let prompt = bounded(said.task.clone(), NO_TASK, "task", &mut notes);
    about(found, &calls, &said, &mut notes);
    let spoken = spoken(transcript, &mut notes);
    let words: Vec<Words<'_>> = spoken
        .iter()
        .map(|(text, after_calls)| Words {
            text,
            after_calls: *after_calls,
        })
        .collect();
    let told: Vec<&str> = said.all.iter().map(String::as_str).collect();
    let facts = recorded_facts(&words, &told, &calls);
    tell_of_facts(&facts, !words.is_empty(), &mut notes);
    let below = candidates_below(&calls);
    if !below.is_empty() {
        notes.push(below_words(&calls, &below));
    }
    let width = calls
        .chunk_by(|one, next| one.turn == next.turn)
        .map(<[_]>::len)
        .max();
    let scenario = RecordedScenario {
        name: name.to_owned(),
        system,
        prompt,
        calls_file: calls_file.to_owned(),
        parallel_calls: width.unwrap_or(1) as u64,
        iteration_limit: ITERATION_LIMIT + calls.len() as u64,
        facts: facts.facts,
        patterns: facts.patterns,
        notes,
    };
    Ok(Recording {
        proves_nothing: below.len() == RECORDED_THRESHOLDS.len(),
        scenario,
        calls,
    })
}

/// The calls with their results, in the order of the results.
fn calls(transcript: &Transcript, notes: &mut Vec<String>) -> anyhow::Result<Vec<RecordedCall>> {
    let results = &transcript.results;
    ensure!(
        results.len() <= MAX_RECORDED_CALLS,
        "{} tool results, the limit is {MAX_RECORDED_CALLS} (choose another session with --session)",
        results.len()
    );
    let asked = asked(transcript);
    let mut served: HashMap<String, u64> = HashMap::new();
    let mut calls = Vec::with_capacity(results.len());
    let mut bytes = 0;
    let mut turn = 1;
    let mut tally = Tally::default();
    for result in results {
        let call = asked.call_of(transcript, result);
        turn = turn.max(result.asked_by.map_or(turn, |call| call as u64 + 1));
        let name = call.map_or(result.tool.as_deref(), |call| call.name.as_deref());
        let tool = recorded_tool_name(name.unwrap_or("tool"));
        let mut arguments = match call {
            Some(call) => arguments_of(&call.text),
            None => words_of(transcript, result),
        };
        let key = recorded_key(&tool, &Value::Object(arguments.clone()));
        let times = served.entry(key).or_default();
        *times += 1;
        if *times > 1 {
            arguments.insert(OCCURRENCE.to_owned(), (*times).into());
        }
        let text = tally.text(transcript, result);
        ensure!(
            text.len() as u64 <= MAX_DOCUMENT_BYTES,
            "the result of call {} ({tool}) has {} bytes, the limit is {MAX_DOCUMENT_BYTES} (choose another session \
             with --session)",
            calls.len() + 1,
            text.len()
        );
        let call = RecordedCall {
            id: format!("{:03}-{tool}", calls.len() + 1),
            turn,
            tool,
            arguments,
            is_error: result.is_error == Some(true),
            result: text,
        };
        bytes += call.to_line().len() as u64;
        ensure!(
            bytes <= MAX_RECORDED_BYTES,
            "its calls have more than {MAX_RECORDED_BYTES} bytes together, the limit (choose another session with \
             --session)"
        );
        calls.push(call);
    }
    tally.tell(notes);
    Ok(calls)
}

/// Tool calls by id, where they have one.
struct Asked<'t>(HashMap<&'t str, &'t Piece>);

fn asked(transcript: &Transcript) -> Asked<'_> {
    let pieces = transcript
        .messages
        .iter()
        .flat_map(|message| &message.pieces);
    let calls = pieces.filter(|piece| piece.origin == Origin::ToolCall);
    Asked(
        calls
            .filter_map(|piece| Some((piece.call_id.as_deref()?, piece)))
            .collect(),
    )
}

impl<'t> Asked<'t> {
    /// The call that a result answers: by its id, or else the only one of the answer that asked for it.
    fn call_of(&self, transcript: &'t Transcript, result: &ToolResult) -> Option<&'t Piece> {
        if let Some(id) = result.call_id.as_deref() {
            return self.0.get(id).copied();
        }
        let answer = transcript.calls.get(result.asked_by?)?.answer?;
        let pieces = transcript.messages.get(answer)?.pieces.iter();
        let mut calls = pieces.filter(|piece| piece.origin == Origin::ToolCall);
        let only = calls.next()?;
        calls.next().is_none().then_some(only)
    }
}

/// Arguments as an object; what is none stands under `input`.
fn arguments_of(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(Value::Null) => Map::new(),
        Ok(other) => Map::from_iter([("input".to_owned(), other)]),
        Err(_) if text.trim().is_empty() => Map::new(),
        Err(_) => Map::from_iter([("input".to_owned(), text.into())]),
    }
}

/// What the recorded model said when it asked, where its call is not recorded apart.
fn words_of(transcript: &Transcript, result: &ToolResult) -> Map<String, Value> {
    let answer = result
        .asked_by
        .and_then(|call| transcript.calls.get(call)?.answer);
    let message = answer.and_then(|answer| transcript.messages.get(answer));
    let pieces = message.map_or(&[][..], |message| &message.pieces);
    let words = joined(
        pieces
            .iter()
            .filter(|piece| piece.origin == Origin::Assistant),
    );
    if words.is_empty() {
        return Map::new();
    }
    Map::from_iter([("input".to_owned(), words.into())])
}

/// What happened to results before they were recorded.
#[derive(Default)]
struct Tally {
    cut: u64,
    stored: u64,
    uncut: u64,
    media: u64,
}

impl Tally {
    /// The text that is served: the whole one, where it is recorded beside the one that the model saw.
    fn text(&mut self, transcript: &Transcript, result: &ToolResult) -> String {
        let pieces = transcript.pieces_of(result);
        self.media += u64::from(pieces.iter().any(|piece| piece.media_bytes.is_some()));
        match (&result.completeness, &result.uncut) {
            (Completeness::AsRecorded, _) => {}
            (Completeness::Cut { .. } | Completeness::Stored { .. }, Some(uncut)) => {
                self.uncut += 1;
                return uncut.as_str().to_owned();
            }
            (Completeness::Cut { .. }, None) => self.cut += 1,
            (Completeness::Stored { .. }, None) => self.stored += 1,
        }
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    fn tell(&self, notes: &mut Vec<String>) {
        for (count, what, more) in [
            (
                self.cut,
                ["result was cut", "results were cut"],
                "by the recording agent and served so: off is not \"no limit\"",
            ),
            (
                self.stored,
                ["result was stored", "results were stored"],
                "elsewhere by the recording agent; what stood in its place is served",
            ),
            (
                self.uncut,
                ["result is served whole", "results are served whole"],
                "as recorded beside what the model saw, which was shortened",
            ),
            (
                self.media,
                ["result holds", "results hold"],
                "images or documents, which are left out",
            ),
        ] {
            notes.extend(how_many(count, what, more));
        }
    }
}

/// What the recorded model was told.
struct Said {
    system: String,
    /// User messages before its first answer.
    task: String,
    /// User messages behind it.
    later: usize,
    all: Vec<String>,
}

fn said(transcript: &Transcript) -> Said {
    let first = transcript
        .messages
        .iter()
        .position(|message| message.role == Role::Assistant)
        .unwrap_or(transcript.messages.len());
    let (before, behind) = transcript.messages.split_at(first);
    let of = |messages: &[spill_traces::Message], origin: Origin| -> Vec<String> {
        let pieces = messages.iter().map(|message| &message.pieces);
        let texts =
            pieces.map(|pieces| joined(pieces.iter().filter(|piece| piece.origin == origin)));
        texts.filter(|text| !text.trim().is_empty()).collect()
    };
    let system = of(before, Origin::System);
    let task = of(before, Origin::User);
    let later = of(behind, Origin::User);
    Said {
        system: system.join("\n\n"),
        task: task.join("\n\n"),
        later: later.len(),
        all: [system, task, later].concat(),
    }
}

fn joined<'t>(pieces: impl Iterator<Item = &'t Piece>) -> String {
    let texts: Vec<&str> = pieces.map(|piece| piece.text.as_str()).collect();
    texts.join("\n")
}

/// A text of at most so many bytes; a missing one is replaced. Both are noted.
fn bounded(mut text: String, missing: &str, what: &str, notes: &mut Vec<String>) -> String {
    if text.trim().is_empty() {
        notes.push(format!(
            "no {what} is recorded; a general one stands in its place"
        ));
        return missing.to_owned();
    }
    if text.len() > SAID_BYTES {
        notes.push(format!(
            "the {what} has {} bytes; it is cut at {SAID_BYTES}",
            text.len()
        ));
        text.truncate(text.floor_char_boundary(SAID_BYTES));
    }
    text
}

/// So many things, in the right number; nothing of none.
fn how_many(count: u64, [one, several]: [&str; 2], more: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one} {more}")),
        count => Some(format!("{count} {several} {more}")),
    }
}

/// What differs from the recorded session.
fn about(found: &Found, calls: &[RecordedCall], said: &Said, notes: &mut Vec<String>) {
    let transcript = &found.transcript;
    let compacted = transcript
        .boundaries
        .iter()
        .filter(|boundary| boundary.kind == BoundaryKind::Compaction);
    let bytes: u64 = calls.iter().map(|call| call.result.len() as u64).sum();
    for (count, what, more) in [
        (
            said.later as u64,
            ["user message is left out", "user messages are left out"],
            "behind the first answer: a step has one task",
        ),
        (
            compacted.count() as u64,
            ["compaction", "compactions"],
            "of the context recorded; runs do not compact",
        ),
        (
            found.others as u64,
            ["other session", "other sessions"],
            "of the file left out",
        ),
        (
            found.problems,
            ["problem was met", "problems were met"],
            "in reading the file; `spillgate replay` lists all",
        ),
    ] {
        notes.extend(how_many(count, what, more));
    }
    if bytes > LARGE_CONTEXT_BYTES {
        notes.push(format!(
            "the results have {bytes} bytes together: a run that keeps them all may end at the context window"
        ));
    }
}

/// What the model said, each with how many results it had by then.
fn spoken(transcript: &Transcript, notes: &mut Vec<String>) -> Vec<(String, usize)> {
    let mut spoken = Vec::new();
    let mut ends_with_calls = false;
    let messages = transcript.messages.iter().enumerate();
    for (index, message) in messages.filter(|(_, message)| message.role == Role::Assistant) {
        let of = |origin| {
            message
                .pieces
                .iter()
                .filter(move |piece| piece.origin == origin)
        };
        ends_with_calls = of(Origin::ToolCall).next().is_some();
        let text = joined(of(Origin::Assistant));
        if !text.trim().is_empty() {
            let had = transcript
                .results
                .partition_point(|result| result.message < index);
            spoken.push((text, had));
        }
    }
    if spoken.is_empty() {
        notes.push("no final answer is recorded, so that quality is not scored".to_owned());
    } else if ends_with_calls {
        notes.push(
            "the recording ends with tool calls; the last text of the model is taken as its answer"
                .to_owned(),
        );
    }
    spoken
}

fn tell_of_facts(facts: &RecordedFacts, has_answer: bool, notes: &mut Vec<String>) {
    notes.extend(how_many(
        facts.without_place,
        ["string stems", "strings stem"],
        "from results and no fact, since nothing beside tells the place",
    ));
    if facts.of_all_words {
        notes.push(
            "no string of the final answer stems from a result; the facts are of all that the model said"
                .to_owned(),
        );
    } else if has_answer && facts.facts.is_empty() {
        notes.push(
            "no string of the answer stems from a result, so that quality is not scored".to_owned(),
        );
    }
}
