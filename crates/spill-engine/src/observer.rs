//! What a step execution tells its caller: events as they happen, and sums.

use std::collections::BTreeMap;

use crate::reference::Reference;
use crate::settings::BUDGET_VAR;

/// Is told what happens, outside any lock, possibly from several threads at once. Every method does nothing by default.
/// Nothing told holds content.
pub trait Observer: Send + Sync {
    /// A result of `tool` was stored; `bytes` is its serialised size.
    fn stored(&self, tool: &str, bytes: u64) {
        let _ = (tool, bytes);
    }

    /// A read succeeded and returned `bytes` bytes.
    fn read(&self, reference: &Reference, with_range: bool, bytes: u64) {
        let _ = (reference, with_range, bytes);
    }

    /// A result stays in the prompt since the budget has no room. Called for the first such result of an execution only.
    fn over_budget(&self, warning: &BudgetWarning) {
        let _ = warning;
    }
}

pub(crate) struct Unobserved;

impl Observer for Unobserved {}

/// The one warning that an execution gives about its budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a result of {size_bytes} bytes stays inline: {stored_bytes} of {budget_bytes} bytes are stored already (raise {BUDGET_VAR} to \
     store more); this step execution warns once"
)]
pub struct BudgetWarning {
    /// The tool whose result it was.
    pub tool: String,
    /// The result's serialised size.
    pub size_bytes: u64,
    /// Serialised sizes of what is stored already.
    pub stored_bytes: u64,
    /// The budget.
    pub budget_bytes: u64,
}

/// Sums over one step execution. They stay readable after the release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Results stored.
    pub persisted: u64,
    /// Results stored, by tool; sorted by name.
    pub persisted_by_tool: BTreeMap<String, u64>,
    /// Bytes of the texts stored.
    pub stored_bytes: u64,
    /// The most bytes of texts held at one time.
    pub peak_bytes: u64,
    /// Serialised bytes counted against the budget.
    pub budget_used_bytes: u64,
    /// Results that stayed in the prompt for want of budget.
    pub over_budget: u64,
    /// Successful reads.
    pub reads: u64,
    /// Successful reads with an offset or a length.
    pub reads_with_range: u64,
    /// Bytes returned by reads.
    pub read_bytes: u64,
    /// Stored results that were read at least once.
    pub distinct_read: u64,
    /// Of the bytes returned, those that an earlier read had returned already.
    pub reread_bytes: u64,
}
