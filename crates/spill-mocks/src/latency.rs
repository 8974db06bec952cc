//! How long an answer takes, on a clock of its own.

use std::time::Duration;

use spill_scenario::LatencyRecord;

/// The time that one call takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time {
    pub(crate) model_ms: f64,
    /// How long the server really waits.
    pub(crate) wait: Duration,
}

/// The time of a call with these tokens; `draw` decides how long it waits for its turn.
pub(crate) fn time(latency: LatencyRecord, draw: u64, uncached: u64, output: u64) -> Time {
    #[expect(
        clippy::cast_precision_loss,
        reason = "tokens of one call, and 53 bits of a hash"
    )]
    let (uncached, output, draw) = (uncached as f64, output as f64, (draw >> 11) as f64);
    let unit = draw / 9_007_199_254_740_992.0;
    let queue = -latency.queue_ms * (1.0 - unit).ln();
    let model_ms = latency.overhead_ms
        + queue.max(0.0)
        + latency.uncached_token_ms * uncached
        + latency.output_token_ms * output;
    let wait = Duration::try_from_secs_f64(model_ms * latency.sleep_scale / 1000.0);
    Time {
        model_ms,
        wait: wait.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: LatencyRecord = LatencyRecord {
        overhead_ms: 100.0,
        uncached_token_ms: 0.5,
        output_token_ms: 10.0,
        queue_ms: 0.0,
        sleep_scale: 0.0,
    };

    #[test]
    fn a_call_takes_its_overhead_and_its_tokens() {
        let taken = time(LATENCY, 7, 1000, 20);
        assert!((taken.model_ms - 800.0).abs() < 1e-9);
        assert_eq!(taken.wait, Duration::ZERO);
        let slept = LatencyRecord {
            sleep_scale: 0.01,
            ..LATENCY
        };
        assert_eq!(time(slept, 7, 1000, 20).wait, Duration::from_millis(8));
    }

    #[test]
    fn waits_for_a_turn_have_the_mean_that_is_asked_for() {
        let queued = LatencyRecord {
            overhead_ms: 0.0,
            queue_ms: 50.0,
            ..LATENCY
        };
        let waits = (0..4096u64).map(|number| time(queued, number << 52, 0, 0).model_ms);
        let sum: f64 = waits.sum();
        assert!((sum / 4096.0 - 50.0).abs() < 1.0, "{}", sum / 4096.0);
    }
}
