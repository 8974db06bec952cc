//! The engine's policies over the results of one transcript.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    AnswerCap, Ask, ByteRange, Bytes, Call, CallId, Decision, Envelope, InlineCap, MemoryOptions,
    MemoryStore, Millis, Owner, PromptText, Reader, Reading, SeededNames, Settings, SpillStore,
    StepId, StepSpill, ToolResult as EngineResult, Verdict, decide, decide_envelope,
    decide_inline_cap,
};

use super::policy::{Kind, Policy};

/// What the stores of `inline-cap` and `envelope` hold: more than a record may have.
const STORE_BYTES: u64 = 512 << 20;
const NOW: Millis = Millis::new(0);

/// One policy with what it has stored of one transcript.
pub(crate) enum Engine {
    Fixed { threshold: u64, replacement: u64 },
    Step(Box<StepSpill>),
    Cap(Box<InlineCap>, Arc<MemoryStore>, AnswerCap),
    Envelope(Box<Envelope>),
}

/// A result on its way into the prompt.
pub(crate) struct Incoming<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) text: &'a str,
    pub(crate) is_error: bool,
}

/// What stands in a result's place.
pub(crate) struct Stub {
    /// `None` for the result's own first bytes.
    pub(crate) text: Option<String>,
    pub(crate) reference: String,
    /// The part of the result that the stub does not show.
    pub(crate) hidden: Range<usize>,
}

/// One answer of the read tool.
pub(crate) struct Page {
    /// The line before the slice, or all of the answer when it does not hold the slice as it is.
    pub(crate) frame: String,
    /// The bytes of the result that it holds as they are.
    pub(crate) slice: Range<usize>,
    /// Where the next page starts.
    pub(crate) next: Option<u64>,
}

fn owner() -> Owner {
    Owner::new("replay")
}

impl Engine {
    pub(crate) fn open(policy: &Policy) -> Self {
        let store = || {
            let options = MemoryOptions::per_execution(Bytes::new(STORE_BYTES));
            Arc::new(MemoryStore::new(
                options.with_names(Arc::new(SeededNames::new(1))),
            ))
        };
        match &policy.0 {
            Kind::Fixed {
                threshold_bytes,
                replacement_bytes,
            } => Self::Fixed {
                threshold: *threshold_bytes,
                replacement: *replacement_bytes,
            },
            Kind::WorkflowStep(settings) => Self::Step(Box::new(step(*settings))),
            Kind::InlineCap(options) => {
                let store = store();
                let least = AnswerCap::MIN_BYTES;
                let cap = options.max_inline_bytes.unwrap_or(least).max(least);
                let cap = AnswerCap::new(cap).expect("no less than the least cap");
                let policy = InlineCap::new(options.clone(), store.clone());
                Self::Cap(Box::new(policy), store, cap)
            }
            Kind::Envelope(options) => {
                Self::Envelope(Box::new(Envelope::new(options.clone(), store())))
            }
        }
    }

    /// Whether the policy's rule says that the result is to be stored. It decides again when it gets it.
    pub(crate) fn wants(&self, text: &str, serialised: Bytes) -> bool {
        let size = Bytes::of(text);
        let decision = match self {
            Self::Fixed {
                threshold,
                replacement,
            } => return size.get() >= *threshold && size.get() > *replacement,
            Self::Step(step) => decide(serialised, Bytes::ZERO, &step.settings()),
            Self::Cap(policy, ..) => decide_inline_cap(size, policy.options().max_inline_bytes),
            Self::Envelope(policy) => decide_envelope(size, policy.options().max_payload_bytes),
        };
        match decision {
            Decision::Store | Decision::InlineOverBudget => true,
            Decision::Inline => false,
        }
    }

    /// Hands a result to the policy; `None` when it stays.
    pub(crate) fn admit(&self, incoming: &Incoming<'_>) -> Option<Stub> {
        let Incoming {
            call,
            tool,
            text,
            is_error,
            ..
        } = *incoming;
        let result = || EngineResult {
            is_error,
            ..EngineResult::text(text.to_owned())
        };
        let shaped = |policy: &dyn spill_engine::Policy| {
            let owner = owner();
            let call = Call::new(tool, call).owned_by(&owner);
            match policy.shape(&call, result()).verdict {
                Verdict::Keep(_) => None,
                Verdict::Replace { text, spilled } => Some((text.to_string(), spilled.reference)),
            }
        };
        match self {
            Self::Fixed { replacement, .. } => Some(Stub {
                text: None,
                reference: String::new(),
                hidden: text
                    .floor_char_boundary(usize::try_from(*replacement).unwrap_or(usize::MAX))
                    ..text.len(),
            }),
            Self::Step(step) => match step.admit(call, tool, result()).prompt {
                PromptText::Inline(_) => None,
                PromptText::Preview { reference, summary } => Some(Stub {
                    hidden: hidden_by_summary(&summary, text.len()),
                    text: Some(summary),
                    reference: reference.to_string(),
                }),
            },
            Self::Cap(policy, ..) => shaped(&**policy).map(|(shown, reference)| Stub {
                hidden: hidden_by_ends(&shown, text),
                text: Some(shown),
                reference,
            }),
            Self::Envelope(policy) => shaped(&**policy).map(|(shown, reference)| Stub {
                hidden: hidden_by_envelope(&shown, text),
                text: Some(shown),
                reference,
            }),
        }
    }

    /// Reads `length` bytes of a stored result from `at` on, or as many of them as one answer holds.
    pub(crate) fn read(&self, reference: &str, text: &str, at: u64, length: u64) -> Option<Page> {
        match self {
            Self::Fixed { threshold, .. } => Some(fixed_page(text, at, length.min(*threshold))),
            Self::Step(step) => {
                let length = length.min(step.settings().threshold.get());
                let range = json!({"offset": at, "length": length});
                let asked = json!({"spillover_ref": reference, "range": range});
                let answer = step.read(&asked).ok()?;
                let frame = first_line(answer.render());
                page(frame, answer.offset, answer.bytes(), answer.next_offset)
            }
            Self::Cap(_, store, cap) => {
                let key = store.key_of(reference)?;
                let store: &dyn SpillStore = &**store;
                let reading = Reading::new(store, Reader::Of(owner()), *cap);
                let range = ByteRange { offset: at, length };
                let answer = reading.answer(key, &Ask::Bytes(range), NOW).ok()?;
                let frame = first_line(answer.render());
                let bytes = answer.bytes().len() as u64;
                page(frame, answer.offset, bytes, answer.next_offset)
            }
            Self::Envelope(policy) => {
                let uri = format!("{reference}?offset={at}&length={length}");
                let resource = policy.read_resource(&uri, &Reader::Of(owner()), NOW).ok()?;
                // The text is escaped in it, so no slice of the result stands in it as it is.
                page(resource.to_json().to_string(), 0, 0, resource.next_offset)
            }
        }
    }
}

fn step(settings: Settings) -> StepSpill {
    let id = StepId::new("replay").expect("a valid step id");
    StepSpill::new(settings, id, StepSpill::unobserved())
}

fn page(frame: String, offset: u64, bytes: u64, next: Option<u64>) -> Option<Page> {
    let start = usize::try_from(offset).ok()?;
    let length = usize::try_from(bytes).ok()?;
    Some(Page {
        frame,
        slice: start..start + length,
        next,
    })
}

/// A slice without a frame, on character bounds, of at least one character.
fn fixed_page(text: &str, at: u64, length: u64) -> Page {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    let start = text.floor_char_boundary(place(at));
    let first = text[start..].chars().next().map_or(0, char::len_utf8);
    let end = text
        .floor_char_boundary(place(at.saturating_add(length)))
        .max(start + first);
    Page {
        frame: String::new(),
        slice: start..end,
        next: (end < text.len()).then_some(end as u64),
    }
}

fn first_line(mut answer: String) -> String {
    let end = answer.find('\n').map_or(answer.len(), |at| at + 1);
    answer.truncate(end);
    answer
}

/// What a summary leaves out: all between its `head` and its `tail`.
fn hidden_by_summary(summary: &str, length: usize) -> Range<usize> {
    let summary: Value = serde_json::from_str(summary).unwrap_or_default();
    let bytes = |name: &str| summary[name].as_str().map_or(0, str::len);
    let head = bytes("head").min(length);
    head..length.saturating_sub(bytes("tail")).max(head)
}

/// What a text with a notice leaves out: all between the ends that it begins with, or has behind its first line, and that
/// stand before its notice.
fn hidden_by_ends(shown: &str, text: &str) -> Range<usize> {
    let behind_first_line = shown.find('\n').map_or("", |at| &shown[at + 1..]);
    let starts = [shown, behind_first_line].map(|shown| common(shown.bytes(), text.bytes()));
    let head = starts[0].max(starts[1]);
    let ends = shown.rfind("\n\n(").map_or("", |at| &shown[..at]);
    let tail = common(ends.bytes().rev(), text.bytes().rev());
    head..text.len().saturating_sub(tail).max(head)
}

/// What an envelope leaves out: all behind the start that its preview has.
fn hidden_by_envelope(shown: &str, text: &str) -> Range<usize> {
    let envelope: Value = serde_json::from_str(shown).unwrap_or_default();
    let preview = envelope["preview"].as_str().unwrap_or_default();
    common(preview.bytes(), text.bytes())..text.len()
}

/// How many bytes two texts have in common from where they start.
fn common(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}
