use std::fmt;
use std::str::FromStr;

use spill_engine::{
    EnvelopeOptions, InlineCapOptions, OutOfBounds, PreviewShare, Settings, Switch, Threshold,
};

/// A policy of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyName {
    /// The store of one step, with a summary for a preview.
    WorkflowStep,
    /// Both ends of a text and a notice, together within a cap.
    InlineCap,
    /// A JSON envelope with a preview.
    Envelope,
}

impl PolicyName {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::WorkflowStep, Self::InlineCap, Self::Envelope];

    /// The name that settings use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkflowStep => "workflow-step",
            Self::InlineCap => "inline-cap",
            Self::Envelope => "envelope",
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for PolicyName {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| PolicyError::NoSuchPolicy(text.chars().take(40).collect()))
    }
}

/// A policy that cannot be replayed as asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A name that is not known.
    #[error("no policy is called {0:?} (use workflow-step, inline-cap or envelope)")]
    NoSuchPolicy(String),
    /// A threshold that `workflow-step` does not accept.
    #[error("the threshold of workflow-step: {0}")]
    Threshold(#[from] OutOfBounds),
    /// Replacements of `workflow-step` have one size.
    #[error(
        "the replacements of workflow-step have a size of their own (leave --replacement out, or name another --policy)"
    )]
    OwnSizeAlone,
    /// A replacement as large as what it replaces.
    #[error(
        "replacements of {replacement} bytes are not below the threshold of {threshold} (name smaller ones, or a larger threshold)"
    )]
    NotSmaller {
        /// The size asked for.
        replacement: u64,
        /// The threshold.
        threshold: u64,
    },
}

/// What replaces which results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fixed {
        threshold_bytes: u64,
        replacement_bytes: u64,
    },
    WorkflowStep(Settings),
    InlineCap(InlineCapOptions),
    Envelope(EnvelopeOptions),
}

impl Policy {
    /// A policy of the engine with its published options, a threshold (cap, limit) and, where it is to be another than its
    /// own, the most bytes of a replacement.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] for what the policy does not accept.
    pub fn new(
        name: PolicyName,
        threshold_bytes: u64,
        replacement_bytes: Option<u64>,
    ) -> Result<Self, PolicyError> {
        let preview_share = match replacement_bytes {
            None => PreviewShare::ALL,
            Some(_) if name == PolicyName::WorkflowStep => return Err(PolicyError::OwnSizeAlone),
            Some(replacement) => {
                let share = share_of(replacement, threshold_bytes);
                share.ok_or(PolicyError::NotSmaller {
                    replacement,
                    threshold: threshold_bytes,
                })?
            }
        };
        Ok(Self(match name {
            PolicyName::WorkflowStep => Kind::WorkflowStep(Settings {
                enabled: Switch::On,
                threshold: Threshold::new(threshold_bytes)?,
                ..Settings::DEFAULT
            }),
            PolicyName::InlineCap => Kind::InlineCap(InlineCapOptions {
                preview_share,
                ..InlineCapOptions::capped(threshold_bytes)
            }),
            PolicyName::Envelope => Kind::Envelope(EnvelopeOptions {
                max_payload_bytes: threshold_bytes,
                preview_share,
                ..EnvelopeOptions::default()
            }),
        }))
    }

    /// No policy of the engine, for comparisons with other programs: results of at least `threshold_bytes` are replaced by
    /// their own first `replacement_bytes`, unless they are no larger, and a read returns at most `threshold_bytes`.
    #[must_use]
    pub fn fixed(threshold_bytes: u64, replacement_bytes: u64) -> Self {
        Self(Kind::Fixed {
            threshold_bytes,
            replacement_bytes,
        })
    }
}

/// The share of a limit that is as near below `bytes` as a share can be; `None` when it is not below the limit.
#[expect(
    clippy::cast_precision_loss,
    reason = "limits are far below the numbers that lose digits"
)]
fn share_of(bytes: u64, limit: u64) -> Option<PreviewShare> {
    if bytes == 0 || bytes >= limit {
        return None;
    }
    // A share has a last digit, so a byte may be missing: one more then is too much by no more than that.
    let share = PreviewShare::new(bytes as f64 / limit as f64)?;
    let more = PreviewShare::new((bytes as f64 + 0.5) / limit as f64)?;
    Some(if share.of(limit) == bytes {
        share
    } else {
        more
    })
    .filter(|share| share.of(limit) <= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_becomes_a_share_that_gives_it_back() {
        for (bytes, limit) in [(1, 2), (2_048, 8_192), (1_000, 4_097), (999_999, 1_000_000)] {
            let share = share_of(bytes, limit).expect("below the limit");
            assert_eq!(share.of(limit), bytes, "{bytes} of {limit}");
        }
        assert_eq!(share_of(0, 10), None);
        assert_eq!(share_of(10, 10), None);
    }

    #[test]
    fn what_a_policy_does_not_accept_is_refused() {
        use PolicyName::{Envelope, InlineCap, WorkflowStep};
        assert!(Policy::new(WorkflowStep, 4_096, None).is_ok());
        assert!(Policy::new(WorkflowStep, 4_095, None).is_err());
        assert!(Policy::new(WorkflowStep, 1_048_577, None).is_err());
        assert_eq!(
            Policy::new(WorkflowStep, 8_192, Some(2_048)),
            Err(PolicyError::OwnSizeAlone)
        );
        assert!(Policy::new(InlineCap, 100, None).is_ok());
        assert!(Policy::new(Envelope, 8_192, Some(2_048)).is_ok());
        assert!(Policy::new(Envelope, 8_192, Some(8_192)).is_err());
        assert!("inline_cap".parse::<PolicyName>().is_err());
    }
}
