//! The tool calls of a transcript, as the recipe `recorded` serves them, and their file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spill_record::digest;

use crate::defaults::{MAX_DOCUMENT_BYTES, MAX_RECORDED_BYTES, MAX_RECORDED_CALLS};
use crate::error::{Place, ScenarioError};
use crate::file::text_of;
use crate::regular_file;

/// What the tools of the recipe `recorded` have before the name that the transcript gives them.
///
/// A subject may have tools of the same names that do things: it is never asked for these.
pub const RECORDED_PREFIX: &str = "recorded_";

/// The argument that tells equal calls of a transcript apart: 2 is the second one.
pub const OCCURRENCE: &str = "recorded_occurrence";

/// Bytes of a recorded tool's name at most: with the prefix, and one of the client's, APIs still take it.
const TOOL_NAME_BYTES: usize = 40;
/// Bytes of a call's id at most.
const ID_BYTES: usize = 64;

/// One tool call of a transcript and its result: one line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// Its id, unique within the input; what facts name as their carrier.
    pub id: String,
    /// Which answer of the recorded model asked for it, ascending.
    pub turn: u64,
    /// The tool: 1 to 40 letters, digits, `_` or `-`.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Whether the result is an error.
    #[serde(default)]
    pub is_error: bool,
    /// The result, served as it is.
    pub result: String,
}

impl RecordedCall {
    /// Returns what stands for tool and arguments: equal calls have equal keys, whatever the order of their arguments.
    #[must_use]
    pub fn key(&self) -> String {
        recorded_key(&self.tool, &Value::Object(self.arguments.clone()))
    }

    /// Returns the call as its line, line feed included.
    #[must_use]
    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).expect("its keys are strings");
        format!("{json}\n")
    }
}

/// Returns the key of a call to `tool`, named as the transcript does; no arguments and null are an empty object.
#[must_use]
pub fn recorded_key(tool: &str, arguments: &Value) -> String {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        other => sorted(other),
    };
    digest(serde_json::json!([tool, arguments]).to_string().as_bytes())
}

/// Returns the recorded tool behind an offered name; clients may put a prefix before it.
#[must_use]
pub fn recorded_tool(offered: &str) -> Option<&str> {
    let at = offered.find(RECORDED_PREFIX)?;
    Some(&offered[at + RECORDED_PREFIX.len()..])
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> = fields
                .iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Makes a tool's name that can be served: other characters become `_`, 40 bytes at most.
#[must_use]
pub fn recorded_tool_name(name: &str) -> String {
    let kept = name
        .chars()
        .map(|one| if is_plain(one) { one } else { '_' });
    let kept: String = kept.take(TOOL_NAME_BYTES).collect();
    if kept.is_empty() {
        "tool".to_owned()
    } else {
        kept
    }
}

fn is_plain(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_' || one == '-'
}

/// Reads a file of recorded calls.
pub(crate) fn read(path: &Path) -> Result<Vec<RecordedCall>, ScenarioError> {
    const WAY_OUT: &str = "write it with `spillgate scenario from-trace`";
    let shown = path.display().to_string();
    let bytes = regular_file::read(path, MAX_RECORDED_BYTES).map_err(|reason| {
        ScenarioError::Unreadable {
            file: shown.clone(),
            reason,
            way_out: WAY_OUT.to_owned(),
        }
    })?;
    let text = text_of(&shown, &bytes, "recorded calls are JSON Lines in UTF-8")?;
    let invalid = |at: usize, problem: String| ScenarioError::Invalid {
        place: Place::at(&shown, text, at),
        problem,
        way_out: WAY_OUT.to_owned(),
    };
    let mut calls: Vec<RecordedCall> = Vec::new();
    let mut known = Known::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() {
            let call: RecordedCall = serde_json::from_str(line)
                .map_err(|error| invalid(at, format!("not a recorded call: {error}")))?;
            known.check(&call).map_err(|problem| invalid(at, problem))?;
            calls.push(call);
        }
        at += line.len();
    }
    if calls.is_empty() {
        return Err(ScenarioError::Unusable {
            file: shown,
            problem: "holds no call".to_owned(),
            way_out: WAY_OUT.to_owned(),
        });
    }
    Ok(calls)
}

/// What of calls must not stand twice or go back.
#[derive(Default)]
struct Known {
    ids: BTreeSet<String>,
    keys: BTreeSet<String>,
    turn: u64,
}

impl Known {
    fn check(&mut self, call: &RecordedCall) -> Result<(), String> {
        if self.ids.len() == MAX_RECORDED_CALLS {
            return Err(format!("more calls than the limit of {MAX_RECORDED_CALLS}"));
        }
        let is_name = |name: &str, most: usize| {
            (1..=most).contains(&name.len()) && name.chars().all(is_plain)
        };
        if !is_name(&call.tool, TOOL_NAME_BYTES) {
            return Err(format!(
                "{:?} is no tool's name of 1 to {TOOL_NAME_BYTES} letters, digits, `_` or `-`",
                call.tool
            ));
        }
        if !is_name(&call.id, ID_BYTES) {
            return Err(format!(
                "{:?} is no id of 1 to {ID_BYTES} letters, digits, `_` or `-`",
                call.id
            ));
        }
        if call.result.len() as u64 > MAX_DOCUMENT_BYTES {
            return Err(format!(
                "the result has {} bytes, the limit is {MAX_DOCUMENT_BYTES}",
                call.result.len()
            ));
        }
        if call.turn < self.turn {
            return Err(format!(
                "turn {} stands behind turn {}",
                call.turn, self.turn
            ));
        }
        self.turn = call.turn;
        if !self.ids.insert(call.id.clone()) {
            return Err(format!("a second call has the id `{}`", call.id));
        }
        if !self.keys.insert(call.key()) {
            return Err(format!(
                "a second call of `{}` has the same arguments; add `{OCCURRENCE}` to one of them",
                call.tool
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test that cannot set up its file has failed"
    )]

    use super::*;

    /// Known fault 82: BerriAI/litellm PR #37525.
    /// Known fault 124: kevin1024/vcrpy #842 and #516.
    #[test]
    fn a_key_is_of_tool_and_arguments_whatever_their_order() {
        let key = |tool: &str, json: &str| recorded_key(tool, &serde_json::from_str(json).unwrap());
        let plain = key("a", r#"{"x":1,"y":{"p":[{"b":2,"a":1}],"q":2}}"#);
        assert_eq!(
            key("a", r#"{"y":{"q":2,"p":[{"a":1,"b":2}]},"x":1}"#),
            plain
        );
        assert_ne!(
            key("b", r#"{"x":1,"y":{"p":[{"b":2,"a":1}],"q":2}}"#),
            plain
        );
        assert_ne!(
            key("a", r#"{"x":"1","y":{"p":[{"b":2,"a":1}],"q":2}}"#),
            plain
        );
        assert_eq!(key("a", "null"), key("a", "{}"));
    }

    #[test]
    fn tools_keep_their_names_behind_prefixes() {
        assert_eq!(recorded_tool("recorded_Bash"), Some("Bash"));
        assert_eq!(recorded_tool("mcp__x__recorded_Bash"), Some("Bash"));
        assert_eq!(recorded_tool("recorded_recorded_x"), Some("recorded_x"));
        assert_eq!(recorded_tool("Bash"), None);
        assert_eq!(
            recorded_tool_name("../../etc/pass wd\u{202e}\0"),
            "______etc_pass_wd__"
        );
        assert_eq!(recorded_tool_name(""), "tool");
        assert_eq!(recorded_tool_name(&"é".repeat(99)).len(), 40);
    }

    fn check(lines: &str, expected: Result<usize, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.jsonl");
        std::fs::write(&path, lines).unwrap();
        match (read(&path), expected) {
            (Ok(calls), Ok(count)) => assert_eq!(calls.len(), count, "{lines}"),
            (Err(error), Err(part)) => {
                let text = error.to_string();
                assert!(text.contains(part), "{part}: {text}");
            }
            (read, _) => panic!("{lines}: {read:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_file_of_calls_is_checked_line_by_line() {
        let line = |id: &str, turn: u64, tool: &str, arguments: &str| {
            format!(
                r#"{{"id":"{id}","turn":{turn},"tool":"{tool}","arguments":{arguments},"result":"r\u0000"}}"#
            )
        };
        let first = line("1", 1, "a", "{}");
        check(&format!("{first}\n\n{}\n", line("2", 1, "b", "{}")), Ok(2));
        check("", Err("holds no call"));
        check("{}", Err("calls.jsonl:1:1: not a recorded call"));
        check(&line("1", 1, "a", "[]"), Err("not a recorded call"));
        check(&line("1", 1, "a b", "{}"), Err("no tool's name"));
        check(&line("../1", 1, "a", "{}"), Err("no id"));
        check(
            &format!("{first}\n{}", line("1", 1, "b", "{}")),
            Err("calls.jsonl:2:1: a second call has the id `1`"),
        );
        check(
            &format!("{first}\n{}", line("2", 1, "a", "{}")),
            Err("the same arguments"),
        );
        check(
            &format!("{first}\n{}", line("2", 0, "b", "{}")),
            Err("turn 0 stands behind turn 1"),
        );
        check("{\"id\":\"\0\"}", Err("a NUL byte"));
    }
}
