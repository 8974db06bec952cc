/// What a run's mock servers saw, in order; sizes, digests and names, and of content only what the
/// model itself said last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// Every request to the LLM server.
    pub llm: Vec<LlmCallEntry>,
    /// Every tool call.
    pub tools: Vec<ToolCallEntry>,
    /// Requests that no script answers; the run is invalid when there is one.
    pub unscripted: Vec<String>,
    /// The answer with which the model ended its longest conversation, as it was sent; `None` when its
    /// last reply there asked for tools, or there was none.
    pub last_answer: Option<String>,
}

/// One request to the LLM server. Tokens are counted from the request's bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LlmCallEntry {
    /// Number of the request within the run, from 0, retries counted.
    pub call: u64,
    /// Assistant turns before this request, plus one; 0 for a request that is none.
    pub iteration: u64,
    /// HTTP status of the answer; 0 when none arrived that a client can use.
    pub status: u16,
    /// Prompt tokens that the prompt cache did not have; 0 when refused.
    pub uncached_input_tokens: u64,
    /// Prompt tokens from the prompt cache; 0 when refused.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to a cache that bills them apart; OpenAI has none.
    pub cache_write_tokens: u64,
    /// Completion tokens; 0 when refused.
    pub output_tokens: u64,
    /// Whether the endpoint did not tell what it billed; the four figures above then mean nothing.
    pub usage_is_missing: bool,
    /// Bytes of the request body.
    pub request_bytes: u64,
    /// Digest of the request body (XXH3-128 of its parts, hex).
    pub request_digest: String,
    /// Digest of the tool list's JSON; that of the empty text without one.
    pub tools_digest: String,
    /// The context by origin.
    pub context: ContextBytes,
    /// Tool results that no earlier request of the run carried, in message order.
    pub new_results: Vec<NewResult>,
    /// Names of the tools that the answer calls, in order.
    pub calls_tools: Vec<String>,
    /// The finish reason, or the error's code; where a fault leaves neither, the fault's name.
    pub finish_reason: String,
    /// The planned fault that hit it.
    pub fault: Option<&'static str>,
    /// Why a real endpoint's answer is missing, where neither subject nor model is to blame.
    pub lost: Option<Lost>,
    /// What it took on the latency model's clock, or at a real endpoint; `None` without either.
    pub model_time_ms: Option<f64>,
}

/// Why a request has no answer, where neither subject nor model is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The endpoint was not there, too busy, refused the key, or sent what is no answer.
    Endpoint,
    /// What may be spent was spent.
    SpendingCap,
}

/// Bytes of one request by where they come from: message content, without JSON syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextBytes {
    /// System messages.
    pub system_bytes: u64,
    /// User messages.
    pub user_bytes: u64,
    /// Assistant messages: text, tool names and arguments.
    pub assistant_bytes: u64,
    /// Tool results that stand whole in the prompt, errors too; with their delimiters.
    pub inline_result_bytes: u64,
    /// Previews in place of stored results; with their delimiters.
    pub preview_bytes: u64,
    /// Slices that the read tool returned; with their delimiters.
    pub read_back_bytes: u64,
    /// The tool list's JSON.
    pub tool_schema_bytes: u64,
}

/// In which form a tool result stands in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// Whole.
    Inline,
    /// As the preview of a stored result.
    Preview,
    /// As a slice of a stored result.
    Slice,
    /// As an error.
    Error,
    /// In parts, and no offered tool leads to the rest: the model could not go on from there.
    Cut,
}

/// A tool result that a request carries for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewResult {
    /// The tool's name as the model called it; empty when no call has the result's id.
    pub tool: String,
    /// Bytes of the call's arguments.
    pub argument_bytes: u64,
    /// Bytes of the result's text in the prompt, without delimiters, escapes undone.
    pub text_bytes: u64,
    /// Bytes of the message's content, delimiters included.
    pub prompt_bytes: u64,
    /// The form in which it stands there.
    pub form: ResultForm,
    /// The reference that the preview names, or that was read or asked for.
    pub reference: Option<String>,
    /// Offset of a slice in the stored text.
    pub offset_bytes: Option<u64>,
    /// Bytes of the text that a preview stands for or that was cut, or of the stored text that a slice returned.
    pub stored_bytes: Option<u64>,
    /// Whether a read asked for a range; `None` for other calls.
    pub with_range: Option<bool>,
}

/// One tool call that reached the tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallEntry {
    /// The tool's name.
    pub tool: String,
    /// Bytes of the arguments as they stand in the request.
    pub argument_bytes: u64,
    /// Bytes of the result's text.
    pub result_bytes: u64,
    /// Whether the result is an error, or spoilt beyond use.
    pub is_error: bool,
    /// The planned fault that hit it.
    pub fault: Option<&'static str>,
}
