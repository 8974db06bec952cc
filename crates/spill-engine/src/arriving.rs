//! Results that are bounded while they are still arriving.
//!
//! What stays below the limit is held and shaped at the end like any result. What passes it goes to the store as it comes;
//! only its ends are held, and the replacement is made from them. A store that fails on the way gives back what it has, and
//! the result stays whole.

use std::mem;

use crate::measure::Bytes;
use crate::result::ToolResult;
use crate::retain::{Strategy, TextRetainer};
use crate::shaped::{Arm, Call, Kept, Policy, Spilled, Verdict, Warning};
use crate::shared_text::SharedText;
use crate::stores::{ItemHead, ItemName, ItemWriter, SpillStore, StoreError};

/// A text result that is still arriving.
pub trait ArrivingResult {
    /// Takes the next piece, cut anywhere. Never fails: what the store does not take is held.
    fn push(&mut self, bytes: &[u8]);

    /// The whole has arrived. `is_error` leans a preview towards the end.
    fn finish(self: Box<Self>, is_error: bool) -> Streamed;
}

/// A result that arrived piece by piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Streamed {
    /// What stands in the prompt.
    pub prompt: SharedText,
    /// The whole, where it is in memory; `None` when the store alone has it.
    pub record_text: Option<SharedText>,
    /// Bytes that arrived.
    pub size: Bytes,
    /// What was decided, and why.
    pub verdict: Verdict,
    /// The tool said that it failed.
    pub is_error: bool,
}

/// Holds everything and shapes it at the end: for policies whose store is memory, and for results that stay in any case.
pub(crate) struct Gathered<'a, P: ?Sized> {
    policy: &'a P,
    call: Call<'a>,
    bytes: Vec<u8>,
}

impl<'a, P: Policy + ?Sized> Gathered<'a, P> {
    pub(crate) fn new(policy: &'a P, call: Call<'a>) -> Self {
        Self {
            policy,
            call,
            bytes: Vec::new(),
        }
    }
}

impl<P: Policy + ?Sized> ArrivingResult for Gathered<'_, P> {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn finish(self: Box<Self>, is_error: bool) -> Streamed {
        shaped(self.policy, &self.call, self.bytes, is_error)
    }
}

fn shaped<P: Policy + ?Sized>(
    policy: &P,
    call: &Call<'_>,
    bytes: Vec<u8>,
    is_error: bool,
) -> Streamed {
    let size = Bytes::new(bytes.len() as u64);
    let result = ToolResult {
        is_error,
        ..ToolResult::text(text_of(bytes))
    };
    let shaped = policy.shape(call, result);
    Streamed {
        prompt: shaped.prompt,
        record_text: Some(shaped.record_text),
        size,
        verdict: shaped.verdict,
        is_error,
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned())
}

/// What a policy says about a text that passes its limit.
pub(crate) trait Overflow: Policy {
    fn spill_store(&self) -> &dyn SpillStore;

    /// More bytes than this leave.
    fn limit(&self) -> u64;

    /// The most bytes of start and end that a replacement may show.
    fn shown(&self) -> (usize, usize);

    fn label(&self, call: &Call<'_>) -> String;

    fn item_head(&self, call: &Call<'_>) -> Result<ItemHead, Warning>;

    fn reference(&self, name: &ItemName) -> String;

    /// What stands for the text with these ends; `None` when nothing is small enough.
    fn stand_in(&self, ends: &Ends, reference: &str, is_error: bool) -> Option<String>;

    fn notice_too_large(&self, call: &Call<'_>) -> Warning;
}

/// The ends of a text that is not here. Bytes that are no characters are in neither.
pub(crate) struct Ends {
    pub(crate) total: u64,
    pub(crate) head: String,
    pub(crate) tail: String,
}

impl Ends {
    fn of(retainer: &TextRetainer) -> Self {
        let (mut head, tail) = retainer.ends();
        if retainer.is_whole() {
            head.extend_from_slice(&tail);
            let text = valid_start(&head).to_owned();
            return Self {
                total: retainer.seen(),
                tail: valid_end(&head).to_owned(),
                head: text,
            };
        }
        Self {
            total: retainer.seen(),
            head: valid_start(&head).to_owned(),
            tail: valid_end(&tail).to_owned(),
        }
    }
}

fn valid_start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

fn valid_end(bytes: &[u8]) -> &str {
    let last = bytes.utf8_chunks().last();
    last.filter(|chunk| chunk.invalid().is_empty())
        .map_or("", |chunk| chunk.valid())
}

/// A result that goes to the store once it passes the limit.
pub(crate) struct Overflowing<'a, P> {
    policy: &'a P,
    call: Call<'a>,
    state: State<'a>,
}

enum State<'a> {
    /// All of it is here.
    Held {
        bytes: Vec<u8>,
        /// Why it stays, however large it gets.
        stays: Option<Warning>,
    },
    /// The store has it so far.
    Leaving(Leaving<'a>),
    /// The store failed and could not give it back.
    Lost {
        ends: TextRetainer,
        warning: Warning,
    },
}

struct Leaving<'a> {
    writer: Box<dyn ItemWriter + 'a>,
    reference: String,
    ends: TextRetainer,
}

impl<'a, P: Overflow> Overflowing<'a, P> {
    pub(crate) fn new(policy: &'a P, call: Call<'a>) -> Self {
        let state = State::Held {
            bytes: Vec::new(),
            stays: None,
        };
        Self {
            policy,
            call,
            state,
        }
    }

    /// `held` and `next` together are over the limit.
    fn leave(&self, held: Vec<u8>, next: &[u8]) -> State<'a> {
        let (head_bytes, tail_bytes) = self.policy.shown();
        let mut ends = TextRetainer::new(Strategy::HeadTail {
            head_bytes,
            tail_bytes,
        });
        ends.push(&held);
        ends.push(next);
        let begun = self.begin(&ends);
        match begun {
            Ok((reference, writer)) => {
                let leaving = Leaving {
                    writer,
                    reference,
                    ends,
                };
                self.written(leaving, &[&held, next])
            }
            Err(warning) => {
                let mut bytes = held;
                bytes.extend_from_slice(next);
                State::Held {
                    bytes,
                    stays: Some(warning),
                }
            }
        }
    }

    /// A replacement must fit before anything is stored.
    fn begin(&self, ends: &TextRetainer) -> Result<(String, Box<dyn ItemWriter + 'a>), Warning> {
        let policy = self.policy;
        let failed = |error: StoreError| Warning::of_store(&self.call, &error);
        let head = policy.item_head(&self.call)?;
        let store = policy.spill_store();
        let name = store.name(&policy.label(&self.call)).map_err(failed)?;
        let reference = policy.reference(&name);
        policy
            .stand_in(&Ends::of(ends), &reference, false)
            .ok_or_else(|| policy.notice_too_large(&self.call))?;
        let writer = store.begin(name, head).map_err(failed)?;
        Ok((reference, writer))
    }

    /// Hands `pieces` to the store, whose ends are noted already.
    fn written(&self, mut leaving: Leaving<'a>, pieces: &[&[u8]]) -> State<'a> {
        for (place, piece) in pieces.iter().enumerate() {
            if let Err(error) = leaving.writer.write(piece) {
                let warning = Warning::of_store(&self.call, &error);
                return match leaving.writer.take_back() {
                    Ok(mut bytes) => {
                        pieces[place..]
                            .iter()
                            .for_each(|piece| bytes.extend_from_slice(piece));
                        State::Held {
                            bytes,
                            stays: Some(warning),
                        }
                    }
                    Err(_) => State::Lost {
                        ends: leaving.ends,
                        warning,
                    },
                };
            }
        }
        State::Leaving(leaving)
    }

    fn end(&self, mut leaving: Leaving<'a>, is_error: bool) -> Streamed {
        let ends = Ends::of(&leaving.ends);
        let size = Bytes::new(ends.total);
        let text = self
            .policy
            .stand_in(&ends, &leaving.reference, is_error)
            .ok_or_else(|| self.policy.notice_too_large(&self.call));
        let stored = text.and_then(|text| match leaving.writer.finish() {
            Ok(stored) => Ok((text, stored)),
            Err(error) => Err(Warning::of_store(&self.call, &error)),
        });
        match stored {
            Ok((text, stored)) => {
                let prompt = SharedText::from(text);
                let spilled = Spilled::new(leaving.reference, &stored, &self.call, Arm::Result);
                Streamed {
                    prompt: prompt.clone(),
                    record_text: None,
                    size,
                    verdict: Verdict::Replace {
                        text: prompt,
                        spilled,
                    },
                    is_error,
                }
            }
            Err(warning) => match leaving.writer.take_back() {
                Ok(bytes) => kept(bytes, warning, is_error),
                Err(_) => self.lost(&ends, warning, is_error),
            },
        }
    }

    /// Says what is missing: the only case in which bytes of a result are gone.
    fn lost(&self, ends: &Ends, warning: Warning, is_error: bool) -> Streamed {
        let half = usize::try_from(self.policy.limit() / 2).unwrap_or(usize::MAX);
        let head = &ends.head[..ends.head.floor_char_boundary(half)];
        let tail = &ends.tail[ends
            .tail
            .ceil_char_boundary(ends.tail.len().saturating_sub(half))..];
        let gone = ends.total.saturating_sub((head.len() + tail.len()) as u64);
        let prompt =
            format!("{head}\n[... {gone} bytes are lost, the store failed on the way ...]\n{tail}");
        Streamed {
            prompt: prompt.into(),
            record_text: None,
            size: Bytes::new(ends.total),
            verdict: Verdict::Keep(Kept::Warned(warning)),
            is_error,
        }
    }
}

/// The whole as it came, since it could not be replaced.
fn kept(bytes: Vec<u8>, warning: Warning, is_error: bool) -> Streamed {
    let size = Bytes::new(bytes.len() as u64);
    let text = SharedText::from(text_of(bytes));
    Streamed {
        prompt: text.clone(),
        record_text: Some(text),
        size,
        verdict: Verdict::Keep(Kept::Warned(warning)),
        is_error,
    }
}

impl<P: Overflow> ArrivingResult for Overflowing<'_, P> {
    fn push(&mut self, next: &[u8]) {
        let empty = State::Held {
            bytes: Vec::new(),
            stays: None,
        };
        self.state = match mem::replace(&mut self.state, empty) {
            State::Held { mut bytes, stays } => {
                let after = bytes.len().saturating_add(next.len()) as u64;
                if stays.is_none() && after > self.policy.limit() {
                    self.leave(bytes, next)
                } else {
                    bytes.extend_from_slice(next);
                    State::Held { bytes, stays }
                }
            }
            State::Leaving(mut leaving) => {
                leaving.ends.push(next);
                self.written(leaving, &[next])
            }
            State::Lost { mut ends, warning } => {
                ends.push(next);
                State::Lost { ends, warning }
            }
        };
    }

    fn finish(self: Box<Self>, is_error: bool) -> Streamed {
        let Self {
            policy,
            call,
            state,
        } = *self;
        match state {
            State::Held { bytes, stays: None } => shaped(policy, &call, bytes, is_error),
            State::Held {
                bytes,
                stays: Some(warning),
            } => kept(bytes, warning, is_error),
            State::Leaving(leaving) => Self::new(policy, call).end(leaving, is_error),
            State::Lost { ends, warning } => {
                Self::new(policy, call).lost(&Ends::of(&ends), warning, is_error)
            }
        }
    }
}
