//! Planned faults as the servers carry them out.

use std::sync::Arc;

use spill_scenario::{FaultKind, LlmFault, PlannedFault, ToolFault};

use crate::refusal::{Refusal, Wrong};

/// The faults of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(pub(crate) Arc<[PlannedFault]>);

impl Faults {
    /// What hits the request to the LLM of this number, from 1.
    pub(crate) fn of_llm(&self, call: u64) -> Option<LlmFault> {
        self.hitting(call).find_map(|kind| match kind {
            FaultKind::Llm(fault) => Some(fault),
            FaultKind::Tools(_) => None,
        })
    }

    /// What hits the tool call of this number, from 1.
    pub(crate) fn of_tools(&self, call: u64) -> Option<ToolFault> {
        self.hitting(call).find_map(|kind| match kind {
            FaultKind::Llm(_) => None,
            FaultKind::Tools(fault) => Some(fault),
        })
    }

    fn hitting(&self, call: u64) -> impl Iterator<Item = FaultKind> + '_ {
        let hitting = self.0.iter().filter(move |fault| fault.hits(call));
        hitting.map(|fault| fault.kind)
    }
}

/// How an answer reaches its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    #[default]
    Whole,
    /// Whole, after this time.
    Late { delay_ms: u64 },
    /// Whole, in pieces with this time between them.
    Dripped { delay_ms: u64 },
    /// Never; the connection closes after this time.
    Held { delay_ms: u64 },
    /// Never; the connection is reset.
    Reset,
    /// In part; then the connection is reset.
    Cut,
    /// A stream's first events and then an error.
    ErrorEvent,
    /// With a body that is not JSON.
    Garbled,
}

impl Delivery {
    /// Whether no client can make use of what arrives.
    pub(crate) fn spoils(self) -> bool {
        match self {
            Self::Whole | Self::Late { .. } | Self::Dripped { .. } => false,
            Self::Held { .. } | Self::Reset | Self::Cut | Self::ErrorEvent | Self::Garbled => true,
        }
    }
}

/// The refusal that a fault is; `None` for faults of another nature.
pub(crate) fn refusal_of(
    fault: LlmFault,
    window: u64,
    prompt: u64,
    stream: bool,
) -> Option<Refusal> {
    let wrong = match fault {
        LlmFault::RateLimit { retry_after_ms } => Wrong::RateLimit { retry_after_ms },
        LlmFault::ServerError => Wrong::ServerError,
        LlmFault::Unavailable => Wrong::Overloaded,
        LlmFault::Unauthorized => Wrong::Unauthorized,
        LlmFault::ContextWindow => Wrong::ContextLength {
            window,
            prompt: prompt.max(window + 1),
        },
        LlmFault::StreamError if !stream => Wrong::ServerError,
        LlmFault::StreamError
        | LlmFault::Timeout { .. }
        | LlmFault::Reset
        | LlmFault::CutStream
        | LlmFault::MalformedJson
        | LlmFault::MalformedArguments
        | LlmFault::UnknownTool
        | LlmFault::HallucinatedReference
        | LlmFault::OutOfRangeRead
        | LlmFault::DuplicateCallId
        | LlmFault::EmptyChoice
        | LlmFault::EmptyAnswer
        | LlmFault::SlowDrip { .. } => return None,
    };
    Some(Refusal {
        wrong,
        message: String::new(),
    })
}

/// How the answer of a call that a fault hits reaches the client.
pub(crate) fn delivery_of(fault: LlmFault) -> Delivery {
    match fault {
        LlmFault::Timeout { delay_ms } => Delivery::Held { delay_ms },
        LlmFault::Reset => Delivery::Reset,
        LlmFault::CutStream => Delivery::Cut,
        LlmFault::StreamError => Delivery::ErrorEvent,
        LlmFault::MalformedJson => Delivery::Garbled,
        LlmFault::SlowDrip { delay_ms } => Delivery::Dripped { delay_ms },
        LlmFault::RateLimit { .. }
        | LlmFault::ServerError
        | LlmFault::Unavailable
        | LlmFault::Unauthorized
        | LlmFault::ContextWindow
        | LlmFault::MalformedArguments
        | LlmFault::UnknownTool
        | LlmFault::HallucinatedReference
        | LlmFault::OutOfRangeRead
        | LlmFault::DuplicateCallId
        | LlmFault::EmptyChoice
        | LlmFault::EmptyAnswer => Delivery::Whole,
    }
}
