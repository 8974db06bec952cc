//! Recorded requests, sorted into conversations.

use std::collections::HashMap;

use crate::builder::{Builder, CallHead};
use crate::message::NewMessage;
use crate::model::{BoundaryKind, ContextSource, Format, Role, Transcript};
use crate::problem::Place;
use crate::spans::Spans;

/// Conversations of one source of requests (a capture, a sample, a trace). A request belongs to the conversation whose last
/// request and answer share the longest start with it, when that start has at least the first message that is not of the
/// system; else it starts a new one. Every message is kept once.
pub(crate) struct Chains {
    format: Format,
    chains: Vec<Chain>,
}

/// Where a request went.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    chain: usize,
    call: usize,
}

struct Chain {
    builder: Builder,
    known: HashMap<u64, usize>,
    first_length: usize,
    last: Vec<u64>,
    last_spans: Spans,
}

impl Chains {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            chains: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Adds a request with the messages it carried.
    pub(crate) fn request(
        &mut self,
        messages: Vec<NewMessage>,
        head: CallHead,
        place: &Place,
    ) -> Ticket {
        let digests: Vec<u64> = messages.iter().map(NewMessage::digest).collect();
        let root = messages
            .iter()
            .position(|message| message.role != Role::System)
            .map_or(messages.len(), |first| first + 1);
        let chain = self.find(&digests, root).unwrap_or_else(|| {
            self.chains.push(Chain {
                builder: Builder::new(self.format, place),
                known: HashMap::new(),
                first_length: digests.len(),
                last: Vec::new(),
                last_spans: Spans::default(),
            });
            self.chains.len() - 1
        });
        let call = self.chains[chain].request(messages, digests, head);
        Ticket { chain, call }
    }

    /// Adds the answer to a request.
    pub(crate) fn response(&mut self, ticket: Ticket, answer: NewMessage) {
        let chain = &mut self.chains[ticket.chain];
        let index = chain.intern(answer.digest(), answer);
        chain.builder.transcript.calls[ticket.call].answer = Some(index);
    }

    /// The call of a request, for what the response tells of it.
    pub(crate) fn head(&mut self, ticket: Ticket) -> &mut crate::model::Call {
        &mut self.chains[ticket.chain].builder.transcript.calls[ticket.call]
    }

    /// Adds a message that was in no request, to the conversation that `belongs` recognises, or else to the first.
    pub(crate) fn park(&mut self, message: NewMessage, belongs: impl Fn(&Transcript) -> bool) {
        let found = self
            .chains
            .iter()
            .rposition(|chain| belongs(&chain.builder.transcript))
            .unwrap_or(0);
        if let Some(chain) = self.chains.get_mut(found) {
            chain.builder.park(message);
        }
    }

    /// True when some conversation has it.
    pub(crate) fn any(&self, holds: impl Fn(&Transcript) -> bool) -> bool {
        self.chains.iter().any(|c| holds(&c.builder.transcript))
    }

    /// The conversations' builders, in the order of their first request.
    pub(crate) fn into_builders(self) -> impl Iterator<Item = Builder> {
        self.chains.into_iter().map(|chain| chain.builder)
    }

    fn find(&self, digests: &[u64], root: usize) -> Option<usize> {
        let mut best = None;
        for (index, chain) in self.chains.iter().enumerate() {
            let shared = shared_start(&chain.last, digests);
            let restarts = digests.len() <= chain.first_length && chain.last.len() > digests.len();
            if shared < root || shared == 0 || restarts {
                continue;
            }
            if best.is_none_or(|(longest, _)| shared >= longest) {
                best = Some((shared, index));
            }
        }
        best.map(|(_, index)| index)
    }
}

impl Chain {
    fn request(&mut self, messages: Vec<NewMessage>, digests: Vec<u64>, head: CallHead) -> usize {
        let context: Spans = messages
            .into_iter()
            .zip(&digests)
            .map(|(message, digest)| self.intern(*digest, message))
            .collect();
        let kept = self
            .last_spans
            .iter()
            .zip(context.iter())
            .all(|(before, now)| before == now)
            && context.len() >= self.last_spans.len();
        if !kept {
            self.builder.boundary(BoundaryKind::Edit, context.clone());
        }
        self.builder.live = context.clone();
        self.last = digests;
        self.last_spans = context.clone();
        self.builder.call(context, ContextSource::Recorded, head)
    }

    /// The index of an equal message, or of this one after it was added.
    fn intern(&mut self, digest: u64, message: NewMessage) -> usize {
        if let Some(index) = self.known.get(&digest)
            && self.builder.transcript.messages[*index].pieces == message.pieces
        {
            return *index;
        }
        let index = self.builder.park(message);
        self.known.insert(digest, index);
        index
    }
}

fn shared_start(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
