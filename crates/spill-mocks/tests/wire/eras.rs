//! The later era of the Model Context Protocol: each request stands for itself.

use serde_json::{Value, json};

use crate::{Mocks, rpc, run};

const MODERN: &str = "2026-07-28";

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Sends a request with these headers; a status and the answer.
async fn ask(mocks: &Mocks, body: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = mocks
        .client
        .post(mocks.tools.url("r1"))
        .body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or_default())
}

#[tokio::test]
async fn a_client_discovers_lists_and_calls_without_a_handshake() {
    let mocks = Mocks::start().await;
    let discover = rpc("server/discover", &json!({"_meta": meta()}));
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "server/discover"),
    ];
    let (status, answer) = ask(&mocks, &discover, &headers).await;
    assert_eq!(status, 200);
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert!(
        result["supportedVersions"]
            .as_array()
            .expect("a list")
            .contains(&json!(MODERN))
    );

    let list = rpc("tools/list", &json!({"_meta": meta()}));
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/list"),
    ];
    let (_, answer) = ask(&mocks, &list, &headers).await;
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["cacheScope"], "private");
    assert!(result["ttlMs"].is_u64());
    let legacy = ask(&mocks, &rpc("tools/list", &json!({})), &[]).await.1;
    assert_eq!(result["tools"], legacy["result"]["tools"]);
    assert!(legacy["result"].get("resultType").is_none());
    assert!(
        result.get("nextCursor").is_none(),
        "a client reads one page only"
    );

    let call = json!({"name": "list_changed_files", "arguments": {}, "_meta": meta()});
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "list_changed_files"),
    ];
    let (_, answer) = ask(&mocks, &rpc("tools/call", &call), &headers).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["isError"], false);
    let journal = mocks.registry.finish("r1");
    assert_eq!(journal.tools.len(), 1);
    assert!(journal.unscripted.is_empty());
}

async fn check_refused(body: &Value, headers: &[(&str, &str)], code: i64) {
    let mocks = Mocks::start().await;
    let (status, answer) = ask(&mocks, body, headers).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (400, &json!(code)),
        "{headers:?}"
    );
    assert!(mocks.registry.finish("r1").unscripted.is_empty());
}

#[tokio::test]
async fn requests_that_disagree_with_themselves_get_a_4xx() {
    let list = rpc("tools/list", &json!({"_meta": meta()}));
    check_refused(&list, &[("mcp-protocol-version", "2025-11-25")], -32020).await;
    check_refused(&list, &[("mcp-method", "tools/call")], -32020).await;
    let call = rpc("tools/call", &json!({"name": "read_diff", "_meta": meta()}));
    check_refused(&call, &[("mcp-name", "read_file")], -32020).await;
    let plain = rpc("tools/list", &json!({}));
    check_refused(&plain, &[("mcp-protocol-version", MODERN)], -32020).await;
    check_refused(&plain, &[("mcp-protocol-version", "2031-01-01")], -32022).await;
    check_refused(&rpc("server/discover", &json!({})), &[], -32602).await;
    let unknown = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}});
    check_refused(&rpc("tools/list", &unknown), &[], -32022).await;
}

#[tokio::test]
async fn tools_answer_line_by_line_as_on_standard_input() {
    let mocks = Mocks::start().await;
    mocks.registry.register(run("r1"));
    let send = |body: &Value| {
        let answer = mocks
            .registry
            .tools_message("r1", body.to_string().as_bytes());
        answer.map(|answer| serde_json::from_slice::<Value>(&answer).expect("JSON"))
    };
    let begin = rpc("initialize", &json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(
        send(&begin).expect("an answer")["result"]["protocolVersion"],
        "2025-06-18"
    );
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&notification), None);
    let call = rpc(
        "tools/call",
        &json!({"name": "list_changed_files", "arguments": {}}),
    );
    assert_eq!(send(&call).expect("an answer")["result"]["isError"], false);
    assert!(mocks.registry.tools_message("unknown", b"{}").is_none());
}
