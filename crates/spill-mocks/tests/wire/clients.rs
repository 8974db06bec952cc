//! A small client of each dialect: what it sends, and what it understands of JSON and of a stream.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

pub(crate) const ALL: [Api; 4] = [Api::Chat, Api::Responses, Api::Messages, Api::Gemini];

/// What a client understood of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// Id, name and arguments.
    pub(crate) calls: Vec<(String, String, Value)>,
    /// Uncached, read from the cache, written to it, output.
    pub(crate) tokens: [u64; 4],
}

pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("a text: {value}"))
        .to_owned()
}

fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).expect("arguments are JSON")
}

impl Api {
    pub(crate) fn path(self, stream: bool) -> String {
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

    pub(crate) fn user(self, said: &str) -> Value {
        match self {
            Self::Chat | Self::Messages | Self::Responses => {
                json!({"role": "user", "content": said})
            }
            Self::Gemini => json!({"role": "user", "parts": [{"text": said}]}),
        }
    }

    pub(crate) fn tools(self, names: &[&str]) -> Value {
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

    pub(crate) fn body(self, list: &[Value], tools: &Value, stream: bool) -> Value {
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

    pub(crate) fn read_json(self, reply: &Value) -> Said {
        match self {
            Self::Chat => chat_reply(reply),
            Self::Responses => responses_reply(reply),
            Self::Messages => messages_reply(reply),
            Self::Gemini => gemini_reply(reply),
        }
    }

    pub(crate) fn read_events(self, stream: &str) -> Said {
        match self {
            Self::Chat => chat_events(stream),
            Self::Responses => responses_events(stream),
            Self::Messages => messages_events(stream),
            Self::Gemini => gemini_events(stream),
        }
    }

    /// What a reply and the results of its calls add to the conversation.
    pub(crate) fn turn(self, said: &Said, results: &[&str]) -> Vec<Value> {
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

pub(crate) fn messages_reply(reply: &Value) -> Said {
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
