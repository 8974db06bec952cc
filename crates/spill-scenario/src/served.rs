use std::collections::BTreeMap;
use std::sync::Arc;

use spill_record::{digest, digest_parts};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::canary::{plant, weave};
use crate::input::{Input, InputData, Recipe, Table, TableFormat};
use crate::recorded::RecordedCall;

/// Returns the seed of an input's canaries; all runs of the input share it.
#[must_use]
pub fn canary_seed(base_seed: u64, scenario: &str, input: &str) -> u64 {
    let name = digest_parts(&["canary", scenario, input]);
    xxh3_64_with_seed(name.as_bytes(), base_seed)
}

/// An input as the tools serve it: every text that a tool can return whole, canaries woven in.
///
/// Equal inputs with equal canary seeds give equal texts.
#[derive(Clone, Debug)]
pub struct ServedInput {
    recipe: Recipe,
    list: Arc<str>,
    diffs: BTreeMap<String, Arc<str>>,
    files: BTreeMap<String, Arc<str>>,
    documents: BTreeMap<String, Arc<str>>,
    tables: BTreeMap<String, (TableFormat, Arc<str>)>,
    script: Arc<[ScriptedCall]>,
    results: BTreeMap<String, RecordedResult>,
}

/// A recorded call without its result: what the simulated model may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The call's id.
    pub id: String,
    /// [`RecordedCall::key`].
    pub key: String,
    /// Which answer of the recorded model asked for it.
    pub turn: u64,
    /// The tool as the transcript names it.
    pub tool: String,
    /// The arguments as compact JSON.
    pub arguments: String,
}

/// A recorded result, as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// Its text.
    pub text: Arc<str>,
    /// Whether it is an error.
    pub is_error: bool,
}

impl ScriptedCall {
    fn of(call: &RecordedCall) -> Self {
        Self {
            id: call.id.clone(),
            key: call.key(),
            turn: call.turn,
            tool: call.tool.clone(),
            arguments: serde_json::Value::Object(call.arguments.clone()).to_string(),
        }
    }
}

impl ServedInput {
    /// Weaves an input's texts. Facts are not looked at.
    #[must_use]
    pub fn new(input: &Input, canary_seed: u64) -> Self {
        Self::from_data(&input.data, canary_seed)
    }

    fn from_data(data: &InputData, canary_seed: u64) -> Self {
        let text = |kind: &str, name: &str, text: &str| -> Arc<str> {
            let name = digest_parts(&[kind, name]);
            weave(text, xxh3_64_with_seed(name.as_bytes(), canary_seed)).into()
        };
        let served_table = |table: &Table| match table.format {
            TableFormat::Log => text("table", &table.name, &table.text),
            TableFormat::Rows | TableFormat::Csv => {
                let name = digest_parts(&["table", &table.name]);
                let seed = xxh3_64_with_seed(name.as_bytes(), canary_seed);
                plant(&table.text, seed).into()
            }
        };
        let files = &data.files;
        let mut served = Self {
            recipe: data.recipe,
            list: "".into(),
            diffs: files
                .iter()
                .map(|file| (file.path.clone(), text("diff", &file.path, &file.diff)))
                .collect(),
            files: files
                .iter()
                .map(|file| (file.path.clone(), text("file", &file.path, &file.content)))
                .collect(),
            documents: data
                .documents
                .iter()
                .map(|document| {
                    (
                        document.name.clone(),
                        text("document", &document.name, &document.text),
                    )
                })
                .collect(),
            tables: data
                .tables
                .iter()
                .map(|table| (table.name.clone(), (table.format, served_table(table))))
                .collect(),
            script: data.calls.iter().map(ScriptedCall::of).collect(),
            results: data
                .calls
                .iter()
                .map(|call| {
                    let result = RecordedResult {
                        text: call.result.as_str().into(),
                        is_error: call.is_error,
                    };
                    (call.key(), result)
                })
                .collect(),
        };
        if data.recipe != Recipe::Recorded {
            served.list = text("list", "", &served.list_of(data));
        }
        served
    }

    /// The list tool's JSON array, one entry a line; sizes are those of the served texts.
    fn list_of(&self, data: &InputData) -> String {
        let size = |texts: &BTreeMap<String, Arc<str>>, name: &str| {
            texts.get(name).map_or(0, |text| text.len())
        };
        let entries: Vec<String> = match data.recipe {
            Recipe::Review => data
                .files
                .iter()
                .map(|file| {
                    serde_json::json!({
                        "path": file.path,
                        "status": file.status,
                        "diff_bytes": size(&self.diffs, &file.path),
                        "file_bytes": size(&self.files, &file.path),
                    })
                    .to_string()
                })
                .collect(),
            Recipe::Document => data
                .documents
                .iter()
                .map(|document| {
                    serde_json::json!({
                        "name": document.name,
                        "title": document.title,
                        "size_bytes": size(&self.documents, &document.name),
                    })
                    .to_string()
                })
                .collect(),
            Recipe::Records => data
                .tables
                .iter()
                .map(|table| {
                    serde_json::json!({
                        "name": table.name,
                        "format": table.format.as_str(),
                        "rows": table.rows,
                        "size_bytes": self.tables.get(&table.name).map_or(0, |(_, text)| text.len()),
                    })
                    .to_string()
                })
                .collect(),
            Recipe::Recorded => Vec::new(),
        };
        format!("[\n{}\n]\n", entries.join(",\n"))
    }

    /// Which tools serve it.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// What `list_changed_files`, `list_documents` or `list_tables` returns: a JSON array, one entry a line,
    /// between canary lines (so it parses after [`crate::strip_canaries`]). Recorded calls have no list: empty.
    #[must_use]
    pub fn list_text(&self) -> &Arc<str> {
        &self.list
    }

    /// The diff of a changed file.
    #[must_use]
    pub fn diff(&self, path: &str) -> Option<&Arc<str>> {
        self.diffs.get(path)
    }

    /// A changed file after the change.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Arc<str>> {
        self.files.get(path)
    }

    /// A document.
    #[must_use]
    pub fn document(&self, name: &str) -> Option<&Arc<str>> {
        self.documents.get(name)
    }

    /// A table, export or log of that format.
    #[must_use]
    pub fn table(&self, format: TableFormat, name: &str) -> Option<&Arc<str>> {
        let (found, text) = self.tables.get(name)?;
        (*found == format).then_some(text)
    }

    /// The recorded calls in their order, without their results.
    #[must_use]
    pub fn script(&self) -> &Arc<[ScriptedCall]> {
        &self.script
    }

    /// The result of the recorded call with this key, see [`crate::recorded_key`]. No canary is woven in: a recorded
    /// result is served to the byte.
    #[must_use]
    pub fn recorded(&self, key: &str) -> Option<&RecordedResult> {
        self.results.get(key)
    }

    /// The changed files by path, sorted; what `search` looks through.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text))
    }

    /// Every distinct text that a tool returns whole.
    pub fn texts(&self) -> impl Iterator<Item = &Arc<str>> {
        std::iter::once(&self.list)
            .chain(self.diffs.values())
            .chain(self.files.values())
            .chain(self.documents.values())
            .chain(self.tables.values().map(|(_, text)| text))
            .chain(self.results.values().map(|result| &result.text))
    }

    /// Bytes of the largest of them.
    #[must_use]
    pub fn largest_result_bytes(&self) -> u64 {
        self.texts()
            .map(|text| text.len() as u64)
            .max()
            .unwrap_or(0)
    }

    /// Digest of all of them with their names.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut parts = vec![self.recipe.as_str(), &*self.list];
        for texts in [&self.diffs, &self.files, &self.documents] {
            for (name, text) in texts {
                parts.push(name);
                parts.push(text);
            }
        }
        for (name, (_, text)) in &self.tables {
            parts.push(name);
            parts.push(text);
        }
        let turns: Vec<String> = self
            .script
            .iter()
            .map(|call| call.turn.to_string())
            .collect();
        for (call, turn) in self.script.iter().zip(&turns) {
            parts.push(&call.id);
            parts.push(turn);
            parts.push(&call.key);
            if let Some(result) = self.results.get(&call.key) {
                parts.push(if result.is_error { "error" } else { "result" });
                parts.push(&result.text);
            }
        }
        digest(digest_parts(&parts).as_bytes())
    }
}

/// Bytes of what the list tool returns; the same for every canary seed.
#[must_use]
pub fn list_bytes(data: &InputData) -> u64 {
    ServedInput::from_data(data, 0).list.len() as u64
}
