//! In-memory ports: a model that follows a script and tools that answer from a function.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use spill_agent::{
    AbortSignal, ChatRequest, ModelFailure, ModelPort, ModelReply, SpillSettings, StepJob,
    StepResult, ToolAnswer, ToolCall, ToolFailure, ToolPort, ToolSpec, Usage, run_step,
};
use spill_engine::{Settings, Switch, Threshold, ToolResult};

/// What the scripted model does with one request.
pub(crate) enum Turn {
    Reply(ModelReply),
    /// Looks at the request first.
    See(Box<dyn Fn(&Value) -> Turn + Send>),
    Fail(ModelFailure),
    Hang,
}

pub(crate) struct ScriptedModel {
    turns: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<Vec<u8>>>,
    retries: AtomicU32,
}

impl ScriptedModel {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            turns: Mutex::new(turns.into_iter().collect()),
            requests: Mutex::default(),
            retries: AtomicU32::new(0),
        }
    }

    /// The bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.requests
            .lock()
            .expect("no test panics in here")
            .clone()
    }

    /// The bodies as JSON.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.requests()
            .iter()
            .map(|body| serde_json::from_slice(body).expect("a request is JSON"))
            .collect()
    }

    /// The content of the last request's last message.
    pub(crate) fn last_content(&self) -> String {
        let bodies = self.bodies();
        let messages = bodies.last().expect("a request")["messages"].clone();
        let last = messages
            .as_array()
            .expect("messages")
            .last()
            .expect("one")
            .clone();
        last["content"].as_str().expect("a text").to_owned()
    }

    /// The names of the tools offered in request `index`.
    pub(crate) fn offered(&self, index: usize) -> Vec<String> {
        let tools = self.bodies()[index]["tools"].clone();
        let names = tools.as_array().map(|tools| {
            let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
            tools.iter().filter_map(name).collect()
        });
        names.unwrap_or_default()
    }
}

impl ModelPort for ScriptedModel {
    async fn complete(&self, request: &ChatRequest) -> Result<ModelReply, ModelFailure> {
        self.requests
            .lock()
            .expect("no test panics in here")
            .push(request.to_vec());
        let turn = self
            .turns
            .lock()
            .expect("no test panics in here")
            .pop_front();
        let turn = turn.map(|turn| match turn {
            Turn::See(decide) => {
                let body = serde_json::from_slice(&request.to_vec()).expect("a request is JSON");
                decide(&body)
            }
            other => other,
        });
        match turn {
            Some(Turn::Reply(reply)) => Ok(reply),
            Some(Turn::See(_)) => panic!("a look leads to something else"),
            Some(Turn::Fail(failure)) => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                Err(failure)
            }
            Some(Turn::Hang) => std::future::pending().await,
            None => Err(ModelFailure::Malformed("the script is over".to_owned())),
        }
    }

    fn retries(&self) -> u32 {
        self.retries.load(Ordering::Relaxed)
    }
}

pub(crate) const USAGE: Usage = Usage {
    prompt_tokens: 100,
    cached_tokens: 40,
    completion_tokens: 5,
};

/// A final answer.
pub(crate) fn answer(text: &str) -> Turn {
    Turn::Reply(ModelReply {
        content: Some(text.to_owned()),
        tool_calls: Vec::new(),
        usage: Some(USAGE),
    })
}

/// Tool calls with ids `c0`, `c1`, … and these names and arguments.
pub(crate) fn calls(calls: &[(&str, &str)]) -> Turn {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Turn::Reply(ModelReply {
        content: None,
        tool_calls: calls.iter().enumerate().map(call).collect(),
        usage: Some(USAGE),
    })
}

/// A read of the result of call `c<index>` of iteration `iteration`.
pub(crate) fn read(iteration: u32, index: u32, length: u32) -> Turn {
    let arguments = json!({
        "spillover_ref": format!("spillover://s1/i{iteration}c{index}.json"),
        "range": {"offset": 0, "length": length},
    });
    calls(&[(spill_engine::READ_TOOL, &arguments.to_string())])
}

/// A turn that calls `tool` with arguments made from what the first tool result of the request
/// names: a locator or a URI.
pub(crate) fn on_first(tool: &'static str, arguments: fn(&str) -> Value) -> Turn {
    Turn::See(Box::new(move |body| {
        let reference = reference_in(&result_text(body, 3));
        calls(&[(tool, &arguments(&reference).to_string())])
    }))
}

/// The text of the tool result that is message `index`, without its delimiters.
pub(crate) fn result_text(body: &Value, index: usize) -> String {
    let content = body["messages"][index]["content"].as_str();
    let text = spill_agent::undo_delimited(content.expect("a text"));
    text.expect("a delimited result").into_owned()
}

/// The locator, URI or reference that a replacement names.
pub(crate) fn reference_in(replacement: &str) -> String {
    if let Ok(envelope) = serde_json::from_str::<Value>(replacement) {
        let named = envelope
            .get("resourceUri")
            .or(envelope.get("spillover_ref"));
        return named
            .and_then(Value::as_str)
            .expect("a reference")
            .to_owned();
    }
    let (_, after) = replacement.rsplit_once("stored at: ").expect("a notice");
    let (locator, _) = after.split_once(". ").expect("a hint");
    locator.to_owned()
}

/// Settings from these variables.
pub(crate) fn settings(variables: &[(&str, &str)]) -> SpillSettings {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let (settings, warnings) = SpillSettings::from_lookup(lookup).expect("good settings");
    assert_eq!(warnings, []);
    settings
}

pub(crate) fn inline_cap(more: &[(&str, &str)]) -> SpillSettings {
    let variables = [
        ("SPILLGATE_POLICY", "inline-cap"),
        ("SPILLGATE_POLICY_OPTIONS", r#"{"maxInlineBytes":4096}"#),
        ("SPILLGATE_STORE_SEED", "7"),
    ];
    settings(&[more, &variables].concat())
}

pub(crate) fn envelope(more: &[(&str, &str)]) -> SpillSettings {
    let variables = [
        ("SPILLGATE_POLICY", "envelope"),
        ("SPILLGATE_POLICY_OPTIONS", r#"{"maxPayloadBytes":4096}"#),
        ("SPILLGATE_STORE_SEED", "7"),
    ];
    settings(&[more, &variables].concat())
}

/// Tools that answer from a function, each with the description of its name.
pub(crate) struct FnTools {
    pub(crate) names: &'static [&'static str],
    pub(crate) answer: fn(&str, &Map<String, Value>) -> ToolAnswer,
}

impl ToolPort for FnTools {
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolFailure> {
        TextTools::new(self.names).list().await
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolFailure> {
        Ok((self.answer)(name, arguments))
    }
}

/// Tools that return `size` bytes after `ms` milliseconds: `text {"size", "ms"}`; `fail`, `hang`
/// and `lost` do what they say.
pub(crate) struct TextTools {
    names: &'static [&'static str],
    called: AtomicU32,
}

pub(crate) static TOOLS: TextTools = TextTools {
    names: &["text", "fail", "hang", "lost"],
    called: AtomicU32::new(0),
};

impl TextTools {
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self {
            names,
            called: AtomicU32::new(0),
        }
    }

    pub(crate) fn called(&self) -> u32 {
        self.called.load(Ordering::Relaxed)
    }
}

/// The text that the tool returns for a size: lines, quotes and a mark of its own.
pub(crate) fn text_of(size: usize) -> String {
    let mut text = format!("SECRET-{size} \"quoted\"\n");
    while text.len() < size {
        text.push_str("one more line of a tool result\n");
    }
    text.truncate(size);
    text
}

impl ToolPort for TextTools {
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolFailure> {
        if self.names.is_empty() {
            return Err(ToolFailure::Unreachable("no server".to_owned()));
        }
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: Some(format!("does {name}")),
            parameters: json!({"type": "object"}),
        };
        Ok(self.names.iter().map(spec).collect())
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolFailure> {
        self.called.fetch_add(1, Ordering::Relaxed);
        let number = |key: &str| arguments.get(key).and_then(Value::as_u64).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(number("ms"))).await;
        match name {
            "fail" => Err(ToolFailure::Call("it broke".to_owned())),
            "lost" => Err(ToolFailure::Unreachable("the line is cut".to_owned())),
            "hang" => std::future::pending().await,
            _ => {
                let size = usize::try_from(number("size")).expect("a small size");
                Ok(ToolResult::text(text_of(size)).into())
            }
        }
    }
}

/// The job of every test; installs the log capture first, see there.
pub(crate) fn job() -> StepJob {
    crate::capture::install();
    let job = json!({
        "stepId": "s1", "model": "m", "system": "sys", "prompt": "do it",
        "llmUrl": "http://127.0.0.1:1/v1", "mcpUrl": "http://127.0.0.1:1/mcp",
        "iterationLimit": 5, "stepTimeoutMs": 1000, "maxRetries": 2, "retryBaseMs": 1,
    });
    StepJob::from_json(&job.to_string()).expect("a job")
}

pub(crate) fn off() -> Settings {
    Settings {
        enabled: Switch::Off,
        ..Settings::DEFAULT
    }
}

pub(crate) fn threshold(bytes: u64) -> Settings {
    Settings {
        threshold: Threshold::new(bytes).expect("within the bounds"),
        ..Settings::DEFAULT
    }
}

/// Runs the job of [`job`] with the tools of [`TOOLS`].
pub(crate) async fn run(settings: impl Into<SpillSettings>, model: &ScriptedModel) -> StepResult {
    run_step(&job(), settings, model, &TOOLS, &AbortSignal::never()).await
}

/// The step result as printed, without the one measured figure.
pub(crate) fn printed(result: &StepResult) -> Value {
    let mut value = serde_json::to_value(result).expect("a step result is JSON");
    value["durationMs"] = json!(0);
    value
}
