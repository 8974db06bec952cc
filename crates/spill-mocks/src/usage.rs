//! Tokens and bytes of a request, and the prompt cache.
//!
//! How a prompt is counted, after OpenAI's published recipe: each message costs
//! [`MESSAGE_TOKENS`] and the tokens of its texts (of a tool call: id, name and arguments), the
//! reply is primed with [`PRIMING_TOKENS`], and the tool list counts as its JSON. A tool result is
//! counted in parts (delimiters, a slice's header line, the text), so that one text has one count
//! wherever it stands.

use std::collections::HashSet;

use spill_scenario::ServedInput;
use spill_tokens::TokenCounter;
use xxhash_rust::xxh3::xxh3_128;

use crate::conversation::{Call, Message, Options};
use crate::dialect::Caching;
use crate::journal::{ContextBytes, NewResult, ResultForm};
use crate::request::View;
use crate::result::{Form, ToolText};
use crate::saved::{FileReader, read_path};
use crate::seen::{form_of, reference_argument};
use crate::served_size::served_bytes;

/// Tokens that a message costs beside its texts.
pub const MESSAGE_TOKENS: u64 = 3;
/// Tokens that prime the reply.
pub const PRIMING_TOKENS: u64 = 3;
/// A prompt prefix is cached in blocks of this many tokens.
pub const CACHE_BLOCK_TOKENS: u64 = 128;
/// A shorter prompt prefix is not cached.
pub const CACHE_MINIMUM_TOKENS: u64 = 1024;

/// What one message costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    tokens: u64,
    bytes: u64,
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    System,
    User,
    Assistant,
    Result(ResultForm),
}

impl Cost {
    /// Counts one message of a request.
    pub(crate) fn of(
        view: &View,
        index: usize,
        tokens: &TokenCounter,
        served: &ServedInput,
    ) -> Self {
        let (counted, bytes, origin) = match &*view.messages[index].message {
            Message::System(text) => (tokens.count(text), text.len(), Origin::System),
            Message::User(text) => (tokens.count(text), text.len(), Origin::User),
            Message::Assistant { text, calls } => {
                let texts = || {
                    calls
                        .iter()
                        .flat_map(|call| [call.name.as_str(), &call.json])
                };
                let ids = calls.iter().map(|call| tokens.count(&call.id));
                let counted = texts().map(|text| tokens.count(text)).sum::<u64>();
                (
                    tokens.count(text) + ids.sum::<u64>() + counted,
                    text.len() + texts().map(str::len).sum::<usize>(),
                    Origin::Assistant,
                )
            }
            Message::Tool { call_id, result } => {
                let form = form_in_prompt(view, call_of(view, index), result, served);
                (
                    tokens.count(call_id) + result_tokens(result, tokens),
                    result.content_bytes(),
                    Origin::Result(form),
                )
            }
        };
        Self {
            tokens: MESSAGE_TOKENS + counted,
            bytes: bytes as u64,
            origin,
        }
    }
}

fn result_tokens(result: &ToolText, tokens: &TokenCounter) -> u64 {
    let text = result.in_prompt();
    let header = match &result.form {
        // Escapes stand behind the header line only.
        Form::Slice(slice) => slice.header_bytes().min(text.len()),
        Form::Whole | Form::Error | Form::Preview(_) | Form::Saved(_) => 0,
    };
    let (header, body) = text.split_at(header);
    [result.open, header, body, result.close]
        .map(|part| tokens.count(part))
        .iter()
        .sum()
}

/// In which form a result stands in the prompt, given the call it answers. What an agent's own tool
/// read from a saved result is a slice of it; where nothing leads to the rest, the result is cut.
fn form_in_prompt(
    view: &View,
    call: Option<&Call>,
    result: &ToolText,
    served: &ServedInput,
) -> ResultForm {
    match form_as_served(call, result, served) {
        Form::Error => ResultForm::Error,
        Form::Whole if call.is_some_and(|call| read_path(call).is_some()) => ResultForm::Slice,
        Form::Whole if result.is_cut() && !is_as_recorded(call, result, served) => ResultForm::Cut,
        Form::Whole => ResultForm::Inline,
        Form::Preview(_) => ResultForm::Preview,
        Form::Slice(_) => ResultForm::Slice,
        Form::Saved(_) if FileReader::of(view.offered()).is_some() => ResultForm::Preview,
        Form::Saved(_) => ResultForm::Cut,
    }
}

/// What a result is. A recorded one that stands there as it was served is whole, even where the recording agent had put
/// a preview in the place of a result: the subject stored nothing.
fn form_as_served<'v>(call: Option<&Call>, result: &'v ToolText, served: &ServedInput) -> &'v Form {
    match form_of(call, result) {
        Form::Preview(_) | Form::Saved(_) if is_as_recorded(call, result, served) => &Form::Whole,
        form => form,
    }
}

fn is_as_recorded(call: Option<&Call>, result: &ToolText, served: &ServedInput) -> bool {
    let recorded = call.and_then(|call| served.recorded(call.recorded_key()?));
    recorded.is_some_and(|recorded| *recorded.text == *result.text)
}

/// The call that the tool message at `index` answers.
fn call_of(view: &View, index: usize) -> Option<&Call> {
    let Message::Tool { call_id, .. } = &*view.messages[index].message else {
        return None;
    };
    view.messages[..index]
        .iter()
        .rev()
        .find_map(|item| match &*item.message {
            Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == *call_id),
            Message::System(_) | Message::User(_) | Message::Tool { .. } => None,
        })
}

/// Describes the tool message at `index` for the journal; `None` for other messages.
pub(crate) fn result_entry(view: &View, index: usize, served: &ServedInput) -> Option<NewResult> {
    let Message::Tool { result, .. } = &*view.messages[index].message else {
        return None;
    };
    let call = call_of(view, index);
    let form = form_as_served(call, result, served);
    let asked = call.and_then(reference_argument);
    let form_in_prompt = form_in_prompt(view, call, result, served);
    // Agents of others do not say how much they saved or cut.
    let served_bytes = || served_bytes(call.filter(|_| asked.is_none())?, served);
    let (reference, offset_bytes, stored_bytes) = match form {
        Form::Whole if form_in_prompt == ResultForm::Cut => (None, None, served_bytes()),
        Form::Whole | Form::Error => (asked.map(str::to_owned), None, None),
        Form::Preview(preview) => (Some(preview.reference.clone()), None, Some(preview.size)),
        Form::Saved(saved) => (Some(saved.path.clone()), None, served_bytes()),
        Form::Slice(slice) => (
            Some(slice.reference.clone()),
            Some(slice.offset),
            Some(slice.text(&result.text).len() as u64),
        ),
    };
    Some(NewResult {
        tool: call.map(|call| call.name.clone()).unwrap_or_default(),
        argument_bytes: call.map_or(0, |call| call.json.len() as u64),
        text_bytes: result.text.len() as u64,
        prompt_bytes: result.content_bytes() as u64,
        form: form_in_prompt,
        reference,
        offset_bytes,
        stored_bytes,
        with_range: asked.and(call).map(asks_for_range),
    })
}

fn asks_for_range(call: &Call) -> bool {
    ["range", "offset", "length", "limit", "start_line"]
        .iter()
        .any(|name| {
            call.arguments
                .get(name)
                .is_some_and(|value| !value.is_null())
        })
}

/// Sums the bytes of a request by origin.
pub(crate) fn context(costs: &[Cost], options: &Options) -> ContextBytes {
    let mut context = ContextBytes {
        tool_schema_bytes: options.tools_json().len() as u64,
        system_bytes: options.system_text().len() as u64,
        ..ContextBytes::default()
    };
    for cost in costs {
        let part = match cost.origin {
            Origin::System => &mut context.system_bytes,
            Origin::User => &mut context.user_bytes,
            Origin::Assistant => &mut context.assistant_bytes,
            Origin::Result(ResultForm::Inline | ResultForm::Error) => {
                &mut context.inline_result_bytes
            }
            Origin::Result(ResultForm::Preview | ResultForm::Cut) => &mut context.preview_bytes,
            Origin::Result(ResultForm::Slice) => &mut context.read_back_bytes,
        };
        *part += cost.bytes;
    }
    context
}

/// A prompt as the prompt cache sees it: its prefixes that end with a message, by hash, with the
/// tokens up to there. The tool list and what stands beside the messages are part of each.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes {
    ends: Vec<(u128, u64)>,
    caching: Caching,
    /// Which of them the request marks, where caching goes by marks.
    marks: Vec<usize>,
}

impl Prefixes {
    pub(crate) fn new(view: &View, costs: &[Cost], tokens: &TokenCounter) -> Self {
        let (tools, system) = (view.options.tools_json(), view.options.system_text());
        let mut hash = xxh3_128(tools.as_bytes());
        let mut sum = tokens.count(tools);
        if !system.is_empty() {
            hash = chained(hash, xxh3_128(system.as_bytes()));
            sum += MESSAGE_TOKENS + tokens.count(system);
        }
        let caching = view.dialect().caching();
        let mut ends = Vec::with_capacity(costs.len() + 1);
        let mut marks = Vec::new();
        if caching == Caching::Marked {
            ends.push((hash, sum));
            marks.extend(view.options.marks_head.then_some(0));
        }
        for (item, cost) in view.messages.iter().zip(costs) {
            hash = chained(hash, item.hash);
            sum += cost.tokens;
            marks.extend(item.is_marked.then_some(ends.len()));
            ends.push((hash, sum));
        }
        if view.options.marks_end {
            marks.push(ends.len() - 1);
        }
        Self {
            ends,
            caching,
            marks,
        }
    }

    /// Tokens of the whole prompt.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.ends.last().map_or(0, |(_, tokens)| *tokens) + PRIMING_TOKENS
    }

    /// Tokens up to the last mark, where that is enough to be cached.
    fn marked(&self) -> Option<(usize, u64)> {
        let last = *self.marks.last()?;
        let tokens = self.ends[last].1;
        (tokens >= CACHE_MINIMUM_TOKENS).then_some((last, tokens))
    }
}

fn chained(hash: u128, next: u128) -> u128 {
    let mut both = [0; 32];
    both[..16].copy_from_slice(&hash.to_le_bytes());
    both[16..].copy_from_slice(&next.to_le_bytes());
    xxh3_128(&both)
}

/// Tokens of a prompt that the cache had, and that were written to it and billed apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The prompt prefixes of a run's completed requests.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    known: HashSet<u128>,
}

impl PromptCache {
    /// What of a prompt is known: the longest known prefix.
    pub(crate) fn use_of(&self, prompt: &Prefixes) -> CacheUse {
        match prompt.caching {
            Caching::Automatic => CacheUse {
                read: self.in_blocks(prompt),
                written: 0,
            },
            Caching::Marked => self.up_to_marks(prompt),
        }
    }

    fn longest(&self, ends: &[(u128, u64)]) -> u64 {
        let known = |(hash, _): &&(u128, u64)| self.known.contains(hash);
        ends.iter()
            .rev()
            .find(known)
            .map_or(0, |(_, tokens)| *tokens)
    }

    /// Whole blocks; 0 below the minimum.
    fn in_blocks(&self, prompt: &Prefixes) -> u64 {
        let tokens = self.longest(&prompt.ends);
        if tokens < CACHE_MINIMUM_TOKENS {
            return 0;
        }
        tokens - tokens % CACHE_BLOCK_TOKENS
    }

    /// Everything up to the last mark is read or else written.
    fn up_to_marks(&self, prompt: &Prefixes) -> CacheUse {
        let Some((last, tokens)) = prompt.marked() else {
            return CacheUse::default();
        };
        let read = self.longest(&prompt.ends[..=last]);
        CacheUse {
            read,
            written: tokens - read,
        }
    }

    /// Remembers a completed request. Where every prefix is kept, a known one came with all shorter
    /// ones.
    pub(crate) fn feed(&mut self, prompt: &Prefixes) {
        match prompt.caching {
            Caching::Automatic => {
                for (hash, _) in prompt.ends.iter().rev() {
                    if !self.known.insert(*hash) {
                        return;
                    }
                }
            }
            Caching::Marked => {
                let marked = prompt.marks.iter().map(|mark| prompt.ends[*mark]);
                let kept = marked.filter(|(_, tokens)| *tokens >= CACHE_MINIMUM_TOKENS);
                self.known.extend(kept.map(|(hash, _)| hash));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_costs_its_texts_and_the_published_overheads() {
        let tokens = TokenCounter::o200k_base();
        let served = crate::testing::served(crate::testing::document());
        let body = r#"{"model":"m","messages":[{"role":"system","content":"Hello, world!"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"<tool-result>\nhello world\n</tool-result>"}],"tools":[]}"#;
        let view = View::parse(body.as_bytes()).expect("a request");
        let costs: Vec<_> = (0..3)
            .map(|index| Cost::of(&view, index, &tokens, &served))
            .collect();
        let count = |text: &str| tokens.count(text);
        let call = count("c1") + count("read") + count("{}");
        let result = count("c1") + count("<tool-result>\n") + 2 + count("\n</tool-result>");
        assert_eq!(costs[0].tokens, MESSAGE_TOKENS + 4);
        assert_eq!(costs[1].tokens, MESSAGE_TOKENS + call);
        assert_eq!(costs[2].tokens, MESSAGE_TOKENS + result);
        let prompt = Prefixes::new(&view, &costs, &tokens).prompt_tokens();
        assert_eq!(
            prompt,
            3 * MESSAGE_TOKENS + 4 + call + result + count("[]") + PRIMING_TOKENS
        );
    }
}
