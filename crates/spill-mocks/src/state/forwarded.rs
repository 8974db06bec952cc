//! A request that goes on to a real endpoint: journalled when it comes, completed when it is answered.

use bytes::Bytes;
use spill_tokens::TokenCounter;

use super::LlmState;
use crate::error::BadRequest;
use crate::forward::BilledTokens;
use crate::journal::Lost;
use crate::request::Wire;
use crate::usage::Prefixes;

/// The word for a request that nobody answered yet.
const UNANSWERED: &str = "unanswered";

/// A request that was read and journalled.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Its number within the run.
    pub(crate) call: u64,
    /// The conversation's turns before it.
    pub(crate) turns: u64,
    /// The model that it names.
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// By our own count.
    pub(crate) prompt_tokens: u64,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) status: u16,
    /// `None` when nobody knows.
    pub(crate) billed: Option<BilledTokens>,
    pub(crate) calls: Vec<String>,
    pub(crate) finish_reason: String,
    pub(crate) lost: Option<Lost>,
    pub(crate) model_time_ms: f64,
    pub(crate) turns: u64,
    /// What the model said, where it answered: a text, or `None` where it asks for tools.
    pub(crate) answer: Option<Option<String>>,
}

impl LlmState {
    /// Reads a request and journals it as one without an answer.
    pub(crate) fn open(
        &mut self,
        body: Bytes,
        wire: &Wire,
        tokens: &TokenCounter,
    ) -> Result<Opened, BadRequest> {
        let call = self.journal.len() as u64;
        let view = match self.read(body.clone(), wire, tokens) {
            Ok(view) => view,
            Err(error) => {
                self.unreadable(call, &body, wire, &error);
                return Err(error);
            }
        };
        let mut entry = self.entry(call, &view);
        entry.finish_reason = UNANSWERED.to_owned();
        entry.usage_is_missing = true;
        self.journal.push(entry);
        let opened = Opened {
            call,
            turns: view.turns(),
            model: view.options.model.clone().unwrap_or_default(),
            stream: view.options.stream,
            include_usage: view.options.include_usage,
            prompt_tokens: Prefixes::new(&view, &self.costs, tokens).prompt_tokens(),
        };
        self.last = Some(view);
        Ok(opened)
    }

    /// Completes the entry of a request. One of a run that is over is gone.
    pub(crate) fn close(&mut self, call: u64, closed: Closed) {
        if let Some(answer) = closed.answer
            && closed.turns >= self.last_answer.0
        {
            self.last_answer = (closed.turns, answer);
        }
        let Some(entry) = self.journal.iter_mut().rfind(|entry| entry.call == call) else {
            return;
        };
        entry.status = closed.status;
        entry.usage_is_missing = closed.billed.is_none();
        let billed = closed.billed.unwrap_or_default();
        entry.uncached_input_tokens = billed.uncached_input;
        entry.cache_read_tokens = billed.cache_read;
        entry.cache_write_tokens = billed.cache_write;
        entry.output_tokens = billed.output;
        entry.calls_tools = closed.calls;
        entry.finish_reason = closed.finish_reason;
        entry.lost = closed.lost;
        entry.model_time_ms = Some(closed.model_time_ms);
    }

    /// A request that was journalled and is not sent.
    pub(crate) fn refuse(&mut self, call: u64, lost: Lost, reason: &str) {
        if let Some(entry) = self.journal.iter_mut().rfind(|entry| entry.call == call) {
            entry.usage_is_missing = false;
            entry.lost = Some(lost);
            reason.clone_into(&mut entry.finish_reason);
        }
    }
}
