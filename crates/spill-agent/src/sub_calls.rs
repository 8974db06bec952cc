//! The calls that a composite tool made while it answered, as its server reports them in the
//! result's `_meta`.

use serde_json::{Map, Value};
use spill_engine::{Block, ToolResult};

/// Where a result's `_meta` holds them.
pub const SUB_CALLS_KEY: &str = "spillgate/sub_calls";

/// The most of one call that are recorded.
const MOST_SUB_CALLS: usize = 1_024;

/// One call of a composite tool, with what it returned.
#[derive(Clone, Debug, PartialEq)]
pub struct SubCall {
    /// The tool that was called.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What it returned to the composite tool.
    pub result: ToolResult,
}

/// Takes the sub-calls out of a result's `_meta`:
/// `[{"tool", "arguments"?, "result", "is_error"?}]`, where a result is a text or any JSON value.
/// What has another form is left out with a warning: it is for the log alone and fails no call.
pub(crate) fn take_sub_calls(meta: &mut Map<String, Value>) -> Vec<SubCall> {
    let Some(value) = meta.remove(SUB_CALLS_KEY) else {
        return Vec::new();
    };
    let Value::Array(entries) = value else {
        tracing::warn!("{SUB_CALLS_KEY} is not a list, no sub-call is recorded");
        return Vec::new();
    };
    let listed = entries.len();
    let taken: Vec<SubCall> = entries
        .into_iter()
        .take(MOST_SUB_CALLS)
        .filter_map(sub_call)
        .collect();
    if taken.len() < listed {
        tracing::warn!(
            listed,
            recorded = taken.len(),
            "not every entry of {SUB_CALLS_KEY} is recorded"
        );
    }
    taken
}

fn sub_call(entry: Value) -> Option<SubCall> {
    let Value::Object(mut entry) = entry else {
        return None;
    };
    let Some(Value::String(tool)) = entry.remove("tool") else {
        return None;
    };
    let arguments = match entry.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return None,
    };
    let is_error = match entry.remove("is_error") {
        None | Some(Value::Null) => false,
        Some(flag) => flag.as_bool()?,
    };
    let result = match entry.remove("result")? {
        Value::String(text) => ToolResult {
            blocks: vec![Block::Text(text)],
            structured: None,
            is_error,
        },
        value => ToolResult {
            blocks: Vec::new(),
            structured: Some(value),
            is_error,
        },
    };
    Some(SubCall {
        tool,
        arguments,
        result,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(value: Value) -> Vec<SubCall> {
        let mut meta = Map::from_iter([(SUB_CALLS_KEY.to_owned(), value)]);
        take_sub_calls(&mut meta)
    }

    #[test]
    fn what_is_reported_is_taken_and_nothing_else() {
        let calls = taken(json!([
            {"tool": "a", "arguments": {"x": 1}, "result": "text", "is_error": true},
            {"tool": "b", "result": {"rows": []}},
            {"tool": "c"},
            {"result": "text"},
            {"tool": "d", "arguments": [], "result": ""},
            {"tool": "e", "result": "", "is_error": "no"},
            7,
        ]));
        let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(calls[0].result, ToolResult::error("text"));
        assert_eq!(calls[0].arguments["x"], json!(1));
        assert_eq!(calls[1].result.structured, Some(json!({"rows": []})));
        assert_eq!(taken(json!({"tool": "a"})), []);
        assert_eq!(take_sub_calls(&mut Map::new()), []);
        let many: Value = (0..2_000)
            .map(|_| json!({"tool": "a", "result": ""}))
            .collect();
        assert_eq!(taken(many).len(), MOST_SUB_CALLS);
    }
}
