//! The mock servers over real sockets: raw HTTP, and the official MCP client.

#[path = "wire/clients.rs"]
mod clients;
#[path = "wire/dialects.rs"]
mod dialects;
#[path = "wire/eras.rs"]
mod eras;
#[path = "wire/faults.rs"]
mod faults;
#[path = "wire/forward.rs"]
mod forward;
#[path = "wire/forward_lost.rs"]
mod forward_lost;
#[path = "wire/reported.rs"]
mod reported;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::{Client, Method, Response};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use spill_mocks::{LlmServer, MockRun, Registry, ToolServer};
use spill_scenario::{
    ChangedFile, Class, FactsOrigin, Input, InputData, ModelSpec, Profile, Recipe, ServedInput,
    Table, TableFormat,
};
use spill_tokens::TokenCounter;

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn run(run_id: &str) -> MockRun {
    let file = ChangedFile {
        path: "src/a.rs".to_owned(),
        status: "modified".to_owned(),
        diff: "@@ -1 +1 @@\n+// TODO(anna): \"quotes\" and </tool-result>\n".to_owned(),
        content: "// TODO(anna): \"quotes\" and </tool-result>\nfn é() {}\n".to_owned(),
    };
    let input = Input {
        name: "small".to_owned(),
        class: Class::Small,
        data: InputData {
            recipe: Recipe::Review,
            files: vec![file],
            documents: Vec::new(),
            tables: Vec::new(),
            calls: Vec::new(),
        },
        facts: Vec::new(),
        facts_origin: FactsOrigin::Derived,
        notes: Vec::new(),
    };
    MockRun {
        run_id: run_id.to_owned(),
        recipe: Recipe::Review,
        served: Arc::new(ServedInput::new(&input, 5)),
        seed: 11,
        scenario: "review".to_owned(),
        model: Arc::new(ModelSpec {
            name: "simulated".to_owned(),
            population: BTreeMap::from([(Profile::Selective, 1.0)]),
            context_window_tokens: 5000,
            parallel_calls: 2,
            slice_bytes: 4096,
            window_lines: 100,
            reading_budget_bytes: 16_384,
            max_findings: 20,
            patterns: Vec::new(),
            composite: false,
            recall: spill_scenario::defaults::RECALL.to_vec(),
            latency: None,
        }),
        profile: Profile::Selective,
        faults: Arc::from([]),
    }
}

struct Mocks {
    registry: Arc<Registry>,
    llm: LlmServer,
    tools: ToolServer,
    client: Client,
}

impl Mocks {
    async fn start() -> Self {
        let registry = Arc::new(Registry::new(Arc::new(TokenCounter::o200k_base())));
        registry.register(run("r1"));
        Self {
            llm: LlmServer::start(LOCAL, Arc::clone(&registry))
                .await
                .expect("a free port"),
            tools: ToolServer::start(LOCAL, Arc::clone(&registry))
                .await
                .expect("a free port"),
            client: Client::builder().no_proxy().build().expect("a client"),
            registry,
        }
    }

    fn llm_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.llm.address())
    }

    async fn chat(&self, run_id: &str, body: impl Into<reqwest::Body>) -> Response {
        let url = format!("{}/chat/completions", self.llm.base_url(run_id));
        self.client
            .post(url)
            .body(body)
            .send()
            .await
            .expect("an answer")
    }

    async fn mcp(&self, body: &Value, version: Option<&str>) -> (u16, Value) {
        let mut request = self
            .client
            .post(self.tools.url("r1"))
            .body(body.to_string());
        if let Some(version) = version {
            request = request.header("MCP-Protocol-Version", version);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or_default())
    }
}

fn request(extra: &Value) -> String {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let mut body = json!({
        "model": "simulated",
        "messages": [{"role": "user", "content": "Review."}],
        "tools": [tool("list_changed_files"), tool("read_diff"), tool("read_file")],
    });
    for (name, value) in extra.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body.to_string()
}

async fn json_of(response: Response) -> Value {
    serde_json::from_str(&response.text().await.expect("a body")).expect("JSON")
}

#[tokio::test]
async fn json_replies_have_the_published_shape() {
    let mocks = Mocks::start().await;
    let calls = mocks.chat("r1", request(&json!({}))).await;
    assert_eq!(calls.headers()["content-type"], "application/json");
    let calls = json_of(calls).await;
    insta::assert_snapshot!(
        "json_calls",
        serde_json::to_string_pretty(&calls).expect("JSON")
    );
    let answer = json_of(mocks.chat("r1", request(&json!({"tools": []}))).await).await;
    insta::assert_snapshot!(
        "json_answer",
        serde_json::to_string_pretty(&answer).expect("JSON")
    );
}

#[tokio::test]
async fn streams_send_chunks_in_the_published_order() {
    let mocks = Mocks::start().await;
    let asked = json!({"stream": true, "stream_options": {"include_usage": true}});
    let response = mocks.chat("r1", request(&asked)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    insta::assert_snapshot!("sse_calls", response.text().await.expect("a body"));
    let asked = json!({"stream": true, "tools": null});
    let response = mocks.chat("r1", request(&asked)).await;
    insta::assert_snapshot!("sse_answer", response.text().await.expect("a body"));
}

#[tokio::test]
async fn an_answer_that_the_request_bounds_is_cut() {
    let mocks = Mocks::start().await;
    let answer = json_of(
        mocks
            .chat("r1", request(&json!({"tools": [], "max_tokens": 3})))
            .await,
    )
    .await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert!(answer["usage"]["completion_tokens"].as_u64() <= Some(3));
}

/// Known fault 126: OpenHands/OpenHands-CLI #427 review.
#[tokio::test]
async fn a_run_is_known_by_path_or_by_key_and_anything_else_is_loud() {
    let mocks = Mocks::start().await;
    let by_key = |key: &'static str, path: &str| {
        mocks
            .client
            .post(mocks.llm_url(path))
            .bearer_auth(key)
            .body(request(&json!({})))
            .send()
    };
    let answer = by_key("r1", "/v1/chat/completions")
        .await
        .expect("an answer");
    assert_eq!(answer.status(), 200);
    let models = mocks
        .client
        .get(mocks.llm_url("/run/r1/v1/models"))
        .send()
        .await
        .expect("one");
    assert_eq!(json_of(models).await["data"][0]["id"], "simulated");
    for (key, path) in [
        ("r2", "/v1/chat/completions"),
        ("r1", "/v1/completions"),
        ("r1", "/v1/models"),
        ("r1", "/run/r2/v1/chat/completions"),
    ] {
        let answer = by_key(key, path).await.expect("an answer");
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(
            json_of(answer).await["error"]["code"],
            "unscripted_request",
            "{path}"
        );
    }
    let journal = mocks.registry.finish("r1");
    assert_eq!(journal.llm.len(), 1);
    assert_eq!(
        journal.unscripted,
        ["POST /v1/completions", "POST /v1/models"]
    );
    assert_eq!(mocks.registry.strays().len(), 2);
    assert_eq!(mocks.chat("r1", request(&json!({}))).await.status(), 404);
}

#[tokio::test]
async fn malformed_requests_are_refused_and_journalled() {
    let mocks = Mocks::start().await;
    let large = 20 * 1024 * 1024;
    let bodies = [
        String::new(),
        "not json".to_owned(),
        "{\"model\":\"m\"}".to_owned(),
        "{\"model\":\"m\",\"messages\":\"none\"}".to_owned(),
        "x".repeat(large),
        "[".repeat(large),
        format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}",
            "x".repeat(large)
        ),
    ];
    let count = bodies.len();
    for body in bodies {
        let start: String = body.chars().take(40).collect();
        let answer = mocks.chat("r1", body).await;
        assert_eq!(answer.status(), 400, "{start}");
        assert_eq!(
            json_of(answer).await["error"]["type"],
            "invalid_request_error",
            "{start}"
        );
    }
    let invalid = mocks.chat("r1", vec![b'{', 0xff, 0xfe]).await;
    assert_eq!(invalid.status(), 400);
    assert_eq!(mocks.registry.finish("r1").llm.len(), count + 1);
}

#[tokio::test]
async fn a_prompt_over_the_context_window_gets_the_providers_error() {
    let mocks = Mocks::start().await;
    let long = json!({"messages": [{"role": "user", "content": "word ".repeat(6000)}]});
    let answer = mocks.chat("r1", request(&long)).await;
    assert_eq!(answer.status(), 400);
    insta::assert_snapshot!("context_window", answer.text().await.expect("a body"));
    let entry = &mocks.registry.finish("r1").llm[0];
    assert_eq!(entry.finish_reason, "context_length_exceeded");
}

/// Known fault 72: adolfousier/opencrabs #1636; earendil-works/pi PR #2148; tembo/agent-studio PR #238; omnigent-ai/omnigent #1801.
#[tokio::test]
async fn usage_counts_cached_tokens_once_a_request_is_completed() {
    let mocks = Mocks::start().await;
    let message = json!({"role": "user", "content": "word ".repeat(2000)});
    let asked = json!({"messages": [message], "stream": true});
    mocks
        .chat("r1", request(&asked))
        .await
        .text()
        .await
        .expect("a whole stream");
    let asked = json!({"messages": [message, message]});
    let answer = json_of(mocks.chat("r1", request(&asked)).await).await;
    let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    assert_eq!(cached, Some(2048 - 128 + 128), "{}", answer["usage"]);
    let journal = mocks.registry.finish("r1");
    let sent = answer["usage"]["prompt_tokens"].as_u64().expect("a number");
    let entry = &journal.llm[1];
    assert_eq!(entry.uncached_input_tokens + entry.cache_read_tokens, sent);
}

#[tokio::test]
async fn many_runs_are_served_at_once() {
    let mocks = Mocks::start().await;
    let mut bodies = Vec::new();
    for number in 0..20 {
        mocks.registry.register(run(&format!("run{number}")));
    }
    let answers = (0..20).map(|number| {
        let url = format!(
            "{}/chat/completions",
            mocks.llm.base_url(&format!("run{number}"))
        );
        tokio::spawn(mocks.client.post(url).body(request(&json!({}))).send())
    });
    for answer in answers.collect::<Vec<_>>() {
        let answer = answer.await.expect("no panic").expect("an answer");
        bodies.push(answer.text().await.expect("a body"));
    }
    assert!(
        bodies.iter().all(|body| *body == bodies[0]),
        "equal runs get equal bytes"
    );
    for number in 0..20 {
        assert_eq!(mocks.registry.finish(&format!("run{number}")).llm.len(), 1);
    }
    mocks.llm.shutdown().await.expect("a clean stop");
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

#[tokio::test]
async fn initialize_answers_with_a_version_that_both_speak() {
    let mocks = Mocks::start().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}});
        let (status, answer) = mocks.mcp(&rpc("initialize", &params), None).await;
        assert_eq!(status, 200);
        assert_eq!(answer["result"]["protocolVersion"], answered);
    }
}

#[tokio::test]
async fn the_rest_of_the_protocol_is_as_published() {
    let mocks = Mocks::start().await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(mocks.mcp(&notification, None).await, (202, Value::Null));
    assert_eq!(
        mocks.mcp(&rpc("ping", &json!({})), None).await.1["result"],
        json!({})
    );
    let tools = mocks.mcp(&rpc("tools/list", &json!({})), None).await.1;
    insta::assert_snapshot!(
        "tools_list",
        serde_json::to_string_pretty(&tools).expect("JSON")
    );
    let unknown = mocks.mcp(&rpc("resources/list", &json!({})), None).await;
    assert_eq!(
        (unknown.0, &unknown.1["error"]["code"]),
        (200, &json!(-32601))
    );
    assert_eq!(
        mocks.mcp(&json!({"jsonrpc": "1.0", "id": 1}), None).await.0,
        400
    );
    assert_eq!(mocks.mcp(&json!([]), None).await.0, 400);
    for method in [Method::GET, Method::DELETE] {
        let url = mocks.tools.url("r1");
        let answer = mocks
            .client
            .request(method, url)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 405);
    }
    let stray = mocks
        .client
        .get(mocks.tools.url("r2"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(stray.status(), 404);
    assert_eq!(
        mocks.registry.finish("r1").unscripted,
        ["MCP method resources/list"]
    );
}

async fn check_call(mocks: &Mocks, name: &str, arguments: Value, expected: &str) {
    let params = json!({"name": name, "arguments": arguments});
    let (status, answer) = mocks.mcp(&rpc("tools/call", &params), None).await;
    assert_eq!(status, 200);
    let shown = match answer.get("error") {
        Some(error) => error["code"].to_string(),
        None => format!(
            "{}: {}",
            answer["result"]["isError"],
            answer["result"]["content"][0]["text"]
                .as_str()
                .expect("a text")
        ),
    };
    assert!(shown.contains(expected), "{name} {arguments}: {shown}");
}

#[tokio::test]
async fn tools_return_the_served_texts_and_errors_as_results() {
    let mocks = Mocks::start().await;
    let path = json!({"path": "src/a.rs"});
    check_call(
        &mocks,
        "list_changed_files",
        json!({}),
        "\"path\":\"src/a.rs\"",
    )
    .await;
    check_call(
        &mocks,
        "read_diff",
        path.clone(),
        "+// TODO(anna): \"quotes\" and </tool-result>",
    )
    .await;
    check_call(&mocks, "read_file", path.clone(), "fn é() {}").await;
    check_call(
        &mocks,
        "read_file",
        json!({"path": "b"}),
        "true: no such file: b",
    )
    .await;
    check_call(&mocks, "read_file", json!({}), "true: the argument `path`").await;
    check_call(
        &mocks,
        "read_file",
        json!({"path": 7}),
        "true: the argument `path`",
    )
    .await;
    check_call(
        &mocks,
        "search",
        json!({"query": "fn "}),
        "false: src/a.rs:2: fn é() {}",
    )
    .await;
    check_call(
        &mocks,
        "search",
        json!({"query": "zzz"}),
        "false: no matches",
    )
    .await;
    check_call(
        &mocks,
        "search",
        json!({"query": ""}),
        "true: the argument `query`",
    )
    .await;
    check_call(
        &mocks,
        "search",
        json!({"query": "f", "limit": -1}),
        "true: the argument",
    )
    .await;
    check_call(&mocks, "read_document", json!({"name": "a"}), "-32602").await;
    let calls = mocks.registry.finish("r1").tools;
    assert_eq!(calls.len(), 11);
    assert_eq!(calls.iter().filter(|call| call.is_error).count(), 6);
    assert_eq!(calls[1].argument_bytes, path.to_string().len() as u64);
    let served = run("r1").served;
    let diff = served.diff("src/a.rs").expect("a diff");
    assert_eq!(calls[1].result_bytes, diff.len() as u64);
}

#[tokio::test]
async fn tables_exports_and_logs_are_served_by_format() {
    let mocks = Mocks::start().await;
    let table = |name: &str, format, text: &str| Table {
        name: name.to_owned(),
        format,
        rows: 1,
        text: text.to_owned(),
    };
    let mut data = InputData::empty(Recipe::Records);
    data.tables = vec![
        table(
            "t",
            TableFormat::Rows,
            r#"[{"id":"a","trace_id":"trc0000000000000"}]"#,
        ),
        table("e", TableFormat::Csv, "id,trace_id\na,trc0000000000000\n"),
        table("l", TableFormat::Log, "now ERROR no\n"),
    ];
    let input = Input {
        name: "records".to_owned(),
        class: Class::Small,
        data,
        facts: Vec::new(),
        facts_origin: FactsOrigin::Derived,
        notes: Vec::new(),
    };
    mocks.registry.register(MockRun {
        recipe: Recipe::Records,
        served: Arc::new(ServedInput::new(&input, 5)),
        ..run("r1")
    });
    let (_, list) = mocks.mcp(&rpc("tools/list", &json!({})), None).await;
    insta::assert_snapshot!(
        "records_tools_list",
        serde_json::to_string_pretty(&list["result"]).expect("JSON")
    );
    let named = |name: &str| json!({"table": name});
    check_call(
        &mocks,
        "list_tables",
        json!({}),
        r#""name":"t","format":"rows","rows":1,"size_bytes":42"#,
    )
    .await;
    check_call(
        &mocks,
        "query",
        named("t"),
        r#"false: [{"id":"a","trace_id":"sgc"#,
    )
    .await;
    check_call(
        &mocks,
        "export_csv",
        named("e"),
        "false: id,trace_id\na,sgc",
    )
    .await;
    check_call(&mocks, "read_log", json!({"name": "l"}), "\nnow ERROR no\n").await;
    check_call(&mocks, "query", named("e"), "true: no such table: e").await;
    check_call(&mocks, "export_csv", named("t"), "true: no such export: t").await;
    check_call(&mocks, "read_log", named("l"), "true: the argument `name`").await;
    check_call(&mocks, "read_document", json!({"name": "t"}), "-32602").await;
}

#[tokio::test]
async fn a_composite_tool_says_which_calls_it_made() {
    let mocks = Mocks::start().await;
    let paths = json!({"paths": ["src/a.rs", "b"]});
    check_call(&mocks, "read_diffs", paths.clone(), "-32602").await;
    let mut composite = run("r1");
    composite.model = Arc::new(ModelSpec {
        composite: true,
        ..(*composite.model).clone()
    });
    let served = Arc::clone(&composite.served);
    mocks.registry.register(composite);
    let (_, list) = mocks.mcp(&rpc("tools/list", &json!({})), None).await;
    let offered = list["result"]["tools"].as_array().expect("a list");
    assert_eq!(offered.last().expect("a tool")["name"], "read_diffs");

    let params = json!({"name": "read_diffs", "arguments": paths});
    let (_, answer) = mocks.mcp(&rpc("tools/call", &params), None).await;
    let diff = served.diff("src/a.rs").expect("a diff");
    let text = format!("=== src/a.rs\n{diff}=== b\nno such diff: b\n");
    assert_eq!(
        answer["result"],
        json!({
            "content": [{"type": "text", "text": text}],
            "isError": false,
            "_meta": {"spillgate/sub_calls": [
                {
                    "tool": "read_diff",
                    "arguments": {"path": "src/a.rs"},
                    "result": **diff,
                    "is_error": false,
                },
                {
                    "tool": "read_diff",
                    "arguments": {"path": "b"},
                    "result": "no such diff: b",
                    "is_error": true,
                },
            ]},
        })
    );
    check_call(&mocks, "read_diffs", json!({"paths": []}), "true: the arg").await;
    check_call(&mocks, "read_diffs", json!({"paths": "b"}), "true: the arg").await;
    // The calls that a tool makes are its own affair: the server saw one call.
    let calls = mocks.registry.finish("r1").tools;
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].result_bytes, text.len() as u64);
}

#[tokio::test]
async fn the_official_client_lists_and_calls_the_tools_before_and_after_a_reset() {
    let mocks = Mocks::start().await;
    for _ in 0..2 {
        let config = StreamableHttpClientTransportConfig::with_uri(mocks.tools.url("r1"));
        let transport = StreamableHttpClientTransport::with_client(mocks.client.clone(), config);
        let client = ().serve(transport).await.expect("a session");
        let tools = client.list_all_tools().await.expect("a list");
        let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(
            names,
            ["list_changed_files", "read_diff", "read_file", "search"]
        );
        let mut call = CallToolRequestParams::new("read_file");
        call.arguments = json!({"path": "src/a.rs"}).as_object().cloned();
        let result = client.call_tool(call).await.expect("a result");
        let text = result.content[0].as_text().expect("a text").text.clone();
        assert_eq!(
            text,
            run("r1")
                .served
                .file("src/a.rs")
                .expect("a file")
                .to_string()
        );
        client.cancel().await.expect("a clean end");
        mocks.tools.reset().await;
    }
    let journal = mocks.registry.finish("r1");
    assert_eq!(journal.tools.len(), 2);
    assert_eq!(journal.unscripted, Vec::<String>::new());
}
