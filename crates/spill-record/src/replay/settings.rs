use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::Versions;

/// One policy with its threshold and the size of its replacements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellPlan {
    /// `workflow-step`, `inline-cap` or `envelope`.
    pub policy: String,
    /// The policy's threshold, cap or limit.
    pub threshold_bytes: u64,
    /// The most bytes of a replacement; `None` is the policy's own.
    pub replacement_bytes: Option<u64>,
}

/// How a provider's prompt cache is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheRecord {
    /// A prefix is cached in blocks of this many tokens.
    pub block_tokens: u64,
    /// A shorter prefix is not cached.
    pub minimum_tokens: u64,
}

/// What became of the files that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayFiles {
    /// Files, and entries of archives.
    pub read: u64,
    /// Those that gave a transcript.
    pub with_transcripts: u64,
    /// Those of which something was lost as a whole: unreadable, not unpacked, damaged, over a limit, or a document that
    /// is no JSON.
    pub lost: u64,
}

/// `replay.json`: everything about a replay that its sessions do not repeat.
///
/// A session has one outcome for each cell and read-back assumption: the cells in their order, and within each the
/// assumptions in theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Time and hash of what was asked; the folder's name.
    pub replay_id: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Versions of what took part.
    pub versions: Versions,
    /// The paths that were given.
    pub paths: Vec<String>,
    /// Policies, thresholds and sizes of replacements.
    pub cells: Vec<CellPlan>,
    /// Read-back assumptions, as the command line spells them.
    pub read_backs: Vec<String>,
    /// The prompt cache.
    pub cache: CacheRecord,
    /// The context window that contexts are held against; `None` when none was given.
    pub window_tokens: Option<u64>,
    /// The price table that money is reckoned with, as it was written; `None` when none was given.
    pub prices: Option<String>,
    /// The currency of its prices.
    pub currency: Option<String>,
    /// What the figures had to hold, as it was written.
    pub gates: Vec<String>,
    /// What became of the files.
    pub files: ReplayFiles,
    /// Transcripts, one line of `sessions.jsonl` each.
    pub sessions: u64,
    /// Of them, by `session_id`, those that a later one goes on with; they count nowhere.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub superseded: BTreeSet<String>,
    /// What could not be understood, by kind; `problems.jsonl` has the places.
    pub problems: BTreeMap<String, u64>,
    /// What was left out on purpose (duplicates, bookkeeping), by kind.
    pub left_out: BTreeMap<String, u64>,
    /// Digest of `sessions.jsonl`.
    pub sessions_digest: String,
}

impl ReplayRecord {
    /// Where the outcome of a cell under an assumption stands among a session's outcomes.
    #[must_use]
    pub fn outcome_index(&self, cell: usize, read_back: usize) -> usize {
        cell * self.read_backs.len() + read_back
    }

    /// How many outcomes a session has.
    #[must_use]
    pub fn outcomes(&self) -> usize {
        self.cells.len() * self.read_backs.len()
    }
}
