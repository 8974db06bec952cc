//! The request as the simulated model sees it, read so that a request that repeats the one before
//! costs only what is new in it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::conversation::{Item, Message, OfferedTool, Options};
use crate::cursor::Cursor;
use crate::dialect::Dialect;
use crate::error::BadRequest;

/// A request for the next turn of a conversation, as far as the simulated model and the accounting
/// need it.
#[derive(Clone, Debug)]
pub struct View {
    wire: Wire,
    pub(crate) options: Options,
    pub(crate) messages: Vec<Item>,
    before: usize,
    body: Bytes,
    head: Options,
    /// Bytes that this parse read; what it took over from an earlier one is not in it.
    pub(crate) parsed_bytes: u64,
    /// Messages taken over from an earlier parse.
    pub(crate) reused: usize,
}

/// How a request is to be read: its dialect, and what stands in its address in place of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) dialect: Dialect,
    /// The model, where the address names it.
    pub(crate) model: Option<String>,
    /// Whether the address asks for a stream.
    pub(crate) stream: bool,
}

impl View {
    /// Reads the body of a chat completion request.
    ///
    /// # Errors
    ///
    /// Fails when the body is not a chat completion request.
    pub fn parse(body: &[u8]) -> Result<Self, BadRequest> {
        Self::parse_after(Bytes::copy_from_slice(body), &Wire::default(), None)
    }

    /// Reads a request body, taking over from `earlier` the messages that both bodies begin with, and the
    /// options if what follows the messages is the same too.
    ///
    /// The result is the same as without `earlier`: JSON is read from left to right, so equal
    /// bytes up to the end of a message leave the reader in an equal state there.
    pub(crate) fn parse_after(
        body: Bytes,
        wire: &Wire,
        earlier: Option<Self>,
    ) -> Result<Self, BadRequest> {
        let earlier = earlier.filter(|earlier| earlier.wire == *wire);
        let earlier_rest = earlier.as_ref().map(Self::rest);
        let (mut view, list_is_open) = match earlier.and_then(|earlier| earlier.continued(&body)) {
            Some(view) => (view, true),
            None => Self::open(body, wire)?,
        };
        let body = view.body.clone();
        let mut cursor = Cursor {
            body: &body,
            at: view.messages.last().map_or(view.before, |item| item.end),
        };
        let start = if view.reused == 0 { 0 } else { cursor.at };
        if list_is_open {
            view.read_messages(&mut cursor)?;
        }
        if view.reused > 0 && earlier_rest == Some(view.rest()) {
            view.parsed_bytes = (cursor.at - start) as u64;
            return Ok(view);
        }
        let mut options = view.head.clone();
        while cursor.next_is(b',') {
            let name = member_name(&mut cursor)?;
            if name == wire.dialect.list() {
                return Err(BadRequest::Repeated(wire.dialect.list()));
            }
            wire.dialect.read_member(&name, &mut cursor, &mut options)?;
        }
        cursor.expect(b'}')?;
        cursor.end()?;
        if view.messages.is_empty() {
            return Err(BadRequest::Empty(wire.dialect.list()));
        }
        if let Some(model) = &wire.model {
            options.model = Some(model.clone());
        }
        options.stream |= wire.stream;
        if options.model.is_none() {
            return Err(BadRequest::Missing("model"));
        }
        view.options = options;
        view.parsed_bytes = (body.len() - start) as u64;
        Ok(view)
    }

    /// Number of turns of the model. What it said in several messages in a row is one turn.
    pub(crate) fn turns(&self) -> u64 {
        let mut follows = false;
        let mut turns = 0;
        for item in &self.messages {
            let is_assistant = item.message.is_assistant();
            turns += u64::from(is_assistant && !follows);
            follows = is_assistant;
        }
        turns
    }

    /// The offered tools; none when the request forbids calls.
    pub(crate) fn offered(&self) -> &[OfferedTool] {
        match &self.options.tools {
            Some(tools) if !self.options.tools_forbidden => &tools.offered,
            Some(_) | None => &[],
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.wire.dialect
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// What follows the last message in the body.
    fn rest(&self) -> Bytes {
        let end = self.messages.last().map_or(self.before, |item| item.end);
        self.body.slice(end..)
    }

    /// Digest of the body: of what stands before the messages, each message, and what follows.
    pub(crate) fn digest(&self) -> u128 {
        let mut hasher = Xxh3::new();
        hasher.update(&xxh3_128(&self.body[..self.before]).to_le_bytes());
        for item in &self.messages {
            hasher.update(&item.hash.to_le_bytes());
        }
        hasher.update(&xxh3_128(&self.rest()).to_le_bytes());
        hasher.digest128()
    }

    /// Reads up to and with the bracket that opens the messages, or up to the end of a text that
    /// stands in their place; says which.
    fn open(body: Bytes, wire: &Wire) -> Result<(Self, bool), BadRequest> {
        let dialect = wire.dialect;
        let missing = || BadRequest::Missing(dialect.list());
        let mut head = Options::default();
        let mut cursor = Cursor { body: &body, at: 0 };
        cursor.expect(b'{')?;
        let mut is_first = true;
        loop {
            if is_first && cursor.peek() == Some(b'}') {
                return Err(missing());
            }
            is_first = false;
            let name = member_name(&mut cursor)?;
            if name == dialect.list() {
                break;
            }
            dialect.read_member(&name, &mut cursor, &mut head)?;
            if !cursor.next_is(b',') {
                cursor.expect(b'}')?;
                return Err(missing());
            }
        }
        let mut messages = Vec::new();
        let is_text = dialect.takes_text() && cursor.peek() == Some(b'"');
        let before = cursor.at;
        if is_text {
            let message = Message::User(cursor.value()?);
            messages.push(Item {
                hash: message.hash(),
                message: Arc::new(message),
                end: cursor.at,
                is_marked: false,
            });
        } else {
            cursor.expect(b'[')?;
        }
        let view = Self {
            wire: wire.clone(),
            before: if is_text { before } else { cursor.at },
            body,
            options: Options::default(),
            messages,
            head,
            parsed_bytes: 0,
            reused: 0,
        };
        Ok((view, !is_text))
    }

    /// Keeps what `body` begins with too, or `None` when that is less than a message of a list.
    fn continued(mut self, body: &Bytes) -> Option<Self> {
        if self.body.get(self.before.checked_sub(1)?) != Some(&b'[') {
            return None;
        }
        let common = common_prefix(&self.body, body);
        let kept = self.messages.partition_point(|item| item.end <= common);
        if kept == 0 {
            return None;
        }
        self.messages.truncate(kept);
        self.reused = kept;
        self.body = body.clone();
        Some(self)
    }

    /// Reads messages up to and with the bracket that closes them.
    fn read_messages(&mut self, cursor: &mut Cursor<'_>) -> Result<(), BadRequest> {
        let mut index = self.messages.chunk_by(|a, b| a.end == b.end).count();
        loop {
            if cursor.next_is(b']') {
                return Ok(());
            }
            let start = self.messages.last().map_or(self.before, |item| item.end);
            if !self.messages.is_empty() {
                cursor.expect(b',')?;
            }
            let read = self.dialect().read_item(cursor, index)?;
            index += 1;
            for (message, is_marked) in read {
                let hash = if self.dialect() == Dialect::Chat {
                    xxh3_128(&cursor.body[start..cursor.at])
                } else {
                    message.hash()
                };
                self.messages.push(Item {
                    message: Arc::new(message),
                    hash,
                    end: cursor.at,
                    is_marked,
                });
            }
        }
    }
}

fn member_name<'b>(cursor: &mut Cursor<'b>) -> Result<Cow<'b, str>, BadRequest> {
    if cursor.peek() != Some(b'"') {
        return Err(cursor.malformed("expected a member's name"));
    }
    let name = cursor.value()?;
    cursor.expect(b':')?;
    Ok(name)
}

fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let len = left.len().min(right.len());
    let equal = left[..len]
        .chunks(BLOCK)
        .zip(right[..len].chunks(BLOCK))
        .take_while(|(left, right)| left == right)
        .count();
    let from = (equal * BLOCK).min(len);
    let rest = left[from..len].iter().zip(&right[from..len]);
    from + rest.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_refused(body: &str, message: &str) {
        let error = View::parse(body.as_bytes()).expect_err(body);
        assert!(error.to_string().contains(message), "{body}: {error}");
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        check_refused("", "expected `{`");
        check_refused("not json", "expected `{`");
        check_refused("[]", "expected `{`");
        check_refused("{}", "'messages'");
        check_refused("{,}", "expected a member's name");
        check_refused("{\"model\":\"m\"", "expected `}`");
        check_refused("{\"model\":\"m\"}", "'messages'");
        check_refused("{\"messages\":7}", "expected `[`");
        check_refused("{\"messages\":[]}", "is empty");
        check_refused("{\"messages\":[7],\"model\":\"m\"}", "messages[0]");
        check_refused("{\"messages\":[{}],\"model\":\"m\"}", "role");
        check_refused(
            "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
            "'model'",
        );
        check_refused(
            "{\"model\":7,\"messages\":[{\"role\":\"user\"}]}",
            "invalid type",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"cat\"}]}",
            "'cat' is not",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"tool\"}]}",
            "tool_call_id",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":{}}]}",
            "content",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]} x",
            "trailing",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}],\"messages\":[]}",
            "given twice",
        );
        check_refused(
            "{\"model\":\"m\",\"tools\":[{}],\"messages\":[{\"role\":\"user\"}]}",
            "tools",
        );
        check_refused(
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"},]}",
            "malformed".replace("malformed", "could not parse").as_str(),
        );
        check_refused(&"[".repeat(100_000), "expected `{`");
        let deep = format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":{}}}]}}",
            "[".repeat(100_000)
        );
        check_refused(&deep, "could not parse");
    }

    fn body(messages: &[String], tail: &str) -> Bytes {
        format!(
            "{{\"model\":\"m\",\"messages\":[{}]{tail}}}",
            messages.join(",")
        )
        .into()
    }

    fn shape(view: &View) -> (u128, Vec<u128>, String) {
        let hashes = view.messages.iter().map(|item| item.hash).collect();
        let messages: Vec<_> = view.messages.iter().map(|item| &item.message).collect();
        (
            view.digest(),
            hashes,
            format!("{messages:?} {:?}", view.options),
        )
    }

    proptest! {
        #[test]
        fn a_parse_after_any_other_request_is_the_same_as_without(
            first in prop::collection::vec("[ab\\\\\"é]{0,3}", 1..6),
            second in prop::collection::vec("[ab\\\\\"é]{0,3}", 1..6),
            tail in "(,\"stream\":(true|false)|,\"max_tokens\":[12])?",
            next_tail in "(,\"stream\":(true|false)|,\"max_tokens\":[12])?",
        ) {
            let messages = |texts: &[String]| -> Vec<String> {
                texts
                    .iter()
                    .map(|text| serde_json::json!({"role": "user", "content": text}).to_string())
                    .collect()
            };
            let earlier = View::parse(&body(&messages(&first), &tail)).expect("a request");
            let next = body(&messages(&second), &next_tail);
            let alone = View::parse(&next).expect("a request");
            let after = View::parse_after(next, &Wire::default(), Some(earlier)).expect("a request");
            prop_assert_eq!(shape(&alone), shape(&after));
        }
    }

    #[test]
    fn what_follows_the_messages_is_read_again_only_where_it_differs() {
        let messages = [1, 2].map(|n| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}"));
        let tools = ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"read\"}}]";
        let parse = |messages, tail: &str, wire: &Wire, earlier| {
            View::parse_after(body(messages, tail), wire, earlier).expect("a request")
        };
        let first = || Some(parse(&messages[..1], tools, &Wire::default(), None));
        let offered = |view: &View| view.offered().len();
        let same = parse(&messages, tools, &Wire::default(), first());
        let new_bytes = messages[1].len() + 2;
        assert_eq!((offered(&same), same.parsed_bytes), (1, new_bytes as u64));
        let other = parse(&messages, "", &Wire::default(), first());
        assert_eq!(offered(&other), 0);
        let streamed = Wire {
            stream: true,
            ..Wire::default()
        };
        let streamed = parse(&messages, tools, &streamed, first());
        assert_eq!((offered(&streamed), streamed.options.stream), (1, true));
    }

    #[test]
    fn only_new_bytes_are_parsed() {
        let mut messages: Vec<String> = Vec::new();
        let mut earlier = None;
        let mut parsed = 0;
        let mut last = 0;
        for turn in 0..40 {
            let text = format!("{turn}{}", "x".repeat(1000));
            messages.push(serde_json::json!({"role": "user", "content": text}).to_string());
            let body = body(&messages, ",\"stream\":false");
            last = body.len() as u64;
            let view = View::parse_after(body, &Wire::default(), earlier).expect("a request");
            assert_eq!(view.reused, turn);
            parsed += view.parsed_bytes;
            earlier = Some(view);
        }
        assert!(parsed < last + 40 * 20, "{parsed} of {last}");
    }
}
