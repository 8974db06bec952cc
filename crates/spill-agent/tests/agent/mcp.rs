//! The tool client against a scripted MCP server.

use std::time::Duration;

use serde_json::{Map, Value, json};
use spill_agent::{McpTools, SubCall, ToolAnswer, ToolFailure, ToolPort as _, http_client};
use spill_engine::{Block, ToolResult};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers::method};

use crate::ports::text_of;

/// Answers `initialize`, notifications and `tools/list`; `tools/call` by the tool's name.
pub(crate) struct Script {
    pub(crate) session: Option<&'static str>,
}

impl Respond for Script {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let message: Value = request.body_json().expect("JSON-RPC");
        let id = &message["id"];
        let answer = |result: Value| {
            ResponseTemplate::new(200)
                .set_body_json(json!({"jsonrpc": "2.0", "id": id, "result": result}))
        };
        match message["method"].as_str().expect("a method") {
            "initialize" => {
                let answer = answer(json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "script", "version": "1"},
                }));
                match self.session {
                    Some(session) => answer.insert_header("mcp-session-id", session),
                    None => answer,
                }
            }
            "tools/list" => answer(json!({"tools": [
                {"name": "text", "description": "Text.", "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                {"name": "refuse", "inputSchema": {"type": "object"}},
            ]})),
            "tools/call" => call(id, &message["params"]),
            _notification => ResponseTemplate::new(202),
        }
    }
}

fn call(id: &Value, params: &Value) -> ResponseTemplate {
    let result = |result: Value| {
        ResponseTemplate::new(200)
            .set_body_json(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    };
    match params["name"].as_str().expect("a name") {
        "text" => {
            let size = params["arguments"]["size"].as_u64().expect("a size");
            let text = text_of(usize::try_from(size).expect("a small size"));
            result(json!({"content": [{"type": "text", "text": text}]}))
        }
        "error" => result(json!({"content": [{"type": "text", "text": "bad"}], "isError": true})),
        "mixed" => result(json!({
            "content": [
                {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            ],
            "structuredContent": {"n": 1},
        })),
        "composite" => result(json!({
            "content": [{"type": "text", "text": "both"}],
            "_meta": {"other": 1, "spillgate/sub_calls": [
                {"tool": "text", "arguments": {"size": 3}, "result": "one", "is_error": false},
                {"tool": "text", "arguments": {}, "result": "no", "is_error": true},
            ]},
        })),
        "nothing" => result(json!({"content": []})),
        "refuse" => ResponseTemplate::new(200).set_body_json(
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such path"}}),
        ),
        "stream" => ResponseTemplate::new(200).set_body_raw(
            format!(
                "event: message\ndata: {}\n\n",
                json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "streamed"}]}})
            ),
            "text/event-stream",
        ),
        "garbage" => ResponseTemplate::new(200).set_body_raw("{]", "application/json"),
        "page" => ResponseTemplate::new(200).set_body_raw("<p>hi", "text/html"),
        _ => ResponseTemplate::new(500).set_body_string("broken"),
    }
}

pub(crate) async fn server(script: Script) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(script)
        .mount(&server)
        .await;
    server
}

fn tools(server: &MockServer) -> McpTools {
    McpTools::new(
        http_client().expect("a client"),
        &format!("{}/run/1/mcp", server.uri()),
    )
}

#[tokio::test]
async fn the_tools_are_listed_as_the_server_describes_them() {
    let server = server(Script { session: None }).await;
    let tools = tools(&server);
    let listed = tools.list().await.expect("a list");
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["text", "refuse"]);
    assert_eq!(listed[0].description.as_deref(), Some("Text."));
    assert_eq!(listed[1].description, None);
    assert_eq!(
        listed[0].parameters.to_string(),
        r#"{"type":"object","properties":{"size":{"type":"integer"}}}"#
    );
    tools.close().await;
}

async fn called(tools: &McpTools, name: &str) -> Result<ToolAnswer, ToolFailure> {
    let mut arguments = Map::new();
    arguments.insert("size".to_owned(), json!(300_000));
    tools.call(name, &arguments).await
}

async fn check_result(tools: &McpTools, name: &str, expected: ToolResult) {
    let answer = called(tools, name).await.expect(name);
    assert!(answer == expected.into(), "{name}: {answer:?}");
}

#[tokio::test]
async fn results_arrive_whole() {
    let server = server(Script { session: None }).await;
    let tools = tools(&server);
    check_result(&tools, "text", ToolResult::text(text_of(300_000))).await;
    check_result(&tools, "error", ToolResult::error("bad")).await;
    check_result(&tools, "stream", ToolResult::text("streamed")).await;
    check_result(&tools, "nothing", ToolResult::default()).await;
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let mixed = ToolResult {
        blocks: vec![Block::Text("a".to_owned()), Block::Other(image)],
        structured: Some(json!({"n": 1})),
        is_error: false,
    };
    check_result(&tools, "mixed", mixed).await;
    tools.close().await;
}

#[tokio::test]
async fn a_composite_tools_own_calls_arrive_beside_its_result() {
    let server = server(Script { session: None }).await;
    let tools = tools(&server);
    let answer = called(&tools, "composite").await.expect("an answer");
    assert_eq!(answer.result, ToolResult::text("both"));
    let arguments = Map::from_iter([("size".to_owned(), json!(3))]);
    let sub_call = |arguments, result| SubCall {
        tool: "text".to_owned(),
        arguments,
        result,
    };
    assert_eq!(
        answer.sub_calls,
        [
            sub_call(arguments, ToolResult::text("one")),
            sub_call(Map::new(), ToolResult::error("no")),
        ]
    );
    tools.close().await;
}

async fn check_failure(tools: &McpTools, name: &str, message: &str) {
    match called(tools, name).await {
        Err(ToolFailure::Call(text)) => assert!(text.contains(message), "{name}: {text}"),
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn a_failed_call_leaves_the_session_usable() {
    let server = server(Script { session: None }).await;
    let tools = tools(&server);
    check_failure(&tools, "refuse", "no such path").await;
    check_failure(&tools, "broken", "500").await;
    check_failure(&tools, "garbage", "response").await;
    check_failure(&tools, "page", "content type").await;
    check_result(&tools, "error", ToolResult::error("bad")).await;
    tools.close().await;
}

#[tokio::test]
async fn nobody_listening_is_out_of_reach() {
    let tools = McpTools::new(http_client().expect("a client"), "http://127.0.0.1:1/mcp");
    assert!(matches!(
        tools.list().await,
        Err(ToolFailure::Unreachable(_))
    ));
    tools.close().await;
}

/// The library waits up to five seconds for the end of a session; a step must not.
#[tokio::test]
async fn closing_does_not_wait_for_a_hanging_server() {
    let server = server(Script {
        session: Some("s-1"),
    })
    .await;
    Mock::given(method("DELETE"))
        .respond_with(ResponseTemplate::new(200).set_delay(Duration::from_secs(60)))
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(405))
        .mount(&server)
        .await;
    let tools = tools(&server);
    tools.list().await.expect("a list");
    tokio::time::timeout(Duration::from_secs(3), tools.close())
        .await
        .expect("closing is bounded");
}
