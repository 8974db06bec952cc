//! The results of a transcript under one policy.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::engine::{Engine, Incoming};
use super::outcome::Outcome;
use super::policy::Policy;
use super::read_back::{Amount, ReadBack, When};
use super::size::Size;
use super::weighed::{Reads, Replay};

/// A result that leaves the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The result's index in [`Transcript::results`](crate::Transcript::results).
    pub result: usize,
    /// What the result weighs.
    pub original: Size,
    /// What stands for it weighs.
    pub replacement: Size,
    /// How many calls were sent it.
    pub sends: u64,
    reference: String,
    hidden: std::ops::Range<usize>,
    /// The first request that was sent it.
    first: Option<usize>,
}

impl Replacement {
    /// Bytes and tokens that it takes off all inputs before anything is read back; below 0 where the replacement is larger.
    #[must_use]
    pub fn saved(&self) -> (i64, i64) {
        let (bytes, tokens) = self.original.over(self.replacement);
        let times = i64::try_from(self.sends).unwrap_or(i64::MAX);
        (bytes.saturating_mul(times), tokens.saturating_mul(times))
    }
}

/// The weights of the answers that read a result back, by the result and the bytes that were wanted.
type Pages = HashMap<(usize, usize), Rc<[Size]>>;

/// A transcript under one policy, ready for any read-back assumption.
pub struct Replaced<'r, 'a> {
    replay: &'r Replay<'a>,
    engine: Engine,
    list: Vec<Replacement>,
    kept: u64,
    messages: Vec<Size>,
    pages: RefCell<Pages>,
}

impl<'r, 'a> Replaced<'r, 'a> {
    pub(crate) fn of(replay: &'r Replay<'a>, policy: &Policy) -> Self {
        let mut replaced = Self {
            replay,
            engine: Engine::open(policy),
            list: Vec::new(),
            kept: 0,
            messages: replay.messages.clone(),
            pages: RefCell::default(),
        };
        for index in 0..replay.results.len() {
            replaced.admit(index);
        }
        replaced
    }

    fn admit(&mut self, index: usize) {
        let held = &self.replay.results[index];
        if !self.engine.wants(&held.text, held.serialised) {
            return;
        }
        let result = &self.replay.transcript.results[index];
        let stub = self.engine.admit(&Incoming {
            call: held.call,
            tool: result.tool.as_deref().unwrap_or_default(),
            text: &held.text,
            is_error: result.is_error == Some(true),
        });
        let Some(stub) = stub else {
            self.kept += 1;
            return;
        };
        let replacement = match &stub.text {
            Some(text) => Size::of(text, self.replay.counter),
            None => self.own_start(index, stub.hidden.start),
        };
        let message = &mut self.messages[result.message];
        *message = *message - held.size + replacement;
        self.list.push(Replacement {
            result: index,
            original: held.size,
            replacement,
            sends: self.replay.requests.sends[result.message],
            reference: stub.reference,
            hidden: stub.hidden,
            first: self.replay.requests.first_sent[result.message],
        });
    }

    /// A result's own start, taken to have just the bytes that were asked for though it ends at a character.
    fn own_start(&self, index: usize, end: usize) -> Size {
        let held = &self.replay.results[index];
        let counter = self.replay.counter;
        let bytes = match &self.engine {
            Engine::Fixed { replacement, .. } => *replacement,
            Engine::Step(_) | Engine::Cap(..) | Engine::Envelope(_) => end as u64,
        };
        Size {
            bytes,
            tokens: counter.count_slice(&held.text, &held.measured, 0..end),
        }
    }

    /// What is replaced, also what was never sent.
    #[must_use]
    pub fn replacements(&self) -> &[Replacement] {
        &self.list
    }

    /// Results over the threshold that stay all the same.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Whether an answer repeats a part of a result that its replacement does not show.
    #[must_use]
    pub fn is_used(&self, replacement: &Replacement) -> bool {
        let overlaps = self.replay.overlaps();
        overlaps
            .first_use(replacement.result, &replacement.hidden)
            .is_some()
    }

    /// What is sent under an assumption.
    #[must_use]
    pub fn outcome(&self, read_back: ReadBack) -> Outcome {
        let mut messages = self.messages.clone();
        let mut reads = Reads::default();
        for one in &self.list {
            let Some(place) = self.read_before(one, read_back) else {
                continue;
            };
            let pages = self.pages(one, read_back.amount);
            reads.before.entry(place).or_default().extend(&*pages);
        }
        for (place, pages) in &reads.before {
            let size: Size = pages.iter().copied().sum();
            let Some(message) = self.replay.last_message(*place) else {
                continue;
            };
            if self.replay.requests.first_sent[message] == Some(*place) {
                messages[message] += size;
            } else {
                reads.late.push((*place, message, size));
            }
        }
        self.replay.run(&messages, &reads)
    }

    /// The request before which a result is read back.
    fn read_before(&self, one: &Replacement, read_back: ReadBack) -> Option<usize> {
        let first = one.first?;
        match (read_back.amount, read_back.when) {
            (Amount::None, _) => None,
            (Amount::Share(_) | Amount::Whole, When::AtOnce) => Some(first),
            (Amount::Share(_) | Amount::Whole, When::Used) => {
                let overlaps = self.replay.overlaps();
                overlaps.first_use(one.result, &one.hidden)
            }
        }
    }

    /// The weights of the answers that read a result back.
    fn pages(&self, one: &Replacement, amount: Amount) -> Rc<[Size]> {
        let text = &self.replay.results[one.result].text;
        let wanted = wanted(text, amount);
        let mut known = self.pages.borrow_mut();
        let pages = known
            .entry((one.result, wanted))
            .or_insert_with(|| self.read(one, wanted).into());
        pages.clone()
    }

    fn read(&self, one: &Replacement, wanted: usize) -> Vec<Size> {
        let held = &self.replay.results[one.result];
        let counter = self.replay.counter;
        let wanted = wanted as u64;
        let (mut pages, mut at) = (Vec::new(), 0);
        while at < wanted {
            // A page of less than one character is refused: what is left is not worth a read.
            let page = self
                .engine
                .read(&one.reference, &held.text, at, wanted - at);
            let Some(page) = page else { break };
            let slice = Size {
                bytes: page.slice.len() as u64,
                tokens: counter.count_slice(&held.text, &held.measured, page.slice),
            };
            pages.push(Size::of(&page.frame, counter) + slice);
            match page.next {
                Some(next) if next > at => at = next,
                Some(_) | None => break,
            }
        }
        pages
    }

    /// What replacements take off the inputs, by tool, before anything is read back: results, bytes, tokens.
    #[must_use]
    pub fn saved_by_tool(&self) -> BTreeMap<Option<String>, (u64, i64, i64)> {
        let mut tools: BTreeMap<Option<String>, (u64, i64, i64)> = BTreeMap::new();
        for one in self.list.iter().filter(|one| one.sends > 0) {
            let tool = self.replay.transcript.results[one.result].tool.clone();
            let (results, bytes, tokens) = tools.entry(tool).or_default();
            let saved = one.saved();
            *results += 1;
            *bytes += saved.0;
            *tokens += saved.1;
        }
        tools
    }
}

/// How many bytes of a text are read back, on a character bound.
fn wanted(text: &str, amount: Amount) -> usize {
    match amount {
        Amount::None => 0,
        Amount::Whole => text.len(),
        Amount::Share(share) => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share between 0 and 1 of a length stays within it"
            )]
            let bytes = (share.clamp(0.0, 1.0) * text.len() as f64) as usize;
            text.floor_char_boundary(bytes)
        }
    }
}
