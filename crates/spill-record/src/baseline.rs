use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `baseline.json`: why a run was accepted as the one that later ones are compared with.
///
/// A folder that holds it has the run's manifest and records, and no `calls.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blessing {
    /// Version of the record format.
    pub schema: u32,
    /// The run's id, as in its manifest.
    pub acceptance_id: String,
    /// The reason that was given.
    pub reason: String,
    /// When it was given, RFC 3339, UTC.
    pub blessed_at: String,
    /// Commit of the working folder at that time, where it is a git checkout.
    pub commit: Option<String>,
    /// Whether that checkout had uncommitted changes.
    pub dirty: Option<bool>,
    /// The run's exit code.
    pub exit_code: u8,
    /// Digest of `runs.jsonl` and `sensitivity.jsonl`, one after the other. It stands in for the calls
    /// that records are held against elsewhere.
    pub records_digest: String,
}
