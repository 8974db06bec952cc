//! Errors of an LLM API, whatever dialect they are written in.

use crate::error::BadRequest;

/// What is wrong, by the word that the journal has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    InvalidRequest,
    /// More prompt tokens than the window has.
    ContextLength {
        window: u64,
        prompt: u64,
    },
    Unauthorized,
    /// Too many requests; another one is welcome after this time.
    RateLimit {
        retry_after_ms: Option<u64>,
    },
    ServerError,
    Overloaded,
    /// A request that no script answers.
    Unscripted,
}

/// An error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) wrong: Wrong,
    /// What it says; empty where the dialect has its own words.
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn invalid_request(error: &BadRequest) -> Self {
        Self {
            wrong: Wrong::InvalidRequest,
            message: error.to_string(),
        }
    }

    pub(crate) fn context_length(window: u64, prompt: u64) -> Self {
        Self {
            wrong: Wrong::ContextLength { window, prompt },
            message: String::new(),
        }
    }

    pub(crate) fn unscripted(what: &str) -> Self {
        Self {
            wrong: Wrong::Unscripted,
            message: format!("the mock LLM server has no script for this request: {what}"),
        }
    }

    /// The word for it in the journal.
    pub(crate) fn code(&self) -> &'static str {
        match self.wrong {
            Wrong::InvalidRequest => "invalid_request",
            Wrong::ContextLength { .. } => "context_length_exceeded",
            Wrong::Unauthorized => "invalid_api_key",
            Wrong::RateLimit { .. } => "rate_limit_exceeded",
            Wrong::ServerError => "server_error",
            Wrong::Overloaded => "overloaded",
            Wrong::Unscripted => "unscripted_request",
        }
    }

    /// The status that every dialect has for it; Anthropic's overload has one of its own.
    pub(crate) fn status(&self) -> u16 {
        match self.wrong {
            Wrong::InvalidRequest | Wrong::ContextLength { .. } => 400,
            Wrong::Unauthorized => 401,
            Wrong::Unscripted => 404,
            Wrong::RateLimit { .. } => 429,
            Wrong::ServerError => 500,
            Wrong::Overloaded => 503,
        }
    }
}
