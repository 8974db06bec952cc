//! Transcripts that stand in several files: copies, backups, the packed file beside the plain one, and a session beside what
//! was copied of it before it went on.

use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::Xxh3;

use crate::model::{Message, Transcript};

/// A transcript that stands in another file as well, whole.
const COPY: &str = "transcripts that another file holds as well";
/// A transcript that another one begins with.
const BEGINNING: &str = "transcripts that another file goes on with";

/// What tells a transcript apart from others, as far as something does.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// What two copies have in common and two sessions do not.
    whole: u128,
    /// `None` for a session without an id, or with calls of which nothing is its own.
    steps: Option<Steps>,
}

/// A session call by call.
#[derive(Clone, Debug)]
struct Steps {
    /// For each call, all that was before it. What another session of this id has as its last one, it begins with.
    before: Vec<u128>,
    /// Messages and bytes: of two that end in the same call, the larger goes on.
    size: (usize, u64),
}

/// The transcripts that were handed on.
#[derive(Debug, Default)]
pub(crate) struct HandedOn {
    copies: HashSet<u128>,
    /// By the last call: whose it is.
    ends: HashMap<u128, End>,
    /// All calls but the last.
    passed: HashSet<u128>,
    /// What was left out since the last file's report, by kind.
    left_out: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct End {
    session_id: String,
    size: (usize, u64),
}

impl HandedOn {
    /// Takes the next transcript: the sessions handed on before that this one goes on with, each with the kind that it is left
    /// out as; or `None` when this one is left out itself, which is counted.
    pub(crate) fn take(
        &mut self,
        identity: Option<Identity>,
        session_id: &str,
    ) -> Option<Vec<(String, &'static str)>> {
        let Some(identity) = identity else {
            return Some(Vec::new());
        };
        if !self.copies.insert(identity.whole) {
            return self.leave_out(COPY);
        }
        let Some(Steps { mut before, size }) = identity.steps else {
            return Some(Vec::new());
        };
        let Some(last) = before.pop() else {
            return Some(Vec::new());
        };
        let is_begun = self.passed.contains(&last);
        if is_begun || self.ends.get(&last).is_some_and(|end| end.size >= size) {
            return self.leave_out(BEGINNING);
        }
        let shorter = before.iter().chain([&last]);
        let shorter = shorter.filter_map(|step| self.ends.remove(step));
        let shorter = shorter.map(|end| (end.session_id, BEGINNING)).collect();
        self.passed.extend(before);
        let session_id = session_id.to_owned();
        self.ends.insert(last, End { session_id, size });
        Some(shorter)
    }

    fn leave_out<T>(&mut self, kind: &'static str) -> Option<T> {
        *self.left_out.entry(kind).or_default() += 1;
        None
    }

    /// What was left out of a file that had so many `transcripts`; the rest is of files whose reports follow.
    pub(crate) fn take_left_out(&mut self, transcripts: u64) -> BTreeMap<&'static str, u64> {
        let mut room = transcripts;
        let mut taken = BTreeMap::new();
        for (kind, count) in &mut self.left_out {
            let part = room.min(*count);
            room -= part;
            *count -= part;
            if part > 0 {
                taken.insert(*kind, part);
            }
        }
        taken
    }
}

/// What tells a transcript apart. `None` where nothing in it is of this one session alone: the same messages without a time or
/// a response's id can be two runs of one task. Claude Code's calls are told apart one by one already.
pub(crate) fn identity(transcript: &Transcript) -> Option<Identity> {
    let mut calls = transcript.calls.iter();
    if transcript.format.tells_calls_apart()
        || !calls.any(|call| call.id.is_some() || call.time.is_some())
    {
        return None;
    }
    let mut parts = Parts::of(transcript);
    for message in &transcript.messages {
        parts.message(message);
    }
    for call in &transcript.calls {
        let (id, time) = (&call.id, &call.time);
        parts.part(&format!(
            "{id:?} {time:?} {:?} {:?}",
            call.context, call.usage
        ));
    }
    Some(Identity {
        whole: parts.0.digest128(),
        steps: steps(transcript),
    })
}

/// A recording that was copied while a call was answered has its context and not all of its answer, so an answer counts with
/// the call behind it. What is before the first call is the task, which other sessions have as well: there the call counts.
fn steps(transcript: &Transcript) -> Option<Steps> {
    transcript.id.as_ref()?;
    let mut parts = Parts::of(transcript);
    let mut hashed = 0;
    let mut before = Vec::with_capacity(transcript.calls.len());
    for (index, call) in transcript.calls.iter().enumerate() {
        let sent = call.context.iter().max().map_or(0, |last| last + 1);
        for message in transcript.messages.get(hashed..sent).unwrap_or_default() {
            parts.message(message);
        }
        hashed = hashed.max(sent);
        parts.part(&format!("{:?}", call.context));
        let mut with_call = parts.clone();
        with_call.part(&format!("{:?} {:?}", call.id, call.time));
        let step = if index == 0 { &with_call } else { &parts };
        before.push(step.0.digest128());
        if call.id.is_none() && call.time.is_none() {
            return None;
        }
        parts = with_call;
    }
    let pieces = transcript.messages.iter().flat_map(|one| &one.pieces);
    Some(Steps {
        before,
        size: (
            transcript.messages.len(),
            pieces.map(crate::model::Piece::bytes).sum(),
        ),
    })
}

/// A hash of texts, each with its length.
#[derive(Clone)]
struct Parts(Xxh3);

impl Parts {
    fn of(transcript: &Transcript) -> Self {
        let mut parts = Self(Xxh3::new());
        parts.part(transcript.format.name());
        parts.part(transcript.id.as_deref().unwrap_or_default());
        let parent = transcript.parent.as_ref();
        parts.part(parent.map_or("", |parent| &parent.id));
        parts
    }

    fn message(&mut self, message: &Message) {
        self.part(message.role.name());
        for piece in &message.pieces {
            self.part(piece.origin.name());
            self.part(piece.name.as_deref().unwrap_or_default());
            self.part(piece.call_id.as_deref().unwrap_or_default());
            self.part(&piece.text);
        }
    }

    fn part(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }
}
