//! Answers of OpenAI's responses.

use serde::Deserialize;

use super::answer::{Answered, Unusable};
use super::chat::disjoint;

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: Option<String>,
    output: Vec<Item>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    content: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    response: Option<Response>,
}

pub(super) fn read(body: &[u8], answered: &mut Answered) -> Result<(), Unusable> {
    let response: Response = serde_json::from_slice(body).map_err(|_| Unusable::Unreadable)?;
    take(&response, answered)?;
    match response.status.as_deref() {
        Some("failed") => Err(Unusable::ErrorEvent),
        Some(_) | None => Ok(()),
    }
}

/// Only the last event is read for what it says: it holds the whole response.
pub(super) fn event(data: &str, answered: &mut Answered) -> Result<(), Unusable> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let Kind { kind } = serde_json::from_str(data).map_err(|_| Unusable::Unreadable)?;
    match kind.as_str() {
        "error" => Err(Unusable::ErrorEvent),
        "response.completed" | "response.incomplete" | "response.failed" => {
            let event: Event = serde_json::from_str(data).map_err(|_| Unusable::Unreadable)?;
            let response = event.response.ok_or(Unusable::Unreadable)?;
            take(&response, answered)?;
            if event.kind == "response.failed" {
                return Err(Unusable::ErrorEvent);
            }
            answered.is_whole = true;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn take(response: &Response, answered: &mut Answered) -> Result<(), Unusable> {
    for item in &response.output {
        match item.kind.as_str() {
            "message" => {
                let parts = item.content.iter().flatten();
                for text in parts.filter_map(|part| part.text.as_deref()) {
                    answered.text.push_str(text);
                }
            }
            "function_call" | "custom_tool_call" => {
                answered.called(item.name.as_deref().unwrap_or(""));
            }
            _ => {}
        }
    }
    if let Some(status) = &response.status {
        answered.finished(status);
    }
    if let Some(usage) = &response.usage {
        let details = usage.input_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        answered.usage = Some(disjoint(
            usage.input_tokens,
            cached.unwrap_or(0),
            usage.output_tokens,
        )?);
    }
    Ok(())
}
