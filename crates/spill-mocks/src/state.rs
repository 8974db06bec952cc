//! One run on the LLM server: a request goes in, a reply comes out, the journal grows.

mod forwarded;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use spill_scenario::{LlmFault, ModelSpec, ServedInput};
use spill_tokens::TokenCounter;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::Readings;
use crate::conversation::Message;
use crate::error::BadRequest;
use crate::faults::{Delivery, Faults, delivery_of, refusal_of};
use crate::journal::LlmCallEntry;
use crate::latency::time;
use crate::model::{Action, Model};
use crate::refusal::Refusal;
use crate::reply::{Completion, Said, Usage};
use crate::request::{View, Wire};
use crate::run::MockRun;
use crate::usage::{Cost, Prefixes, PromptCache, context, result_entry};

pub(crate) use forwarded::{Closed, Opened};

/// The LLM side of a run.
///
/// All it keeps between requests is for the accounting: the prompt cache, which results were seen,
/// and the last request, so that the next one costs only its new bytes. None of it changes what the
/// model does.
#[derive(Debug)]
pub(crate) struct LlmState {
    model: Model,
    /// What the tools serve; only the accounting looks at it.
    served: Arc<ServedInput>,
    spec: Arc<ModelSpec>,
    last: Option<View>,
    costs: Vec<Cost>,
    cache: PromptCache,
    known_results: HashSet<u128>,
    faults: Faults,
    /// How long the server waits before it sends the last reply.
    pub(crate) wait: Duration,
    pub(crate) journal: Vec<LlmCallEntry>,
    /// Turns before the last reply of the longest conversation, and its text if it is an answer.
    pub(crate) last_answer: (u64, Option<String>),
    pub(crate) parsed_bytes: u64,
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Reply {
    Refused(Refusal),
    Completed(Completion, Prefixes),
    /// A completion that does not reach its client as it should.
    Spoilt(Completion, Delivery),
}

impl LlmState {
    pub(crate) fn new(run: &MockRun, readings: Arc<Readings>) -> Self {
        Self {
            model: Model::new(run, readings),
            served: Arc::clone(&run.served),
            spec: Arc::clone(&run.model),
            last: None,
            costs: Vec::new(),
            cache: PromptCache::default(),
            known_results: HashSet::new(),
            faults: Faults(Arc::clone(&run.faults)),
            wait: Duration::ZERO,
            journal: Vec::new(),
            last_answer: (0, None),
            parsed_bytes: 0,
        }
    }

    /// Answers one request and journals it.
    pub(crate) fn answer(&mut self, body: Bytes, wire: &Wire, tokens: &TokenCounter) -> Reply {
        let call = self.journal.len() as u64;
        let view = match self.read(body.clone(), wire, tokens) {
            Ok(view) => view,
            Err(error) => return Reply::Refused(self.unreadable(call, &body, wire, &error)),
        };
        let prompt = Prefixes::new(&view, &self.costs, tokens);
        let mut entry = self.entry(call, &view);
        let reply = self.reply(&view, prompt, tokens, &mut entry);
        self.keep_answer(view.turns(), &reply);
        self.wait = self.take_time(&view, &mut entry);
        self.journal.push(entry);
        self.last = Some(view);
        reply
    }

    /// Journals a request that is none, and returns the refusal of it.
    fn unreadable(&mut self, call: u64, body: &Bytes, wire: &Wire, error: &BadRequest) -> Refusal {
        let refusal = Refusal::invalid_request(error);
        self.journal.push(LlmCallEntry {
            call,
            status: wire.dialect.refusal(&refusal).0,
            request_bytes: body.len() as u64,
            request_digest: hex(xxh3_128(body)),
            finish_reason: refusal.code().to_owned(),
            ..LlmCallEntry::default()
        });
        refusal
    }

    /// Keeps what the model said, unless the request belongs to a shorter conversation beside the run's,
    /// such as one for a title.
    fn keep_answer(&mut self, turns: u64, reply: &Reply) {
        if turns < self.last_answer.0 {
            return;
        }
        let Reply::Completed(completion, _) = reply else {
            return;
        };
        let answer = match &completion.said {
            Said::Answer(text) => Some(text.clone()),
            Said::Calls(_) | Said::Nothing => None,
        };
        self.last_answer = (turns, answer);
    }

    /// Counts a prompt's tokens; the request is not one of the run's calls.
    pub(crate) fn prompt_tokens(
        &mut self,
        body: Bytes,
        wire: &Wire,
        tokens: &TokenCounter,
    ) -> Result<u64, BadRequest> {
        let view = self.read(body, wire, tokens)?;
        let prompt = Prefixes::new(&view, &self.costs, tokens).prompt_tokens();
        self.last = Some(view);
        Ok(prompt)
    }

    /// Reads a request after the last one, and what each of its messages costs.
    fn read(
        &mut self,
        body: Bytes,
        wire: &Wire,
        tokens: &TokenCounter,
    ) -> Result<View, BadRequest> {
        let view = View::parse_after(body, wire, self.last.take())?;
        self.parsed_bytes += view.parsed_bytes;
        self.costs.truncate(view.reused);
        for index in self.costs.len()..view.messages.len() {
            self.costs
                .push(Cost::of(&view, index, tokens, &self.served));
        }
        Ok(view)
    }

    /// Feeds the prompt cache with a request whose answer was handed over.
    pub(crate) fn complete(&mut self, prompt: &Prefixes) {
        self.cache.feed(prompt);
    }

    fn reply(
        &self,
        view: &View,
        prompt: Prefixes,
        tokens: &TokenCounter,
        entry: &mut LlmCallEntry,
    ) -> Reply {
        let fault = self.faults.of_llm(entry.call + 1);
        let prompt_tokens = prompt.prompt_tokens();
        if let Some(refusal) = self.refusal(view, prompt_tokens, fault, entry) {
            entry.status = view.dialect().refusal(&refusal).0;
            refusal.code().clone_into(&mut entry.finish_reason);
            return Reply::Refused(refusal);
        }
        let mut action = self.model.respond(view);
        if let Some(misled) = fault.and_then(|fault| self.model.misled(fault, &action, view)) {
            entry.fault = fault.map(LlmFault::name);
            action = misled;
        }
        if let Action::Call(calls) = &action {
            entry.calls_tools = calls.iter().map(|call| call.name.clone()).collect();
        }
        let cached = self.cache.use_of(&prompt);
        let usage = Usage {
            prompt_tokens,
            cached_tokens: cached.read,
            written_tokens: cached.written,
            completion_tokens: 0,
        };
        let id = self.model.hash(view.turns(), "reply", 0);
        let mut completion = Completion::new(id, view, action, usage, tokens);
        entry.status = 200;
        match fault {
            Some(LlmFault::EmptyChoice) => {
                completion.said = Said::Nothing;
                self.spoilt(completion, LlmFault::EmptyChoice, entry)
            }
            Some(fault) if delivery_of(fault).spoils() => self.spoilt(completion, fault, entry),
            Some(_) | None => {
                entry.uncached_input_tokens = usage.uncached_tokens();
                entry.cache_read_tokens = usage.cached_tokens;
                entry.cache_write_tokens = usage.written_tokens;
                entry.output_tokens = completion.usage.completion_tokens;
                view.dialect()
                    .finish_reason(&completion)
                    .clone_into(&mut entry.finish_reason);
                match fault.map(delivery_of) {
                    Some(delivery) if delivery != Delivery::Whole => {
                        entry.fault = fault.map(LlmFault::name);
                        Reply::Spoilt(completion, delivery)
                    }
                    Some(_) | None => Reply::Completed(completion, prompt),
                }
            }
        }
    }

    /// Keeps the time of a call, where the model has a latency: all that it processed, and what it
    /// waited for its turn. A call that is sent again waits as long.
    fn take_time(&self, view: &View, entry: &mut LlmCallEntry) -> Duration {
        let Some(latency) = self.spec.latency else {
            return Duration::ZERO;
        };
        let draw = self.model.hash(view.turns(), "queue", 0);
        let processed = entry.uncached_input_tokens + entry.cache_write_tokens;
        let time = time(latency, draw, processed, entry.output_tokens);
        entry.model_time_ms = Some(time.model_ms);
        time.wait
    }

    /// The refusal of a request that is too large, or that a fault hits so.
    fn refusal(
        &self,
        view: &View,
        prompt_tokens: u64,
        fault: Option<LlmFault>,
        entry: &mut LlmCallEntry,
    ) -> Option<Refusal> {
        let window = self.spec.context_window_tokens;
        if prompt_tokens > window {
            return Some(Refusal::context_length(window, prompt_tokens));
        }
        let planned = refusal_of(fault?, window, prompt_tokens, view.options.stream)?;
        entry.fault = fault.map(LlmFault::name);
        Some(planned)
    }

    /// A reply of which nothing can be used: its tokens are not counted.
    fn spoilt(&self, completion: Completion, fault: LlmFault, entry: &mut LlmCallEntry) -> Reply {
        let delivery = delivery_of(fault);
        entry.fault = Some(fault.name());
        entry.status = 0;
        entry.calls_tools.clear();
        fault.name().clone_into(&mut entry.finish_reason);
        Reply::Spoilt(completion, delivery)
    }

    fn entry(&mut self, call: u64, view: &View) -> LlmCallEntry {
        let mut new_results = Vec::new();
        // What was taken over from the request before has been seen in it.
        for (index, item) in view.messages.iter().enumerate().skip(view.reused) {
            let is_result = matches!(*item.message, Message::Tool { .. });
            if is_result && self.known_results.insert(item.hash) {
                new_results.extend(result_entry(view, index, &self.served));
            }
        }
        LlmCallEntry {
            call,
            iteration: view.turns() + 1,
            request_bytes: view.body_bytes(),
            request_digest: hex(view.digest()),
            tools_digest: hex(xxh3_128(view.options.tools_json().as_bytes())),
            context: context(&self.costs, &view.options),
            new_results,
            ..LlmCallEntry::default()
        }
    }
}

fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}

#[cfg(test)]
mod tests;
