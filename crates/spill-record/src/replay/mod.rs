//! The records of a replay: what recorded transcripts would have sent under other thresholds.
//!
//! A replay folder holds `sessions.jsonl` (one transcript a line), `problems.jsonl` (one thing that was not understood a
//! line) and `replay.json`, which is written last: a folder without it is not whole. Ids, names and sizes, never content.

mod folder;
mod session;
mod settings;
mod sums;

pub(crate) use folder::is_replay_without_end;
pub use folder::{ReplayFolder, is_replay};
pub use session::{
    CellRecord, CellTool, ProblemRecord, RecordedUsage, ReplayFigures, SessionRecord, ToolRecord,
};
pub use settings::{CacheRecord, CellPlan, ReplayFiles, ReplayRecord};
pub use sums::{CellSums, ReplaySums, ReplayTotals, ToolSums};
