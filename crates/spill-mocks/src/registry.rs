use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use spill_scenario::{ModelSpec, ServedInput, ToolFault};
use spill_tokens::TokenCounter;

use crate::answer::Readings;
use crate::error::BadRequest;
use crate::faults::Faults;
use crate::forward::Upstream;
use crate::journal::{Journal, Lost, ToolCallEntry};
use crate::mcp::{self, Stated};
use crate::request::Wire;
use crate::run::MockRun;
use crate::state::{Closed, LlmState, Opened, Reply};
use crate::tools::{Offer, ServedTools};
use crate::usage::Prefixes;

/// Inputs whose serialised texts are kept for later runs.
const SERVED_INPUTS: usize = 16;

/// The runs that the mock servers know, and what they saw of each.
///
/// Shared by one LLM server and any number of tool servers. Texts are tokenised, read and
/// serialised once for all runs.
#[derive(Debug)]
pub struct Registry {
    tokens: Arc<TokenCounter>,
    readings: Arc<Readings>,
    runs: Mutex<HashMap<String, Arc<Slot>>>,
    served: Mutex<Vec<Arc<ServedTools>>>,
    strays: Mutex<Vec<String>>,
    parsed_bytes: Mutex<u64>,
    upstream: Option<Arc<Upstream>>,
}

/// Bytes that the LLM server worked on beyond moving and comparing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of request bodies that were parsed and hashed, in runs that are finished.
    pub parsed_bytes: u64,
    /// Bytes that went through the tokenizer.
    pub tokenised_bytes: u64,
    /// Bytes that the simulated model read by its rules.
    pub read_bytes: u64,
}

/// One registered run.
#[derive(Debug)]
pub(crate) struct Slot {
    model: Arc<ModelSpec>,
    pub(crate) tools: Arc<ServedTools>,
    pub(crate) offer: Offer,
    llm: Mutex<LlmState>,
    tool_calls: Mutex<Vec<ToolCallEntry>>,
    faults: Faults,
    unscripted: Mutex<Vec<String>>,
}

impl Registry {
    /// A registry without runs.
    #[must_use]
    pub fn new(tokens: Arc<TokenCounter>) -> Self {
        Self {
            tokens,
            readings: Arc::default(),
            runs: Mutex::default(),
            served: Mutex::default(),
            strays: Mutex::default(),
            parsed_bytes: Mutex::default(),
            upstream: None,
        }
    }

    /// A registry whose LLM server forwards to a real endpoint in place of the simulated model.
    #[must_use]
    pub fn forwarding(tokens: Arc<TokenCounter>, upstream: Arc<Upstream>) -> Self {
        Self {
            upstream: Some(upstream),
            ..Self::new(tokens)
        }
    }

    /// Makes a run known to the servers; one that was known by the same id is forgotten.
    pub fn register(&self, run: MockRun) {
        let slot = Slot {
            model: Arc::clone(&run.model),
            tools: self.served_tools(&run.served),
            offer: Offer::to(&run.model),
            llm: Mutex::new(LlmState::new(&run, Arc::clone(&self.readings))),
            tool_calls: Mutex::default(),
            faults: Faults(Arc::clone(&run.faults)),
            unscripted: Mutex::default(),
        };
        lock(&self.runs).insert(run.run_id, Arc::new(slot));
    }

    /// Forgets a run and returns what the servers saw of it; an empty journal for an unknown id.
    pub fn finish(&self, run_id: &str) -> Journal {
        let Some(slot) = lock(&self.runs).remove(run_id) else {
            return Journal::default();
        };
        let mut llm = lock(&slot.llm);
        *lock(&self.parsed_bytes) += llm.parsed_bytes;
        Journal {
            llm: std::mem::take(&mut llm.journal),
            tools: std::mem::take(&mut lock(&slot.tool_calls)),
            unscripted: std::mem::take(&mut lock(&slot.unscripted)),
            last_answer: llm.last_answer.1.take(),
        }
    }

    /// Answers one message of the Model Context Protocol, as it stands on a line of standard input;
    /// `None` when it takes no answer, or the run is unknown.
    pub fn tools_message(&self, run_id: &str, message: &[u8]) -> Option<Vec<u8>> {
        let answer = mcp::answer(&*self.slot(run_id)?, Stated::default(), message);
        (!answer.body.is_empty()).then_some(answer.body)
    }

    /// The name of the tokenizer that counts, for the record.
    #[must_use]
    pub fn tokenizer(&self) -> &'static str {
        self.tokens.name()
    }

    /// Requests so far that belong to no known run.
    #[must_use]
    pub fn strays(&self) -> Vec<String> {
        lock(&self.strays).clone()
    }

    /// What the LLM server worked on so far.
    #[must_use]
    pub fn work(&self) -> Work {
        Work {
            parsed_bytes: *lock(&self.parsed_bytes),
            tokenised_bytes: self.tokens.tokenised_bytes(),
            read_bytes: self.readings.read_bytes(),
        }
    }

    /// Answers a chat completion request of a run as the LLM server does, without a socket, and
    /// returns the JSON of the reply or refusal; `None` for an unknown run.
    pub fn chat(&self, run_id: &str, body: Bytes) -> Option<Bytes> {
        let slot = self.slot(run_id)?;
        let wire = Wire::default();
        match self.answer(&slot, body, &wire).0 {
            Reply::Refused(refusal) => Some(wire.dialect.refusal(&refusal).1),
            Reply::Completed(completion, prompt) => {
                slot.complete(&prompt);
                Some(wire.dialect.json(&completion))
            }
            Reply::Spoilt(completion, _) => Some(wire.dialect.json(&completion)),
        }
    }

    pub(crate) fn slot(&self, run_id: &str) -> Option<Arc<Slot>> {
        lock(&self.runs).get(run_id).cloned()
    }

    /// Answers a request of a run to the LLM, and says how long to wait with the answer.
    pub(crate) fn answer(&self, slot: &Slot, body: Bytes, wire: &Wire) -> (Reply, Duration) {
        let mut llm = lock(&slot.llm);
        let reply = llm.answer(body, wire, &self.tokens);
        (reply, llm.wait)
    }

    /// The real endpoint, where there is one.
    pub(crate) fn upstream(&self) -> Option<Arc<Upstream>> {
        self.upstream.clone()
    }

    pub(crate) fn tokens(&self) -> Arc<TokenCounter> {
        Arc::clone(&self.tokens)
    }

    /// Journals a request of a run that goes on to a real endpoint.
    pub(crate) fn open(&self, slot: &Slot, body: Bytes, wire: &Wire) -> Result<Opened, BadRequest> {
        lock(&slot.llm).open(body, wire, &self.tokens)
    }

    /// Counts the tokens of a prompt.
    pub(crate) fn count_tokens(
        &self,
        slot: &Slot,
        body: Bytes,
        wire: &Wire,
    ) -> Result<u64, BadRequest> {
        lock(&slot.llm).prompt_tokens(body, wire, &self.tokens)
    }

    /// Journals a request that no script answers.
    pub(crate) fn unscripted(&self, run_id: Option<&str>, what: String) {
        match run_id.and_then(|run_id| self.slot(run_id)) {
            Some(slot) => slot.unscripted(what),
            None => lock(&self.strays).push(what),
        }
    }

    fn served_tools(&self, input: &Arc<ServedInput>) -> Arc<ServedTools> {
        let mut served = lock(&self.served);
        if let Some(tools) = served.iter().find(|tools| tools.serves(input)) {
            return Arc::clone(tools);
        }
        let tools = Arc::new(ServedTools::new(Arc::clone(input)));
        if served.len() == SERVED_INPUTS {
            served.remove(0);
        }
        served.push(Arc::clone(&tools));
        tools
    }
}

impl Slot {
    pub(crate) fn model(&self) -> &ModelSpec {
        &self.model
    }

    /// Feeds the run's prompt cache with a request that was answered.
    pub(crate) fn complete(&self, prompt: &Prefixes) {
        lock(&self.llm).complete(prompt);
    }

    /// Completes the entry of a request that went on to a real endpoint.
    pub(crate) fn close(&self, call: u64, closed: Closed) {
        lock(&self.llm).close(call, closed);
    }

    /// Marks a request that does not go on.
    pub(crate) fn refuse(&self, call: u64, lost: Lost, reason: &str) {
        lock(&self.llm).refuse(call, lost, reason);
    }

    /// What hits the next tool call.
    pub(crate) fn tool_fault(&self) -> Option<ToolFault> {
        self.faults
            .of_tools(lock(&self.tool_calls).len() as u64 + 1)
    }

    pub(crate) fn tool_called(&self, entry: ToolCallEntry) {
        lock(&self.tool_calls).push(entry);
    }

    pub(crate) fn unscripted(&self, what: String) {
        lock(&self.unscripted).push(what);
    }
}

/// A panic elsewhere does not make the journal unreadable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
