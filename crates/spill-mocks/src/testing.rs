//! A small agent loop for tests: it keeps results of at least a threshold out of the prompt.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Bytes, Call, CallId, MemoryOptions, MemoryStore, Owner, Policy, ToolResult, Verdict, configure,
};
use spill_scenario::{
    ChangedFile, Class, Document, FactsOrigin, Input, InputData, ModelSpec, Profile, Recipe,
    RecordedCall, ServedInput, Table, TableFormat,
};

use crate::model::{Action, ToolCall};
use crate::run::MockRun;
use crate::tools::{Offer, ServedTools, ToolOutcome};

pub(crate) fn spec() -> ModelSpec {
    ModelSpec {
        name: "simulated".to_owned(),
        population: BTreeMap::from([(Profile::Selective, 1.0)]),
        context_window_tokens: 1_000_000,
        parallel_calls: 2,
        slice_bytes: 4096,
        window_lines: 40,
        reading_budget_bytes: 16_384,
        max_findings: 100,
        patterns: Vec::new(),
        composite: false,
        recall: spill_scenario::defaults::RECALL.to_vec(),
        latency: None,
    }
}

/// A change of three files; the middle one is large, with one hunk in its last third.
pub(crate) fn review() -> InputData {
    let file = |path: &str, lines: usize, defect: usize| {
        let text = |number: usize| {
            if number == defect {
                format!("let port_{number} = args[1].parse::<u16>().unwrap();")
            } else {
                format!("let value_{number} = compute({number}, \"{path}\");")
            }
        };
        let content: String = (1..=lines).map(|number| text(number) + "\n").collect();
        let line = text(defect);
        ChangedFile {
            path: path.to_owned(),
            status: "modified".to_owned(),
            diff: format!("--- a/{path}\n+++ b/{path}\n@@ -{defect},0 +{defect},1 @@\n+{line}\n"),
            content,
        }
    };
    InputData {
        recipe: Recipe::Review,
        files: vec![
            file("a.rs", 20, 3),
            file("b.rs", 900, 700),
            file("c.rs", 30, 30),
        ],
        documents: Vec::new(),
        tables: Vec::new(),
        calls: Vec::new(),
    }
}

/// A document of about 60 KB with a decision at the start, in the middle and at the end.
pub(crate) fn document() -> InputData {
    let mut text = String::from("# Report\n\nIt was decided to begin.\n");
    for number in 0..400 {
        text.push_str(&format!(
            "\nPlain paragraph {number}: {}\n",
            "word ".repeat(25)
        ));
        if number == 200 {
            text.push_str("\n## Middle\n\nThe limit is 200.\n");
        }
    }
    text.push_str("\n## End\n\nWe must stop here.\n");
    InputData {
        recipe: Recipe::Document,
        files: Vec::new(),
        tables: Vec::new(),
        calls: Vec::new(),
        documents: vec![Document {
            name: "report.md".to_owned(),
            title: "Report".to_owned(),
            text,
        }],
    }
}

/// Two tables and a log, each of some KB, with something to report at the start, in the middle and at the end.
pub(crate) fn records() -> InputData {
    let mut rows = String::from("[");
    let mut csv = String::from("id,state,grams,trace_id,note\n");
    let mut log = String::new();
    for number in 0..120 {
        let is_first_of = |each: usize| number % each == 7;
        let status = if number == 60 { "disputed" } else { "new" };
        let note = if is_first_of(50) {
            "audit now"
        } else {
            "leave at door"
        };
        let comma = if number > 0 { "," } else { "" };
        rows.push_str(&format!(
            r#"{comma}{{"id":"o{number}","status":"{status}","total_cents":{number},"trace_id":"trc00000000000{number:02x}","note":"{note}"}}"#
        ));
        let state = if number == 60 { "lost" } else { "created" };
        csv.push_str(&format!(
            "s{number},{state},{number}0,trc00000000000{number:02x},{note}\n"
        ));
        let level = if is_first_of(55) { "ERROR" } else { "INFO " };
        log.push_str(&format!(
            "2026-03-01T00:00:00Z {level} step {number} of a batch\n"
        ));
    }
    rows.push(']');
    let table = |name: &str, format, text| Table {
        name: name.to_owned(),
        format,
        rows: 120,
        text,
    };
    InputData {
        tables: vec![
            table("orders", TableFormat::Rows, rows),
            table("batch.log", TableFormat::Log, log),
            table("sent.csv", TableFormat::Csv, csv),
        ],
        ..InputData::empty(Recipe::Records)
    }
}

/// A session of four calls in three turns: one long result with a value in its middle and one at its end, one error, and
/// the first call once more.
pub(crate) fn recorded() -> InputData {
    let mut log = String::new();
    for number in 0..600 {
        let what = match number {
            300 => "code=E4831".to_owned(),
            598 => "last=S9904".to_owned(),
            _ => format!("tick {number}"),
        };
        log.push_str(&format!("line {number:03} {what}\n"));
    }
    let call = |number: usize, turn, tool: &str, arguments: Value, result: &str| RecordedCall {
        id: format!("{number}-{tool}"),
        turn,
        tool: tool.to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
        is_error: number == 3,
        result: result.to_owned(),
    };
    InputData {
        calls: vec![
            call(1, 1, "ls", json!({}), "log\n"),
            call(
                2,
                2,
                "read_file",
                json!({"path": "log", "offset": 0, "limit": 9}),
                &log,
            ),
            call(3, 2, "cat", json!({"path": "x"}), "no x, code=N0001"),
            call(4, 3, "ls", json!({"recorded_occurrence": 2}), "log\nnew\n"),
        ],
        ..InputData::empty(Recipe::Recorded)
    }
}

pub(crate) fn served(data: InputData) -> Arc<ServedInput> {
    let input = Input {
        name: "input".to_owned(),
        class: Class::Large,
        data,
        facts: Vec::new(),
        facts_origin: FactsOrigin::Derived,
        notes: Vec::new(),
    };
    Arc::new(ServedInput::new(&input, 1))
}

pub(crate) fn mock_run(data: InputData, profile: Profile, model: ModelSpec) -> MockRun {
    MockRun {
        run_id: "run".to_owned(),
        recipe: data.recipe,
        served: served(data),
        seed: 7,
        scenario: "scenario".to_owned(),
        model: Arc::new(model),
        profile,
        faults: Arc::from([]),
    }
}

/// A reading tool of the agent's returns no more than this.
const READ_CAP: u64 = 8192;

/// A policy of the engine over a store of its own.
pub(crate) fn policy(name: &str, options: &Value) -> Arc<dyn Policy> {
    let store = MemoryStore::new(MemoryOptions::per_execution(Bytes::new(16 << 20)));
    configure(name, options, Arc::new(store)).expect("good options")
}

/// What stands in the prompt for `text` under `policy`, and the reference when it is stored.
pub(crate) fn shaped(policy: &dyn Policy, tool: &str, text: &str) -> (String, Option<String>) {
    let owner = Owner::new("session");
    let call = Call::new(
        tool,
        CallId {
            iteration: 1,
            index: 0,
        },
    )
    .owned_by(&owner);
    let shaped = policy.shape(&call, ToolResult::text(text.to_owned()));
    let reference = match shaped.verdict {
        Verdict::Keep(_) => None,
        Verdict::Replace { spilled, .. } => Some(spilled.reference),
    };
    (shaped.prompt.to_string(), reference)
}

pub(crate) struct Agent {
    tools: ServedTools,
    offer: Offer,
    threshold: usize,
    /// Replaces results in place of the summary.
    pub(crate) policy: Option<Arc<dyn Policy>>,
    pub(crate) messages: Vec<Value>,
    stored: HashMap<String, String>,
    pub(crate) prefix: &'static str,
    /// Ranges that were read, in order.
    pub(crate) reads: Vec<(u64, u64)>,
    /// Bytes that reads of a policy's stored results returned.
    pub(crate) read_bytes: u64,
}

impl Agent {
    pub(crate) fn new(run: &MockRun, threshold: usize) -> Self {
        Self {
            tools: ServedTools::new(Arc::clone(&run.served)),
            offer: Offer::to(&run.model),
            threshold,
            policy: None,
            messages: vec![
                json!({"role": "system", "content": "You review."}),
                json!({"role": "user", "content": "Go."}),
            ],
            stored: HashMap::new(),
            prefix: "",
            reads: Vec::new(),
            read_bytes: 0,
        }
    }

    /// References of what a policy stored.
    pub(crate) fn stored_references(&self) -> BTreeSet<&str> {
        self.stored.keys().map(String::as_str).collect()
    }

    pub(crate) fn body(&self) -> String {
        let list: Value =
            serde_json::from_str(self.tools.list(self.offer)).expect("a list of tools");
        let mut tools: Vec<Value> = list["tools"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|tool| {
                let name = tool["name"].as_str().expect("a name");
                function(&format!("{}{name}", self.prefix), &tool["inputSchema"])
            })
            .collect();
        if !self.stored.is_empty() {
            let (name, arguments): (&str, &[&str]) = match &self.policy {
                None => ("x__spillover_read", &["spillover_ref", "range"]),
                Some(policy) if policy.name() == "envelope" => {
                    ("resources_read", &["uri", "range"])
                }
                Some(_) => ("read", &["path", "offset", "limit"]),
            };
            let properties: serde_json::Map<_, _> = arguments
                .iter()
                .map(|name| {
                    let kind = match *name {
                        "range" => "object",
                        "offset" | "limit" => "integer",
                        _ => "string",
                    };
                    ((*name).to_owned(), json!({"type": kind}))
                })
                .collect();
            let schema = json!({"type": "object", "properties": properties});
            tools.push(function(name, &schema));
        }
        json!({"model": "simulated", "messages": self.messages, "tools": tools}).to_string()
    }

    /// Runs the calls that an answer asks for and appends their results.
    pub(crate) fn take(&mut self, calls: &[ToolCall]) {
        let wire: Vec<Value> = calls
            .iter()
            .map(|call| {
                let function = json!({"name": call.name, "arguments": call.arguments});
                json!({"id": call.id, "type": "function", "function": function})
            })
            .collect();
        let turn = self.messages.len();
        self.messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": wire}));
        for (index, call) in calls.iter().enumerate() {
            let (text, is_error) = self.result(call, &format!("spill://i{turn}c{index}"));
            let open = if is_error {
                "<tool-result error=\"true\">"
            } else {
                "<tool-result>"
            };
            let text = text.replace("</tool-result", "<\\/tool-result");
            self.messages.push(json!({
                "role": "tool",
                "tool_call_id": call.id,
                "content": format!("{open}\n{text}\n</tool-result>"),
            }));
        }
    }

    fn result(&mut self, call: &ToolCall, reference: &str) -> (String, bool) {
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments");
        if let Some(reference) = arguments["spillover_ref"].as_str() {
            let reference = reference.to_owned();
            return self.read(&reference, &arguments["range"]);
        }
        if self.policy.is_some() && matches!(&*call.name, "read" | "resources_read") {
            return self.read_bounded(&arguments);
        }
        let name = call.name.strip_prefix(self.prefix).expect("our prefix");
        let text = match self.tools.call(self.offer, name, &arguments) {
            ToolOutcome::Text(text) | ToolOutcome::Composite { text, .. } => {
                serde_json::from_str::<String>(&text.json).expect("a string")
            }
            ToolOutcome::Error(message) => return (message, true),
            ToolOutcome::Unknown => return ("unknown tool".to_owned(), true),
        };
        if let Some(policy) = &self.policy {
            let (prompt, reference) = shaped(&**policy, name, &text);
            self.stored
                .extend(reference.map(|reference| (reference, text)));
            return (prompt, false);
        }
        if text.len() < self.threshold {
            return (text, false);
        }
        let preview = json!({
            "spilled": true,
            "spillover_ref": reference,
            "size_bytes": text.len(),
            "lines": text.lines().count(),
            "structure": "text",
            "head": &text[..1024],
            "tail": &text[text.len() - 1024..],
            "how_to_read": "read it",
        });
        self.stored.insert(reference.to_owned(), text);
        (preview.to_string(), false)
    }

    fn read(&mut self, reference: &str, range: &Value) -> (String, bool) {
        let (offset, length) = (range["offset"].as_u64(), range["length"].as_u64());
        let (Some(offset), Some(length)) = (offset, length) else {
            return ("range needed".to_owned(), true);
        };
        self.reads.push((offset, length));
        if length > READ_CAP {
            return (format!("a read is limited to {READ_CAP} bytes"), true);
        }
        let Some(text) = self.stored.get(reference) else {
            return ("not found".to_owned(), true);
        };
        let start = usize::try_from(offset).expect("small").min(text.len());
        let end = (start + usize::try_from(length).expect("small")).min(text.len());
        let header = json!({
            "spillover_ref": reference,
            "offset": start,
            "length": end - start,
            "next_offset": (end < text.len()).then_some(end),
            "size_bytes": text.len(),
        });
        (format!("{header}\n{}", &text[start..end]), false)
    }

    /// A read by path or URI: as much as the cap allows.
    fn read_bounded(&mut self, arguments: &Value) -> (String, bool) {
        let (named, offset, length) = match arguments["path"].as_str() {
            Some(path) => (path, &arguments["offset"], &arguments["limit"]),
            None => (
                arguments["uri"].as_str().expect("a path or a URI"),
                &arguments["range"]["offset"],
                &arguments["range"]["length"],
            ),
        };
        let range = (
            offset.as_u64().expect("an offset"),
            length.as_u64().expect("a length"),
        );
        self.reads.push(range);
        let text = &self.stored[named];
        let at = |place: u64| usize::try_from(place).expect("small").min(text.len());
        let start = text.ceil_char_boundary(at(range.0));
        let end = text.floor_char_boundary(at(range.0 + range.1.min(READ_CAP)));
        self.read_bytes += (end - start) as u64;
        let mut part = json!({
            "offset": start,
            "length": end - start,
            "next_offset": (end < text.len()).then_some(end),
            "size_bytes": text.len(),
        });
        if arguments.get("path").is_some() {
            let mut header = json!({"spillover_ref": named});
            let fields = header.as_object_mut().expect("an object");
            fields.append(part.as_object_mut().expect("an object"));
            return (format!("{header}\n{}", &text[start..end]), false);
        }
        let mut content = json!({"uri": named, "mimeType": "text/plain", "text": text[start..end]});
        let fields = content.as_object_mut().expect("an object");
        fields.append(part.as_object_mut().expect("an object"));
        (json!({"contents": [content]}).to_string(), false)
    }

    /// Runs the loop to its answer; `answer` is asked with each request body.
    pub(crate) fn run(&mut self, mut answer: impl FnMut(&str) -> Action) -> String {
        for _ in 0..200 {
            match answer(&self.body()) {
                Action::Call(calls) => self.take(&calls),
                Action::Answer(text) => return text,
            }
        }
        panic!("no answer within 200 turns");
    }
}

fn function(name: &str, schema: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": schema}})
}
