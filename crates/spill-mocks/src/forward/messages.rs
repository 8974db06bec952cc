//! Answers of Anthropic's messages.

use serde::Deserialize;

use super::answer::{Answered, BilledTokens, Unusable};

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// Later events of a stream tell some of these again; what they leave out stays.
#[derive(Clone, Copy, Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    content_block: Option<Block>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}

pub(super) fn read(body: &[u8], answered: &mut Answered) -> Result<(), Unusable> {
    let message: Message = serde_json::from_slice(body).map_err(|_| Unusable::Unreadable)?;
    take(&message, answered);
    Ok(())
}

pub(super) fn event(data: &str, answered: &mut Answered) -> Result<(), Unusable> {
    let event: Event = serde_json::from_str(data).map_err(|_| Unusable::Unreadable)?;
    match event.kind.as_str() {
        "error" => return Err(Unusable::ErrorEvent),
        "message_stop" => answered.is_whole = true,
        _ => {}
    }
    if let Some(message) = &event.message {
        take(message, answered);
    }
    if let Some(block) = &event.content_block {
        block_into(block, answered);
    }
    if let Some(delta) = &event.delta {
        answered.text.push_str(delta.text.as_deref().unwrap_or(""));
        if let Some(reason) = &delta.stop_reason {
            answered.finished(reason);
        }
    }
    if let Some(usage) = event.usage {
        usage_into(usage, answered);
    }
    Ok(())
}

fn take(message: &Message, answered: &mut Answered) {
    for block in &message.content {
        block_into(block, answered);
    }
    if let Some(reason) = &message.stop_reason {
        answered.finished(reason);
    }
    if let Some(usage) = message.usage {
        usage_into(usage, answered);
    }
}

fn block_into(block: &Block, answered: &mut Answered) {
    match block.kind.as_str() {
        "text" => answered.text.push_str(block.text.as_deref().unwrap_or("")),
        "tool_use" => answered.called(block.name.as_deref().unwrap_or("")),
        _ => {}
    }
}

/// The three kinds of input stand beside each other; an absent one is none, an absent input no usage.
fn usage_into(usage: Usage, answered: &mut Answered) {
    let known = answered.usage;
    let known = |of: fn(BilledTokens) -> u64| known.map(of);
    let Some(uncached_input) = usage.input_tokens.or(known(|k| k.uncached_input)) else {
        return;
    };
    let cache_read = usage.cache_read_input_tokens.or(known(|k| k.cache_read));
    let cache_write = usage
        .cache_creation_input_tokens
        .or(known(|k| k.cache_write));
    let output = usage.output_tokens.or(known(|k| k.output));
    answered.usage = Some(BilledTokens {
        uncached_input,
        cache_read: cache_read.unwrap_or(0),
        cache_write: cache_write.unwrap_or(0),
        output: output.unwrap_or(0),
    });
}
