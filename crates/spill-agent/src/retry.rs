//! When a passing failure is tried again, and when no longer.

use std::time::Duration;

/// The longest wait before a repetition, also when the server asks for more.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The bound on repeated model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions of one call.
    pub max_retries: u32,
    /// Delay before the first repetition; it doubles with each one, up to a minute.
    pub base: Duration,
}

/// What to do after a passing failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait, then send the request again.
    Wait(Duration),
    /// The repetitions are used up.
    GiveUp,
    /// The server asks for a longer wait than is allowed.
    AskedTooLong {
        /// The wait asked for.
        asked: Duration,
        /// The longest wait allowed.
        limit: Duration,
    },
}

impl RetryPolicy {
    /// Decides after `retries` repetitions, given the wait that the server asked for.
    pub(crate) fn next(self, retries: u32, asked: Option<Duration>) -> Next {
        if retries >= self.max_retries {
            return Next::GiveUp;
        }
        if let Some(asked) = asked.filter(|asked| *asked > MAX_DELAY) {
            return Next::AskedTooLong {
                asked,
                limit: MAX_DELAY,
            };
        }
        let doubled = 2_u32.checked_pow(retries).unwrap_or(u32::MAX);
        let backoff = self.base.saturating_mul(doubled).min(MAX_DELAY);
        Next::Wait(asked.map_or(backoff, |asked| asked.max(backoff)))
    }
}

/// Reads the wait a server asks for: `retry-after-ms` before `retry-after` in seconds.
/// A date is not a wait and counts as none.
pub(crate) fn asked_wait(
    retry_after_ms: Option<&str>,
    retry_after: Option<&str>,
) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let seconds = retry_after_ms
        .and_then(number)
        .map(|ms| ms / 1000.0)
        .or_else(|| retry_after.and_then(number))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 12,
        base: Duration::from_millis(100),
    };

    fn check_next(retries: u32, asked_ms: Option<u64>, expected: Next) {
        assert_eq!(
            POLICY.next(retries, asked_ms.map(Duration::from_millis)),
            expected
        );
    }

    #[test]
    fn the_delay_doubles_up_to_a_minute() {
        check_next(0, None, Next::Wait(Duration::from_millis(100)));
        check_next(1, None, Next::Wait(Duration::from_millis(200)));
        check_next(9, None, Next::Wait(Duration::from_millis(51_200)));
        check_next(10, None, Next::Wait(MAX_DELAY));
        check_next(12, None, Next::GiveUp);
    }

    #[test]
    fn the_servers_wait_is_honoured_up_to_a_minute() {
        check_next(0, Some(40), Next::Wait(Duration::from_millis(100)));
        check_next(0, Some(2_000), Next::Wait(Duration::from_secs(2)));
        check_next(0, Some(60_000), Next::Wait(MAX_DELAY));
        check_next(
            0,
            Some(60_001),
            Next::AskedTooLong {
                asked: Duration::from_millis(60_001),
                limit: MAX_DELAY,
            },
        );
        check_next(12, Some(60_001), Next::GiveUp);
    }

    #[test]
    fn waits_are_numbers() {
        let ms = |value| Some(Duration::from_millis(value));
        assert_eq!(asked_wait(None, None), None);
        assert_eq!(asked_wait(None, Some("2")), ms(2_000));
        assert_eq!(asked_wait(Some("30"), Some("2")), ms(30));
        assert_eq!(asked_wait(Some("soon"), Some(" 2 ")), ms(2_000));
        assert_eq!(
            asked_wait(None, Some("Wed, 21 Oct 2026 07:28:00 GMT")),
            None
        );
        assert_eq!(asked_wait(None, Some("-1")), None);
        assert_eq!(asked_wait(None, Some("NaN")), None);
    }
}
