//! The run folder: the one contract between the program that measures and everything that reads.
//!
//! A run folder holds `manifest.json` (the whole plan), `runs.jsonl`, `calls.jsonl` and
//! `sensitivity.jsonl` (one record a line, append-only), and files derived from them. This crate
//! is the only one that knows their format: it writes records so that a killed process loses at
//! most the line it was writing, and reads them back saying what was torn.
//!
//! A replay folder ([`ReplayFolder`]) holds what recorded transcripts would have sent under other thresholds.
//!
//! It does not judge, render, or run anything, and reads no clock.
//!
//! Conventions on disk: a field's name ends in its unit (`_tokens`, `_bytes`, `_ms`); a missing
//! value is `null` in JSON and an empty cell in CSV, never 0.

mod baseline;
mod call;
mod csv_table;
mod error;
mod executions;
mod files;
mod folder;
mod hash;
mod live;
mod manifest;
mod merge;
mod merge_spending;
mod prices;
mod prices_file;
mod replay;
mod resume;
mod run;
mod schema;
mod shard;
mod sidecar;
mod size;
mod spending;
mod text;

pub use baseline::Blessing;
pub use call::{CallRecord, ContextBytes, PromptTokens, ToolCallRecord, ToolResultForm};
pub use csv_table::{MEASURED_COLUMNS, OPTIONAL_COLUMNS, RUN_COLUMNS, runs_csv};
pub use error::FolderError;
pub use executions::{DEFAULT_MEMORY_LIMIT_BYTES, ExecutionsRecord};
pub use folder::{
    APPENDED_FILES, MANIFEST_FILE, RETRIED_FILE, RUNS_FILE, RunFolder, RunSet, TornLine,
};
pub use hash::{digest, digest_parts, seed_of};
pub use live::LiveFolder;
pub use manifest::{
    Api, ConfigurationRecord, ConfigurationRole, EndpointRecord, FactPlace, FactRecord,
    FactsOrigin, FolderKind, Host, InputRecord, LatencyRecord, Manifest, Mode, ModelRecord,
    PlanRecord, PlannedRun, RecallPoint, RulesRecord, Stage, Versions,
};
pub use merge::{Difference, MergeError, Merged, merge};
pub use prices::{Cost, ModelPrices, Money, Price, Prices};
pub use prices_file::PricesError;
pub use replay::{
    CacheRecord, CellPlan, CellRecord, CellSums, CellTool, ProblemRecord, RecordedUsage,
    ReplayFigures, ReplayFiles, ReplayFolder, ReplayRecord, ReplaySums, ReplayTotals,
    SessionRecord, ToolRecord, ToolSums, is_replay,
};
pub use resume::Reopened;
pub use run::{Class, EndReason, Outcome, RunRecord, StateFile};
pub use schema::{record_schemas, replay_schemas, schema_text};
pub use shard::Shard;
pub use sidecar::{SidecarBefore, SidecarRecord, SidecarRun};
pub use size::parse_size;
pub use spending::{CapReached, ShardSpending, Spending};
pub use text::{csv_text, harmless_json, is_unsafe};

/// Version of the record format that this crate writes; readers accept it and all older ones.
pub const SCHEMA: u32 = 3;
