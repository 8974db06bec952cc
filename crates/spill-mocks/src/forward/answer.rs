//! What an endpoint's answer says, as far as the journal needs it.

use serde::Deserialize;

use crate::dialect::Dialect;

use super::{chat, messages, responses};

/// Names of called tools that are kept of one answer.
const CALLS_KEPT: usize = 64;
/// Bytes of a name that are kept.
const NAME_BYTES: usize = 128;

/// Tokens that an endpoint billed, in disjoint buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BilledTokens {
    /// Prompt tokens that were neither read from a prompt cache nor written to one.
    pub uncached_input: u64,
    /// Prompt tokens read from the prompt cache.
    pub cache_read: u64,
    /// Prompt tokens written to a prompt cache that bills them apart.
    pub cache_write: u64,
    /// Completion tokens.
    pub output: u64,
}

impl BilledTokens {
    /// All prompt tokens.
    pub(crate) fn input(self) -> u64 {
        let cached = self.cache_read.saturating_add(self.cache_write);
        self.uncached_input.saturating_add(cached)
    }
}

/// What was read of an answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// As the endpoint tells them; the last word counts, since some repeat it.
    pub(crate) usage: Option<BilledTokens>,
    pub(crate) text: String,
    pub(crate) calls: Vec<String>,
    pub(crate) finish_reason: Option<String>,
    /// Whether it says itself that it is at its end.
    pub(crate) is_whole: bool,
}

/// An answer that cannot be used, by the word that the journal has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Not what the API defines.
    Unreadable,
    /// An error within a stream that had begun.
    ErrorEvent,
}

impl Unusable {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable_answer",
            Self::ErrorEvent => "error_in_stream",
        }
    }
}

impl Answered {
    /// Keeps the name of a called tool.
    pub(crate) fn called(&mut self, name: &str) {
        if self.calls.len() < CALLS_KEPT {
            let end = name.floor_char_boundary(NAME_BYTES);
            self.calls.push(name[..end].to_owned());
        }
    }

    /// Keeps the reason for which the answer ends, if it is a word.
    pub(crate) fn finished(&mut self, reason: &str) {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let known = (1..=64).contains(&reason.len()) && reason.bytes().all(is_word);
        self.finish_reason = Some(if known { reason } else { "other" }.to_owned());
    }
}

/// Reads an answer that is one JSON object.
pub(crate) fn read_json(dialect: Dialect, body: &[u8]) -> Result<Answered, Unusable> {
    let mut answered = Answered {
        is_whole: true,
        ..Answered::default()
    };
    match dialect {
        Dialect::Chat => chat::read(body, &mut answered),
        Dialect::Messages => messages::read(body, &mut answered),
        Dialect::Responses => responses::read(body, &mut answered),
        Dialect::Gemini => Err(Unusable::Unreadable),
    }?;
    Ok(answered)
}

/// Reads one event of a stream.
pub(crate) fn read_event(
    dialect: Dialect,
    data: &str,
    answered: &mut Answered,
) -> Result<(), Unusable> {
    if data.trim().is_empty() {
        return Ok(());
    }
    match dialect {
        Dialect::Chat => chat::event(data, answered),
        Dialect::Messages => messages::event(data, answered),
        Dialect::Responses => responses::event(data, answered),
        Dialect::Gemini => Err(Unusable::Unreadable),
    }
}

/// The word for a refusal, and whether the subject's request is what is wrong.
pub(crate) fn refusal(status: u16, body: &[u8]) -> (String, Blame) {
    #[derive(Default, Deserialize)]
    struct Body {
        #[serde(default)]
        error: Error,
    }
    #[derive(Default, Deserialize)]
    struct Error {
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
    }
    let error = serde_json::from_slice::<Body>(body)
        .unwrap_or_default()
        .error;
    let code = error.code.as_ref().and_then(serde_json::Value::as_str);
    let message = error.message.unwrap_or_default();
    let is_too_long = code == Some("context_length_exceeded")
        || message.starts_with("prompt is too long")
        || message.contains("maximum context length");
    let (word, blame) = match status {
        400 | 413 | 422 if is_too_long => ("context_length_exceeded", Blame::Request),
        400 | 413 | 422 => ("invalid_request", Blame::Request),
        401 => ("invalid_api_key", Blame::Endpoint),
        403 => ("forbidden", Blame::Endpoint),
        404 => ("not_found", Blame::Endpoint),
        429 => ("rate_limit_exceeded", Blame::Endpoint),
        503 | 529 => ("overloaded", Blame::Endpoint),
        500..=599 => ("server_error", Blame::Endpoint),
        _ => return (format!("http_{status}"), Blame::Endpoint),
    };
    (word.to_owned(), blame)
}

/// Whose fault a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// What the subject sent.
    Request,
    /// The endpoint, the key or the model's name.
    Endpoint,
}
