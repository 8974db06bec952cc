use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::baseline::Blessing;
use crate::call::CallRecord;
use crate::executions::ExecutionsRecord;
use crate::manifest::Manifest;
use crate::replay::{ProblemRecord, ReplayRecord, SessionRecord};
use crate::run::RunRecord;
use crate::spending::Spending;

/// The JSON Schema (draft 2020-12) of what this crate writes as `T`, as indented JSON.
///
/// Every field that is always written is required, `null` included. Fields that the schema does not
/// name are allowed: a later version of the format may add some.
#[must_use]
pub fn schema_text<T: JsonSchema>(title: &str) -> String {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    RecursiveTransform(reword).transform(&mut schema);
    schema.insert("title".to_owned(), Value::from(title));
    let text = serde_json::to_string_pretty(&schema);
    text.expect("a schema has string keys and finite numbers") + "\n"
}

/// The schemas of the run folder's own files: the name that each is published under, and its text.
///
/// `run` is one line of `runs.jsonl` or `sensitivity.jsonl`, `call` one line of `calls.jsonl`,
/// `executions` one line of `executions.jsonl`.
#[must_use]
pub fn record_schemas() -> [(&'static str, String); 6] {
    [
        (
            "manifest.schema.json",
            schema_text::<Manifest>("manifest.json of a spillgate run folder"),
        ),
        (
            "run.schema.json",
            schema_text::<RunRecord>("a line of runs.jsonl or sensitivity.jsonl"),
        ),
        (
            "call.schema.json",
            schema_text::<CallRecord>("a line of calls.jsonl"),
        ),
        (
            "executions.schema.json",
            schema_text::<ExecutionsRecord>("a line of executions.jsonl"),
        ),
        (
            "baseline.schema.json",
            schema_text::<Blessing>("baseline.json of the accepted run's folder"),
        ),
        (
            "spending.schema.json",
            schema_text::<Spending>("spending.json of a live acceptance's folder"),
        ),
    ]
}

/// The schemas of a replay folder's own files: the name that each is published under, and its text.
///
/// `replay-session` is one line of `sessions.jsonl`, `replay-problem` one line of `problems.jsonl`.
#[must_use]
pub fn replay_schemas() -> [(&'static str, String); 3] {
    [
        (
            "replay.schema.json",
            schema_text::<ReplayRecord>("replay.json of a replay folder"),
        ),
        (
            "replay-session.schema.json",
            schema_text::<SessionRecord>("a line of sessions.jsonl"),
        ),
        (
            "replay-problem.schema.json",
            schema_text::<ProblemRecord>("a line of problems.jsonl"),
        ),
    ]
}

/// Descriptions speak of the file: no line breaks of the source, and `null` for what is not there.
fn reword(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs = text.split("\n\n").map(|paragraph| {
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            words.join(" ")
        });
        let paragraphs: Vec<String> = paragraphs.collect();
        *text = paragraphs.join("\n\n").replace("`None`", "`null`");
    }
}
