//! What a transcript would have sent under another threshold.
//!
//! The rules, which hold for every figure here:
//! - A result is replaced when it is created: every call that was sent it is sent the replacement. A result that was never sent
//!   saves nothing.
//! - What is read back stands in the context of all calls that were sent the result, from the first one on.
//! - Reads are calls of their own, one after the other, before the first call that was sent the result. Each sends that call's
//!   context, as replaced, with what was read so far. What the model writes to ask for a read is not counted.
//! - Calls that were copied from another transcript send nothing here.

use std::collections::BTreeMap;

use serde_json::json;
use spill_engine::{
    Block, CallId, PromptText, Settings, StepId, StepSpill, ToolResult as EngineResult,
};

use crate::model::{Call, Completeness, Standing, ToolResult, Transcript};
use crate::weights::Weights;

/// What replaces which results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Results of at least `threshold_bytes` of text (the equal case is replaced) weigh `replacement` instead, unless they weigh
    /// less already. A read returns at most `threshold_bytes`.
    Fixed {
        /// The threshold in bytes of text.
        threshold_bytes: u64,
        /// The weight of a replacement, in the unit of the caller's counter.
        replacement: u64,
    },
    /// The engine's own policy, previews and reads; one transcript is one step.
    WorkflowStep(Settings),
}

/// How much of a replaced result the model reads back at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReadBack {
    /// Nothing.
    None,
    /// This share of its bytes, between 0 and 1, from its start on.
    Share(f64),
    /// All of it.
    Whole,
}

/// What a replay adds up to, in the unit of the caller's counter where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Calls that were made.
    pub calls: u64,
    /// Calls that reading back adds.
    pub extra_calls: u64,
    /// Results that are replaced and were sent at least once.
    pub replaced_results: u64,
    /// Results that the recording agent had cut or stored before: "off" is not "no limit" on such a transcript.
    pub incomplete_results: u64,
    /// Input of all calls, as recorded.
    pub sent: u64,
    /// Input of all calls with replacements and what was read back, that of extra calls included.
    pub sent_replayed: u64,
    /// The part of `sent` that is tool results.
    pub results_sent: u64,
    /// What replacements take off `results_sent`, less what is read back; extra calls are not in it.
    pub results_saved: i64,
    /// The part of `sent_replayed` that extra calls send.
    pub extra_sent: u64,
    /// The largest context of a call, as recorded.
    pub peak: u64,
    /// The largest context of a call, extra calls included, with replacements and what was read back.
    pub peak_replayed: u64,
    /// `results_saved` by tool; a tool whose name is not recorded is `None`.
    pub saved_by_tool: BTreeMap<Option<String>, i64>,
}

impl Outcome {
    /// Input that the policy saves; negative when it costs more than it saves.
    #[must_use]
    pub fn saved(&self) -> i64 {
        difference(self.sent, self.sent_replayed)
    }
}

/// A transcript that is ready to be replayed under any number of policies: every text is weighed once.
pub struct Replay<'a> {
    transcript: &'a Transcript,
    before: Weights,
    /// How often each message was sent.
    sends: Vec<u64>,
    /// The weight of each result.
    results: Vec<u64>,
    /// What is the same under every policy.
    recorded: Outcome,
}

impl<'a> Replay<'a> {
    /// Weighs a transcript. `weigh` gives a text's weight: its bytes, or its tokens.
    pub fn new(transcript: &'a Transcript, weigh: &mut dyn FnMut(&str) -> u64) -> Self {
        let before = Weights::of(transcript, weigh);
        let sends = sends(transcript);
        let results: Vec<u64> = transcript
            .results
            .iter()
            .map(|result| weight_of(transcript, result, weigh))
            .collect();
        let mut recorded = Outcome::default();
        for call in made(transcript) {
            let sent = before.context(call).sum();
            recorded.calls += 1;
            recorded.sent += sent;
            recorded.peak = recorded.peak.max(sent);
        }
        for (result, weight) in transcript.results.iter().zip(&results) {
            recorded.results_sent += weight * sends[result.message];
            if result.completeness != Completeness::AsRecorded {
                recorded.incomplete_results += 1;
            }
        }
        Self {
            transcript,
            before,
            sends,
            results,
            recorded,
        }
    }

    /// Replays under one policy and one assumption. `weigh` weighs previews and slices, which are new texts.
    pub fn under(
        &self,
        policy: Policy,
        read_back: ReadBack,
        weigh: &mut dyn FnMut(&str) -> u64,
    ) -> Outcome {
        let replaced = self.replacements(policy, read_back, weigh);
        let after = Replayed::of(self.transcript, &self.before, &replaced);
        let mut outcome = self.recorded.clone();
        for call in made(self.transcript) {
            let replayed = after.context(call);
            outcome.sent_replayed += replayed;
            outcome.peak_replayed = outcome.peak_replayed.max(replayed);
        }
        for one in &replaced {
            self.add(&mut outcome, one, &after);
        }
        outcome.sent_replayed += outcome.extra_sent;
        outcome
    }

    /// Adds what one replacement saves, and the calls that read it back.
    fn add(&self, outcome: &mut Outcome, one: &Replacement, after: &Replayed) {
        let result = &self.transcript.results[one.result];
        let sent_with = |call: &&Call| call.context.contains(result.message);
        let Some(first) = made(self.transcript).find(sent_with) else {
            return;
        };
        let read: u64 = one.reads.iter().sum();
        let times = i64::try_from(self.sends[result.message]).unwrap_or(i64::MAX);
        let saved = difference(one.original, one.replacement + read).saturating_mul(times);
        outcome.replaced_results += 1;
        outcome.results_saved += saved;
        *outcome
            .saved_by_tool
            .entry(result.tool.clone())
            .or_default() += saved;
        let mut context = after.context(first).saturating_sub(read);
        for slice in &one.reads {
            outcome.extra_calls += 1;
            outcome.extra_sent += context;
            outcome.peak_replayed = outcome.peak_replayed.max(context);
            context += slice;
        }
    }

    fn replacements(
        &self,
        policy: Policy,
        read_back: ReadBack,
        weigh: &mut dyn FnMut(&str) -> u64,
    ) -> Vec<Replacement> {
        match policy {
            Policy::Fixed {
                threshold_bytes,
                replacement,
            } => self.fixed(threshold_bytes, replacement, read_back, weigh),
            Policy::WorkflowStep(settings) => self.workflow_step(settings, read_back, weigh),
        }
    }

    fn fixed(
        &self,
        threshold: u64,
        replacement: u64,
        read_back: ReadBack,
        weigh: &mut dyn FnMut(&str) -> u64,
    ) -> Vec<Replacement> {
        let mut replaced = Vec::new();
        let results = self.transcript.results.iter().zip(&self.results);
        for (index, (result, original)) in results.enumerate() {
            if self.transcript.bytes_of(result) < threshold || *original <= replacement {
                continue;
            }
            let reads = match read_back {
                ReadBack::None => Vec::new(),
                ReadBack::Share(_) | ReadBack::Whole => {
                    let text = self.text(result);
                    let wanted = &text[..read_bytes(&text, read_back)];
                    slices(wanted, threshold).map(&mut *weigh).collect()
                }
            };
            replaced.push(Replacement {
                result: index,
                original: *original,
                replacement,
                reads,
            });
        }
        replaced
    }

    fn workflow_step(
        &self,
        settings: Settings,
        read_back: ReadBack,
        weigh: &mut dyn FnMut(&str) -> u64,
    ) -> Vec<Replacement> {
        let step = StepId::new("replay").expect("a valid step id");
        let step = StepSpill::new(settings, step, StepSpill::unobserved());
        let mut next_index: BTreeMap<u32, u32> = BTreeMap::new();
        let mut replaced = Vec::new();
        for (index, result) in self.transcript.results.iter().enumerate() {
            let iteration = result.asked_by.map_or(0, |call| call + 1);
            let iteration = u32::try_from(iteration).unwrap_or(u32::MAX);
            let number = next_index.entry(iteration).or_default();
            let call = CallId {
                iteration,
                index: *number,
            };
            *number += 1;
            let text = self.text(result);
            let wanted = read_bytes(&text, read_back);
            let admitted = EngineResult {
                blocks: vec![Block::Text(text)],
                structured: None,
                is_error: result.is_error == Some(true),
            };
            let tool = result.tool.as_deref().unwrap_or_default();
            let prompt = step.admit(call, tool, admitted).prompt;
            if let PromptText::Preview { reference, summary } = prompt {
                replaced.push(Replacement {
                    result: index,
                    original: self.results[index],
                    replacement: weigh(&summary),
                    reads: reads(&step, &reference.to_string(), wanted, settings, weigh),
                });
            }
        }
        replaced
    }

    fn text(&self, result: &ToolResult) -> String {
        let pieces = self.transcript.pieces_of(result).iter();
        pieces.map(|piece| &*piece.text).collect()
    }
}

/// A text in slices of at most `bytes`, on character bounds, each of at least one character.
fn slices(text: &str, bytes: u64) -> impl Iterator<Item = &str> {
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?.len_utf8();
        let (slice, after) = rest.split_at(rest.floor_char_boundary(length).max(first));
        rest = after;
        Some(slice)
    })
}

/// A result that leaves the context.
struct Replacement {
    result: usize,
    original: u64,
    replacement: u64,
    reads: Vec<u64>,
}

/// The weights of messages after replacement, summed up.
struct Replayed {
    before: Vec<u64>,
}

impl Replayed {
    fn of(transcript: &Transcript, weights: &Weights, replaced: &[Replacement]) -> Self {
        let messages = 0..transcript.messages.len();
        let mut each: Vec<u64> = messages.map(|index| weights.message(index).sum()).collect();
        for one in replaced {
            let weight = &mut each[transcript.results[one.result].message];
            *weight = weight.saturating_sub(one.original);
            *weight += one.replacement + one.reads.iter().sum::<u64>();
        }
        let sums = each.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self {
            before: std::iter::once(0).chain(sums).collect(),
        }
    }

    fn context(&self, call: &Call) -> u64 {
        let ranges = call.context.ranges().iter();
        ranges
            .map(|range| self.before[range.end] - self.before[range.start])
            .sum()
    }
}

fn made(transcript: &Transcript) -> impl Iterator<Item = &Call> {
    let calls = transcript.calls.iter();
    calls.filter(|call| call.standing == Standing::Made)
}

/// How often each message was sent.
fn sends(transcript: &Transcript) -> Vec<u64> {
    let mut sends = vec![0; transcript.messages.len()];
    for call in made(transcript) {
        for range in call.context.ranges() {
            for count in &mut sends[range.clone()] {
                *count += 1;
            }
        }
    }
    sends
}

fn weight_of(
    transcript: &Transcript,
    result: &ToolResult,
    weigh: &mut dyn FnMut(&str) -> u64,
) -> u64 {
    let pieces = transcript.pieces_of(result).iter();
    pieces.map(|piece| weigh(&piece.text)).sum()
}

/// How many bytes of a text are read back, on a character bound.
fn read_bytes(text: &str, read_back: ReadBack) -> usize {
    match read_back {
        ReadBack::None => 0,
        ReadBack::Whole => text.len(),
        ReadBack::Share(share) => {
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

/// Reads `wanted` bytes from the start of a stored result, slice by slice, as a model would. The weight of each answer.
fn reads(
    step: &StepSpill,
    reference: &str,
    wanted: usize,
    settings: Settings,
    weigh: &mut dyn FnMut(&str) -> u64,
) -> Vec<u64> {
    let mut weights = Vec::new();
    let mut at = 0_u64;
    let wanted = wanted as u64;
    while at < wanted {
        let length = settings.threshold.get().min(wanted - at);
        let arguments = json!({
            "spillover_ref": reference,
            "range": {"offset": at, "length": length},
        });
        // A slice of less than one character is refused: what is left is not worth a read.
        let Ok(answer) = step.read(&arguments) else {
            break;
        };
        weights.push(weigh(&answer.render()));
        match answer.next_offset {
            Some(next) if next > at => at = next,
            Some(_) | None => break,
        }
    }
    weights
}

fn difference(more: u64, less: u64) -> i64 {
    let signed = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
    signed(more) - signed(less)
}
