//! The spill settings of a step: the environment's variables, checked, and how they are printed.

#[cfg(test)]
mod tests;
mod variables;

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use spill_engine::{
    Bytes, EnvelopeOptions, FileOptions, InlineCapOptions, SettingWarning, Settings,
};

use variables::Given;
pub use variables::SettingsError;

/// Names the policy: `workflow-step` (default), `inline-cap` or `envelope`.
pub const POLICY_VAR: &str = "SPILLGATE_POLICY";
/// The policy's own options as a JSON object with their published names. `workflow-step` has none.
pub const OPTIONS_VAR: &str = "SPILLGATE_POLICY_OPTIONS";
/// Where results are kept: `memory` (default) or `file`.
pub const STORE_VAR: &str = "SPILLGATE_STORE";
/// The file store's directory. Given alone, it is only swept of what dead processes left there.
pub const STORE_DIR_VAR: &str = "SPILLGATE_STORE_DIR";
/// A whole number that the names of stored results are drawn from, in place of the operating
/// system's entropy: equal seeds, equal prompts. Whoever knows the seed knows the names.
pub const STORE_SEED_VAR: &str = "SPILLGATE_STORE_SEED";
/// The most bytes of one turn's results together. Absent is no bound.
pub const TURN_BYTES_VAR: &str = "SPILLGATE_TURN_BYTES";
/// The tools whose arguments may hold `{"$spill": …}`, separated by commas. Absent is none.
pub const EXPAND_TOOLS_VAR: &str = "SPILLGATE_EXPAND_TOOLS";

/// Everything that decides about one step's results, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillSettings {
    /// The switch, and what the workflow-step policy needs. The budget is also that of any other
    /// policy's memory store.
    pub step: Settings,
    /// The policy with its options.
    pub policy: PolicySettings,
    /// The policy's options as they were given.
    pub options: Map<String, Value>,
    /// Where results are kept.
    pub store: StoreSettings,
    /// The directory to sweep of leftovers at the start, also with spilling off.
    pub sweep: Option<PathBuf>,
    /// The source of names; the operating system's entropy when `None`.
    pub seed: Option<u64>,
    /// The most bytes of one turn's results together.
    pub turn_bytes: Option<u64>,
    /// The tools whose arguments are expanded.
    pub expand_tools: Vec<String>,
}

/// One of the three policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySettings {
    /// The step's own store, summaries of a fixed form.
    WorkflowStep,
    /// A text's ends and a notice, within a cap.
    InlineCap(InlineCapOptions),
    /// A JSON envelope.
    Envelope(EnvelopeOptions),
}

/// Where results are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In memory.
    Memory,
    /// As files of this directory, an absolute path.
    File(PathBuf),
}

impl From<Settings> for SpillSettings {
    /// The workflow-step policy and nothing beside it.
    fn from(step: Settings) -> Self {
        Self {
            step,
            policy: PolicySettings::WorkflowStep,
            options: Map::new(),
            store: StoreSettings::Memory,
            sweep: None,
            seed: None,
            turn_bytes: None,
            expand_tools: Vec::new(),
        }
    }
}

impl SpillSettings {
    /// Takes the settings from `lookup`, an environment for example. What is unset or blank has
    /// its default. A bad value of the three variables of the workflow-step policy means their
    /// default and a warning; any other bad value is an error.
    ///
    /// # Errors
    /// [`SettingsError`] for the first value that is not understood or contradicts another one.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<SettingWarning>), SettingsError> {
        let (step, warnings) = Settings::from_lookup(&lookup);
        let given = Given {
            lookup: &|name| {
                let value = lookup(name)?;
                Some(value.trim().to_owned()).filter(|value| !value.is_empty())
            },
        };
        let options = given.options()?;
        let policy = given.policy(&options)?;
        let store = given.store(&policy, &options)?;
        let settings = Self {
            step,
            sweep: given.sweep(&store)?,
            seed: given.number(STORE_SEED_VAR)?,
            turn_bytes: given.turn_bytes()?,
            expand_tools: given.expand_tools()?,
            policy,
            options,
            store,
        };
        Ok((settings, warnings))
    }

    /// The most bytes that the store may hold.
    pub(crate) fn quota(&self) -> Bytes {
        match &self.store {
            StoreSettings::Memory => Bytes::new(self.step.budget.get()),
            StoreSettings::File(directory) => FileOptions::new(directory).quota,
        }
    }
}

impl PolicySettings {
    /// The name that settings and reports use.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WorkflowStep => "workflow-step",
            Self::InlineCap(_) => "inline-cap",
            Self::Envelope(_) => "envelope",
        }
    }
}

/// The spill settings in force, as step results and `--print-settings` spell them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveSettings {
    /// Whether results may be stored.
    pub enabled: bool,
    /// The limit in force: the threshold, `maxInlineBytes` or `maxPayloadBytes`; null when
    /// inline-cap has none.
    pub threshold_bytes: Option<u64>,
    /// The most that the store holds.
    pub budget_bytes: u64,
    /// The policy's name.
    pub policy: &'static str,
    /// `memory` or `file`.
    pub store: &'static str,
    /// How much of the limit a replacement may take; null for workflow-step, whose summaries have
    /// a bound of their own.
    pub preview_share: Option<f64>,
    /// The policy's options as they were given.
    pub options: Map<String, Value>,
    /// The most bytes of one turn's results together; null for no bound.
    pub turn_bytes: Option<u64>,
    /// The tools whose arguments are expanded.
    pub expand_tools: Vec<String>,
}

impl From<&SpillSettings> for EffectiveSettings {
    fn from(settings: &SpillSettings) -> Self {
        let (threshold_bytes, preview_share) = match &settings.policy {
            PolicySettings::WorkflowStep => (Some(settings.step.threshold.get()), None),
            PolicySettings::InlineCap(options) => {
                (options.max_inline_bytes, Some(options.preview_share.get()))
            }
            PolicySettings::Envelope(options) => (
                Some(options.max_payload_bytes),
                Some(options.preview_share.get()),
            ),
        };
        Self {
            enabled: settings.step.enabled.is_on(),
            threshold_bytes,
            budget_bytes: settings.quota().get(),
            policy: settings.policy.name(),
            store: match settings.store {
                StoreSettings::Memory => "memory",
                StoreSettings::File(_) => "file",
            },
            preview_share,
            options: settings.options.clone(),
            turn_bytes: settings.turn_bytes,
            expand_tools: settings.expand_tools.clone(),
        }
    }
}
