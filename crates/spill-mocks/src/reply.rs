//! What the simulated model replies, whatever dialect it is written in.

use spill_tokens::TokenCounter;

use crate::model::{Action, ToolCall};
use crate::request::View;

/// Tokens of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The whole prompt.
    pub(crate) prompt_tokens: u64,
    /// Of it, what the prompt cache had.
    pub(crate) cached_tokens: u64,
    /// Of it, what was written to a prompt cache that bills this apart.
    pub(crate) written_tokens: u64,
    pub(crate) completion_tokens: u64,
}

impl Usage {
    /// Prompt tokens that were neither read from the cache nor written to it.
    pub(crate) fn uncached_tokens(self) -> u64 {
        self.prompt_tokens - self.cached_tokens - self.written_tokens
    }

    pub(crate) fn total_tokens(self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

/// A reply of the simulated model, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    /// A hash that names it.
    pub(crate) id: u64,
    pub(crate) model: String,
    pub(crate) said: Said,
    /// Whether the request's bound cut the answer.
    pub(crate) is_cut: bool,
    pub(crate) usage: Usage,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

/// What a reply says.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Answer(String),
    Calls(Vec<NamedCall>),
    /// No choice at all; only a planned fault makes it so.
    Nothing,
}

/// A tool call by the names under which the client offers its tool.
#[derive(Clone, Debug)]
pub(crate) struct NamedCall {
    pub(crate) id: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl NamedCall {
    fn new(call: ToolCall, view: &View) -> Self {
        let within = view
            .offered()
            .iter()
            .find(|tool| tool.name == call.name && tool.namespace.is_some());
        let (namespace, name) = match within {
            Some(tool) => (tool.namespace.clone(), tool.own_name().to_owned()),
            None => (None, call.name),
        };
        Self {
            id: call.id,
            namespace,
            name,
            arguments: call.arguments,
        }
    }
}

/// Why a reply ends; each dialect has its own word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Calls,
    Length,
    Stop,
}

impl Completion {
    /// Counts the reply's tokens, and cuts it where the request bounds it.
    pub(crate) fn new(
        id: u64,
        view: &View,
        action: Action,
        usage: Usage,
        tokens: &TokenCounter,
    ) -> Self {
        let (action, is_cut) = bounded(action, view.options.max_output_tokens, tokens);
        let completion_tokens = match &action {
            Action::Answer(text) => tokens.count(text),
            Action::Call(calls) => calls
                .iter()
                .map(|call| tokens.count(&call.name) + tokens.count(&call.arguments))
                .sum(),
        };
        let said = match action {
            Action::Answer(text) => Said::Answer(text),
            Action::Call(calls) => Said::Calls(
                calls
                    .into_iter()
                    .map(|call| NamedCall::new(call, view))
                    .collect(),
            ),
        };
        Self {
            id,
            model: view.options.model.clone().unwrap_or_default(),
            said,
            is_cut,
            usage: Usage {
                completion_tokens,
                ..usage
            },
            stream: view.options.stream,
            include_usage: view.options.include_usage,
        }
    }

    pub(crate) fn finish(&self) -> Finish {
        match &self.said {
            Said::Calls(_) => Finish::Calls,
            Said::Answer(_) if self.is_cut => Finish::Length,
            Said::Answer(_) | Said::Nothing => Finish::Stop,
        }
    }
}

/// Keeps as many lines of an answer as `max` tokens allow, at least a part of the first.
fn bounded(action: Action, max: Option<u64>, tokens: &TokenCounter) -> (Action, bool) {
    let (Action::Answer(text), Some(max)) = (&action, max) else {
        return (action, false);
    };
    if tokens.count(text) <= max {
        return (action, false);
    }
    let mut kept = text.as_str();
    while tokens.count(kept) > max {
        let shorter = kept.rfind('\n').unwrap_or(kept.len() / 2);
        let end = (0..=shorter)
            .rev()
            .find(|at| kept.is_char_boundary(*at))
            .unwrap_or(0);
        kept = &kept[..end];
    }
    (Action::Answer(kept.to_owned()), true)
}
