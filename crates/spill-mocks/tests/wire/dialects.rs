//! Every dialect over a real socket: the bytes of replies and errors, and whole conversations.

use serde_json::{Value, json};
use spill_mocks::ResultForm;

use crate::clients::{ALL, Api, Said, messages_reply, number, text};
use crate::{Mocks, json_of, run};

async fn send(mocks: &Mocks, run: &str, path: &str, body: &Value) -> reqwest::Response {
    let url = format!("{}{path}", mocks.llm.root_url(run));
    let request = mocks.client.post(url).body(body.to_string());
    request.send().await.expect("an answer")
}

const TOOLS: [&str; 3] = ["list_changed_files", "read_diff", "read_file"];

/// A whole conversation; the file that is read is `file` at its first turn.
async fn converse(mocks: &Mocks, run: &str, api: Api, stream: bool) -> Vec<Said> {
    let mut list = vec![api.user("Review the change.")];
    let tools = api.tools(&TOOLS);
    let mut turns = Vec::new();
    for _ in 0..10 {
        let reply = send(
            mocks,
            run,
            &api.path(stream),
            &api.body(&list, &tools, stream),
        )
        .await;
        assert_eq!(reply.status(), 200);
        let said = if stream {
            assert_eq!(reply.headers()["content-type"], "text/event-stream");
            api.read_events(&reply.text().await.expect("a body"))
        } else {
            api.read_json(&json_of(reply).await)
        };
        let results: Vec<&str> = said
            .calls
            .iter()
            .map(|(_, name, _)| match name.as_str() {
                "list_changed_files" => {
                    r#"[{"path":"a.rs","diff_is_whole":false,"diff_bytes":40,"file_bytes":60}]"#
                }
                "read_diff" => "@@ -1 +1 @@\n+// TODO(anna): later\n",
                _ => "// TODO(anna): later\n// FIXME(ben): too\nfn é() {}\n",
            })
            .collect();
        list.extend(api.turn(&said, &results));
        let is_last = said.calls.is_empty();
        turns.push(said);
        if is_last {
            return turns;
        }
    }
    panic!("no answer within 10 turns");
}

#[tokio::test]
async fn every_dialect_leads_to_the_same_conversation_streamed_and_whole() {
    /// What is said, and what is called with what.
    type Turn = (String, Vec<(String, Value)>);
    let mocks = Mocks::start().await;
    let mut known: Option<Vec<Turn>> = None;
    for api in ALL {
        for stream in [false, true] {
            let id = format!("{api:?}-{stream}");
            mocks.registry.register(run(&id));
            let turns = converse(&mocks, &id, api, stream).await;
            let journal = mocks.registry.finish(&id);
            assert_eq!(journal.unscripted, Vec::<String>::new());
            let counted: Vec<[u64; 4]> = journal
                .llm
                .iter()
                .map(|call| {
                    [
                        call.uncached_input_tokens,
                        call.cache_read_tokens,
                        call.cache_write_tokens,
                        call.output_tokens,
                    ]
                })
                .collect();
            let told: Vec<[u64; 4]> = turns.iter().map(|said| said.tokens).collect();
            assert_eq!(told, counted, "{id}");
            let iterations: Vec<u64> = journal.llm.iter().map(|call| call.iteration).collect();
            assert_eq!(
                iterations,
                (1..=turns.len() as u64).collect::<Vec<_>>(),
                "{id}"
            );
            let forms: Vec<ResultForm> = journal
                .llm
                .iter()
                .flat_map(|call| &call.new_results)
                .map(|result| result.form)
                .collect();
            assert_eq!(forms, [ResultForm::Inline; 3], "{id}");
            let said: Vec<_> = turns
                .into_iter()
                .map(|said| {
                    let calls = said.calls.into_iter().map(|(_, name, json)| (name, json));
                    (said.text, calls.collect())
                })
                .collect();
            assert!(said.last().expect("turns").0.contains("ben"), "{said:?}");
            assert_eq!(known.get_or_insert_with(|| said.clone()), &said, "{id}");
        }
    }
}

async fn snapshot(api: Api, name: &str) {
    let mocks = Mocks::start().await;
    let list = [api.user("Review.")];
    for (what, tools) in [("calls", api.tools(&TOOLS)), ("answer", json!([]))] {
        let whole = send(
            &mocks,
            "r1",
            &api.path(false),
            &api.body(&list, &tools, false),
        )
        .await;
        let pretty = serde_json::to_string_pretty(&json_of(whole).await).expect("JSON");
        insta::assert_snapshot!(format!("{name}_json_{what}"), pretty);
        let stream = send(
            &mocks,
            "r1",
            &api.path(true),
            &api.body(&list, &tools, true),
        )
        .await;
        insta::assert_snapshot!(
            format!("{name}_sse_{what}"),
            stream.text().await.expect("a body")
        );
    }
    let long = api.body(&[api.user(&"word ".repeat(6000))], &json!([]), false);
    let refused = send(&mocks, "r1", &api.path(false), &long).await;
    assert_eq!(refused.status(), 400);
    insta::assert_snapshot!(
        format!("{name}_context_window"),
        refused.text().await.expect("a body")
    );
}

#[tokio::test]
async fn openai_responses_have_the_published_shape() {
    snapshot(Api::Responses, "responses").await;
}

#[tokio::test]
async fn anthropic_messages_have_the_published_shape() {
    snapshot(Api::Messages, "messages").await;
}

#[tokio::test]
async fn gemini_replies_have_the_published_shape() {
    snapshot(Api::Gemini, "gemini").await;
}

#[tokio::test]
async fn an_answer_that_a_request_bounds_says_so_in_the_dialects_word() {
    let mocks = Mocks::start().await;
    for (api, bound, at, word) in [
        (
            Api::Responses,
            json!({"max_output_tokens": 3}),
            "/status",
            "incomplete",
        ),
        (
            Api::Messages,
            json!({"max_tokens": 3}),
            "/stop_reason",
            "max_tokens",
        ),
        (
            Api::Gemini,
            json!({"generationConfig": {"maxOutputTokens": 3}}),
            "/candidates/0/finishReason",
            "MAX_TOKENS",
        ),
    ] {
        let mut body = api.body(&[api.user("Review.")], &json!([]), false);
        let fields = bound.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(fields);
        let reply = json_of(send(&mocks, "r1", &api.path(false), &body).await).await;
        assert_eq!(reply.pointer(at), Some(&json!(word)), "{reply}");
    }
}

/// Anthropic's clients mark what is to be cached, and move the marks from turn to turn.
#[tokio::test]
async fn marked_prefixes_are_written_once_and_then_read() {
    let mocks = Mocks::start().await;
    let marked = |said: &str, is_marked: bool| {
        let mut block = json!({"type": "text", "text": said});
        if is_marked {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        json!({"role": "user", "content": [block]})
    };
    let long = "word ".repeat(1500);
    let ask = |list: Vec<Value>| json!({"model": "simulated", "max_tokens": 100, "messages": list});
    let mut tokens = Vec::new();
    for list in [
        vec![marked(&long, true)],
        vec![marked(&long, false), marked("more", true)],
        vec![
            marked(&long, false),
            marked("more", false),
            marked("end", false),
        ],
    ] {
        let reply = json_of(send(&mocks, "r1", "/v1/messages", &ask(list)).await).await;
        tokens.push(messages_reply(&reply).tokens);
    }
    let first = 3 + 1501;
    assert_eq!(tokens[0][..3], [3, 0, first]);
    assert_eq!(tokens[1][..3], [3, first, 3 + 1]);
    assert_eq!(tokens[2][1..3], [0, 0]);
}

#[tokio::test]
async fn other_addresses_of_each_api_are_answered() {
    let mocks = Mocks::start().await;
    let root = mocks.llm.root_url("r1");
    let head = mocks.client.head(&root).send().await.expect("an answer");
    assert_eq!(head.status(), 200);
    let list = [Api::Messages.user("Review.")];
    let body = Api::Messages.body(&list, &json!([]), false);
    let counted = json_of(send(&mocks, "r1", "/v1/messages/count_tokens", &body).await).await;
    let asked = json_of(send(&mocks, "r1", "/v1/messages", &body).await).await;
    assert_eq!(counted["input_tokens"], messages_reply(&asked).tokens[0]);
    let body = Api::Gemini.body(&[Api::Gemini.user("Review.")], &json!([]), false);
    let path = "/v1beta/models/simulated:countTokens";
    let counted = json_of(send(&mocks, "r1", path, &body).await).await;
    assert!(number(&counted["totalTokens"]) > 0);
    let path = "/v1beta/models/simulated:streamGenerateContent";
    let array = json_of(send(&mocks, "r1", path, &body).await).await;
    assert!(array[0]["candidates"].is_array(), "{array}");
    let models = |path: &str, header: Option<&'static str>| {
        let mut request = mocks.client.get(format!("{root}{path}"));
        if let Some(header) = header {
            request = request.header(header, "2023-06-01");
        }
        request.send()
    };
    let anthropic = models("/v1/models", Some("anthropic-version"))
        .await
        .expect("one");
    assert_eq!(json_of(anthropic).await["data"][0]["type"], "model");
    let gemini = models("/v1beta/models", None).await.expect("one");
    assert_eq!(
        json_of(gemini).await["models"][0]["name"],
        "models/simulated"
    );
    // Counting tokens is no call of the run.
    let journal = mocks.registry.finish("r1");
    assert_eq!(journal.llm.len(), 2);
    assert_eq!(journal.unscripted, Vec::<String>::new());
}

#[tokio::test]
async fn what_only_a_server_that_keeps_conversations_can_do_is_refused() {
    let mocks = Mocks::start().await;
    let body = json!({"model": "simulated", "input": "Review.", "previous_response_id": "resp_1"});
    let refused = send(&mocks, "r1", "/v1/responses", &body).await;
    assert_eq!(refused.status(), 400);
    let message = text(&json_of(refused).await["error"]["message"]);
    assert!(
        message.contains("'previous_response_id' is not supported"),
        "{message}"
    );
    let body = json!({"model": "simulated", "input": "Review."});
    assert_eq!(
        send(&mocks, "r1", "/v1/responses", &body).await.status(),
        200
    );
}

fn check_refused(path: &str, body: &str, expected: &str, told: &Value) {
    let message = told["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(expected), "{path} {body}: {told}");
}

#[tokio::test]
async fn requests_that_are_none_name_the_place() {
    let mocks = Mocks::start().await;
    for (path, body, expected) in [
        ("/v1/responses", r#"{"model":"m"}"#, "'input'"),
        (
            "/v1/responses",
            r#"{"model":"m","input":[{"type":"function_call"}]}"#,
            "input[0]: 'call_id'",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":[{"role":"cat"}]}"#,
            "'cat' is not one of",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":7}"#,
            "expected `[`",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user"}]}"#,
            "messages[1]",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result"}]}]}"#,
            "'tool_use_id'",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","messages":[]}"#,
            "'messages' is empty",
        ),
        (
            "/v1beta/models/m:generateContent",
            r#"{"contents":[{"role":"cat"}]}"#,
            "contents[0]: 'cat'",
        ),
        ("/v1beta/models/m:generateContent", "{}", "'contents'"),
    ] {
        let url = format!("{}{path}", mocks.llm.root_url("r1"));
        let answer = mocks
            .client
            .post(url)
            .body(body)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 400, "{body}");
        check_refused(path, body, expected, &json_of(answer).await);
    }
}

/// Claude Code's way: the result is in a file of the agent's, which it reads with a tool of its own.
#[tokio::test]
async fn a_result_that_an_agent_saved_is_read_with_the_agents_own_tool() {
    for (offers_reader, expected) in [(true, ResultForm::Preview), (false, ResultForm::Cut)] {
        let mocks = Mocks::start().await;
        let api = Api::Messages;
        let mut tools = api.tools(&TOOLS);
        let reader = json!({"name": "Read", "input_schema": {"type": "object", "properties":
            {"file_path": {}, "offset": {}, "limit": {}}}});
        if offers_reader {
            tools.as_array_mut().expect("a list").push(reader);
        }
        let mut list = vec![api.user("Review the change.")];
        let mut answer = String::new();
        for _ in 0..8 {
            let body = api.body(&list, &tools, false);
            let said =
                api.read_json(&json_of(send(&mocks, "r1", &api.path(false), &body).await).await);
            answer.clone_from(&said.text);
            let results: Vec<&str> = said
                .calls
                .iter()
                .map(|(_, name, _)| match name.as_str() {
                    "list_changed_files" => {
                        r#"[{"path":"src/a.rs","diff_is_whole":true,"diff_bytes":90000,"file_bytes":60}]"#
                    }
                    "read_diff" => {
                        "Error: result (90,000 characters) exceeds maximum allowed tokens. Output has been saved to /h/t.txt.\nFormat: Plain text"
                    }
                    "Read" => "     1\t@@ -1 +1 @@\n     2\t+// TODO(anna): later\n",
                    _ => "fn a() {}\n",
                })
                .collect();
            list.extend(api.turn(&said, &results));
            if said.calls.is_empty() {
                break;
            }
        }
        assert_eq!(answer.contains("anna"), offers_reader, "{answer}");
        let journal = mocks.registry.finish("r1");
        let forms: Vec<ResultForm> = journal
            .llm
            .iter()
            .flat_map(|call| &call.new_results)
            .map(|result| result.form)
            .collect();
        assert_eq!(forms[..2], [ResultForm::Inline, expected]);
        let results = journal.llm.iter().flat_map(|call| &call.new_results);
        let sizes: Vec<Option<u64>> = results.map(|result| result.stored_bytes).collect();
        let served = run("r1").served;
        let diff = served.diff("src/a.rs").expect("its diff");
        assert_eq!(sizes[..2], [None, Some(diff.len() as u64)]);
        assert_eq!(forms.contains(&ResultForm::Slice), offers_reader);
    }
}
