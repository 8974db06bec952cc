//! Faults of the mock servers, planned: which call of which runs is spoilt, and how.

use spill_record::EndReason;

use crate::plan::unit_interval;

/// How a call to the LLM is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmFault {
    /// 429, perhaps with the time after which another request is welcome.
    RateLimit {
        /// That time.
        retry_after_ms: Option<u64>,
    },
    /// 500.
    ServerError,
    /// 503; Anthropic's 529.
    Unavailable,
    /// 401.
    Unauthorized,
    /// The provider's error for a prompt that is larger than the context window.
    ContextWindow,
    /// No answer; the connection closes after this time.
    Timeout {
        /// That time.
        delay_ms: u64,
    },
    /// The connection is reset before the answer begins.
    Reset,
    /// The connection is reset in the middle of the answer.
    CutStream,
    /// A stream ends with an error event; an answer that is not streamed is a 500.
    StreamError,
    /// 200 with a body that is not JSON.
    MalformedJson,
    /// A tool call whose arguments are not JSON.
    MalformedArguments,
    /// A call of a tool that is not offered.
    UnknownTool,
    /// A read of a stored result that does not exist.
    HallucinatedReference,
    /// A read beyond the end of a stored result.
    OutOfRangeRead,
    /// Two calls with one id.
    DuplicateCallId,
    /// 200 with no choice in it.
    EmptyChoice,
    /// A final answer without text.
    EmptyAnswer,
    /// The answer comes in pieces, with this time between them.
    SlowDrip {
        /// That time.
        delay_ms: u64,
    },
}

/// How a tool call is spoilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFault {
    /// An error result.
    ErrorResult,
    /// The answer comes after this time.
    Slow {
        /// That time.
        delay_ms: u64,
    },
    /// No answer; the connection closes after this time.
    Timeout {
        /// That time.
        delay_ms: u64,
    },
    /// The connection is reset in the middle of the answer.
    Cut,
    /// A page of HTML in place of the answer.
    WrongContentType,
    /// This status, without a JSON-RPC answer.
    HttpError {
        /// That status.
        status: u16,
    },
    /// An answer that is not JSON.
    MalformedJson,
    /// The result, made longer until its JSON has this many bytes.
    ResultBytes {
        /// That many.
        bytes: u64,
    },
    /// The result in one line of JSON of this many bytes.
    OneLineJson {
        /// That many.
        bytes: u64,
    },
    /// The result and then characters of four bytes, in JSON of this many bytes.
    MultiByte {
        /// That many.
        bytes: u64,
    },
    /// The result and then an escape that is half of a character.
    LoneSurrogate,
    /// The result with a NUL in it.
    Nul,
    /// A picture in place of text.
    Binary,
}

/// Which server, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A call to the LLM.
    Llm(LlmFault),
    /// A tool call.
    Tools(ToolFault),
}

impl FaultKind {
    /// The server's name as files spell it.
    #[must_use]
    pub fn server(self) -> &'static str {
        match self {
            Self::Llm(_) => "llm",
            Self::Tools(_) => "tools",
        }
    }

    /// The kind's name as files and records spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Llm(fault) => fault.name(),
            Self::Tools(fault) => fault.name(),
        }
    }
}

impl LlmFault {
    /// The fault's name as files and records spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimit { .. } => "rate_limit",
            Self::ServerError => "server_error",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::ContextWindow => "context_window",
            Self::Timeout { .. } => "timeout",
            Self::Reset => "reset",
            Self::CutStream => "cut_stream",
            Self::StreamError => "stream_error",
            Self::MalformedJson => "malformed_json",
            Self::MalformedArguments => "malformed_arguments",
            Self::UnknownTool => "unknown_tool",
            Self::HallucinatedReference => "hallucinated_reference",
            Self::OutOfRangeRead => "out_of_range_read",
            Self::DuplicateCallId => "duplicate_call_id",
            Self::EmptyChoice => "empty_choice",
            Self::EmptyAnswer => "empty_answer",
            Self::SlowDrip { .. } => "slow_drip",
        }
    }
}

impl ToolFault {
    /// The fault's name as files and records spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ErrorResult => "error_result",
            Self::Slow { .. } => "slow",
            Self::Timeout { .. } => "timeout",
            Self::Cut => "cut",
            Self::WrongContentType => "wrong_content_type",
            Self::HttpError { .. } => "http_error",
            Self::MalformedJson => "malformed_json",
            Self::ResultBytes { .. } => "result_bytes",
            Self::OneLineJson { .. } => "one_line_json",
            Self::MultiByte { .. } => "multi_byte",
            Self::LoneSurrogate => "lone_surrogate",
            Self::Nul => "nul",
            Self::Binary => "binary",
        }
    }
}

/// A fault as a scenario plans it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Which server, and how.
    pub kind: FaultKind,
    /// The first call that it can hit, from 1, retries counted.
    pub call: u64,
    /// The last one; the seed of the pair draws from these.
    pub last_call: u64,
    /// Calls in a row that it hits.
    pub times: u64,
    /// Share of the pairs that it hits, drawn by their seeds.
    pub share: f64,
    /// The one repetition that it hits; `None` for all.
    pub repetition: Option<u32>,
    /// How a run that it hits is to end, in place of what the scenario expects.
    pub end_reason: Option<EndReason>,
}

/// A fault of one pair's runs: the same call of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// Which server, and how.
    pub kind: FaultKind,
    /// The first call that it hits, from 1, retries counted.
    pub call: u64,
    /// Calls in a row that it hits.
    pub times: u64,
    /// How a run that it hits is to end, in place of what the scenario expects.
    pub end_reason: Option<EndReason>,
}

impl PlannedFault {
    /// Whether it hits the call of this number, from 1.
    #[must_use]
    pub fn hits(&self, call: u64) -> bool {
        (self.call..self.call.saturating_add(self.times)).contains(&call)
    }
}

impl Fault {
    /// What it is for the pair with this seed; `None` when it does not hit it. `place` tells it from
    /// others of its scenario.
    pub(crate) fn planned(&self, place: usize, seed: u64, repetition: u32) -> Option<PlannedFault> {
        let draw = |what: &str| unit_interval(seed, &format!("fault {place} {what}"));
        let is_hit =
            self.repetition.is_none_or(|only| only == repetition) && draw("share") < self.share;
        let calls = self.last_call - self.call + 1;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a draw among fewer calls than 2^53, rounded down"
        )]
        let offset = (draw("call") * calls as f64) as u64;
        is_hit.then_some(PlannedFault {
            kind: self.kind,
            call: self.call + offset.min(calls - 1),
            times: self.times,
            end_reason: self.end_reason,
        })
    }

    /// The fault in one line, for the manifest and the plan's hash.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut said = format!("{} call {}", self.kind.server(), self.call);
        if self.last_call != self.call {
            said += &format!("..{}", self.last_call);
        }
        if self.times != 1 {
            said += &format!(" x{}", self.times);
        }
        said += &format!(": {}", self.kind.name());
        let figure = match self.kind {
            FaultKind::Llm(fault) => match fault {
                LlmFault::RateLimit { retry_after_ms } => retry_after_ms,
                LlmFault::Timeout { delay_ms } | LlmFault::SlowDrip { delay_ms } => Some(delay_ms),
                LlmFault::ServerError
                | LlmFault::Unavailable
                | LlmFault::Unauthorized
                | LlmFault::ContextWindow
                | LlmFault::Reset
                | LlmFault::CutStream
                | LlmFault::StreamError
                | LlmFault::MalformedJson
                | LlmFault::MalformedArguments
                | LlmFault::UnknownTool
                | LlmFault::HallucinatedReference
                | LlmFault::OutOfRangeRead
                | LlmFault::DuplicateCallId
                | LlmFault::EmptyChoice
                | LlmFault::EmptyAnswer => None,
            },
            FaultKind::Tools(fault) => match fault {
                ToolFault::Slow { delay_ms } | ToolFault::Timeout { delay_ms } => Some(delay_ms),
                ToolFault::HttpError { status } => Some(u64::from(status)),
                ToolFault::ResultBytes { bytes }
                | ToolFault::OneLineJson { bytes }
                | ToolFault::MultiByte { bytes } => Some(bytes),
                ToolFault::ErrorResult
                | ToolFault::Cut
                | ToolFault::WrongContentType
                | ToolFault::MalformedJson
                | ToolFault::LoneSurrogate
                | ToolFault::Nul
                | ToolFault::Binary => None,
            },
        };
        if let Some(figure) = figure {
            said += &format!(" {figure}");
        }
        if self.share < 1.0 {
            said += &format!(", share {}", self.share);
        }
        if let Some(repetition) = self.repetition {
            said += &format!(", repetition {repetition}");
        }
        if let Some(end) = self.end_reason {
            said += &format!(", ends as {}", end.as_str());
        }
        said
    }
}

/// How the runs of a scenario are to end; one that ends otherwise is no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The end of a run that a planned fault hits; of every run where none is planned.
    pub end_reason: EndReason,
    /// The end of a run that the plan's faults spare.
    pub otherwise: EndReason,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(call: u64, last_call: u64, share: f64) -> Fault {
        Fault {
            kind: FaultKind::Llm(LlmFault::ServerError),
            call,
            last_call,
            times: 2,
            share,
            repetition: None,
            end_reason: None,
        }
    }

    #[test]
    fn a_fault_hits_as_many_calls_as_it_says() {
        let planned = fault(3, 3, 1.0)
            .planned(0, 7, 0)
            .expect("it hits every pair");
        let hit: Vec<u64> = (0..10).filter(|call| planned.hits(*call)).collect();
        assert_eq!(hit, [3, 4]);
    }

    #[test]
    fn seeds_draw_pairs_and_calls() {
        let planned: Vec<_> = (0..1000)
            .map(|seed| fault(2, 5, 0.25).planned(1, seed, 0))
            .collect();
        let again: Vec<_> = (0..1000)
            .map(|seed| fault(2, 5, 0.25).planned(1, seed, 0))
            .collect();
        assert_eq!(planned, again);
        let hit: Vec<u64> = planned.iter().flatten().map(|fault| fault.call).collect();
        assert!((200..300).contains(&hit.len()), "{}", hit.len());
        for call in 2..=5 {
            assert!(hit.contains(&call), "{call}");
        }
        assert!(hit.iter().all(|call| (2..=5).contains(call)));
        let other = fault(2, 5, 0.25).planned(2, 3, 0);
        assert!((0..100).any(|seed| fault(2, 5, 0.25).planned(2, seed, 0) != other));
    }

    #[test]
    fn a_fault_of_one_repetition_spares_the_others() {
        let fault = Fault {
            repetition: Some(1),
            ..fault(1, 1, 1.0)
        };
        assert_eq!(fault.planned(0, 7, 0), None);
        assert!(fault.planned(0, 7, 1).is_some());
        assert_eq!(
            fault.describe(),
            "llm call 1 x2: server_error, repetition 1"
        );
    }
}
