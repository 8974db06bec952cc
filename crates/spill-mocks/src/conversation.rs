//! A conversation, whatever dialect it was written in: what the simulated model and the accounting
//! know of a request.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use spill_scenario::{recorded_key, recorded_tool};
use xxhash_rust::xxh3::Xxh3;

use crate::result::ToolText;

/// What a request holds beside its messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) model: Option<String>,
    pub(crate) tools: Option<Arc<Tools>>,
    /// Instructions that stand outside the messages.
    pub(crate) system: Option<Arc<str>>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) tools_forbidden: bool,
    pub(crate) max_output_tokens: Option<u64>,
    /// Whether tools or system are marked as the end of a prefix to be cached.
    pub(crate) marks_head: bool,
    /// Whether the end of the prompt is marked so.
    pub(crate) marks_end: bool,
}

impl Options {
    pub(crate) fn tools_json(&self) -> &str {
        self.tools.as_ref().map_or("", |tools| &tools.json)
    }

    pub(crate) fn system_text(&self) -> &str {
        self.system.as_deref().unwrap_or("")
    }
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
#[derive(Debug, Default)]
pub(crate) struct OfferedTool {
    /// Its name; of a tool within a namespace, that of both.
    pub(crate) name: String,
    /// The namespace within which a client offers it; its own name is what remains of `name`.
    pub(crate) namespace: Option<String>,
    /// The JSON schema of its arguments; null without one.
    pub(crate) parameters: Value,
}

impl OfferedTool {
    /// A tool without a namespace.
    pub(crate) fn new(name: String, parameters: Value) -> Self {
        Self {
            name,
            namespace: None,
            parameters,
        }
    }

    /// A tool that a client offers within `namespace`.
    pub(crate) fn within(namespace: &str, name: &str, parameters: Value) -> Self {
        Self {
            name: qualified(Some(namespace), name),
            namespace: Some(namespace.to_owned()),
            parameters,
        }
    }

    /// The name without the namespace.
    pub(crate) fn own_name(&self) -> &str {
        let namespace = self.namespace.as_deref().unwrap_or("");
        let rest = self.name.strip_prefix(namespace).unwrap_or(&self.name);
        match namespace {
            "" => rest,
            _ => rest.strip_prefix("__").unwrap_or(rest),
        }
    }
}

/// One name for a tool and its namespace.
pub(crate) fn qualified(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) if namespace.ends_with('_') => format!("{namespace}{name}"),
        Some(namespace) => format!("{namespace}__{name}"),
    }
}

/// One message, and where it ends in the request.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) message: Arc<Message>,
    /// Hash of the message: of its bytes with the separator before it, or of what it says.
    pub(crate) hash: u128,
    pub(crate) end: usize,
    /// Whether it is marked as the end of a prefix to be cached.
    pub(crate) is_marked: bool,
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

impl Message {
    pub(crate) fn is_assistant(&self) -> bool {
        matches!(self, Self::Assistant { .. })
    }

    /// Bytes of its texts.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::System(text) | Self::User(text) => text.len(),
            Self::Assistant { text, calls } => {
                let calls = calls.iter().map(|call| call.name.len() + call.json.len());
                text.len() + calls.sum::<usize>()
            }
            Self::Tool { result, .. } => result.content_bytes(),
        };
        bytes as u64
    }

    /// Hash of what the message says, whatever its bytes.
    pub(crate) fn hash(&self) -> u128 {
        let mut hasher = Xxh3::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        match self {
            Self::System(text) => {
                add("system");
                add(text);
            }
            Self::User(text) => {
                add("user");
                add(text);
            }
            Self::Assistant { text, calls } => {
                add("assistant");
                add(text);
                for call in calls {
                    add(&call.id);
                    add(&call.name);
                    add(&call.json);
                }
            }
            Self::Tool { call_id, result } => {
                add("tool");
                add(call_id);
                add(result.in_prompt());
            }
        }
        hasher.digest128()
    }
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
    recorded: OnceLock<String>,
}

impl Call {
    /// A call whose arguments are written as text.
    pub(crate) fn written(id: String, name: String, json: String) -> Self {
        let arguments = serde_json::from_str(&json).unwrap_or_default();
        Self {
            id,
            name,
            json,
            arguments,
            recorded: OnceLock::new(),
        }
    }

    /// A call whose arguments are JSON.
    pub(crate) fn parsed(id: String, name: String, arguments: Value) -> Self {
        Self {
            id,
            name,
            json: arguments.to_string(),
            arguments,
            recorded: OnceLock::new(),
        }
    }

    /// The key of the recorded call that it is, when it is one of a transcript's; computed once.
    pub(crate) fn recorded_key(&self) -> Option<&str> {
        let tool = recorded_tool(&self.name)?;
        let key = || recorded_key(tool, &self.arguments);
        Some(self.recorded.get_or_init(key))
    }

    /// A string argument.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_keeps_its_own_name_within_a_namespace() {
        for (namespace, name, whole) in [
            ("mcp__tools__", "read_diff", "mcp__tools__read_diff"),
            ("mcp__tools", "read_diff", "mcp__tools__read_diff"),
            ("tools", "__x", "tools____x"),
        ] {
            let tool = OfferedTool::within(namespace, name, Value::Null);
            assert_eq!(tool.name, whole);
            assert_eq!(tool.own_name(), name, "{namespace}");
        }
        let plain = OfferedTool::new("a__b".to_owned(), Value::Null);
        assert_eq!(plain.own_name(), "a__b");
    }
}
