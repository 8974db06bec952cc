//! One request on its way: whatever becomes of it, it is journalled and paid for.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use spill_tokens::TokenCounter;

use crate::journal::Lost;
use crate::registry::Slot;
use crate::state::{Closed, Opened};

use super::answer::{Answered, BilledTokens};

/// Decides whether one more request may be sent, and takes what each cost.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Whether one more request may be sent.
    fn admits(&self) -> bool;

    /// Takes what an attempt cost, however it ended.
    fn settle(&self, attempt: &Attempt<'_>);
}

/// What one request to an endpoint cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// The model that the request names.
    pub model: &'a str,
    /// What the endpoint says it billed; `None` when it does not say.
    pub billed: Option<BilledTokens>,
    /// What it is to count for where `billed` is `None`: our own count of what went out and came back; nothing
    /// where the endpoint refused.
    pub estimated: BilledTokens,
    /// Whether a whole answer came.
    pub is_answered: bool,
}

/// A request that was sent. One that is dropped was given up by the subject, and counts as lost.
pub(super) struct Flight {
    slot: Arc<Slot>,
    gate: Arc<dyn Gate>,
    tokens: Arc<TokenCounter>,
    opened: Opened,
    started: Instant,
    is_closed: bool,
    pub(super) answered: Answered,
}

impl Flight {
    pub(super) fn new(
        slot: Arc<Slot>,
        gate: Arc<dyn Gate>,
        tokens: Arc<TokenCounter>,
        opened: Opened,
    ) -> Self {
        Self {
            slot,
            gate,
            tokens,
            opened,
            started: Instant::now(),
            is_closed: false,
            answered: Answered::default(),
        }
    }

    /// The whole answer is there.
    pub(super) fn answered(&mut self) {
        let says = self.answered.finish_reason.clone();
        let reason = says.unwrap_or_else(|| "none".to_owned());
        self.close(200, &reason, None, self.estimate());
    }

    /// No answer came that a client can use, for a reason that is the endpoint's.
    pub(super) fn lost(&mut self, reason: &str) {
        self.close(0, reason, Some(Lost::Endpoint), self.estimate());
    }

    /// Nothing was sent, since nobody was there.
    pub(super) fn unreachable(&mut self) {
        let nothing = BilledTokens::default();
        self.close(0, "endpoint_unreachable", Some(Lost::Endpoint), nothing);
    }

    /// The endpoint refused.
    pub(super) fn refused(&mut self, status: u16, reason: &str, lost: Option<Lost>) {
        self.close(status, reason, lost, BilledTokens::default());
    }

    /// By our own count: the prompt, and what came of an answer.
    fn estimate(&self) -> BilledTokens {
        BilledTokens {
            uncached_input: self.opened.prompt_tokens,
            output: self.tokens.count(&self.answered.text),
            ..BilledTokens::default()
        }
    }

    fn close(&mut self, status: u16, reason: &str, lost: Option<Lost>, estimated: BilledTokens) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        // No prompt is billed as nothing: such a usage tells nothing.
        let billed = self.answered.usage.filter(|told| told.input() > 0);
        let is_answered = status == 200;
        self.gate.settle(&Attempt {
            model: &self.opened.model,
            billed,
            estimated,
            is_answered,
        });
        // Nothing that is known to have cost nothing is missing.
        let is_free = estimated == BilledTokens::default();
        let answer = is_answered.then(|| {
            let text = std::mem::take(&mut self.answered.text);
            self.answered.calls.is_empty().then_some(text)
        });
        self.slot.close(
            self.opened.call,
            Closed {
                status,
                billed: billed.or(is_free.then_some(estimated)),
                calls: std::mem::take(&mut self.answered.calls),
                finish_reason: reason.to_owned(),
                lost,
                model_time_ms: self.started.elapsed().as_secs_f64() * 1000.0,
                turns: self.opened.turns,
                answer,
            },
        );
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.close(0, "given_up", None, self.estimate());
    }
}
