use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rule, or a candidate over all rules, came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The planned evidence is there and keeps the limit.
    Holds,
    /// The evidence passes the limit, and no absent run could change that.
    Broken,
    /// The evidence is too thin, or does not measure what the rule asks for.
    NotProven,
    /// The rule does not concern inputs of this class.
    NotApplicable,
    /// Planned runs are missing.
    NotRun,
}

impl State {
    /// The state's name as files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::NotProven => "not_proven",
            Self::NotApplicable => "not_applicable",
            Self::NotRun => "not_run",
        }
    }

    /// The state's name as people read it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::NotProven => "not proven",
            Self::NotApplicable => "not applicable",
            Self::NotRun => "not run",
        }
    }

    /// How much a state weighs when several are summed up: the heaviest one decides.
    pub(crate) fn weight(self) -> u8 {
        match self {
            Self::Broken => 4,
            Self::NotRun => 3,
            Self::NotProven => 2,
            Self::Holds => 1,
            Self::NotApplicable => 0,
        }
    }
}

/// One of the five acceptance rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Rule 1: the success rate is not lower than the control's.
    SuccessRate,
    /// Rule 2: no run hits the iteration limit that did not hit it under the control.
    IterationLimit,
    /// Rule 3: median input tokens stay within the limit of the input's class.
    InputTokens,
    /// Rule 4: quality and coverage of the end are not lower than the control's.
    Quality,
    /// Rule 5: nothing is written to disk and no log line carries result content.
    NothingLeaks,
}

impl Rule {
    /// All rules, in order.
    pub const ALL: [Self; 5] = [
        Self::SuccessRate,
        Self::IterationLimit,
        Self::InputTokens,
        Self::Quality,
        Self::NothingLeaks,
    ];

    /// The rule's number, 1 to 5.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::SuccessRate => 1,
            Self::IterationLimit => 2,
            Self::InputTokens => 3,
            Self::Quality => 4,
            Self::NothingLeaks => 5,
        }
    }

    /// The rule's name as files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SuccessRate => "success_rate",
            Self::IterationLimit => "iteration_limit",
            Self::InputTokens => "input_tokens",
            Self::Quality => "quality",
            Self::NothingLeaks => "nothing_leaks",
        }
    }

    /// The rule's short title.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::SuccessRate => "success rate",
            Self::IterationLimit => "iteration limit",
            Self::InputTokens => "input tokens",
            Self::Quality => "document quality",
            Self::NothingLeaks => "nothing leaks",
        }
    }

    /// What the rule demands, in one sentence.
    #[must_use]
    pub fn demands(self) -> &'static str {
        match self {
            Self::SuccessRate => {
                "For every input, the success rate is not lower than the control's."
            }
            Self::IterationLimit => {
                "No run hits the iteration limit that did not hit it under the control in its pair."
            }
            Self::InputTokens => {
                "Median input tokens over the control's stay within the limit for small and medium \
                 inputs, and below the control's for large ones; documents are exempt."
            }
            Self::Quality => {
                "For documents, mean quality and the coverage of the end are not lower than the \
                 control's."
            }
            Self::NothingLeaks => {
                "No run writes a file outside its declared outputs or logs result content."
            }
        }
    }
}

/// On which side of a limit the observed value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The observed value is the limit or more.
    AtLeast,
    /// The observed value is the limit or less.
    AtMost,
    /// The observed value is less than the limit; the equal case is broken.
    Below,
}

impl Bound {
    /// The bound's name as files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtLeast => "at_least",
            Self::AtMost => "at_most",
            Self::Below => "below",
        }
    }

    /// The relation as a sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
            Self::Below => "<",
        }
    }
}
