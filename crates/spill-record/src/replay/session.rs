use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::Class;

/// What all calls of a transcript send together, as recorded or under one variant. Tokens are counted, not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayFigures {
    /// LLM calls, those that read back included.
    pub calls: u64,
    /// Calls that reading back adds.
    pub extra_calls: u64,
    /// Bytes of all inputs.
    pub input_bytes: u64,
    /// Tokens of all inputs, cached or not.
    pub input_tokens: u64,
    /// The part of `input_bytes` that the modelled prompt cache holds.
    pub cached_input_bytes: u64,
    /// The part of `input_tokens` that the modelled prompt cache holds.
    pub cached_input_tokens: u64,
    /// Tokens of the largest input.
    pub peak_context_tokens: u64,
    /// Calls whose input is larger than the window; `None` when no window was given.
    pub calls_over_window: Option<u64>,
    /// Money for the inputs, in the price table's currency; `None` without a table, or when it has no price for some model.
    pub input_cost: Option<f64>,
}

/// Tokens as the file records them, of the calls that have any. A bucket that is not recorded is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedUsage {
    /// Calls made here that have a recorded usage.
    pub calls: u64,
    /// All input tokens.
    pub input_tokens: Option<u64>,
    /// Neither read from nor written to a cache.
    pub uncached_input_tokens: Option<u64>,
    /// Read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// What this program counts for the inputs of just those calls that record their input.
    pub counted_input_tokens: Option<u64>,
}

/// A tool's results in a transcript, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRecord {
    /// Its name; `None` when it is not recorded.
    pub tool: Option<String>,
    /// Its results.
    pub results: u64,
    /// Their bytes, each once.
    pub result_bytes: u64,
    /// Their bytes in all inputs.
    pub sent_bytes: u64,
    /// Their tokens in all inputs.
    pub sent_tokens: u64,
}

/// What one policy takes off a tool's results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellTool {
    /// The tool's name; `None` when it is not recorded.
    pub tool: Option<String>,
    /// Its results that are replaced.
    pub replaced_results: u64,
    /// Bytes that the replacements take off all inputs, before anything is read back.
    pub saved_bytes: i64,
    /// Tokens that they take off.
    pub saved_tokens: i64,
}

/// What one policy does to a transcript's results, whatever is read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellRecord {
    /// Results that were sent at least once and are replaced.
    pub replaced_results: u64,
    /// Their bytes.
    pub replaced_bytes: u64,
    /// Bytes of what replaces them.
    pub replacement_bytes: u64,
    /// Results over the threshold that stay: no room in the store, no replacement small enough, or a tool that is exempt.
    pub kept_results: u64,
    /// Replaced results of whose hidden part the model later wrote a piece, word for word.
    pub used_results: u64,
    /// By tool, those with replaced results.
    pub tools: Vec<CellTool>,
}

/// One line of `sessions.jsonl`: one transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRecord {
    /// Version of the record format.
    pub schema: u32,
    /// Hash of where it stands and its id.
    pub session_id: String,
    /// The file; an archive's entry follows after `!`.
    pub file: String,
    /// The line it starts at, for files that are read by lines.
    pub line: Option<u64>,
    /// The format it was recorded in.
    pub format: String,
    /// Its own id in the file.
    pub id: Option<String>,
    /// Id of the transcript that started it.
    pub parent_id: Option<String>,
    /// Class of work by its largest result; `None` without results.
    pub class: Option<Class>,
    /// The models that answered, sorted.
    pub models: Vec<String>,
    /// LLM calls made here.
    pub calls: u64,
    /// LLM calls copied from another transcript: context, and not paid here.
    pub copied_calls: u64,
    /// Tool results.
    pub results: u64,
    /// Their bytes, each once.
    pub result_bytes: u64,
    /// Bytes of the largest; `None` without results.
    pub largest_result_bytes: Option<u64>,
    /// Results that were sent with at least one call.
    pub sent_results: u64,
    /// Their bytes, each once.
    pub sent_result_bytes: u64,
    /// Results that the recording agent had cut or stored already: for these, as recorded is not without a limit.
    pub incomplete_results: u64,
    /// Places at which messages left the context.
    pub boundaries: u64,
    /// Tokens as recorded.
    pub recorded: RecordedUsage,
    /// All inputs as recorded.
    pub as_recorded: ReplayFigures,
    /// By tool, as recorded.
    pub tools: Vec<ToolRecord>,
    /// One for each cell of the replay.
    pub cells: Vec<CellRecord>,
    /// One for each cell and read-back assumption.
    pub outcomes: Vec<ReplayFigures>,
    /// What the file does not hold, sorted.
    pub not_recorded: Vec<String>,
    /// What could not be understood, by kind.
    pub problems: BTreeMap<String, u64>,
}

/// One line of `problems.jsonl`: something that could not be understood. Never content beyond ids and type names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemRecord {
    /// Version of the record format.
    pub schema: u32,
    /// The file; an archive's entry follows after `!`.
    pub file: String,
    /// The line, from 1; `None` for a document that is not read by lines.
    pub line: Option<u64>,
    /// The item (array element, message, span) within it, from 0.
    pub item: Option<u64>,
    /// What kind it is.
    pub kind: String,
    /// What it is, in words.
    pub detail: String,
}
