//! What a transcript is, whatever agent recorded it.

use std::collections::BTreeMap;
use std::fmt;

use crate::problem::{Place, Problems};
use crate::spans::Spans;
use crate::text::Text;
use crate::time::Timestamp;
use crate::usage::Usage;

/// The format that a transcript was recorded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Claude Code session JSONL.
    ClaudeCode,
    /// Codex rollout JSONL.
    CodexRollout,
    /// OpenAI chat-completions messages: arrays, JSONL, tau-bench and tau2 result files.
    OpenAiChat,
    /// OpenAI API request and response pairs.
    ApiCapture,
    /// Anthropic messages.
    AnthropicMessages,
    /// SWE-agent `.traj`.
    SweAgent,
    /// mini-swe-agent `.traj.json`.
    MiniSweAgent,
    /// Inspect AI `.eval` and JSON logs.
    Inspect,
    /// Harbor ATIF `trajectory.json`.
    Atif,
    /// OpenTelemetry GenAI and OpenInference spans as OTLP JSON.
    Otel,
    /// Gemini CLI sessions.
    GeminiCli,
    /// DeepSeek Harness sessions.
    DeepSeekHarness,
}

impl Format {
    /// The name, in lower case with hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::CodexRollout => "codex-rollout",
            Self::OpenAiChat => "openai-chat",
            Self::ApiCapture => "api-capture",
            Self::AnthropicMessages => "anthropic-messages",
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::Inspect => "inspect",
            Self::Atif => "atif",
            Self::Otel => "otel",
            Self::GeminiCli => "gemini-cli",
            Self::DeepSeekHarness => "deepseek-harness",
        }
    }

    /// Whether its importer asks of each call if another file holds it. A file of such a format is one session, held whole
    /// when it is handed on.
    pub(crate) fn tells_calls_apart(self) -> bool {
        match self {
            Self::ClaudeCode => true,
            Self::CodexRollout
            | Self::OpenAiChat
            | Self::ApiCapture
            | Self::AnthropicMessages
            | Self::SweAgent
            | Self::MiniSweAgent
            | Self::Inspect
            | Self::Atif
            | Self::Otel
            | Self::GeminiCli
            | Self::DeepSeekHarness => false,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions; the tool schemas too, where they are recorded.
    System,
    /// The user, or the harness in the user's name.
    User,
    /// The model.
    Assistant,
    /// Tools.
    Tool,
}

impl Role {
    /// The name on the wire of chat completions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Where a piece of a context comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// System and developer messages.
    System,
    /// The list of tools.
    ToolSchemas,
    /// User messages.
    User,
    /// The model's text.
    Assistant,
    /// The model's reasoning, where it is recorded as text. Whether it is sent again depends on the API.
    Reasoning,
    /// A tool call: name and arguments.
    ToolCall,
    /// A tool result.
    ToolResult,
}

impl Origin {
    /// All origins, in the order of their columns.
    pub const ALL: [Self; 7] = [
        Self::System,
        Self::ToolSchemas,
        Self::User,
        Self::Assistant,
        Self::Reasoning,
        Self::ToolCall,
        Self::ToolResult,
    ];

    /// The name, in lower case with underscores.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::ToolSchemas => "tool_schemas",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
        }
    }
}

/// One piece of a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it comes from.
    pub origin: Origin,
    /// The text; a tool call's arguments as written; empty for media.
    pub text: Text,
    /// A tool call's tool name.
    pub name: Option<String>,
    /// A tool call's id, or the id of the call that a tool result answers.
    pub call_id: Option<String>,
    /// Bytes of an image or document as recorded (base64 text), which are no text of the prompt. `None`: no media.
    pub media_bytes: Option<u64>,
}

impl Piece {
    /// UTF-8 bytes of the text, and of the name of a tool call. Media are not in it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.text.len() + self.name.as_ref().map_or(0, String::len)) as u64
    }
}

/// One message of a transcript.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// Its content in order. Empty texts are not in it.
    pub pieces: Vec<Piece>,
    /// Where it was read.
    pub place: Place,
}

/// Whether the recording says what was sent, or whether that is concluded from the order of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextSource {
    /// The request itself is recorded.
    Recorded,
    /// All messages before the call, as far as no boundary removed them.
    Inferred,
}

/// Whether a call was made in this transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was made, and paid, here.
    Made,
    /// It was copied from another transcript (a resumed or forked session): it is context, and cost nothing here.
    Copied,
}

/// One LLM call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The provider's id of the response.
    pub id: Option<String>,
    /// The model that answered, or else the one that was asked.
    pub model: Option<String>,
    /// When the answer, or else the request, was recorded.
    pub time: Option<Timestamp>,
    /// The messages that were sent, in order, as ranges of indices into [`Transcript::messages`].
    pub context: Spans,
    /// How the context is known.
    pub context_source: ContextSource,
    /// The answer's index in [`Transcript::messages`]; `None` when it is not recorded.
    pub answer: Option<usize>,
    /// Tokens as recorded; `None` when none are.
    pub usage: Option<Usage>,
    /// Whether it was made here.
    pub standing: Standing,
}

/// What happened to a result before it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Nothing shows that anything is missing.
    AsRecorded,
    /// The recording agent cut it.
    Cut {
        /// Bytes before the cut, where they are known.
        original_bytes: Option<u64>,
    },
    /// The recording agent stored it elsewhere, and showed a stub or a preview.
    Stored {
        /// Bytes of what was stored, where they are known.
        original_bytes: Option<u64>,
    },
}

/// One tool result, as the model saw it.
#[derive(Clone, Debug)]
pub struct ToolResult {
    /// The message it stands in.
    pub message: usize,
    /// Its pieces there; empty for an empty result.
    pub pieces: std::ops::Range<usize>,
    /// The id of the tool call that it answers.
    pub call_id: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// Index of the LLM call that asked for it in [`Transcript::calls`].
    pub asked_by: Option<usize>,
    /// When it was recorded.
    pub time: Option<Timestamp>,
    /// Whether it is an error; `None` when the format does not say.
    pub is_error: Option<bool>,
    /// What happened to it before it was recorded.
    pub completeness: Completeness,
    /// The whole result, where it is recorded beside the one that the model saw.
    pub uncut: Option<Text>,
}

/// Why messages left the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundaryKind {
    /// The context was replaced by a summary.
    Compaction,
    /// The user went back to an earlier message.
    Rewind,
    /// The agent dropped or replaced messages of its own accord.
    Edit,
}

/// A place at which messages left the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The first LLM call after it, as an index into [`Transcript::calls`]; equal to their number when none follows.
    pub before_call: usize,
    /// Why.
    pub kind: BoundaryKind,
}

/// The transcript that started this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its id.
    pub id: String,
    /// The tool call that started this one, where it is known.
    pub call_id: Option<String>,
}

/// What a format, or this file, does not hold. It is missing, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// The system prompt.
    SystemPrompt,
    /// The tool schemas.
    ToolSchemas,
    /// Tokens of every single call.
    UsagePerCall,
    /// How much of the input came from a cache.
    CacheSplit,
    /// Times.
    Times,
    /// The model.
    Model,
    /// Ids of tool calls.
    CallIds,
    /// What a history processor left out of each request.
    HistoryProcessor,
    /// What the context holds after a compaction.
    ContextAfterCompaction,
}

impl Missing {
    /// The name, in lower case with hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemPrompt => "system-prompt",
            Self::ToolSchemas => "tool-schemas",
            Self::UsagePerCall => "usage-per-call",
            Self::CacheSplit => "cache-split",
            Self::Times => "times",
            Self::Model => "model",
            Self::CallIds => "call-ids",
            Self::HistoryProcessor => "history-processor",
            Self::ContextAfterCompaction => "context-after-compaction",
        }
    }
}

/// One conversation of one agent.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The format it was recorded in.
    pub format: Format,
    /// Where it starts.
    pub place: Place,
    /// Its own id: session, task, conversation.
    pub id: Option<String>,
    /// The transcript that started it; `None` for a main agent and where it is not known.
    pub parent: Option<Parent>,
    /// Every message that was in a context or was an answer, once, in the order of appearance.
    pub messages: Vec<Message>,
    /// The LLM calls in order.
    pub calls: Vec<Call>,
    /// The tool results in order of their messages.
    pub results: Vec<ToolResult>,
    /// Where messages left the context.
    pub boundaries: Vec<Boundary>,
    /// Totals of the whole transcript as the file gives them; they are not the sum of the calls, which have their own.
    pub recorded_total: Option<Usage>,
    /// What is not recorded, sorted.
    pub missing: Vec<Missing>,
    /// What was left out on purpose (duplicates, bookkeeping records), by kind, with how often.
    pub left_out: BTreeMap<&'static str, u64>,
    /// What could not be understood or does not fit together.
    pub problems: Problems,
}

impl Transcript {
    /// The pieces of a result.
    ///
    /// # Panics
    ///
    /// When `result` is of another transcript.
    #[must_use]
    pub fn pieces_of(&self, result: &ToolResult) -> &[Piece] {
        &self.messages[result.message].pieces[result.pieces.clone()]
    }

    /// Bytes of a result's text, as the model saw it.
    ///
    /// # Panics
    ///
    /// When `result` is of another transcript.
    #[must_use]
    pub fn bytes_of(&self, result: &ToolResult) -> u64 {
        self.pieces_of(result).iter().map(Piece::bytes).sum()
    }

    /// The messages that were sent with a call, in order.
    pub fn sent<'a>(&'a self, call: &'a Call) -> impl Iterator<Item = &'a Message> {
        call.context.iter().map(|index| &self.messages[index])
    }
}
