//! Which format a record is of, by its content.

use crate::json::{Members, elements};
use crate::model::Format;

/// The format of one JSON value; `None` when it is of none that is known.
pub(crate) fn detect(text: &str) -> Option<Format> {
    match text.trim_start().as_bytes().first()? {
        b'[' => of_array(text),
        b'{' => of_object(&Members::of(text)?),
        _ => None,
    }
}

fn of_array(text: &str) -> Option<Format> {
    let items = elements(text)?;
    let first = Members::of(items.first()?)?;
    if first.has("role") && first.has("content") {
        return Some(of_messages(text));
    }
    of_object(&first)
}

/// Lists of messages differ in how results are written.
fn of_messages(text: &str) -> Format {
    if text.contains("mswea_bash_command") || text.contains("<returncode>") {
        Format::MiniSweAgent
    } else if is_anthropic(text) {
        Format::AnthropicMessages
    } else {
        Format::OpenAiChat
    }
}

fn is_anthropic(text: &str) -> bool {
    text.contains("\"tool_use_id\"")
        || text.contains("\"tool_use\"")
        || text.contains("\"cache_read_input_tokens\"")
}

fn of_object(members: &Members<'_>) -> Option<Format> {
    let has = |name: &str| members.has(name);
    let text = |name: &str| members.string(name).unwrap_or_default();
    let kind = text("type");
    let format = if has("resourceSpans") || has("resource_spans") {
        Format::Otel
    } else if text("trajectory_format").starts_with("mini-swe") {
        Format::MiniSweAgent
    } else if has("trajectory") && has("history") || has("history") && has("info") {
        Format::SweAgent
    } else if text("schema_version").starts_with("ATIF") {
        Format::Atif
    } else if has("simulations") || has("traj") {
        Format::OpenAiChat
    } else if has("eval") && has("version") || has("epoch") && has("events") {
        Format::Inspect
    } else if has("projectHash") && has("sessionId") {
        Format::GeminiCli
    } else if has("request_params") || has("response") && (kind == "response" || has("request")) {
        Format::ApiCapture
    } else if is_codex(members, &kind) {
        Format::CodexRollout
    } else if kind == "session" && has("createdAt") || kind.contains('/') && has("data") {
        Format::DeepSeekHarness
    } else if is_claude_code(members, &kind) {
        Format::ClaudeCode
    } else if let Some(messages) = members.get("messages") {
        return of_conversation(members, messages);
    } else if has("role") && has("content") {
        if is_anthropic(members.get("content")?) {
            Format::AnthropicMessages
        } else {
            Format::OpenAiChat
        }
    } else {
        return None;
    };
    Some(format)
}

fn of_conversation(members: &Members<'_>, messages: &str) -> Option<Format> {
    if !messages.starts_with('[') {
        return None;
    }
    if members
        .get("info")
        .is_some_and(|info| info.contains("mini_version"))
    {
        return Some(Format::MiniSweAgent);
    }
    // The system prompt beside the messages is Anthropic's.
    if members.has("system") || is_anthropic(messages) {
        return Some(Format::AnthropicMessages);
    }
    Some(of_messages(messages))
}

fn is_codex(members: &Members<'_>, kind: &str) -> bool {
    let enveloped = members.has("payload")
        && matches!(
            kind,
            "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted"
        );
    let bare_head = members.has("instructions") && members.has("id") && members.has("timestamp");
    let bare_item = matches!(
        kind,
        "function_call" | "function_call_output" | "local_shell_call"
    );
    enveloped || (bare_head && kind.is_empty()) || bare_item
}

fn is_claude_code(members: &Members<'_>, kind: &str) -> bool {
    match kind {
        "user" | "assistant" | "system" | "attachment" => {
            members.has("uuid") && members.has("sessionId")
        }
        "summary" => members.has("leafUuid"),
        "file-history-snapshot" => members.has("snapshot"),
        "queue-operation" => members.has("sessionId"),
        _ => false,
    }
}
