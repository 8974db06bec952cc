//! Every dialect over a real socket: the bytes of replies and errors, and whole conversations by a
//! client of each that reads JSON or a stream.

use serde_json::{Value, json};
use spill_mocks::ResultForm;

use crate::{Mocks, json_of, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

const ALL: [Api; 4] = [Api::Chat, Api::Responses, Api::Messages, Api::Gemini];

/// What a client understood of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    text: String,
    /// Id, name and arguments.
    calls: Vec<(String, String, Value)>,
    /// Uncached, read from the cache, written to it, output.
    tokens: [u64; 4],
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("a text: {value}"))
        .to_owned()
}

fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).expect("arguments are JSON")
}

impl Api {
    fn path(self, stream: bool) -> String {
        match self {
            Self::Chat => "/v1/chat/completions".to_owned(),
            Self::Responses => "/v1/responses".to_owned(),
            Self::Messages => "/v1/messages?beta=true".to_owned(),
            Self::Gemini if stream => {
                "/v1beta/models/simulated:streamGenerateContent?alt=sse".to_owned()
            }
            Self::Gemini => "/v1beta/models/simulated:generateContent".to_owned(),
        }
    }

    fn user(self, said: &str) -> Value {
        match self {
            Self::Chat | Self::Messages | Self::Responses => {
                json!({"role": "user", "content": said})
            }
            Self::Gemini => json!({"role": "user", "parts": [{"text": said}]}),
        }
    }

    fn tools(self, names: &[&str]) -> Value {
        let schema = json!({"type": "object", "properties": {}});
        let tools: Vec<Value> = names
            .iter()
            .map(|name| match self {
                Self::Chat => {
                    json!({"type": "function", "function": {"name": name, "parameters": schema}})
                }
                Self::Responses => {
                    json!({"type": "function", "name": name, "parameters": schema, "strict": false})
                }
                Self::Messages => json!({"name": name, "input_schema": schema}),
                Self::Gemini => json!({"name": name, "parametersJsonSchema": schema}),
            })
            .collect();
        match self {
            Self::Responses => json!([
                {"type": "namespace", "name": "mcp__tools__", "tools": tools},
                {"type": "web_search"},
            ]),
            Self::Gemini => json!([{"functionDeclarations": tools}]),
            Self::Chat | Self::Messages => json!(tools),
        }
    }

    fn body(self, list: &[Value], tools: &Value, stream: bool) -> Value {
        let system = "You review.";
        match self {
            Self::Chat => json!({
                "model": "simulated", "messages": list, "tools": tools, "stream": stream,
                "stream_options": stream.then(|| json!({"include_usage": true})),
            }),
            Self::Responses => json!({
                "model": "simulated", "instructions": system, "input": list, "tools": tools,
                "stream": stream, "store": false, "previous_response_id": null,
            }),
            Self::Messages => json!({
                "model": "simulated", "max_tokens": 4096, "messages": list, "tools": tools,
                "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
                "stream": stream,
            }),
            Self::Gemini => json!({
                "contents": list, "tools": tools,
                "systemInstruction": {"parts": [{"text": system}]},
            }),
        }
    }

    fn read_json(self, reply: &Value) -> Said {
        match self {
            Self::Chat => chat_reply(reply),
            Self::Responses => responses_reply(reply),
            Self::Messages => messages_reply(reply),
            Self::Gemini => gemini_reply(reply),
        }
    }

    fn read_events(self, stream: &str) -> Said {
        match self {
            Self::Chat => chat_events(stream),
            Self::Responses => responses_events(stream),
            Self::Messages => messages_events(stream),
            Self::Gemini => gemini_events(stream),
        }
    }

    /// What a reply and the results of its calls add to the conversation.
    fn turn(self, said: &Said, results: &[&str]) -> Vec<Value> {
        let calls = || said.calls.iter().zip(results);
        match self {
            Self::Chat => {
                let wire: Vec<Value> = calls()
                    .map(|((id, name, arguments), _)| {
                        json!({"id": id, "type": "function",
                            "function": {"name": name, "arguments": arguments.to_string()}})
                    })
                    .collect();
                let assistant = json!({"role": "assistant", "content": null, "tool_calls": wire});
                let results = calls().map(|((id, ..), result)| {
                    json!({"role": "tool", "tool_call_id": id, "content": result})
                });
                [assistant].into_iter().chain(results).collect()
            }
            Self::Responses => {
                let asked = calls().map(|((id, name, arguments), _)| {
                    json!({"type": "function_call", "call_id": id, "namespace": "mcp__tools__",
                        "name": name, "arguments": arguments.to_string()})
                });
                let results = calls().map(|((id, ..), result)| {
                    json!({"type": "function_call_output", "call_id": id, "output": result})
                });
                let reasoning = json!({"type": "reasoning", "summary": []});
                [reasoning]
                    .into_iter()
                    .chain(asked)
                    .chain(results)
                    .collect()
            }
            Self::Messages => {
                let asked: Vec<Value> = calls()
                    .map(|((id, name, arguments), _)| {
                        json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
                    })
                    .collect();
                let results: Vec<Value> = calls()
                    .map(|((id, ..), result)| {
                        json!({"type": "tool_result", "tool_use_id": id,
                            "content": [{"type": "text", "text": result}]})
                    })
                    .collect();
                vec![
                    json!({"role": "assistant", "content": asked}),
                    json!({"role": "user", "content": results}),
                ]
            }
            Self::Gemini => {
                let asked: Vec<Value> = calls()
                    .map(|((_, name, arguments), _)| {
                        json!({"functionCall": {"name": name, "args": arguments}})
                    })
                    .collect();
                let results: Vec<Value> = calls()
                    .map(|((_, name, _), result)| {
                        json!({"functionResponse": {"name": name, "response": {"output": result}}})
                    })
                    .collect();
                vec![
                    json!({"role": "model", "parts": asked}),
                    json!({"role": "user", "parts": results}),
                ]
            }
        }
    }
}

fn openai_tokens(usage: &Value, input: &str, output: &str) -> [u64; 4] {
    let cached = number(&usage[format!("{input}_details")]["cached_tokens"]);
    let (prompt, answer) = (number(&usage[input]), number(&usage[output]));
    assert_eq!(number(&usage["total_tokens"]), prompt + answer);
    [prompt - cached, cached, 0, answer]
}

fn chat_reply(reply: &Value) -> Said {
    let message = &reply["choices"][0]["message"];
    let calls = message["tool_calls"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Said {
        text: message["content"].as_str().unwrap_or_default().to_owned(),
        calls: calls
            .iter()
            .map(|call| {
                let function = &call["function"];
                (
                    text(&call["id"]),
                    text(&function["name"]),
                    parsed(&text(&function["arguments"])),
                )
            })
            .collect(),
        tokens: openai_tokens(&reply["usage"], "prompt_tokens", "completion_tokens"),
    }
}

fn responses_reply(reply: &Value) -> Said {
    let mut said = Said {
        tokens: openai_tokens(&reply["usage"], "input_tokens", "output_tokens"),
        ..Said::default()
    };
    for item in reply["output"].as_array().expect("a list") {
        if item["type"] == "function_call" {
            assert_eq!(item["namespace"], "mcp__tools__");
            said.calls.push((
                text(&item["call_id"]),
                text(&item["name"]),
                parsed(&text(&item["arguments"])),
            ));
        } else {
            said.text.push_str(&text(&item["content"][0]["text"]));
        }
    }
    said
}

fn messages_reply(reply: &Value) -> Said {
    let usage = &reply["usage"];
    let mut said = Said {
        tokens: [
            number(&usage["input_tokens"]),
            number(&usage["cache_read_input_tokens"]),
            number(&usage["cache_creation_input_tokens"]),
            number(&usage["output_tokens"]),
        ],
        ..Said::default()
    };
    for block in reply["content"].as_array().expect("a list") {
        if block["type"] == "tool_use" {
            said.calls.push((
                text(&block["id"]),
                text(&block["name"]),
                block["input"].clone(),
            ));
        } else {
            said.text.push_str(&text(&block["text"]));
        }
    }
    said
}

fn gemini_reply(reply: &Value) -> Said {
    let usage = &reply["usageMetadata"];
    let cached = usage["cachedContentTokenCount"].as_u64().unwrap_or(0);
    let mut said = Said {
        tokens: [
            number(&usage["promptTokenCount"]) - cached,
            cached,
            0,
            usage["candidatesTokenCount"].as_u64().unwrap_or(0),
        ],
        ..Said::default()
    };
    for part in reply["candidates"][0]["content"]["parts"]
        .as_array()
        .expect("a list")
    {
        match &part["functionCall"] {
            Value::Null => said.text.push_str(&text(&part["text"])),
            call => said
                .calls
                .push((text(&call["id"]), text(&call["name"]), call["args"].clone())),
        }
    }
    said
}

/// Events of a stream: name, where there is one, and data.
fn events(stream: &str) -> Vec<(&str, &str)> {
    assert!(stream.ends_with("\n\n"), "a stream ends with an empty line");
    let blocks = stream.trim_end().split("\n\n");
    blocks
        .map(|block| match block.split_once('\n') {
            Some((name, data)) => (
                name.strip_prefix("event: ").expect("a name"),
                data.strip_prefix("data: ").expect("data"),
            ),
            None => ("", block.strip_prefix("data: ").expect("data")),
        })
        .collect()
}

fn chat_events(stream: &str) -> Said {
    let mut said = Said::default();
    let mut arguments: Vec<String> = Vec::new();
    let events = events(stream);
    assert_eq!(events.last(), Some(&("", "[DONE]")));
    for (_, data) in &events[..events.len() - 1] {
        let chunk: Value = parsed(data);
        if let Some(usage) = chunk["usage"].as_object() {
            assert_eq!(chunk["choices"], json!([]));
            said.tokens = openai_tokens(&json!(usage), "prompt_tokens", "completion_tokens");
            continue;
        }
        let delta = &chunk["choices"][0]["delta"];
        said.text
            .push_str(delta["content"].as_str().unwrap_or_default());
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(number(&piece["index"])).expect("small");
            if let Some(id) = piece["id"].as_str() {
                assert_eq!(index, arguments.len());
                said.calls
                    .push((id.to_owned(), text(&piece["function"]["name"]), Value::Null));
                arguments.push(String::new());
            }
            arguments[index].push_str(&text(&piece["function"]["arguments"]));
        }
    }
    for (call, arguments) in said.calls.iter_mut().zip(arguments) {
        call.2 = parsed(&arguments);
    }
    said
}

fn responses_events(stream: &str) -> Said {
    let events = events(stream);
    let (mut deltas, mut arguments) = (String::new(), Vec::new());
    for (number, (name, data)) in events.iter().enumerate() {
        let event: Value = parsed(data);
        assert_eq!(event["type"], *name);
        assert_eq!(event["sequence_number"], number);
        match *name {
            "response.created" | "response.in_progress" => {
                assert!(event["response"].get("usage").is_none());
            }
            "response.output_text.delta" => deltas.push_str(&text(&event["delta"])),
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                arguments.push(String::new());
            }
            "response.function_call_arguments.delta" => {
                arguments
                    .last_mut()
                    .expect("a call")
                    .push_str(&text(&event["delta"]));
            }
            _ => {}
        }
    }
    let (name, data) = events.last().expect("a last event");
    assert_eq!(*name, "response.completed");
    let said = responses_reply(&parsed(data)["response"]);
    assert_eq!(said.text, deltas);
    let whole: Vec<Value> = said.calls.iter().map(|call| call.2.clone()).collect();
    assert_eq!(
        whole,
        arguments
            .iter()
            .map(|json| parsed(json))
            .collect::<Vec<_>>()
    );
    said
}

fn messages_events(stream: &str) -> Said {
    let mut reply = Value::Null;
    let mut arguments = String::new();
    let events = events(stream);
    for (name, data) in &events {
        let mut event: Value = parsed(data);
        assert_eq!(event["type"], *name);
        match *name {
            "message_start" => reply = event["message"].take(),
            "content_block_start" => {
                arguments.clear();
                let blocks = reply["content"].as_array_mut().expect("a list");
                assert_eq!(event["index"], blocks.len());
                blocks.push(event["content_block"].take());
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let block = reply["content"]
                    .as_array_mut()
                    .and_then(|blocks| blocks.last_mut());
                let block = block.expect("a block");
                if delta["type"] == "text_delta" {
                    block["text"] = json!(text(&block["text"]) + &text(&delta["text"]));
                } else {
                    arguments.push_str(&text(&delta["partial_json"]));
                }
            }
            "content_block_stop" if !arguments.is_empty() => {
                let blocks = reply["content"].as_array_mut().expect("a list");
                blocks.last_mut().expect("a block")["input"] = parsed(&arguments);
            }
            "message_delta" => {
                reply["stop_reason"] = event["delta"]["stop_reason"].take();
                reply["usage"] = event["usage"].take();
            }
            "ping" | "content_block_stop" | "message_stop" => {}
            other => panic!("an unknown event: {other}"),
        }
    }
    assert_eq!(events.last().expect("a last event").0, "message_stop");
    assert!(reply["stop_reason"].is_string());
    messages_reply(&reply)
}

fn gemini_events(stream: &str) -> Said {
    let mut said = Said::default();
    for (_, data) in events(stream) {
        let part = gemini_reply(&parsed(data));
        said.text.push_str(&part.text);
        said.calls.extend(part.calls);
        said.tokens = part.tokens;
    }
    said
}

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
    let mocks = Mocks::start().await;
    let mut known: Option<Vec<(String, Vec<(String, Value)>)>> = None;
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
                        r#"[{"path":"a.rs","diff_is_whole":true,"diff_bytes":90000,"file_bytes":60}]"#
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
        assert_eq!(forms.contains(&ResultForm::Slice), offers_reader);
    }
}
