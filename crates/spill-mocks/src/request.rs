//! The request as the simulated model sees it, read so that a request that repeats the one before
//! costs only what is new in it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::error::BadRequest;
use crate::result::ToolText;

/// A chat completion request, as far as the simulated model and the accounting need it.
#[derive(Clone, Debug)]
pub struct View {
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

/// What a request holds beside its messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) model: Option<String>,
    pub(crate) tools: Option<Arc<Tools>>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) tools_forbidden: bool,
    pub(crate) max_output_tokens: Option<u64>,
}

/// The tools that a request offers.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Their JSON as it stands in the request.
    pub(crate) json: String,
    /// In the order of the request.
    pub(crate) offered: Vec<OfferedTool>,
}

/// One offered tool.
#[derive(Debug)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// The JSON schema of its arguments; null without one.
    pub(crate) parameters: Value,
}

/// One message and the hash of its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) message: Arc<Message>,
    /// Hash of the message's bytes with the separator before it.
    pub(crate) hash: u128,
    end: usize,
}

/// A message.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "each message has an allocation of its own, and results are half of them"
)]
pub(crate) enum Message {
    System(String),
    User(String),
    Assistant { text: String, calls: Vec<Call> },
    Tool { call_id: String, result: ToolText },
}

/// A tool call of an assistant message.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments as written.
    pub(crate) json: String,
    /// The arguments parsed; null when they are not JSON.
    pub(crate) arguments: Value,
}

impl Call {
    /// A string argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }
}

impl View {
    /// Reads a request body.
    ///
    /// # Errors
    ///
    /// Fails when the body is not a chat completion request.
    pub fn parse(body: &[u8]) -> Result<Self, BadRequest> {
        Self::parse_after(Bytes::copy_from_slice(body), None)
    }

    /// Reads a request body, taking over from `earlier` the messages that both bodies begin with.
    ///
    /// The result is the same as without `earlier`: JSON is read from left to right, so equal
    /// bytes up to the end of a message leave the reader in an equal state there.
    pub(crate) fn parse_after(body: Bytes, earlier: Option<Self>) -> Result<Self, BadRequest> {
        let mut view = match earlier.and_then(|earlier| earlier.continued(&body)) {
            Some(view) => view,
            None => Self::open(body)?,
        };
        let body = view.body.clone();
        let mut cursor = Cursor {
            body: &body,
            at: view.messages.last().map_or(view.before, |item| item.end),
        };
        let start = if view.reused == 0 { 0 } else { cursor.at };
        view.read_messages(&mut cursor)?;
        let mut options = view.head.clone();
        while cursor.next_is(b',') {
            if cursor.member(&mut options)? == Member::Messages {
                return Err(BadRequest::Repeated("messages"));
            }
        }
        cursor.expect(b'}')?;
        cursor.end()?;
        if view.messages.is_empty() {
            return Err(BadRequest::NoMessages);
        }
        if options.model.is_none() {
            return Err(BadRequest::Missing("model"));
        }
        view.options = options;
        view.parsed_bytes = (body.len() - start) as u64;
        Ok(view)
    }

    /// Number of assistant messages.
    pub(crate) fn turns(&self) -> u64 {
        let is_turn = |item: &&Item| matches!(*item.message, Message::Assistant { .. });
        self.messages.iter().filter(is_turn).count() as u64
    }

    /// The offered tools; none when the request forbids calls.
    pub(crate) fn offered(&self) -> &[OfferedTool] {
        match &self.options.tools {
            Some(tools) if !self.options.tools_forbidden => &tools.offered,
            Some(_) | None => &[],
        }
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// Digest of the body: of what stands before the messages, each message, and what follows.
    pub(crate) fn digest(&self) -> u128 {
        let end = self.messages.last().map_or(self.before, |item| item.end);
        let mut hasher = Xxh3::new();
        hasher.update(&xxh3_128(&self.body[..self.before]).to_le_bytes());
        for item in &self.messages {
            hasher.update(&item.hash.to_le_bytes());
        }
        hasher.update(&xxh3_128(&self.body[end..]).to_le_bytes());
        hasher.digest128()
    }

    /// Reads up to and with the bracket that opens the messages.
    fn open(body: Bytes) -> Result<Self, BadRequest> {
        let mut head = Options::default();
        let mut cursor = Cursor { body: &body, at: 0 };
        cursor.expect(b'{')?;
        let mut is_first = true;
        loop {
            if is_first && cursor.peek() == Some(b'}') {
                return Err(BadRequest::Missing("messages"));
            }
            is_first = false;
            match cursor.member(&mut head)? {
                Member::Messages => break,
                Member::Other if cursor.next_is(b',') => {}
                Member::Other => {
                    cursor.expect(b'}')?;
                    return Err(BadRequest::Missing("messages"));
                }
            }
        }
        Ok(Self {
            before: cursor.at,
            body,
            options: Options::default(),
            messages: Vec::new(),
            head,
            parsed_bytes: 0,
            reused: 0,
        })
    }

    /// Keeps what `body` begins with too, or `None` when that is less than a message.
    fn continued(mut self, body: &Bytes) -> Option<Self> {
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
        loop {
            if cursor.next_is(b']') {
                return Ok(());
            }
            let start = self.messages.last().map_or(self.before, |item| item.end);
            if !self.messages.is_empty() {
                cursor.expect(b',')?;
            }
            let message = cursor.message(self.messages.len())?;
            self.messages.push(Item {
                message: Arc::new(message),
                hash: xxh3_128(&cursor.body[start..cursor.at]),
                end: cursor.at,
            });
        }
    }
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

#[derive(PartialEq, Eq)]
enum Member {
    Messages,
    Other,
}

/// A place in the body, for the few steps that `serde_json` does not take one at a time.
struct Cursor<'b> {
    body: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.body.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn next_is(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), BadRequest> {
        if self.next_is(byte) {
            return Ok(());
        }
        Err(self.malformed(&format!("expected `{}`", char::from(byte))))
    }

    fn end(&mut self) -> Result<(), BadRequest> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("trailing characters")),
        }
    }

    fn malformed(&self, message: &str) -> BadRequest {
        BadRequest::Malformed {
            at: self.at,
            message: message.to_owned(),
        }
    }

    fn value<T: Deserialize<'b>>(&mut self) -> Result<T, BadRequest> {
        let mut values = Deserializer::from_slice(&self.body[self.at..]).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.malformed(&error.to_string())),
            None => Err(self.malformed("expected a value")),
        }
    }

    /// Reads a message in one pass when its content is a string or null, as nearly always.
    fn message(&mut self, index: usize) -> Result<Message, BadRequest> {
        let at = self.at;
        match self.value() {
            Ok(wire) => message(wire, index),
            Err(_other) => {
                self.at = at;
                let raw: &RawValue = self.value()?;
                message(with_parts(raw.get(), index)?, index)
            }
        }
    }

    /// Reads one member of the request; of `messages` only the opening bracket.
    fn member(&mut self, options: &mut Options) -> Result<Member, BadRequest> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("expected a member's name"));
        }
        let name: Cow<'b, str> = self.value()?;
        self.expect(b':')?;
        match &*name {
            "messages" => {
                self.expect(b'[')?;
                return Ok(Member::Messages);
            }
            "model" => set_once(&mut options.model, self.value()?, "model")?,
            "tools" => {
                let raw: Option<&RawValue> = self.value()?;
                let tools = raw.map(|raw| tools(raw.get())).transpose()?;
                set_once(&mut options.tools, tools.map(Arc::new), "tools")?;
            }
            "stream" => options.stream = self.value::<Option<bool>>()?.unwrap_or(false),
            "stream_options" => {
                let asked: Option<StreamOptions> = self.value()?;
                options.include_usage = asked.is_some_and(|asked| asked.include_usage);
            }
            "tool_choice" => {
                let choice: &RawValue = self.value()?;
                options.tools_forbidden = choice.get() == "\"none\"";
            }
            "max_tokens" | "max_completion_tokens" => options.max_output_tokens = self.value()?,
            _ => {
                self.value::<IgnoredAny>()?;
            }
        }
        Ok(Member::Other)
    }
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

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct WireMessage<'a, C> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(default)]
    content: Option<C>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize)]
struct WirePart {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct WireTool {
    function: WireToolFunction,
}

#[derive(Deserialize)]
struct WireToolFunction {
    name: String,
    #[serde(default)]
    parameters: Value,
}

/// Reads a message of any content; says what is wrong with one that is none.
fn with_parts(json: &str, index: usize) -> Result<WireMessage<'_, String>, BadRequest> {
    let bad = |message: String| BadRequest::Message { index, message };
    let wire: WireMessage<'_, &RawValue> =
        serde_json::from_str(json).map_err(|error| bad(error.to_string()))?;
    let text = text_of(wire.content.map_or("null", RawValue::get))
        .map_err(|error| bad(format!("content: {error}")))?;
    Ok(WireMessage {
        role: wire.role,
        content: Some(text),
        tool_calls: wire.tool_calls,
        tool_call_id: wire.tool_call_id,
    })
}

fn message(wire: WireMessage<'_, String>, index: usize) -> Result<Message, BadRequest> {
    let bad = |message: String| BadRequest::Message { index, message };
    let text = wire.content.unwrap_or_default();
    match &*wire.role {
        "system" | "developer" => Ok(Message::System(text)),
        "user" => Ok(Message::User(text)),
        "assistant" => Ok(Message::Assistant {
            text,
            calls: wire
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(call)
                .collect(),
        }),
        "tool" => Ok(Message::Tool {
            call_id: wire
                .tool_call_id
                .ok_or_else(|| bad("'tool_call_id' is missing".to_owned()))?,
            result: ToolText::parse(&text),
        }),
        role => Err(bad(format!(
            "'{role}' is not one of 'system', 'developer', 'user', 'assistant', 'tool'"
        ))),
    }
}

fn call(wire: WireCall) -> Call {
    Call {
        id: wire.id,
        name: wire.function.name,
        arguments: serde_json::from_str(&wire.function.arguments).unwrap_or_default(),
        json: wire.function.arguments,
    }
}

/// The text of a content: a string, null, or an array of parts of which the text parts count.
fn text_of(json: &str) -> serde_json::Result<String> {
    if json.starts_with('[') {
        let parts: Vec<WirePart> = serde_json::from_str(json)?;
        return Ok(parts.into_iter().filter_map(|part| part.text).collect());
    }
    Ok(serde_json::from_str::<Option<String>>(json)?.unwrap_or_default())
}

fn tools(json: &str) -> Result<Tools, BadRequest> {
    let wire: Vec<WireTool> =
        serde_json::from_str(json).map_err(|error| BadRequest::Tools(error.to_string()))?;
    Ok(Tools {
        json: json.to_owned(),
        offered: wire
            .into_iter()
            .map(|tool| OfferedTool {
                name: tool.function.name,
                parameters: tool.function.parameters,
            })
            .collect(),
    })
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

    #[test]
    fn content_is_a_string_null_or_text_parts() {
        for (json, text) in [
            ("null", ""),
            ("\"a\\u00e9\"", "aé"),
            ("[]", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},{"type":"text","text":"b"}]"#,
                "ab",
            ),
        ] {
            assert_eq!(text_of(json).expect(json), text);
        }
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
            tail in "(,\"stream\":true)?",
        ) {
            let messages = |texts: &[String]| -> Vec<String> {
                texts
                    .iter()
                    .map(|text| serde_json::json!({"role": "user", "content": text}).to_string())
                    .collect()
            };
            let earlier = View::parse(&body(&messages(&first), &tail)).expect("a request");
            let next = body(&messages(&second), "");
            let alone = View::parse(&next).expect("a request");
            let after = View::parse_after(next, Some(earlier)).expect("a request");
            prop_assert_eq!(shape(&alone), shape(&after));
        }
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
            let view = View::parse_after(body, earlier).expect("a request");
            assert_eq!(view.reused, turn);
            parsed += view.parsed_bytes;
            earlier = Some(view);
        }
        assert!(parsed < last + 40 * 20, "{parsed} of {last}");
    }
}
