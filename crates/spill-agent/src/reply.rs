//! Reads a chat completion; nothing a server can send makes it panic.

use serde::Deserialize;

use crate::ports::{ModelFailure, ModelReply, ToolCall, Usage};

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: String,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorObject,
}

#[derive(Default, Deserialize)]
struct ErrorObject {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<String>,
}

/// The code by which a provider says that the request exceeds the context window.
const CONTEXT_WINDOW_CODE: &str = "context_length_exceeded";
/// Bytes of a provider's error message that are kept.
const MESSAGE_BYTES: usize = 500;

/// Reads the body of a successful answer.
pub(crate) fn parse_reply(body: &[u8]) -> Result<ModelReply, ModelFailure> {
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|error| ModelFailure::Malformed(format!("not a chat completion: {error}")))?;
    let usage = completion.usage.map(checked_usage).transpose()?;
    let Some(choice) = completion.choices.into_iter().next() else {
        return Err(ModelFailure::Malformed("`choices` is empty".to_owned()));
    };
    let calls = choice.message.tool_calls.unwrap_or_default();
    Ok(ModelReply {
        content: choice.message.content,
        tool_calls: calls
            .into_iter()
            .map(checked_call)
            .collect::<Result<_, _>>()?,
        usage,
    })
}

fn checked_usage(usage: WireUsage) -> Result<Usage, ModelFailure> {
    let cached = usage
        .prompt_tokens_details
        .and_then(|details| details.cached_tokens)
        .unwrap_or(0);
    if cached > usage.prompt_tokens {
        return Err(ModelFailure::Malformed(format!(
            "usage has {cached} cached of {} prompt tokens",
            usage.prompt_tokens
        )));
    }
    Ok(Usage {
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: cached,
        completion_tokens: usage.completion_tokens,
    })
}

fn checked_call(call: WireCall) -> Result<ToolCall, ModelFailure> {
    if call.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(ModelFailure::Malformed(
            "a tool call is not of type `function`".to_owned(),
        ));
    }
    Ok(ToolCall {
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments.unwrap_or_default(),
    })
}

/// Reads the body of an answer that refuses the request for good.
pub(crate) fn parse_refusal(status: u16, body: &[u8]) -> ModelFailure {
    let error = serde_json::from_slice::<ErrorBody>(body)
        .map_or_else(|_| ErrorObject::default(), |body| body.error);
    let mut message = error.message.unwrap_or_default();
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    if status == 400 && error.code.as_deref() == Some(CONTEXT_WINDOW_CODE) {
        ModelFailure::ContextWindow { message }
    } else {
        ModelFailure::Refused { status, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_malformed(body: &str, message: &str) {
        let error = parse_reply(body.as_bytes()).expect_err("the body is malformed");
        let text = error.to_string();
        assert!(text.contains(message), "{text}");
    }

    #[test]
    fn wrong_shapes_are_named() {
        check_malformed("", "EOF while parsing");
        check_malformed("<html>", "expected value at line 1 column 1");
        check_malformed("{}", "missing field `choices`");
        check_malformed("[]", "invalid length 0");
        check_malformed(r#"{"choices":[]}"#, "`choices` is empty");
        check_malformed(r#"{"choices":null}"#, "invalid type: null");
        check_malformed(r#"{"choices":[{}]}"#, "missing field `message`");
        check_malformed(
            r#"{"choices":[{"message":{"content":[1]}}]}"#,
            "invalid type: sequence",
        );
        check_malformed(
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"a"}}]}}]}"#,
            "missing field `id`",
        );
        check_malformed(
            r#"{"choices":[{"message":{"tool_calls":[{"id":"1","type":"custom","function":{"name":"a"}}]}}]}"#,
            "not of type `function`",
        );
        check_malformed(
            r#"{"choices":[{"message":{}}],"usage":{"prompt_tokens":-1,"completion_tokens":0}}"#,
            "invalid value",
        );
        check_malformed(
            r#"{"choices":[{"message":{}}],"usage":{"prompt_tokens":5,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":6}}}"#,
            "usage has 6 cached of 5 prompt tokens",
        );
    }

    #[test]
    fn a_missing_usage_is_not_zero() {
        let reply = parse_reply(br#"{"choices":[{"message":{"content":"x"}}],"usage":null}"#)
            .expect("a reply");
        assert_eq!(reply.usage, None);
        assert_eq!(reply.content.as_deref(), Some("x"));
    }

    #[test]
    fn missing_arguments_are_the_empty_text() {
        let reply = parse_reply(
            br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"a"}}]}}]}"#,
        )
        .expect("a reply");
        assert_eq!(reply.tool_calls[0].arguments, "");
    }

    fn check_refusal(status: u16, body: &str, expected: ModelFailure) {
        assert_eq!(parse_refusal(status, body.as_bytes()), expected);
    }

    #[test]
    fn only_the_code_means_the_context_window() {
        let message = "maximum context length".to_owned();
        let body = r#"{"error":{"message":"maximum context length","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
        check_refusal(
            400,
            body,
            ModelFailure::ContextWindow {
                message: message.clone(),
            },
        );
        check_refusal(
            413,
            body,
            ModelFailure::Refused {
                status: 413,
                message,
            },
        );
        check_refusal(
            400,
            "garbage",
            ModelFailure::Refused {
                status: 400,
                message: String::new(),
            },
        );
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(400));
        let ModelFailure::Refused { message, .. } = parse_refusal(401, body.as_bytes()) else {
            panic!("expected a refusal");
        };
        assert_eq!(message, "é".repeat(250));
    }
}
