//! The tools of the recipes over a served input.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use spill_scenario::{
    ModelSpec, RECORDED_PREFIX, Recipe, ServedInput, TableFormat, recorded_key, strip_canaries,
};

use crate::composite::heading_of;
use crate::recorded::{RecordedTools, no_such_call};

/// Lines that `search` returns when the call names no limit, and at most.
const SEARCH_LIMIT: usize = 50;
const SEARCH_LIMIT_MAX: usize = 500;

/// What a tool call gives.
#[derive(Debug)]
pub(crate) enum ToolOutcome {
    /// A result.
    Text(ResultText),
    /// The result of a composite tool, and as JSON what calls it made.
    Composite {
        /// The result.
        text: ResultText,
        /// The calls: an array of objects with `tool`, `arguments`, `result` and `is_error`.
        sub_calls: String,
    },
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
    recorded: RecordedTools,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct CompositeArguments {
    paths: Vec<String>,
}

/// Whether the tools that make calls of their own are offered too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Plain,
    Composite,
}

impl Offer {
    /// What a model of this kind is offered.
    pub(crate) fn to(model: &ModelSpec) -> Self {
        if model.composite {
            Self::Composite
        } else {
            Self::Plain
        }
    }
}

impl ServedTools {
    pub(crate) fn new(input: Arc<ServedInput>) -> Self {
        Self {
            recorded: RecordedTools::of(input.script()),
            input,
            whole: Mutex::default(),
        }
    }

    pub(crate) fn serves(&self, input: &Arc<ServedInput>) -> bool {
        Arc::ptr_eq(&self.input, input)
    }

    /// The `tools/list` result, as JSON.
    pub(crate) fn list(&self, offer: Offer) -> &str {
        match (self.input.recipe(), offer) {
            (Recipe::Review, Offer::Plain) => &REVIEW_TOOLS,
            (Recipe::Review, Offer::Composite) => &COMPOSITE_REVIEW_TOOLS,
            (Recipe::Document, _) => &DOCUMENT_TOOLS,
            (Recipe::Records, _) => &RECORDS_TOOLS,
            (Recipe::Recorded, _) => self.recorded.list(),
        }
    }

    /// Runs one tool.
    pub(crate) fn call(&self, offer: Offer, tool: &str, arguments: &Value) -> ToolOutcome {
        match (self.input.recipe(), tool) {
            (Recipe::Review, "read_diffs") if offer == Offer::Composite => {
                self.composite(arguments)
            }
            (Recipe::Review, "list_changed_files")
            | (Recipe::Document, "list_documents")
            | (Recipe::Records, "list_tables") => {
                ToolOutcome::Text(self.whole("list", "", self.input.list_text()))
            }
            (Recipe::Review, "read_diff") => self.named("diff", "path", arguments),
            (Recipe::Review, "read_file") => self.named("file", "path", arguments),
            (Recipe::Review, "search") => self.search(arguments),
            (Recipe::Document, "read_document") => self.named("document", "name", arguments),
            (Recipe::Records, "query") => self.named("table", "table", arguments),
            (Recipe::Records, "export_csv") => self.named("export", "table", arguments),
            (Recipe::Records, "read_log") => self.named("log", "name", arguments),
            (Recipe::Recorded, name) => match name.strip_prefix(RECORDED_PREFIX) {
                Some(tool) if self.recorded.has(tool) => self.recorded(tool, arguments),
                Some(_) | None => ToolOutcome::Unknown,
            },
            (Recipe::Review | Recipe::Document | Recipe::Records, _) => ToolOutcome::Unknown,
        }
    }

    fn named(&self, kind: &'static str, argument: &str, arguments: &Value) -> ToolOutcome {
        let Some(name) = arguments.get(argument).and_then(Value::as_str) else {
            return ToolOutcome::Error(format!("the argument `{argument}` must be a string"));
        };
        let text = match kind {
            "diff" => self.input.diff(name),
            "file" => self.input.file(name),
            "table" => self.input.table(TableFormat::Rows, name),
            "export" => self.input.table(TableFormat::Csv, name),
            "log" => self.input.table(TableFormat::Log, name),
            _ => self.input.document(name),
        };
        match text {
            Some(text) => ToolOutcome::Text(self.whole(kind, name, text)),
            None => ToolOutcome::Error(format!("no such {kind}: {name}")),
        }
    }

    /// The result that the transcript has for a call.
    fn recorded(&self, tool: &str, arguments: &Value) -> ToolOutcome {
        let key = recorded_key(tool, arguments);
        match self.input.recorded(&key) {
            Some(result) if result.is_error => ToolOutcome::Error(result.text.to_string()),
            Some(result) => ToolOutcome::Text(self.whole("recorded", &key, &result.text)),
            None => ToolOutcome::Error(no_such_call(tool, self.input.script())),
        }
    }

    /// One `read_diff` call for each path; the diffs in one text, each behind a line that names it.
    fn composite(&self, arguments: &Value) -> ToolOutcome {
        let Ok(CompositeArguments { paths }) = CompositeArguments::deserialize(arguments) else {
            return ToolOutcome::Error(
                "the argument `paths` must be an array of strings".to_owned(),
            );
        };
        if paths.is_empty() {
            return ToolOutcome::Error("the argument `paths` is empty".to_owned());
        }
        let mut text = String::new();
        let mut sub_calls = Vec::with_capacity(paths.len());
        for path in &paths {
            let diff = self.input.diff(path);
            let (part, result) = match diff {
                Some(diff) => (Cow::Borrowed(&**diff), self.whole("diff", path, diff)),
                None => {
                    let message = format!("no such diff: {path}");
                    let result = result_text(&message);
                    (Cow::Owned(message), result)
                }
            };
            text.push_str(&heading_of(path));
            text.push_str(&part);
            if !part.ends_with('\n') {
                text.push('\n');
            }
            let arguments = json!({"path": path});
            sub_calls.push(format!(
                r#"{{"tool":"read_diff","arguments":{arguments},"result":{},"is_error":{}}}"#,
                result.json,
                diff.is_none()
            ));
        }
        ToolOutcome::Composite {
            text: result_text(&text),
            sub_calls: format!("[{}]", sub_calls.join(",")),
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

static REVIEW_TOOLS: LazyLock<String> = LazyLock::new(|| list_result(&review_tools()));

static COMPOSITE_REVIEW_TOOLS: LazyLock<String> = LazyLock::new(|| {
    let mut tools = review_tools();
    tools.push(tool(
        "read_diffs",
        "Returns the unified diffs of several changed files in one text, each behind a line === path",
        json!({"paths": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "Paths of changed files",
        }}),
        &["paths"],
    ));
    list_result(&tools)
});

fn review_tools() -> Vec<Value> {
    let path = json!({"type": "string", "description": "Path of a changed file"});
    vec![
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
    ]
}

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

static RECORDS_TOOLS: LazyLock<String> = LazyLock::new(|| {
    let table = json!({"type": "string", "description": "Name of a table"});
    list_result(&[
        tool(
            "list_tables",
            "Lists tables, exports and logs with their format, rows and sizes, as a JSON array",
            json!({}),
            &[],
        ),
        tool(
            "query",
            "Returns the rows of one table of the format rows, as a JSON array",
            json!({"table": table}),
            &["table"],
        ),
        tool(
            "export_csv",
            "Returns one table of the format csv as comma-separated values",
            json!({"table": table}),
            &["table"],
        ),
        tool(
            "read_log",
            "Returns the text of one log",
            json!({"name": {"type": "string", "description": "Name of a log"}}),
            &["name"],
        ),
    ])
});

pub(crate) fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
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

pub(crate) fn list_result(tools: &[Value]) -> String {
    json!({"tools": tools}).to_string()
}
