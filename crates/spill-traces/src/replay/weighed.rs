//! A transcript whose every text is weighed once.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use spill_engine::{Bytes, CallId, serialised_size};
use spill_tokens::{Measured, TokenCounter};

use super::outcome::Outcome;
use super::overlap::Overlaps;
use super::policy::Policy;
use super::replaced::Replaced;
use super::requests::{Request, Requests};
use super::size::Size;
use crate::model::{Call, ToolResult, Transcript};

/// A provider's prompt cache: it holds starts of inputs, in whole blocks, from a least length on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Tokens of a block, at least 1.
    pub block_tokens: u64,
    /// A shorter start is not held.
    pub minimum_tokens: u64,
}

impl Cache {
    /// Blocks of 128 tokens from 1,024 on, as OpenAI documents its cache.
    pub const DEFAULT: Self = Self {
        block_tokens: 128,
        minimum_tokens: 1_024,
    };

    /// The part of a start that it holds.
    fn of(self, start: Size) -> Size {
        if start.tokens < self.minimum_tokens || start.tokens == 0 {
            return Size::default();
        }
        let block = self.block_tokens.max(1);
        let tokens = start.tokens / block * block;
        let bytes = u128::from(start.bytes) * u128::from(tokens) / u128::from(start.tokens);
        Size {
            bytes: u64::try_from(bytes).expect("a part is no larger than its whole"),
            tokens,
        }
    }
}

/// A transcript that is ready to be replayed under any number of policies.
pub struct Replay<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) counter: &'a TokenCounter,
    pub(crate) requests: Requests,
    pub(crate) results: Vec<Held<'a>>,
    /// The weight of each message.
    pub(crate) messages: Vec<Size>,
    cache: Cache,
    window_tokens: Option<u64>,
    overlaps: OnceCell<Overlaps>,
}

/// A result with its weight.
pub(crate) struct Held<'a> {
    pub(crate) call: CallId,
    pub(crate) text: Cow<'a, str>,
    pub(crate) measured: Measured,
    pub(crate) serialised: Bytes,
    pub(crate) size: Size,
}

/// Texts that are shorter have no count for each of their lines, and are not asked whether they were used.
const MEASURED_FROM: usize = 512;

impl<'a> Replay<'a> {
    /// Weighs a transcript.
    #[must_use]
    pub fn new(
        transcript: &'a Transcript,
        counter: &'a TokenCounter,
        cache: Cache,
        window_tokens: Option<u64>,
    ) -> Self {
        let mut numbers = BTreeMap::new();
        let results = transcript.results.iter();
        let results: Vec<Held<'a>> = results
            .map(|result| Held::of(transcript, result, number(result, &mut numbers), counter))
            .collect();
        Self {
            requests: Requests::of(transcript),
            messages: weigh_messages(transcript, &results, counter),
            transcript,
            counter,
            results,
            cache,
            window_tokens,
            overlaps: OnceCell::new(),
        }
    }

    /// What was sent as recorded.
    #[must_use]
    pub fn recorded(&self) -> Outcome {
        self.run(&self.messages, &Reads::default())
    }

    /// Puts the results under a policy.
    #[must_use]
    pub fn under(&self, policy: &Policy) -> Replaced<'_, 'a> {
        Replaced::of(self, policy)
    }

    /// The weight of a result, in order of [`Transcript::results`].
    ///
    /// # Panics
    ///
    /// When there is no such result.
    #[must_use]
    pub fn result_size(&self, result: usize) -> Size {
        self.results[result].size
    }

    /// How many calls were sent a result.
    ///
    /// # Panics
    ///
    /// When there is no such result.
    #[must_use]
    pub fn sends(&self, result: usize) -> u64 {
        self.requests.sends[self.transcript.results[result].message]
    }

    /// The weight of what was sent with a call, as recorded.
    #[must_use]
    pub fn context(&self, call: &Call) -> Size {
        call.context
            .iter()
            .map(|message| self.messages[message])
            .sum()
    }

    pub(crate) fn overlaps(&self) -> &Overlaps {
        self.overlaps.get_or_init(|| {
            let texts = self.results.iter().map(|held| {
                let long = held.text.len() >= MEASURED_FROM;
                if long { &*held.text } else { "" }
            });
            let texts: Vec<&str> = texts.collect();
            Overlaps::of(self.transcript, &self.requests, &texts)
        })
    }

    /// The last message that was sent with a request.
    pub(crate) fn last_message(&self, place: usize) -> Option<usize> {
        let call = self.requests.list[place].call;
        let context = &self.transcript.calls[call].context;
        context.ranges().last().map(|range| range.end - 1)
    }

    /// Sends everything, where messages weigh `messages` and `reads` are made.
    pub(crate) fn run(&self, messages: &[Size], reads: &Reads) -> Outcome {
        let before = sums(messages);
        let weight = |ranges: &[Range<usize>]| -> Size {
            let of = |range: &Range<usize>| before[range.end] - before[range.start];
            ranges.iter().map(of).sum()
        };
        let mut outcome = Outcome {
            calls_over_window: self.window_tokens.map(|_| 0),
            ..Outcome::default()
        };
        for (place, request) in self.requests.list.iter().enumerate() {
            let call = &self.transcript.calls[request.call];
            let late: Size = reads.late_in(place, call).sum();
            let whole = weight(call.context.ranges()) + late;
            let mut known = weight(&request.shared);
            if let Some(pages) = reads.before.get(&place) {
                let mut context = whole - pages.iter().copied().sum();
                for page in pages {
                    self.send(&mut outcome, request, context, known);
                    outcome.extra_calls += 1;
                    outcome.extra_input += context;
                    known = context;
                    context += *page;
                }
            }
            self.send(&mut outcome, request, whole, known);
        }
        outcome
    }

    fn send(&self, outcome: &mut Outcome, request: &Request, input: Size, known: Size) {
        let cached = self.cache.of(known);
        outcome.calls += 1;
        outcome.input += input;
        outcome.cached += cached;
        if input.tokens > outcome.peak.tokens || outcome.peak == Size::default() {
            outcome.peak = input;
        }
        if let (Some(window), Some(over)) = (self.window_tokens, &mut outcome.calls_over_window) {
            *over += u64::from(input.tokens > window);
        }
        let model = &self.transcript.calls[request.call].model;
        if !outcome.models.contains_key(model) {
            outcome
                .models
                .insert(model.clone(), super::ModelInput::default());
        }
        let sum = outcome.models.get_mut(model).expect("it was put there");
        sum.cached_tokens += cached.tokens;
        sum.uncached_tokens += input.tokens.saturating_sub(cached.tokens);
    }
}

/// What is read back.
#[derive(Default)]
pub(crate) struct Reads {
    /// The weights of the answers, by the request that they come before.
    pub(crate) before: BTreeMap<usize, Vec<Size>>,
    /// From a request on, behind a message that was sent before: their weights.
    pub(crate) late: Vec<(usize, usize, Size)>,
}

impl Reads {
    fn late_in<'s>(&'s self, place: usize, call: &'s Call) -> impl Iterator<Item = Size> + 's {
        let late = self.late.iter();
        let stands =
            move |from: usize, message: usize| from <= place && call.context.contains(message);
        late.filter(move |(from, message, _)| stands(*from, *message))
            .map(|(_, _, size)| *size)
    }
}

fn sums(messages: &[Size]) -> Vec<Size> {
    let mut sum = Size::default();
    let mut before = Vec::with_capacity(messages.len() + 1);
    before.push(sum);
    for size in messages {
        sum += *size;
        before.push(sum);
    }
    before
}

/// The name that the engine knows a result's call by: the LLM call that asked, and a number within it.
fn number(result: &ToolResult, numbers: &mut BTreeMap<u32, u32>) -> CallId {
    let iteration = result.asked_by.map_or(0, |call| call + 1);
    let iteration = u32::try_from(iteration).unwrap_or(u32::MAX);
    let next = numbers.entry(iteration).or_default();
    let call = CallId {
        iteration,
        index: *next,
    };
    *next += 1;
    call
}

impl<'a> Held<'a> {
    fn of(
        transcript: &'a Transcript,
        result: &ToolResult,
        call: CallId,
        counter: &TokenCounter,
    ) -> Self {
        let pieces = transcript.pieces_of(result);
        let text: Cow<'a, str> = match pieces {
            [piece] => Cow::Borrowed(&piece.text),
            pieces => pieces.iter().map(|piece| piece.text.as_str()).collect(),
        };
        let measured = if text.len() >= MEASURED_FROM {
            counter.measure(&text)
        } else {
            Measured::default()
        };
        let tokens = if measured.tokens() > 0 {
            measured.tokens()
        } else {
            counter.count(&text)
        };
        Self {
            call,
            serialised: serialised_size(&text),
            size: Size {
                bytes: text.len() as u64,
                tokens,
            },
            text,
            measured,
        }
    }
}

/// A message weighs what its results and its other pieces do, with the names of tool calls.
fn weigh_messages(
    transcript: &Transcript,
    results: &[Held<'_>],
    counter: &TokenCounter,
) -> Vec<Size> {
    let mut sizes = vec![Size::default(); transcript.messages.len()];
    let mut covered: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
    for (result, held) in transcript.results.iter().zip(results) {
        sizes[result.message] += held.size;
        covered
            .entry(result.message)
            .or_default()
            .push(result.pieces.clone());
    }
    for (index, message) in transcript.messages.iter().enumerate() {
        let covered = covered.get(&index).map_or(&[][..], Vec::as_slice);
        for (piece, content) in message.pieces.iter().enumerate() {
            if covered.iter().any(|range| range.contains(&piece)) {
                continue;
            }
            sizes[index] += Size::of(&content.text, counter);
            if let Some(name) = &content.name {
                sizes[index] += Size::of(name, counter);
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_cache(tokens: u64, bytes: u64, cached: (u64, u64)) {
        let held = Cache::DEFAULT.of(Size { bytes, tokens });
        assert_eq!((held.tokens, held.bytes), cached, "{tokens} tokens");
    }

    #[test]
    fn a_start_is_held_in_whole_blocks_from_the_least_length_on() {
        check_cache(0, 0, (0, 0));
        check_cache(1_023, 5_000, (0, 0));
        check_cache(1_024, 5_000, (1_024, 5_000));
        check_cache(1_151, 1_151, (1_024, 1_024));
        check_cache(1_152, 1_152, (1_152, 1_152));
    }
}
