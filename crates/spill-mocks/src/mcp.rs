//! The Model Context Protocol, the part a tool server needs: one request, one JSON answer.
//!
//! Two eras of it are in use. Up to 2025-11-25 a client begins with `initialize`. From 2026-07-28
//! each request stands for itself: it states its version in `_meta`, its method and the tool's name
//! in headers, and every result says of which type it is.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::faults::Delivery;
use crate::journal::ToolCallEntry;
use crate::registry::Slot;
use crate::tool_faults::{Spoilt, spoil};
use crate::tools::{ResultText, ToolOutcome, result_text};

/// Versions that begin with `initialize`.
const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version offered to a client that asks `initialize` for another one.
const NEWEST_HANDSHAKE: &str = "2025-11-25";
/// The version whose requests stand for themselves.
const MODERN: &str = "2026-07-28";
/// Where its clients state their version in each request.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_META: &str = "io.modelcontextprotocol/serverInfo";
/// Where a result names the calls that its tool made.
const SUB_CALLS_META: &str = "spillgate/sub_calls";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// An HTTP answer; an empty body has no type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
    pub(crate) delivery: Delivery,
}

impl HttpAnswer {
    /// A status without a body.
    pub(crate) fn bare(status: u16) -> Self {
        Self::json(status, Vec::new())
    }

    fn json(status: u16, body: Vec<u8>) -> Self {
        Self {
            status,
            kind: "application/json",
            body,
            delivery: Delivery::Whole,
        }
    }
}

/// What the headers of a request state; all absent where there are none, as on standard input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stated<'r> {
    pub(crate) version: Option<&'r str>,
    pub(crate) method: Option<&'r str>,
    pub(crate) name: Option<&'r str>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Handshake,
    Modern,
}

/// Answers one request to a run's tool server.
pub(crate) fn answer(slot: &Slot, stated: Stated<'_>, body: &[u8]) -> HttpAnswer {
    let request: Request<'_> = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("not a JSON-RPC request: {error}");
            return failure(400, "null", PARSE_ERROR, &message);
        }
    };
    let id = request.id.map_or("null", RawValue::get);
    if request.jsonrpc != "2.0" {
        return failure(400, id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
    }
    let params = request.params.map_or("{}", RawValue::get);
    let (Some(method), Some(_)) = (request.method.as_deref(), request.id) else {
        // Notifications, and answers to requests that this server never makes.
        return HttpAnswer::bare(202);
    };
    match era(stated, method, params) {
        Ok(Era::Handshake) => by_handshake(slot, method, id, params),
        Ok(Era::Modern) => modern(slot, method, id, params),
        Err(Disagreement::Version(version)) => unsupported(id, &version),
        Err(Disagreement::Header(message)) => failure(400, id, HEADER_MISMATCH, &message),
    }
}

enum Disagreement {
    /// A version that the server does not speak.
    Version(String),
    /// Headers and body state different things.
    Header(String),
}

/// What `initialize` asks for is negotiated and not looked at here.
fn era(stated: Stated<'_>, method: &str, params: &str) -> Result<Era, Disagreement> {
    let Some(version) = version_in(params) else {
        return match stated.version {
            Some(MODERN) => Err(Disagreement::Header(format!(
                "the header mcp-protocol-version is {MODERN} and `_meta` states no version"
            ))),
            Some(version) if !HANDSHAKE.contains(&version) => {
                Err(Disagreement::Version(version.to_owned()))
            }
            Some(_) | None => Ok(Era::Handshake),
        };
    };
    let differs = |header: &str, stated: Option<&str>, said: &str| {
        let differs = stated.is_some_and(|stated| stated != said);
        differs.then(|| Disagreement::Header(format!("the header {header} and the body differ")))
    };
    let name = name_in(method, params);
    let disagreement = differs("mcp-protocol-version", stated.version, &version)
        .or_else(|| differs("mcp-method", stated.method, method))
        .or_else(|| {
            differs(
                "mcp-name",
                stated.name.filter(|_| name.is_some()),
                name.as_deref().unwrap_or(""),
            )
        });
    match disagreement {
        Some(disagreement) => Err(disagreement),
        None if version == MODERN => Ok(Era::Modern),
        None if HANDSHAKE.contains(&version.as_str()) => Ok(Era::Handshake),
        None => Err(Disagreement::Version(version)),
    }
}

fn version_in(params: &str) -> Option<String> {
    if !params.contains(VERSION_META) {
        return None;
    }
    let params: Value = serde_json::from_str(params).ok()?;
    Some(params.get("_meta")?.get(VERSION_META)?.as_str()?.to_owned())
}

fn name_in(method: &str, params: &str) -> Option<String> {
    if method != "tools/call" {
        return None;
    }
    let params: CallParams<'_> = serde_json::from_str(params).ok()?;
    Some(params.name)
}

fn unsupported(id: &str, version: &str) -> HttpAnswer {
    let known: Vec<&str> = HANDSHAKE.into_iter().chain([MODERN]).collect();
    let message = format!(
        "protocol version {version} is not supported, only {}",
        known.join(", ")
    );
    let data = json!({"supported": known, "requested": version});
    let error = json!({"code": UNSUPPORTED_VERSION, "message": message, "data": data});
    error_answer(400, id, &error)
}

fn by_handshake(slot: &Slot, method: &str, id: &str, params: &str) -> HttpAnswer {
    match method {
        "initialize" => success(id, &initialize_result(params)),
        "ping" => success(id, "{}"),
        "tools/list" => success(id, slot.tools.list(slot.offer)),
        "tools/call" => call(slot, id, params, Era::Handshake),
        "server/discover" => failure(
            400,
            id,
            INVALID_PARAMS,
            &format!("`_meta` states no `{VERSION_META}`"),
        ),
        _ => no_such_method(slot, method, id),
    }
}

fn modern(slot: &Slot, method: &str, id: &str, params: &str) -> HttpAnswer {
    const CACHED: &str = r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"private","#;
    match method {
        "server/discover" => success(id, &discover_result()),
        "tools/list" => {
            let list = slot.tools.list(slot.offer);
            success_of(id, &[CACHED, list.trim_start_matches('{')])
        }
        "tools/call" => call(slot, id, params, Era::Modern),
        _ => no_such_method(slot, method, id),
    }
}

fn no_such_method(slot: &Slot, method: &str, id: &str) -> HttpAnswer {
    slot.unscripted(format!("MCP method {method}"));
    failure(
        200,
        id,
        METHOD_NOT_FOUND,
        &format!("no such method: {method}"),
    )
}

fn server_info() -> Value {
    json!({"name": "spillgate-tools", "version": env!("CARGO_PKG_VERSION")})
}

fn initialize_result(params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = asked
        .filter(|asked| HANDSHAKE.contains(asked))
        .unwrap_or(NEWEST_HANDSHAKE);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": server_info(),
    })
    .to_string()
}

fn discover_result() -> String {
    let versions: Vec<&str> = HANDSHAKE.into_iter().chain([MODERN]).collect();
    json!({
        "resultType": "complete",
        "ttlMs": 60000,
        "cacheScope": "private",
        "supportedVersions": versions,
        "capabilities": {"tools": {"listChanged": false}},
        "_meta": {SERVER_META: server_info()},
    })
    .to_string()
}

fn call(slot: &Slot, id: &str, params: &str, era: Era) -> HttpAnswer {
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
    let fault = slot.tool_fault().filter(|_| result.is_some() && !is_error);
    let entry = ToolCallEntry {
        argument_bytes: json.len() as u64,
        result_bytes: 0,
        is_error,
        tool: name.clone(),
        fault: fault.map(spill_scenario::ToolFault::name),
    };
    let reply = Reply {
        slot,
        id,
        era,
        entry,
    };
    match (result, fault) {
        (Some(text), Some(fault)) => reply.spoilt(spoil(fault, text)),
        (Some(text), None) => reply.text(&text, sub_calls.as_deref(), is_error),
        (None, _) => {
            slot.tool_called(reply.entry);
            failure(200, id, INVALID_PARAMS, &format!("unknown tool: {name}"))
        }
    }
}

/// The answer to one tool call.
struct Reply<'a> {
    slot: &'a Slot,
    id: &'a str,
    era: Era,
    entry: ToolCallEntry,
}

impl Reply<'_> {
    fn text(mut self, text: &ResultText, sub_calls: Option<&str>, is_error: bool) -> HttpAnswer {
        self.entry.result_bytes = text.bytes;
        self.entry.is_error = is_error;
        let content = [r#"{"type":"text","text":"#, &text.json, "}"];
        self.result(&content, sub_calls)
    }

    /// The calls that a composite tool made stand in `_meta`, where its client finds them.
    fn result(self, content: &[&str], sub_calls: Option<&str>) -> HttpAnswer {
        let is_error = if self.entry.is_error { "true" } else { "false" };
        let mut parts = vec![match self.era {
            Era::Handshake => r#"{"content":["#,
            Era::Modern => r#"{"resultType":"complete","content":["#,
        }];
        parts.extend(content);
        parts.extend([r#"],"isError":"#, is_error]);
        if let Some(sub_calls) = sub_calls {
            parts.extend([r#","_meta":{""#, SUB_CALLS_META, r#"":"#, sub_calls, "}"]);
        }
        parts.push("}");
        let answer = success_of(self.id, &parts);
        self.slot.tool_called(self.entry);
        answer
    }

    fn spoilt(mut self, (spoilt, delivery): (Spoilt, Delivery)) -> HttpAnswer {
        let mut answer = match spoilt {
            Spoilt::Result(text) => {
                if delivery.spoils() {
                    self.entry.is_error = true;
                    let answer = self.text(&text, None, false);
                    return HttpAnswer { delivery, ..answer };
                }
                self.text(&text, None, false)
            }
            Spoilt::Error(message) => self.text(&result_text(message), None, true),
            Spoilt::Picture(base64) => {
                self.entry.result_bytes = base64.len() as u64;
                let content = [
                    r#"{"type":"image","mimeType":"image/png","data":""#,
                    base64,
                    r#""}"#,
                ];
                self.result(&content, None)
            }
            Spoilt::Http { status, kind, body } => {
                self.entry.is_error = true;
                self.slot.tool_called(self.entry);
                HttpAnswer {
                    status,
                    kind,
                    body: body.as_bytes().to_vec(),
                    delivery,
                }
            }
        };
        answer.delivery = delivery;
        answer
    }
}

fn success(id: &str, result: &str) -> HttpAnswer {
    success_of(id, &[result])
}

/// Writes the answer into one allocation: a result may be large.
fn success_of(id: &str, result: &[&str]) -> HttpAnswer {
    let mut parts = vec![r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#];
    parts.extend(result);
    parts.push("}");
    HttpAnswer::json(200, parts.concat().into_bytes())
}

fn failure(status: u16, id: &str, code: i64, message: &str) -> HttpAnswer {
    error_answer(status, id, &json!({"code": code, "message": message}))
}

fn error_answer(status: u16, id: &str, error: &Value) -> HttpAnswer {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    HttpAnswer::json(status, body.into_bytes())
}
