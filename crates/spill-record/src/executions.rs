use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory that a host is held against when nobody names another: 2 GiB.
pub const DEFAULT_MEMORY_LIMIT_BYTES: u64 = 2 << 30;

/// Many executions of one step in one process, at once: a line of `executions.jsonl`.
///
/// All sizes but the budget and the limit are measured, and null where the kernel does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionsRecord {
    /// Version of the record format.
    pub schema: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The input's name: the one with the largest result.
    pub input: String,
    /// The configuration's name.
    pub configuration: String,
    /// Executions that ran at once.
    pub executions: u64,
    /// Those that gave an answer.
    pub answered: u64,
    /// Results that they stored, together.
    pub results_persisted: u64,
    /// Bytes of results that one of them may store, as the subject reports its settings; null where
    /// nothing is stored.
    pub budget_bytes: Option<u64>,
    /// The memory that the host has for the process.
    pub memory_limit_bytes: u64,
    /// Resident memory before the first execution started.
    pub before_bytes: Option<u64>,
    /// The part of it that is no mapped file: what the process had allocated.
    pub before_anonymous_bytes: Option<u64>,
    /// Resident memory at its most.
    pub peak_bytes: Option<u64>,
    /// Resident memory after the last execution had ended.
    pub after_bytes: Option<u64>,
    /// The part of it that is no mapped file.
    pub after_anonymous_bytes: Option<u64>,
    /// What was written in folders in which nothing may appear; null where that was not searched.
    #[serde(default)]
    pub files_written: Option<u64>,
    /// Result content that was found in those folders or in the log, without quoting it.
    #[serde(default)]
    pub leak_findings: Vec<String>,
    /// What went wrong, without result content.
    pub error: Option<String>,
}

impl ExecutionsRecord {
    /// What all executions together may store; `None` where nothing is stored.
    #[must_use]
    pub fn budgets_bytes(&self) -> Option<u64> {
        Some(self.budget_bytes?.saturating_mul(self.executions))
    }

    /// What was allocated at the peak: the mapped files that are there at the end are taken to have been
    /// there.
    #[must_use]
    pub fn peak_anonymous_bytes(&self) -> Option<u64> {
        let files = self.after_bytes?.checked_sub(self.after_anonymous_bytes?)?;
        self.peak_bytes?.checked_sub(files)
    }
}
