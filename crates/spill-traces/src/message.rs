//! Messages as importers put them together.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3Default;

use crate::cut::completeness;
use crate::model::{Completeness, Origin, Piece, Role};
use crate::problem::Place;
use crate::text::Text;
use crate::time::Timestamp;

/// A message that is not yet part of a transcript.
#[derive(Debug)]
pub(crate) struct NewMessage {
    pub(crate) role: Role,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) results: Vec<NewResult>,
    pub(crate) place: Place,
    pub(crate) time: Option<Timestamp>,
}

/// A result within a [`NewMessage`].
#[derive(Debug)]
pub(crate) struct NewResult {
    pub(crate) pieces: Range<usize>,
    pub(crate) head: ResultHead,
    pub(crate) completeness: Completeness,
}

/// What is known of a result besides its content.
#[derive(Debug, Default)]
pub(crate) struct ResultHead {
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) asked_by: Option<usize>,
    pub(crate) is_error: Option<bool>,
    pub(crate) time: Option<Timestamp>,
    pub(crate) uncut: Option<Text>,
}

impl NewMessage {
    pub(crate) fn new(role: Role, place: &Place) -> Self {
        Self {
            role,
            pieces: Vec::new(),
            results: Vec::new(),
            place: place.clone(),
            time: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.results.is_empty()
    }

    /// The origin of plain text in a message of this role.
    pub(crate) fn origin(&self) -> Origin {
        match self.role {
            Role::System => Origin::System,
            Role::User => Origin::User,
            Role::Assistant => Origin::Assistant,
            Role::Tool => Origin::ToolResult,
        }
    }

    /// Appends a text; an empty one is no piece.
    pub(crate) fn text(&mut self, origin: Origin, text: impl Into<Text>) {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push(Piece {
                origin,
                text,
                name: None,
                call_id: None,
                media_bytes: None,
            });
        }
    }

    pub(crate) fn media(&mut self, origin: Origin, bytes: u64) {
        self.pieces.push(Piece {
            origin,
            text: Text::from(String::new()),
            name: None,
            call_id: None,
            media_bytes: Some(bytes),
        });
    }

    pub(crate) fn tool_call(&mut self, id: Option<String>, name: String, arguments: String) {
        self.pieces.push(Piece {
            origin: Origin::ToolCall,
            text: Text::from(arguments),
            name: Some(name),
            call_id: id,
            media_bytes: None,
        });
    }

    /// Makes the pieces from `start` on one tool result.
    pub(crate) fn close_result(&mut self, start: usize, mut head: ResultHead) {
        for piece in &mut self.pieces[start..] {
            piece.origin = Origin::ToolResult;
            piece.call_id.clone_from(&head.call_id);
        }
        let completeness = match self.pieces[start..]
            .iter()
            .map(|piece| completeness(&piece.text))
            .find(|found| *found != Completeness::AsRecorded)
        {
            Some(found) => found,
            None => Completeness::AsRecorded,
        };
        head.time = head.time.or(self.time);
        self.results.push(NewResult {
            pieces: start..self.pieces.len(),
            head,
            completeness,
        });
    }

    /// Appends a result of one text.
    pub(crate) fn result(&mut self, head: ResultHead, text: impl Into<Text>) {
        let start = self.pieces.len();
        self.text(Origin::ToolResult, text);
        self.close_result(start, head);
    }

    /// Hash of what a model would see of it: equal messages have equal digests.
    pub(crate) fn digest(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(self.role.name().as_bytes());
        for piece in &self.pieces {
            hash.update(piece.origin.name().as_bytes());
            for part in [&piece.name, &piece.call_id] {
                hash.update(part.as_deref().unwrap_or_default().as_bytes());
                hash.update(&[0xFF]);
            }
            hash.update(&piece.media_bytes.unwrap_or(0).to_le_bytes());
            hash.update(piece.text.as_bytes());
            hash.update(&[0xFF]);
        }
        for result in &self.results {
            hash.update(
                result
                    .head
                    .call_id
                    .as_deref()
                    .unwrap_or_default()
                    .as_bytes(),
            );
            hash.update(&[0xFE]);
        }
        hash.digest()
    }
}
