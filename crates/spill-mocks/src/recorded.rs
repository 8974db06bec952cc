//! The tools of a transcript: one for each name, with the arguments that it was called with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use spill_scenario::{OCCURRENCE, RECORDED_PREFIX, ScriptedCall};

use crate::tools::{list_result, tool};

/// Bytes of recorded arguments that an error quotes at most.
const QUOTED_BYTES: usize = 2048;

/// The tools of a transcript as `tools/list` shows them; nothing but names is in it.
#[derive(Debug, Default)]
pub(crate) struct RecordedTools {
    names: BTreeSet<String>,
    json: String,
}

impl RecordedTools {
    /// Of calls in their order: a tool stands where it was called first.
    pub(crate) fn of(script: &[ScriptedCall]) -> Self {
        if script.is_empty() {
            return Self::default();
        }
        let mut order: Vec<&str> = Vec::new();
        let mut arguments: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for call in script {
            let known = arguments.entry(&call.tool).or_insert_with(|| {
                order.push(&call.tool);
                Map::new()
            });
            let of_call: Map<String, Value> =
                serde_json::from_str(&call.arguments).unwrap_or_default();
            for name in of_call.into_iter().map(|(name, _)| name) {
                let schema = match &*name {
                    OCCURRENCE => json!({
                        "type": "integer",
                        "description": "Which of several equal calls of the recording is meant; the first without it",
                    }),
                    _ => json!({}),
                };
                known.entry(name).or_insert(schema);
            }
        }
        let tools: Vec<Value> = order
            .iter()
            .map(|name| {
                tool(
                    &format!("{RECORDED_PREFIX}{name}"),
                    &format!(
                        "Returns what {name} returned to the recorded agent for these arguments"
                    ),
                    Value::Object(arguments.remove(name).unwrap_or_default()),
                    &[],
                )
            })
            .collect();
        Self {
            names: order.into_iter().map(str::to_owned).collect(),
            json: list_result(&tools),
        }
    }

    pub(crate) fn list(&self) -> &str {
        &self.json
    }

    pub(crate) fn has(&self, tool: &str) -> bool {
        self.names.contains(tool)
    }
}

/// What a call that the transcript does not have gets: the arguments that it has, as far as they are short.
pub(crate) fn no_such_call(tool: &str, script: &[ScriptedCall]) -> String {
    let mut text = format!("no recorded call of {tool} has these arguments; it was called with");
    let mut left = 0_u64;
    let bound = text.len() + QUOTED_BYTES;
    for call in script.iter().filter(|call| call.tool == tool) {
        if text.len() + call.arguments.len() < bound {
            text.push('\n');
            text.push_str(&call.arguments);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        text.push_str(&format!("\nand {left} more that are longer"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &str) -> ScriptedCall {
        ScriptedCall {
            id: "1".to_owned(),
            key: arguments.to_owned(),
            turn: 1,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn tools_have_the_names_and_arguments_of_the_transcript() {
        let script = [
            call("ls", "{}"),
            call("cat", r#"{"path":"a"}"#),
            call("ls", r#"{"dir":"/x","recorded_occurrence":2}"#),
        ];
        let tools = RecordedTools::of(&script);
        assert!(tools.has("ls") && tools.has("cat") && !tools.has("rm"));
        let list: Value = serde_json::from_str(tools.list()).expect("JSON");
        let shown: Vec<String> = list["tools"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|tool| {
                let properties = tool["inputSchema"]["properties"]
                    .as_object()
                    .expect("an object");
                format!(
                    "{} {:?}",
                    tool["name"],
                    properties.keys().collect::<Vec<_>>()
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                r#""recorded_ls" ["dir", "recorded_occurrence"]"#,
                r#""recorded_cat" ["path"]"#
            ]
        );
        assert!(!tools.list().contains("/x"));
    }

    /// Known fault 82: BerriAI/litellm PR #37525.
    #[test]
    fn an_error_names_what_was_called_and_is_bounded() {
        let long = format!(r#"{{"path":"{}"}}"#, "x".repeat(QUOTED_BYTES));
        let script = [
            call("cat", &long),
            call("cat", r#"{"path":"a"}"#),
            call("ls", "{}"),
        ];
        let said = no_such_call("cat", &script);
        assert_eq!(
            said,
            "no recorded call of cat has these arguments; it was called with\n{\"path\":\"a\"}\nand 1 more that are longer"
        );
    }
}
