use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::Spanned;

use spill_record::parse_size;

use super::subject::RawSubject;

/// A scenario file as it is written. Keys that are `Option` have the defaults of
/// [`crate::defaults`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    pub(super) recipe: Spanned<String>,
    pub(super) system: Spanned<String>,
    pub(super) prompt: Spanned<String>,
    pub(super) repetitions: Option<Spanned<u32>>,
    pub(super) inputs: Spanned<Vec<RawInput>>,
    #[serde(default)]
    pub(super) model: RawModel,
    #[serde(default)]
    pub(super) limits: RawLimits,
    pub(super) configurations: Spanned<Vec<RawConfiguration>>,
    #[serde(default)]
    pub(super) rules: RawRules,
    #[serde(default)]
    pub(super) fault: Vec<RawFault>,
    pub(super) expect: Option<RawExpect>,
    pub(super) subject: Option<Spanned<RawSubject>>,
}

/// A text of configurations alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfigurations {
    pub(super) configurations: Spanned<Vec<RawConfiguration>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInput {
    pub(super) name: Spanned<String>,
    pub(super) class: Option<Spanned<String>>,
    pub(super) source: Spanned<String>,
    pub(super) generator: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<u64>>,
    pub(super) path: Option<Spanned<String>>,
    pub(super) range: Option<Spanned<String>>,
    pub(super) facts: Option<Spanned<Vec<RawFact>>>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFact {
    pub(super) id: Spanned<String>,
    pub(super) expect: Spanned<String>,
    pub(super) carrier: Spanned<String>,
    pub(super) place: Option<Spanned<String>>,
}

/// `facts.toml` of a directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFacts {
    #[serde(default)]
    pub(super) facts: Vec<RawFact>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    pub(super) name: Option<Spanned<String>>,
    pub(super) population: Option<Spanned<BTreeMap<Spanned<String>, f64>>>,
    pub(super) context_window_tokens: Option<Spanned<u64>>,
    pub(super) parallel_calls: Option<Spanned<u64>>,
    pub(super) slice_bytes: Option<Spanned<Size>>,
    pub(super) window_lines: Option<Spanned<u64>>,
    pub(super) reading_budget_bytes: Option<Spanned<Size>>,
    pub(super) max_findings: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) patterns: Vec<Spanned<String>>,
    pub(super) composite: Option<Spanned<bool>>,
    pub(super) recall: Option<Spanned<Vec<(u64, f64)>>>,
    pub(super) latency: Option<RawLatency>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLatency {
    pub(super) overhead_ms: Option<Spanned<f64>>,
    pub(super) uncached_token_ms: Option<Spanned<f64>>,
    pub(super) output_token_ms: Option<Spanned<f64>>,
    pub(super) queue_ms: Option<Spanned<f64>>,
    pub(super) sleep_scale: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub(super) iteration_limit: Option<Spanned<u64>>,
    pub(super) step_timeout_ms: Option<Spanned<u64>>,
    pub(super) run_timeout_ms: Option<Spanned<u64>>,
    pub(super) max_runs: Option<Spanned<u64>>,
    pub(super) max_retries: Option<Spanned<u32>>,
    pub(super) retry_base_ms: Option<Spanned<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfiguration {
    pub(super) name: Spanned<String>,
    pub(super) role: Spanned<String>,
    pub(super) shipped: Option<Spanned<bool>>,
    pub(super) enabled: Option<Spanned<bool>>,
    pub(super) threshold_bytes: Option<Spanned<Size>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) store: Option<Spanned<String>>,
    pub(super) preview_share: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) options: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    #[serde(default)]
    pub(super) env: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    pub(super) sidecar: Vec<RawSidecar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSidecar {
    pub(super) name: Spanned<String>,
    pub(super) before: Spanned<String>,
    pub(super) command: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) env: BTreeMap<Spanned<String>, Spanned<String>>,
    pub(super) start_timeout_ms: Option<Spanned<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFault {
    pub(super) server: Spanned<String>,
    pub(super) kind: Spanned<String>,
    pub(super) call: Spanned<u64>,
    pub(super) last_call: Option<Spanned<u64>>,
    pub(super) times: Option<Spanned<u64>>,
    pub(super) share: Option<Spanned<f64>>,
    pub(super) repetition: Option<Spanned<u32>>,
    pub(super) retry_after_ms: Option<Spanned<u64>>,
    pub(super) delay_ms: Option<Spanned<u64>>,
    pub(super) status: Option<Spanned<u64>>,
    pub(super) bytes: Option<Spanned<Size>>,
    pub(super) end_reason: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExpect {
    pub(super) end_reason: Spanned<String>,
    pub(super) otherwise: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRules {
    pub(super) input_tokens_ratio_limit: Option<Spanned<f64>>,
    pub(super) large_input_tokens_ratio_limit: Option<Spanned<f64>>,
    pub(super) quality_allowance: Option<Spanned<f64>>,
    pub(super) success_margin: Option<Spanned<f64>>,
    pub(super) quality_margin: Option<Spanned<f64>>,
    pub(super) derived_facts_needed: Option<Spanned<u64>>,
    pub(super) infrastructure_budget: Option<Spanned<f64>>,
}

/// A size in bytes, written `131072`, `"128KiB"` or `"1MiB"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;
        impl Visitor<'_> for SizeVisitor {
            type Value = Size;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a size such as 131072, \"128KiB\" or \"1MiB\"")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Size, E> {
                u64::try_from(value)
                    .map(Size)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Size, E> {
                Ok(Size(value))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Size, E> {
                parse_size(value)
                    .map(Size)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(SizeVisitor)
    }
}
