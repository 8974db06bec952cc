//! What a transcript adds up to.

use std::ops::AddAssign;

use crate::model::{Completeness, Origin, Standing, Transcript};
use crate::usage::Usage;
use crate::weights::{ByOrigin, Weights};

/// Sums over one transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// LLM calls made here.
    pub calls: u64,
    /// LLM calls copied from another transcript.
    pub copied_calls: u64,
    /// Tool calls in the answers of calls made here.
    pub tool_calls: u64,
    /// Tool results.
    pub results: u64,
    /// Bytes of all tool results, each once.
    pub result_bytes: u64,
    /// Bytes of the largest tool result; `None` when there is none.
    pub largest_result_bytes: Option<u64>,
    /// Results that the recording agent had cut or stored elsewhere.
    pub incomplete_results: u64,
    /// Bytes of all messages by origin, each once.
    pub once_bytes: ByOrigin,
    /// Bytes sent with all calls made here by origin: a message counts once for every call it was sent with.
    pub sent_bytes: ByOrigin,
    /// Calls made here that have a recorded usage.
    pub calls_with_usage: u64,
    /// Sum of the recorded usage of calls made here.
    pub usage: Usage,
}

/// The sums over a transcript.
#[must_use]
pub fn counts(transcript: &Transcript) -> Counts {
    let weights = Weights::of(transcript, &mut |text| text.len() as u64);
    let mut counts = Counts {
        results: transcript.results.len() as u64,
        once_bytes: weights.total(),
        ..Counts::default()
    };
    for result in &transcript.results {
        let bytes = transcript.bytes_of(result);
        counts.result_bytes += bytes;
        counts.largest_result_bytes = counts.largest_result_bytes.max(Some(bytes));
        if result.completeness != Completeness::AsRecorded {
            counts.incomplete_results += 1;
        }
    }
    for call in &transcript.calls {
        if call.standing == Standing::Copied {
            counts.copied_calls += 1;
            continue;
        }
        counts.calls += 1;
        counts.sent_bytes += weights.context(call);
        if let Some(answer) = call.answer {
            let pieces = transcript.messages[answer].pieces.iter();
            counts.tool_calls += pieces.filter(|p| p.origin == Origin::ToolCall).count() as u64;
        }
        if let Some(usage) = call.usage {
            counts.calls_with_usage += 1;
            counts.usage += usage;
        }
    }
    counts
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.copied_calls += other.copied_calls;
        self.tool_calls += other.tool_calls;
        self.results += other.results;
        self.result_bytes += other.result_bytes;
        self.largest_result_bytes = self.largest_result_bytes.max(other.largest_result_bytes);
        self.incomplete_results += other.incomplete_results;
        self.once_bytes += other.once_bytes;
        self.sent_bytes += other.sent_bytes;
        self.calls_with_usage += other.calls_with_usage;
        self.usage += other.usage;
    }
}
