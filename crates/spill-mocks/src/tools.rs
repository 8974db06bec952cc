//! The tools of the recipes over a served input.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use spill_scenario::{Recipe, ServedInput, strip_canaries};

/// Lines that `search` returns when the call names no limit, and at most.
const SEARCH_LIMIT: usize = 50;
const SEARCH_LIMIT_MAX: usize = 500;

/// What a tool call gives.
#[derive(Debug)]
pub(crate) enum ToolOutcome {
    /// A result.
    Text(ResultText),
    /// An error result.
    Error(String),
    /// There is no tool of that name.
    Unknown,
}

/// A result's text as a JSON string, and the text's own length.
#[derive(Clone, Debug)]
pub(crate) struct ResultText {
    pub(crate) json: Arc<str>,
    pub(crate) bytes: u64,
}

/// An input's tools; each text that is served whole is serialised once.
#[derive(Debug)]
pub(crate) struct ServedTools {
    input: Arc<ServedInput>,
    whole: Mutex<HashMap<(&'static str, String), ResultText>>,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

impl ServedTools {
    pub(crate) fn new(input: Arc<ServedInput>) -> Self {
        Self {
            input,
            whole: Mutex::default(),
        }
    }

    pub(crate) fn serves(&self, input: &Arc<ServedInput>) -> bool {
        Arc::ptr_eq(&self.input, input)
    }

    /// The `tools/list` result, as JSON.
    pub(crate) fn list(&self) -> &'static str {
        match self.input.recipe() {
            Recipe::Review => &REVIEW_TOOLS,
            Recipe::Document => &DOCUMENT_TOOLS,
        }
    }

    /// Runs one tool.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> ToolOutcome {
        match (self.input.recipe(), tool) {
            (Recipe::Review, "list_changed_files") | (Recipe::Document, "list_documents") => {
                ToolOutcome::Text(self.whole("list", "", self.input.list_text()))
            }
            (Recipe::Review, "read_diff") => self.named("diff", "path", arguments),
            (Recipe::Review, "read_file") => self.named("file", "path", arguments),
            (Recipe::Review, "search") => self.search(arguments),
            (Recipe::Document, "read_document") => self.named("document", "name", arguments),
            (Recipe::Review | Recipe::Document, _) => ToolOutcome::Unknown,
        }
    }

    fn named(&self, kind: &'static str, argument: &str, arguments: &Value) -> ToolOutcome {
        let Some(name) = arguments.get(argument).and_then(Value::as_str) else {
            return ToolOutcome::Error(format!("the argument `{argument}` must be a string"));
        };
        let text = match kind {
            "diff" => self.input.diff(name),
            "file" => self.input.file(name),
            _ => self.input.document(name),
        };
        match text {
            Some(text) => ToolOutcome::Text(self.whole(kind, name, text)),
            None => ToolOutcome::Error(format!("no such {kind}: {name}")),
        }
    }

    fn whole(&self, kind: &'static str, name: &str, text: &str) -> ResultText {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let known = whole
            .entry((kind, name.to_owned()))
            .or_insert_with(|| result_text(text));
        known.clone()
    }

    fn search(&self, arguments: &Value) -> ToolOutcome {
        let Ok(SearchArguments { query, limit }) = SearchArguments::deserialize(arguments) else {
            return ToolOutcome::Error(
                "the argument `query` must be a string, and `limit` a whole number".to_owned(),
            );
        };
        if query.is_empty() {
            return ToolOutcome::Error("the argument `query` is empty".to_owned());
        }
        let limit = limit.unwrap_or(SEARCH_LIMIT).min(SEARCH_LIMIT_MAX);
        let mut lines = Vec::new();
        for (path, text) in self.input.files() {
            let plain = strip_canaries(text);
            let hits = plain
                .lines()
                .enumerate()
                .filter(|(_, line)| line.contains(&query));
            let left = limit.saturating_sub(lines.len());
            lines.extend(
                hits.take(left)
                    .map(|(at, line)| format!("{path}:{}: {line}", at + 1)),
            );
        }
        let text = if lines.is_empty() {
            "no matches".to_owned()
        } else {
            lines.join("\n")
        };
        ToolOutcome::Text(result_text(&text))
    }
}

/// Serialises a result's text.
pub(crate) fn result_text(text: &str) -> ResultText {
    ResultText {
        json: serde_json::to_string(text)
            .expect("every string has a JSON form")
            .into(),
        bytes: text.len() as u64,
    }
}

static REVIEW_TOOLS: LazyLock<String> = LazyLock::new(|| {
    let path = json!({"type": "string", "description": "Path of a changed file"});
    list_result(&[
        tool(
            "list_changed_files",
            "Lists the changed files with their status and sizes, as a JSON array",
            json!({}),
            &[],
        ),
        tool(
            "read_diff",
            "Returns the unified diff of one changed file",
            json!({"path": path}),
            &["path"],
        ),
        tool(
            "read_file",
            "Returns the text of one changed file after the change",
            json!({"path": path}),
            &["path"],
        ),
        tool(
            "search",
            "Searches the changed files for a text and returns lines of the form path:line: text",
            json!({
                "query": {"type": "string", "description": "Text to look for, case-sensitive"},
                "limit": {"type": "integer", "minimum": 1, "description": "Lines at most"},
            }),
            &["query"],
        ),
    ])
});

static DOCUMENT_TOOLS: LazyLock<String> = LazyLock::new(|| {
    list_result(&[
        tool(
            "list_documents",
            "Lists the documents with their titles and sizes, as a JSON array",
            json!({}),
            &[],
        ),
        tool(
            "read_document",
            "Returns the whole text of one document",
            json!({"name": {"type": "string", "description": "Name of a document"}}),
            &["name"],
        ),
    ])
});

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
    })
}

fn list_result(tools: &[Value]) -> String {
    json!({"tools": tools}).to_string()
}
