//! The tools that read stored results back: what the model sees of them and what they answer.

use serde::Serialize;
use serde_json::{Map, Value, json};
use spill_engine::{READ_TOOL, read_tool_schema};

/// Stands before the name of a read tool whose own name a tool of the server has.
const PREFIX: &str = "spill_";

/// One read tool as it is offered.
#[derive(Clone, Debug)]
pub(crate) struct ReadTool {
    pub(crate) name: String,
    pub(crate) kind: ReadKind,
    pub(crate) description: &'static str,
    pub(crate) parameters: Value,
}

/// What a read tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadKind {
    /// The workflow-step policy's own tool.
    Step,
    /// Bytes of a stored text.
    Bytes,
    /// Places of a stored text that match a pattern.
    Search,
    /// A record, as MCP's `resources/read` answers.
    Resource,
}

/// What a read tool answers.
#[derive(Debug)]
pub(crate) struct ReadBack {
    /// The stored result as the model names it.
    pub(crate) reference: String,
    /// The first byte, or where a search began.
    pub(crate) offset: u64,
    /// Bytes of the stored result in the answer.
    pub(crate) bytes: u64,
    /// What the model sees.
    pub(crate) text: String,
}

impl ReadKind {
    /// Its usual name.
    pub(crate) fn usual_name(self) -> &'static str {
        match self {
            Self::Step => READ_TOOL,
            Self::Bytes => "read",
            Self::Search => "grep",
            Self::Resource => "resources_read",
        }
    }

    /// The tool under its usual name, or under another if that is taken. The step's own name is
    /// never taken: it is reserved.
    pub(crate) fn tool(self, taken: &dyn Fn(&str) -> bool) -> ReadTool {
        let mut name = self.usual_name().to_owned();
        while self != Self::Step && taken(&name) {
            name.insert_str(0, PREFIX);
        }
        let (description, parameters) = match self {
            Self::Step => read_tool_schema(),
            Self::Bytes => read_schema(),
            Self::Search => grep_schema(),
            Self::Resource => resource_schema(),
        };
        ReadTool {
            name,
            kind: self,
            description,
            parameters,
        }
    }
}

fn read_schema() -> (&'static str, Value) {
    let description = "Reads a stored tool result by bytes. Give the path that a notice names. The answer's first line is JSON \
                       with the bytes returned and next_offset (null at the end); the text follows. A long result comes in \
                       several answers: go on at next_offset.";
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The path exactly as the notice gives it."},
            "offset": {"type": "integer", "minimum": 0, "description": "First byte, from 0; default 0."},
            "limit": {"type": "integer", "minimum": 1, "description": "Most bytes; default: as many as one answer holds."}
        },
        "required": ["path"],
        "additionalProperties": false
    });
    (description, schema)
}

fn grep_schema() -> (&'static str, Value) {
    let description = "Searches a stored tool result for a regular expression. Give the path that a notice names. The answer's \
                       first line is JSON with the number of matches and next_offset (null when there are no more); each \
                       line that follows is a match: its byte offset, its line, and the text around it.";
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The path exactly as the notice gives it."},
            "pattern": {"type": "string", "description": "A regular expression; ^ and $ match at lines."},
            "ignore_case": {"type": "boolean", "description": "Whether case does not matter; default false."},
            "context": {"type": "integer", "minimum": 0, "description": "Bytes shown on each side of a match; default 80."},
            "offset": {"type": "integer", "minimum": 0, "description": "First byte at which a match may start; default 0."}
        },
        "required": ["path", "pattern"],
        "additionalProperties": false
    });
    (description, schema)
}

fn resource_schema() -> (&'static str, Value) {
    let description = "Reads a resource (resources/read), such as a tool result that was saved. Give its URI and, for a part, a \
                       range in bytes. A long resource comes in several answers: go on at next_offset (null at the end).";
    let schema = json!({
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The resourceUri exactly as it was given."},
            "range": {
                "type": "object",
                "description": "Which bytes to return; default: all, or as many as one answer holds.",
                "properties": {
                    "offset": {"type": "integer", "minimum": 0, "description": "First byte, from 0; default 0."},
                    "length": {"type": "integer", "minimum": 1, "description": "Number of bytes; default: up to the end."}
                },
                "additionalProperties": false
            }
        },
        "required": ["uri"],
        "additionalProperties": false
    });
    (description, schema)
}

/// The first line of an answer, in wire order; the same as that of the step's own read tool.
#[derive(Serialize)]
pub(crate) struct Header<'a> {
    pub(crate) spillover_ref: &'a str,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matches: Option<usize>,
    pub(crate) next_offset: Option<u64>,
    pub(crate) size_bytes: u64,
}

impl Header<'_> {
    /// The header, a line feed, `body`.
    pub(crate) fn before(&self, body: &str) -> String {
        let mut out = serde_json::to_string(self).expect("texts and numbers have a JSON form");
        out.reserve_exact(1 + body.len());
        out.push('\n');
        out.push_str(body);
        out
    }
}

/// A record on the wire. Which part it is is said only where it is not plainly all of it.
#[derive(Serialize)]
pub(crate) struct Contents<'a> {
    pub(crate) contents: [ResourceContent<'a>; 1],
}

/// The one content of a record.
#[derive(Serialize)]
pub(crate) struct ResourceContent<'a> {
    pub(crate) uri: &'a str,
    #[serde(rename = "mimeType")]
    pub(crate) mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
    /// `Some(None)` is the null that says there is nothing left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_offset: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_bytes: Option<u64>,
}

/// Arguments of a read tool. Their errors are for the model.
pub(crate) struct Arguments<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// Refuses every name that is not known.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(stray) => Err(refused(stray, &format!("only {} exist", known.join(", ")))),
        }
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&'a str, String> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.ok_or_else(|| refused(name, "a text is expected"))
    }

    /// A number that may be left out.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| refused(name, "a whole number, 0 or more, is expected")),
        }
    }

    /// A flag that may be left out.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| refused(name, "true or false is expected")),
        }
    }

    /// An object that may be left out.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Arguments<'a>>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Arguments(object))),
            Some(_) => Err(refused(name, "an object is expected")),
        }
    }
}

/// The name is the model's: cut, so that no long text comes back to it.
fn refused(name: &str, why: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    format!("argument {shown:?} is not understood: {why} (call again with the arguments described)")
}
