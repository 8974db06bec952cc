//! What this process takes of memory, as the kernel tells it.

use serde::Serialize;

/// Where the figures come from.
const STATUS: &str = "/proc/self/status";

/// Resident memory of this process over its executions, in bytes; `None` where the kernel does not tell.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnMemory {
    /// `VmRSS` before the first execution started.
    before_bytes: Option<u64>,
    /// The part of it that is no mapped file (`RssAnon`): what the program allocated.
    before_anonymous_bytes: Option<u64>,
    /// `VmHWM`: the most that the process ever had.
    peak_bytes: Option<u64>,
    /// `VmRSS` when the last execution had ended and its result was printed.
    after_bytes: Option<u64>,
    /// The part of it that is no mapped file.
    after_anonymous_bytes: Option<u64>,
}

impl OwnMemory {
    /// Takes the figures before the first execution.
    pub(crate) fn before() -> Self {
        let status = status();
        Self {
            before_bytes: bytes_in(&status, "VmRSS:"),
            before_anonymous_bytes: bytes_in(&status, "RssAnon:"),
            peak_bytes: None,
            after_bytes: None,
            after_anonymous_bytes: None,
        }
    }

    /// Takes the others.
    pub(crate) fn after(self) -> Self {
        let status = status();
        Self {
            peak_bytes: bytes_in(&status, "VmHWM:"),
            after_bytes: bytes_in(&status, "VmRSS:"),
            after_anonymous_bytes: bytes_in(&status, "RssAnon:"),
            ..self
        }
    }
}

fn status() -> String {
    std::fs::read_to_string(STATUS).unwrap_or_default()
}

fn bytes_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::bytes_in;

    #[test]
    fn a_figure_that_is_not_there_is_missing() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t 12 kB\n";
        assert_eq!(bytes_in(status, "VmHWM:"), Some(2048 * 1024));
        assert_eq!(bytes_in(status, "VmRSS:"), Some(12 * 1024));
        for none in [
            "",
            "VmRSS:",
            "VmRSS: x kB",
            "VmRSS: 5",
            "VmRSS: 18446744073709551615 kB",
        ] {
            assert_eq!(bytes_in(none, "VmRSS:"), None, "{none}");
        }
    }
}
