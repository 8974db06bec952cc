//! How conversations, replies and errors are written on the wire: one module for each API.
//!
//! Every dialect is read into a [`crate::conversation`] and writes a [`Completion`] or a
//! [`Refusal`]; nothing else knows that there are several.

mod chat;
mod gemini;
mod messages;
mod responses;

use bytes::Bytes;

use crate::conversation::{Message, Options};
use crate::cursor::Cursor;
use crate::error::BadRequest;
use crate::refusal::Refusal;
use crate::reply::Completion;

pub(crate) use chat::models;
pub(crate) use gemini::{list_models as gemini_models, total_tokens as gemini_total_tokens};
pub(crate) use messages::{input_tokens as messages_input_tokens, list_models as messages_models};

/// `created` of every reply: fixed, so that equal runs get equal bytes.
const CREATED: u64 = 1_750_000_000;
/// Bytes of text or arguments that one event of a stream carries at most.
const CHUNK_BYTES: usize = 256;

/// The API that a request is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI chat completions.
    #[default]
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// Gemini `generateContent`.
    Gemini,
}

/// How a provider's prompt cache decides what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Every prefix, in whole blocks; reads are part of the prompt's tokens.
    Automatic,
    /// Prefixes that the request marks; reads and writes are billed apart.
    Marked,
}

impl Dialect {
    /// The member of a request that holds the conversation.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// Whether a text may stand in place of the list.
    pub(crate) fn takes_text(self) -> bool {
        self == Self::Responses
    }

    pub(crate) fn caching(self) -> Caching {
        match self {
            Self::Chat | Self::Responses | Self::Gemini => Caching::Automatic,
            Self::Messages => Caching::Marked,
        }
    }

    /// Reads one item of the list: its messages, at least one, each with whether it is marked as the
    /// end of a prefix to be cached.
    pub(crate) fn read_item(
        self,
        cursor: &mut Cursor<'_>,
        index: usize,
    ) -> Result<Vec<(Message, bool)>, BadRequest> {
        match self {
            Self::Chat => Ok(vec![(chat::item(cursor, index)?, false)]),
            Self::Responses => Ok(vec![(responses::item(cursor, index)?, false)]),
            Self::Messages => messages::item(cursor, index),
            Self::Gemini => gemini::item(cursor, index),
        }
    }

    /// Reads one member of the request beside the list.
    pub(crate) fn read_member(
        self,
        name: &str,
        cursor: &mut Cursor<'_>,
        options: &mut Options,
    ) -> Result<(), BadRequest> {
        match self {
            Self::Chat => chat::member(name, cursor, options),
            Self::Responses => responses::member(name, cursor, options),
            Self::Messages => messages::member(name, cursor, options),
            Self::Gemini => gemini::member(name, cursor, options),
        }
    }

    /// Why the reply ends, in the dialect's word.
    pub(crate) fn finish_reason(self, completion: &Completion) -> &'static str {
        match self {
            Self::Chat => chat::finish_reason(completion),
            Self::Responses => responses::finish_reason(completion),
            Self::Messages => messages::finish_reason(completion),
            Self::Gemini => gemini::finish_reason(completion),
        }
    }

    /// The reply as one JSON object.
    pub(crate) fn json(self, completion: &Completion) -> Bytes {
        match self {
            Self::Chat => chat::json(completion),
            Self::Responses => responses::json(completion),
            Self::Messages => messages::json(completion),
            Self::Gemini => gemini::json(completion),
        }
    }

    /// The reply as server-sent events, one item for each.
    pub(crate) fn events(self, completion: &Completion) -> Vec<Bytes> {
        match self {
            Self::Chat => chat::events(completion),
            Self::Responses => responses::events(completion),
            Self::Messages => messages::events(completion),
            Self::Gemini => gemini::events(completion),
        }
    }

    /// Status and body of an error.
    pub(crate) fn refusal(self, refusal: &Refusal) -> (u16, Bytes) {
        match self {
            Self::Chat => (refusal.status(), chat::refusal(refusal, "messages")),
            Self::Responses => (refusal.status(), chat::refusal(refusal, "input")),
            Self::Messages => (messages::status(refusal), messages::refusal(refusal)),
            Self::Gemini => (refusal.status(), gemini::refusal(refusal)),
        }
    }

    /// An error as an event within a stream that has begun.
    pub(crate) fn error_event(self, refusal: &Refusal) -> Bytes {
        match self {
            Self::Chat => data_event(&utf8(&chat::refusal(refusal, "messages"))),
            Self::Responses => responses::error_event(refusal),
            Self::Messages => named_event("error", &utf8(&messages::refusal(refusal))),
            Self::Gemini => data_event(&utf8(&gemini::refusal(refusal))),
        }
    }
}

fn utf8(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn data_event(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn named_event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// An answer's text in pieces: at most a line each.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
        .flat_map(|line| cut(line, CHUNK_BYTES))
}

/// A call's arguments in pieces: at least two, where they have two characters.
fn argument_pieces(arguments: &str) -> impl Iterator<Item = &str> {
    let half = arguments.len().div_ceil(2).clamp(1, CHUNK_BYTES);
    cut(arguments, half)
}

/// Pieces of about `len` bytes, cut between characters.
fn cut(mut text: &str, len: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = (len.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at))?;
        let (piece, rest) = text.split_at(end);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn set_once<T>(
    slot: &mut Option<T>,
    value: Option<T>,
    name: &'static str,
) -> Result<(), BadRequest> {
    if slot.is_some() {
        return Err(BadRequest::Repeated(name));
    }
    *slot = value;
    Ok(())
}
