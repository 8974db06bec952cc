//! The requests of a transcript, in order, and how much of each a prompt cache could know.

use std::ops::Range;

use crate::model::{Standing, Transcript};
use crate::spans::Spans;

/// How many different ends of earlier requests are held against a new one: rewinds go back to recent places.
const MOST_TIPS: usize = 64;

/// One call that was made here.
pub(crate) struct Request {
    /// Its index among the transcript's calls.
    pub(crate) call: usize,
    /// The messages that it has in common with the start of the earlier request that has most of them.
    pub(crate) shared: Vec<Range<usize>>,
}

/// All calls that were made here, in order.
pub(crate) struct Requests {
    pub(crate) list: Vec<Request>,
    /// The first request that each message was sent with, as an index into `list`.
    pub(crate) first_sent: Vec<Option<usize>>,
    /// How many requests each message was sent with.
    pub(crate) sends: Vec<u64>,
}

impl Requests {
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let mut requests = Self {
            list: Vec::new(),
            first_sent: vec![None; transcript.messages.len()],
            sends: vec![0; transcript.messages.len()],
        };
        let mut tips: Vec<&Spans> = Vec::new();
        let calls = transcript.calls.iter().enumerate();
        for (call, made) in calls.filter(|(_, call)| call.standing == Standing::Made) {
            let place = requests.list.len();
            for message in made.context.iter() {
                requests.first_sent[message].get_or_insert(place);
                requests.sends[message] += 1;
            }
            let known = tips.iter().map(|tip| common_start(tip, &made.context));
            let shared = known.max_by_key(|ranges| ranges.iter().map(Range::len).sum::<usize>());
            requests.list.push(Request {
                call,
                shared: shared.unwrap_or_default(),
            });
            tips.retain(|tip| !made.context.starts_with(tip));
            if tips.len() >= MOST_TIPS {
                tips.remove(0);
            }
            tips.push(&made.context);
        }
        requests
    }
}

/// What two lists of messages start with together.
fn common_start(a: &Spans, b: &Spans) -> Vec<Range<usize>> {
    let mut common = Vec::new();
    for (a, b) in a.ranges().iter().zip(b.ranges()) {
        if a.start != b.start {
            break;
        }
        common.push(a.start..a.end.min(b.end));
        if a.end != b.end {
            break;
        }
    }
    common
}
