use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Prompt and completion tokens of one call, in disjoint buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTokens {
    /// Prompt tokens that were neither read from nor written to a prompt cache.
    pub uncached_input_tokens: u64,
    /// Prompt tokens read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the prompt cache, where a provider bills them apart.
    pub cache_write_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
}

impl PromptTokens {
    /// Both together, bucket by bucket.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            uncached_input_tokens: self
                .uncached_input_tokens
                .saturating_add(other.uncached_input_tokens),
            cache_read_tokens: self
                .cache_read_tokens
                .saturating_add(other.cache_read_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }

    /// All prompt tokens, cached and uncached.
    #[must_use]
    pub fn input_tokens(self) -> u64 {
        self.uncached_input_tokens + self.cache_read_tokens + self.cache_write_tokens
    }
}

/// Bytes of one request by where they come from; message content only, without JSON syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextBytes {
    /// System messages.
    pub system_bytes: u64,
    /// User messages.
    pub user_bytes: u64,
    /// Assistant messages: text, tool names and arguments.
    pub assistant_bytes: u64,
    /// Tool results that stand whole in the prompt.
    pub inline_result_bytes: u64,
    /// Previews that stand in place of stored results.
    pub preview_bytes: u64,
    /// Slices that the read tool returned.
    pub read_back_bytes: u64,
    /// The tool list.
    pub tool_schema_bytes: u64,
}

/// In which form a tool result stands in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolResultForm {
    /// Whole.
    Inline,
    /// As the preview of a stored result.
    Preview,
    /// As a slice of a stored result.
    Slice,
    /// As an error.
    Error,
    /// In parts, and no offered tool leads to the rest: the simulated model could not go on from there.
    Cut,
}

/// One tool result that a request carries for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallRecord {
    /// The tool's name.
    pub tool: String,
    /// Bytes of the call's arguments.
    pub argument_bytes: u64,
    /// Bytes of the result as it stands in the prompt.
    pub prompt_bytes: u64,
    /// The form in which it stands there.
    pub form: ToolResultForm,
    /// The reference that the preview names, or that was read.
    pub reference: Option<String>,
    /// Offset of the slice in the stored text, for `slice`.
    pub offset_bytes: Option<u64>,
    /// Bytes of the text that a preview stands for or that was cut, or of the stored text that a slice returned.
    pub stored_bytes: Option<u64>,
}

/// One LLM call of a run: a line of `calls.jsonl`. Ids, sizes and digests, never content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// Version of the record format.
    pub schema: u32,
    /// The run it belongs to.
    pub run_id: String,
    /// Number of the request within the run, from 0, retries counted.
    pub call: u64,
    /// Assistant turns before this request, plus one.
    pub iteration: u64,
    /// HTTP status of the answer; 0 when none arrived that a client can use.
    pub status: u16,
    /// Tokens; all zero for a request that the mock server refused. Of a real endpoint, what it billed;
    /// `None` where it did not tell.
    pub tokens: Option<PromptTokens>,
    /// Bytes of the request body.
    pub request_bytes: u64,
    /// Digest of the request body.
    pub request_digest: String,
    /// Digest of the tool list.
    pub tools_digest: String,
    /// The context by origin.
    pub context: ContextBytes,
    /// Results that are new in this request, in message order.
    pub new_results: Vec<ToolCallRecord>,
    /// Names of the tools that the answer calls, in order.
    pub calls_tools: Vec<String>,
    /// The provider's finish reason, or the error code.
    pub finish_reason: String,
    /// Time on the latency model's virtual clock, or the measured time at a real endpoint; absent while
    /// neither is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_time_ms: Option<f64>,
}
