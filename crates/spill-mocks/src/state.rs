//! One run on the LLM server: a request goes in, a reply comes out, the journal grows.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use spill_scenario::ModelSpec;
use spill_tokens::TokenCounter;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::Readings;
use crate::conversation::Message;
use crate::error::BadRequest;
use crate::journal::LlmCallEntry;
use crate::model::{Action, Model};
use crate::refusal::Refusal;
use crate::reply::{Completion, Usage};
use crate::request::{View, Wire};
use crate::run::MockRun;
use crate::usage::{Cost, Prefixes, PromptCache, context, result_entry};

/// The LLM side of a run.
///
/// All it keeps between requests is for the accounting: the prompt cache, which results were seen,
/// and the last request, so that the next one costs only its new bytes. None of it changes what the
/// model does.
#[derive(Debug)]
pub(crate) struct LlmState {
    model: Model,
    spec: Arc<ModelSpec>,
    last: Option<View>,
    costs: Vec<Cost>,
    cache: PromptCache,
    known_results: HashSet<u128>,
    pub(crate) journal: Vec<LlmCallEntry>,
    pub(crate) parsed_bytes: u64,
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Reply {
    Refused(Refusal),
    Completed(Completion, Prefixes),
}

impl LlmState {
    pub(crate) fn new(run: &MockRun, readings: Arc<Readings>) -> Self {
        Self {
            model: Model::new(run, readings),
            spec: Arc::clone(&run.model),
            last: None,
            costs: Vec::new(),
            cache: PromptCache::default(),
            known_results: HashSet::new(),
            journal: Vec::new(),
            parsed_bytes: 0,
        }
    }

    /// Answers one request and journals it.
    pub(crate) fn answer(&mut self, body: Bytes, wire: &Wire, tokens: &TokenCounter) -> Reply {
        let call = self.journal.len() as u64;
        let view = match self.read(body.clone(), wire, tokens) {
            Ok(view) => view,
            Err(error) => {
                let refusal = Refusal::invalid_request(&error);
                self.journal.push(LlmCallEntry {
                    call,
                    status: wire.dialect.refusal(&refusal).0,
                    request_bytes: body.len() as u64,
                    request_digest: hex(xxh3_128(&body)),
                    finish_reason: refusal.code().to_owned(),
                    ..LlmCallEntry::default()
                });
                return Reply::Refused(refusal);
            }
        };
        let prompt = Prefixes::new(&view, &self.costs, tokens);
        let mut entry = self.entry(call, &view);
        let reply = self.reply(&view, prompt, tokens, &mut entry);
        self.journal.push(entry);
        self.last = Some(view);
        reply
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
            self.costs.push(Cost::of(&view, index, tokens));
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
        let prompt_tokens = prompt.prompt_tokens();
        if prompt_tokens > self.spec.context_window_tokens {
            let refusal = Refusal::context_length(self.spec.context_window_tokens, prompt_tokens);
            entry.status = view.dialect.refusal(&refusal).0;
            refusal.code().clone_into(&mut entry.finish_reason);
            return Reply::Refused(refusal);
        }
        let action = self.model.respond(view);
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
        let completion = Completion::new(id, view, action, usage, tokens);
        entry.status = 200;
        entry.uncached_input_tokens = usage.uncached_tokens();
        entry.cache_read_tokens = usage.cached_tokens;
        entry.cache_write_tokens = usage.written_tokens;
        entry.output_tokens = completion.usage.completion_tokens;
        view.dialect
            .finish_reason(&completion)
            .clone_into(&mut entry.finish_reason);
        Reply::Completed(completion, prompt)
    }

    fn entry(&mut self, call: u64, view: &View) -> LlmCallEntry {
        let mut new_results = Vec::new();
        // What was taken over from the request before has been seen in it.
        for (index, item) in view.messages.iter().enumerate().skip(view.reused) {
            let is_result = matches!(*item.message, Message::Tool { .. });
            if is_result && self.known_results.insert(item.hash) {
                new_results.extend(result_entry(view, index));
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
