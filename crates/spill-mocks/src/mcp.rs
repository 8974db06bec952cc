//! The Model Context Protocol over streamable HTTP, the part a tool server needs: one POST, one
//! JSON answer.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::journal::ToolCallEntry;
use crate::registry::Slot;
use crate::tools::{ResultText, ToolOutcome, result_text};

/// Versions of the protocol that the server speaks; all of them begin with `initialize`.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version offered to a client that asks for another one.
const NEWEST: &str = "2025-11-25";
/// Where clients of the later era state their version in each request.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";

/// Where a result names the calls that its tool made.
const SUB_CALLS_META: &str = "spillgate/sub_calls";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// An HTTP answer; an empty body has no type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

#[derive(Deserialize)]
struct Request<'a> {
    jsonrpc: String,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Answers one POST to a run's tool server; `version` is the protocol version in its headers.
pub(crate) fn answer(slot: &Slot, version: Option<&str>, body: &[u8]) -> HttpAnswer {
    let request: Request<'_> = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => {
            return failure(
                400,
                "null",
                PARSE_ERROR,
                &format!("not a JSON-RPC request: {error}"),
            );
        }
    };
    let id = request.id.map_or("null", RawValue::get);
    if request.jsonrpc != "2.0" {
        return failure(400, id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
    }
    let params = request.params.map(RawValue::get);
    if let Some(version) = unknown_version(version, params) {
        let known = VERSIONS.join(", ");
        let message = format!("protocol version {version} is not supported, only {known}");
        return failure(400, id, INVALID_REQUEST, &message);
    }
    match (request.method.as_deref(), request.id) {
        // Notifications, and answers to requests that this server never makes.
        (_, None) | (None, Some(_)) => HttpAnswer {
            status: 202,
            body: Vec::new(),
        },
        (Some(method), Some(_)) => answer_method(slot, method, id, params),
    }
}

fn answer_method(slot: &Slot, method: &str, id: &str, params: Option<&str>) -> HttpAnswer {
    match method {
        "initialize" => success(id, &initialize_result(params)),
        "ping" => success(id, "{}"),
        "tools/list" => success(id, slot.tools.list(slot.offer)),
        "tools/call" => call(slot, id, params.unwrap_or("{}")),
        // The first request of the later era; its clients take a 4xx as "speak the older one".
        "server/discover" => failure(
            400,
            id,
            METHOD_NOT_FOUND,
            "this server begins with `initialize`",
        ),
        _ => {
            slot.unscripted(format!("MCP method {method}"));
            failure(
                200,
                id,
                METHOD_NOT_FOUND,
                &format!("no such method: {method}"),
            )
        }
    }
}

/// A stated version that the server does not speak. What `initialize` asks for is negotiated and
/// not looked at here.
fn unknown_version(header: Option<&str>, params: Option<&str>) -> Option<String> {
    let meta = params
        .filter(|params| params.contains(VERSION_META))
        .and_then(|params| serde_json::from_str::<Value>(params).ok())
        .and_then(|params| Some(params.get("_meta")?.get(VERSION_META)?.as_str()?.to_owned()));
    [header.map(str::to_owned), meta]
        .into_iter()
        .flatten()
        .find(|version| !VERSIONS.contains(&version.as_str()))
}

fn initialize_result(params: Option<&str>) -> String {
    let params: Value = params
        .and_then(|params| serde_json::from_str(params).ok())
        .unwrap_or_default();
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = asked
        .filter(|asked| VERSIONS.contains(asked))
        .unwrap_or(NEWEST);
    serde_json::json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "spillgate-tools", "version": env!("CARGO_PKG_VERSION")},
    })
    .to_string()
}

fn call(slot: &Slot, id: &str, params: &str) -> HttpAnswer {
    let CallParams { name, arguments } = match serde_json::from_str(params) {
        Ok(params) => params,
        Err(error) => return failure(200, id, INVALID_PARAMS, &format!("bad parameters: {error}")),
    };
    let json = arguments.map_or("", RawValue::get);
    let parsed: Value = serde_json::from_str(json).unwrap_or_default();
    let mut sub_calls = None;
    let (result, is_error) = match slot.tools.call(slot.offer, &name, &parsed) {
        ToolOutcome::Text(text) => (Some(text), false),
        ToolOutcome::Composite {
            text,
            sub_calls: made,
        } => {
            sub_calls = Some(made);
            (Some(text), false)
        }
        ToolOutcome::Error(message) => (Some(result_text(&message)), true),
        ToolOutcome::Unknown => (None, true),
    };
    slot.tool_called(ToolCallEntry {
        argument_bytes: json.len() as u64,
        result_bytes: result.as_ref().map_or(0, |text| text.bytes),
        is_error,
        tool: name.clone(),
    });
    match result {
        Some(text) => call_result(id, &text, sub_calls.as_deref(), is_error),
        None => failure(200, id, INVALID_PARAMS, &format!("unknown tool: {name}")),
    }
}

/// The calls that a composite tool made stand in `_meta`, where its client finds them.
fn call_result(id: &str, text: &ResultText, sub_calls: Option<&str>, is_error: bool) -> HttpAnswer {
    let is_error = if is_error { "true" } else { "false" };
    let before = r#"{"content":[{"type":"text","text":"#;
    let mut parts = vec![before, &text.json, r#"}],"isError":"#, is_error];
    if let Some(sub_calls) = sub_calls {
        parts.extend([r#","_meta":{""#, SUB_CALLS_META, r#"":"#, sub_calls, "}"]);
    }
    parts.push("}");
    success_of(id, &parts)
}

fn success(id: &str, result: &str) -> HttpAnswer {
    success_of(id, &[result])
}

/// Writes the answer into one allocation: a result may be large.
fn success_of(id: &str, result: &[&str]) -> HttpAnswer {
    let mut parts = vec![r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#];
    parts.extend(result);
    parts.push("}");
    HttpAnswer {
        status: 200,
        body: parts.concat().into_bytes(),
    }
}

fn failure(status: u16, id: &str, code: i64, message: &str) -> HttpAnswer {
    let message = Value::from(message);
    let error = format!(r#"{{"code":{code},"message":{message}}}"#);
    HttpAnswer {
        status,
        body: format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes(),
    }
}
