//! Whether a recorded session has results that a candidate stores.

use spill_engine::serialised_size;
use spill_scenario::{RECORDED_THRESHOLDS, RecordedCall};
use spill_verdict::{grouped, threshold_words};

/// Bytes of the largest result as candidates measure it.
fn largest(calls: &[RecordedCall]) -> u64 {
    let sizes = calls.iter().map(|call| serialised_size(&call.result).get());
    sizes.max().unwrap_or(0)
}

/// The thresholds that no result reaches.
pub(super) fn candidates_below(calls: &[RecordedCall]) -> Vec<u64> {
    let largest = largest(calls);
    let all = RECORDED_THRESHOLDS.into_iter();
    all.filter(|threshold| largest < *threshold).collect()
}

/// What that means, for who is about to run them.
pub(super) fn below_words(calls: &[RecordedCall], below: &[u64]) -> String {
    let names: Vec<String> = below.iter().map(|bytes| threshold_words(*bytes)).collect();
    format!(
        "the largest result has {} bytes as JSON, below the threshold of {}: a candidate that stores nothing is not \
         proven, and ends the acceptance there (choose a session with larger results, or write lower thresholds into \
         the configurations)",
        grouped(largest(calls)),
        names.join(" and of ")
    )
}
