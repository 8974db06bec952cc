//! Answers of OpenAI's chat completions.

use serde::Deserialize;
use serde_json::Value;

use super::answer::{Answered, BilledTokens, Unusable};

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    delta: Option<Message>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// Prompt tokens include those read from the cache; more of these than of the whole is no usage.
pub(super) fn disjoint(prompt: u64, cached: u64, output: u64) -> Result<BilledTokens, Unusable> {
    Ok(BilledTokens {
        uncached_input: prompt.checked_sub(cached).ok_or(Unusable::Unreadable)?,
        cache_read: cached,
        cache_write: 0,
        output,
    })
}

impl Usage {
    fn tokens(&self) -> Result<BilledTokens, Unusable> {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        disjoint(
            self.prompt_tokens,
            cached.unwrap_or(0),
            self.completion_tokens,
        )
    }
}

pub(super) fn read(body: &[u8], answered: &mut Answered) -> Result<(), Unusable> {
    let completion = serde_json::from_slice(body).map_err(|_| Unusable::Unreadable)?;
    take(&completion, answered)?;
    if completion
        .choices
        .iter()
        .any(|choice| choice.message.is_some())
    {
        Ok(())
    } else {
        Err(Unusable::Unreadable)
    }
}

pub(super) fn event(data: &str, answered: &mut Answered) -> Result<(), Unusable> {
    if data.trim() == "[DONE]" {
        answered.is_whole = true;
        return Ok(());
    }
    match serde_json::from_str(data) {
        Ok(chunk) => take(&chunk, answered),
        Err(_) => Err(match serde_json::from_str::<Value>(data) {
            Ok(value) if value.get("error").is_some() => Unusable::ErrorEvent,
            Ok(_) | Err(_) => Unusable::Unreadable,
        }),
    }
}

/// Whether an event tells the usage and nothing else, as one that was asked for does.
pub(super) fn is_usage_alone(data: &str) -> bool {
    serde_json::from_str::<Completion>(data)
        .is_ok_and(|chunk| chunk.choices.is_empty() && chunk.usage.is_some())
}

fn take(completion: &Completion, answered: &mut Answered) -> Result<(), Unusable> {
    // Of several choices, clients take the first.
    if let Some(choice) = completion.choices.first() {
        if let Some(message) = choice.message.as_ref().or(choice.delta.as_ref()) {
            answered
                .text
                .push_str(message.content.as_deref().unwrap_or(""));
            let calls = message.tool_calls.iter().flatten();
            // Only the first piece of a call names it.
            let names = calls.filter_map(|call| call.function.as_ref()?.name.as_deref());
            for name in names.filter(|name| !name.is_empty()) {
                answered.called(name);
            }
        }
        if let Some(reason) = &choice.finish_reason {
            answered.finished(reason);
        }
    }
    if let Some(usage) = &completion.usage {
        answered.usage = Some(usage.tokens()?);
    }
    Ok(())
}
