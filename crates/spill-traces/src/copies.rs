//! Transcripts that stand in several files: copies, backups, the packed file beside the plain one.

use std::collections::HashSet;

use xxhash_rust::xxh3::Xxh3;

use crate::model::Transcript;

/// How often one was left out is counted by this kind.
pub(crate) const LEFT_OUT: &str = "transcripts that another file holds as well";

/// The transcripts that were handed on.
#[derive(Debug, Default)]
pub(crate) struct HandedOn {
    identities: HashSet<u128>,
    /// Copies since the last file's report.
    copies: u64,
}

impl HandedOn {
    /// Whether a transcript is one that was handed on before; it is counted then.
    pub(crate) fn has(&mut self, identity: Option<u128>) -> bool {
        let is_copy = identity.is_some_and(|identity| !self.identities.insert(identity));
        self.copies += u64::from(is_copy);
        is_copy
    }

    /// Copies of a file that had `transcripts`.
    pub(crate) fn take_copies(&mut self, transcripts: u64) -> u64 {
        let taken = self.copies.min(transcripts);
        self.copies -= taken;
        taken
    }
}

/// What two copies have in common and two sessions do not. `None` where nothing in a transcript is of this one session alone:
/// the same messages without a time or a response's id can be two runs of one task. Claude Code's calls are told apart one
/// by one already.
pub(crate) fn identity(transcript: &Transcript) -> Option<u128> {
    let mut calls = transcript.calls.iter();
    if transcript.format.tells_calls_apart()
        || !calls.any(|call| call.id.is_some() || call.time.is_some())
    {
        return None;
    }
    let mut hash = Xxh3::new();
    let mut part = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    part(transcript.format.name());
    part(transcript.id.as_deref().unwrap_or_default());
    for message in &transcript.messages {
        part(message.role.name());
        for piece in &message.pieces {
            part(piece.origin.name());
            part(piece.name.as_deref().unwrap_or_default());
            part(piece.call_id.as_deref().unwrap_or_default());
            part(&piece.text);
        }
    }
    for call in &transcript.calls {
        let (id, time) = (&call.id, &call.time);
        part(&format!(
            "{id:?} {time:?} {:?} {:?}",
            call.context, call.usage
        ));
    }
    Some(hash.digest128())
}
