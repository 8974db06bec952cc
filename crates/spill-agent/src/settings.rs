//! The spill settings of a step: the environment's variables, checked, and how they are printed.

use std::path::{self, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use spill_engine::{
    Bytes, ENABLED_VAR, EnvelopeOptions, FileOptions, InlineCapOptions, OptionsError,
    SettingWarning, Settings, Storage,
};
use thiserror::Error;

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

/// Characters of a bad value that are repeated.
const SHOWN_VALUE_CHARS: usize = 200;

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

/// A setting that no step can run with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable} is {value:?}: {way_out}")]
pub struct SettingsError {
    /// The variable.
    pub variable: &'static str,
    /// Its value, cut to 200 characters.
    pub value: String,
    /// What may stand there.
    pub way_out: String,
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

/// The variables that are set.
struct Given<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Given<'_> {
    fn get(&self, variable: &str) -> Option<String> {
        (self.lookup)(variable)
    }

    fn options(&self) -> Result<Map<String, Value>, SettingsError> {
        let Some(text) = self.get(OPTIONS_VAR) else {
            return Ok(Map::new());
        };
        serde_json::from_str(&text).map_err(|error| {
            bad(
                OPTIONS_VAR,
                &text,
                format!("write one JSON object of the policy's options ({error})"),
            )
        })
    }

    fn policy(&self, options: &Map<String, Value>) -> Result<PolicySettings, SettingsError> {
        let refused = |error: OptionsError| {
            let text = self.get(OPTIONS_VAR).unwrap_or_default();
            bad(OPTIONS_VAR, &text, error)
        };
        let json = Value::Object(options.clone());
        match self.get(POLICY_VAR).as_deref() {
            None | Some("workflow-step") if options.is_empty() => Ok(PolicySettings::WorkflowStep),
            None | Some("workflow-step") => Err(bad(
                OPTIONS_VAR,
                &json.to_string(),
                format!(
                    "the workflow-step policy has no options (unset it, use {ENABLED_VAR} and its kin, or set \
                     {POLICY_VAR} to inline-cap or envelope)"
                ),
            )),
            Some("inline-cap") => InlineCapOptions::from_json(&json)
                .map(PolicySettings::InlineCap)
                .map_err(refused),
            Some("envelope") => EnvelopeOptions::from_json(&json)
                .map(PolicySettings::Envelope)
                .map_err(refused),
            Some(other) => Err(bad(
                POLICY_VAR,
                other,
                "use workflow-step, inline-cap or envelope",
            )),
        }
    }

    /// `storage` and `storagePath` of the envelope policy are the same two settings by other
    /// names.
    fn store(
        &self,
        policy: &PolicySettings,
        options: &Map<String, Value>,
    ) -> Result<StoreSettings, SettingsError> {
        let (storage, place) = match policy {
            PolicySettings::Envelope(envelope) => (
                options.get("storage").map(|_| envelope.storage),
                Some(envelope.storage_path.as_str()),
            ),
            PolicySettings::WorkflowStep | PolicySettings::InlineCap(_) => (None, None),
        };
        let store = match self.get(STORE_VAR).as_deref() {
            None => storage.unwrap_or_default(),
            Some("memory") => Storage::Memory,
            Some("file") => Storage::Filesystem,
            Some(other) => return Err(bad(STORE_VAR, other, "use memory or file")),
        };
        if storage.is_some_and(|storage| storage != store) {
            let value = self.get(STORE_VAR).unwrap_or_default();
            let way_out = format!("option storage of {OPTIONS_VAR} says otherwise (give one)");
            return Err(bad(STORE_VAR, &value, way_out));
        }
        let given_place = options.get("storagePath").and(place);
        let directory = self.directory(given_place)?;
        match (store, policy) {
            (Storage::Memory, _) => Ok(StoreSettings::Memory),
            (Storage::Filesystem, PolicySettings::WorkflowStep) => Err(bad(
                STORE_VAR,
                "file",
                format!(
                    "the workflow-step policy keeps results in memory (use memory, or another {POLICY_VAR})"
                ),
            )),
            (Storage::Filesystem, PolicySettings::InlineCap(_) | PolicySettings::Envelope(_)) => {
                let usual = place.filter(|_| storage.is_some());
                let directory = match (directory, usual) {
                    (Some(directory), _) => directory,
                    (None, Some(usual)) => absolute(OPTIONS_VAR, usual)?,
                    (None, None) => {
                        let way_out = format!("set {STORE_DIR_VAR} to its directory");
                        return Err(bad(STORE_VAR, "file", way_out));
                    }
                };
                Ok(StoreSettings::File(directory))
            }
        }
    }

    /// The directory by its variable, or by the option of the same meaning.
    fn directory(&self, place: Option<&str>) -> Result<Option<PathBuf>, SettingsError> {
        let named = self.get(STORE_DIR_VAR);
        let named_path = named
            .as_deref()
            .map(|text| absolute(STORE_DIR_VAR, text))
            .transpose()?;
        let place = place.map(|text| absolute(OPTIONS_VAR, text)).transpose()?;
        match (named_path, place) {
            (Some(named_path), Some(place)) if named_path != place => Err(bad(
                STORE_DIR_VAR,
                &named.unwrap_or_default(),
                format!("option storagePath of {OPTIONS_VAR} says otherwise (give one)"),
            )),
            (named_path, place) => Ok(named_path.or(place)),
        }
    }

    fn sweep(&self, store: &StoreSettings) -> Result<Option<PathBuf>, SettingsError> {
        match store {
            StoreSettings::File(directory) => Ok(Some(directory.clone())),
            StoreSettings::Memory => self.directory(None),
        }
    }

    /// Plain digits: a sign is not accepted.
    fn number(&self, variable: &'static str) -> Result<Option<u64>, SettingsError> {
        let Some(value) = self.get(variable) else {
            return Ok(None);
        };
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| value.parse().ok()).flatten();
        match number {
            Some(number) => Ok(Some(number)),
            None => {
                let way_out = format!("write a whole number from 0 to {}", u64::MAX);
                Err(bad(variable, &value, way_out))
            }
        }
    }

    fn turn_bytes(&self) -> Result<Option<u64>, SettingsError> {
        match self.number(TURN_BYTES_VAR)? {
            Some(0) => Err(bad(
                TURN_BYTES_VAR,
                "0",
                "write a number of bytes from 1, or unset it for no bound",
            )),
            number => Ok(number),
        }
    }

    fn expand_tools(&self) -> Result<Vec<String>, SettingsError> {
        let Some(list) = self.get(EXPAND_TOOLS_VAR) else {
            return Ok(Vec::new());
        };
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            let way_out = "write names of tools separated by commas, or unset it for none";
            return Err(bad(EXPAND_TOOLS_VAR, &list, way_out));
        }
        Ok(names)
    }
}

fn bad(variable: &'static str, value: &str, way_out: impl ToString) -> SettingsError {
    SettingsError {
        variable,
        value: value.chars().take(SHOWN_VALUE_CHARS).collect(),
        way_out: way_out.to_string(),
    }
}

fn absolute(variable: &'static str, text: &str) -> Result<PathBuf, SettingsError> {
    path::absolute(text).map_err(|error| bad(variable, text, format!("use a path ({error})")))
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spill_engine::{DEFAULT_BUDGET_BYTES, DEFAULT_THRESHOLD_BYTES};

    use super::*;

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn looked_up(variables: Variables<'_>) -> Result<SpillSettings, SettingsError> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        SpillSettings::from_lookup(lookup).map(|(settings, _)| settings)
    }

    #[track_caller]
    fn check_refused(variables: Variables<'_>, message: &str) {
        let error = looked_up(variables).expect_err(message);
        assert_eq!(error.to_string(), message);
    }

    #[track_caller]
    fn check_effective(variables: Variables<'_>, expected: &Value) {
        let settings = looked_up(variables).expect("good settings");
        let effective = EffectiveSettings::from(&settings);
        assert_eq!(&json!(effective), expected);
    }

    const INLINE_CAP: (&str, &str) = (POLICY_VAR, "inline-cap");
    const ENVELOPE: (&str, &str) = (POLICY_VAR, "envelope");
    const FILE: (&str, &str) = (STORE_VAR, "file");
    const DIR: (&str, &str) = (STORE_DIR_VAR, "/s");

    #[test]
    fn nothing_set_is_the_workflow_step_policy() {
        let expected = json!({
            "enabled": true, "threshold_bytes": DEFAULT_THRESHOLD_BYTES, "budget_bytes": DEFAULT_BUDGET_BYTES,
            "policy": "workflow-step", "store": "memory", "preview_share": null, "options": {},
            "turn_bytes": null, "expand_tools": [],
        });
        check_effective(&[], &expected);
        check_effective(
            &[
                (POLICY_VAR, " workflow-step "),
                (OPTIONS_VAR, "{}"),
                (STORE_VAR, ""),
            ],
            &expected,
        );
        let settings = looked_up(&[]).expect("good settings");
        assert_eq!(settings, Settings::DEFAULT.into());
    }

    #[test]
    fn each_setting_changes_what_is_in_force() {
        check_effective(
            &[
                INLINE_CAP,
                (OPTIONS_VAR, r#"{"maxInlineBytes":10,"previewShare":0.5}"#),
                FILE,
                DIR,
                (TURN_BYTES_VAR, "99"),
                (EXPAND_TOOLS_VAR, "a, b"),
                (ENABLED_VAR, "false"),
            ],
            &json!({
                "enabled": false, "threshold_bytes": 10, "budget_bytes": 512 << 20,
                "policy": "inline-cap", "store": "file", "preview_share": 0.5,
                "options": {"maxInlineBytes": 10, "previewShare": 0.5},
                "turn_bytes": 99, "expand_tools": ["a", "b"],
            }),
        );
        check_effective(
            &[INLINE_CAP],
            &json!({
                "enabled": true, "threshold_bytes": null, "budget_bytes": DEFAULT_BUDGET_BYTES,
                "policy": "inline-cap", "store": "memory", "preview_share": 1.0, "options": {},
                "turn_bytes": null, "expand_tools": [],
            }),
        );
        check_effective(
            &[ENVELOPE],
            &json!({
                "enabled": true, "threshold_bytes": 10_240, "budget_bytes": DEFAULT_BUDGET_BYTES,
                "policy": "envelope", "store": "memory", "preview_share": 1.0, "options": {},
                "turn_bytes": null, "expand_tools": [],
            }),
        );
        let seeded = looked_up(&[(STORE_SEED_VAR, "18446744073709551615")]);
        assert_eq!(seeded.expect("good settings").seed, Some(u64::MAX));
    }

    #[test]
    fn the_store_of_an_envelope_has_two_names() {
        let store = |variables: Variables<'_>| {
            let variables = [&[ENVELOPE], variables].concat();
            looked_up(&variables).expect("good settings").store
        };
        let here = path::absolute("./.spillover_cache").expect("a path");
        let memory = StoreSettings::Memory;
        let file = |place: &str| StoreSettings::File(PathBuf::from(place));
        let filesystem = |more: &'static str| (OPTIONS_VAR, more);
        assert_eq!(store(&[]), memory);
        assert_eq!(store(&[DIR]), memory, "a directory alone is only swept");
        assert_eq!(store(&[FILE, DIR]), file("/s"));
        assert_eq!(
            store(&[filesystem(r#"{"storage":"filesystem"}"#)]),
            StoreSettings::File(here)
        );
        assert_eq!(
            store(&[filesystem(r#"{"storage":"filesystem"}"#), DIR]),
            file("/s")
        );
        assert_eq!(
            store(&[filesystem(r#"{"storagePath":"/s/"}"#), FILE]),
            file("/s")
        );
        assert_eq!(
            store(&[
                filesystem(r#"{"storage":"filesystem","storagePath":"/s"}"#),
                FILE,
                DIR
            ]),
            file("/s")
        );
        assert_eq!(store(&[filesystem(r#"{"storage":"memory"}"#)]), memory);
    }

    #[test]
    fn a_directory_is_swept_also_without_a_file_store() {
        let sweep = |variables: Variables<'_>| looked_up(variables).expect("good settings").sweep;
        assert_eq!(sweep(&[]), None);
        assert_eq!(sweep(&[DIR]), Some(PathBuf::from("/s")));
        assert_eq!(
            sweep(&[DIR, (ENABLED_VAR, "false")]),
            Some(PathBuf::from("/s"))
        );
        assert_eq!(sweep(&[INLINE_CAP, FILE, DIR]), Some(PathBuf::from("/s")));
    }

    #[test]
    fn bad_values_name_variable_value_and_choices() {
        check_refused(
            &[(POLICY_VAR, "cap")],
            "SPILLGATE_POLICY is \"cap\": use workflow-step, inline-cap or envelope",
        );
        check_refused(
            &[INLINE_CAP, (STORE_VAR, "disk")],
            "SPILLGATE_STORE is \"disk\": use memory or file",
        );
        check_refused(
            &[INLINE_CAP, FILE],
            "SPILLGATE_STORE is \"file\": set SPILLGATE_STORE_DIR to its directory",
        );
        check_refused(
            &[FILE, DIR],
            "SPILLGATE_STORE is \"file\": the workflow-step policy keeps results in memory (use memory, or another \
             SPILLGATE_POLICY)",
        );
        check_refused(
            &[(OPTIONS_VAR, r#"{"maxInlineBytes":1}"#)],
            "SPILLGATE_POLICY_OPTIONS is \"{\\\"maxInlineBytes\\\":1}\": the workflow-step policy has no options \
             (unset it, use CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED and its kin, or set SPILLGATE_POLICY to inline-cap or \
             envelope)",
        );
        check_refused(
            &[INLINE_CAP, (OPTIONS_VAR, "[]")],
            "SPILLGATE_POLICY_OPTIONS is \"[]\": write one JSON object of the policy's options (invalid type: sequence, \
             expected a map at line 1 column 0)",
        );
        check_refused(
            &[INLINE_CAP, (OPTIONS_VAR, r#"{"maxInlineBytes":-1}"#)],
            "SPILLGATE_POLICY_OPTIONS is \"{\\\"maxInlineBytes\\\":-1}\": spill-policy: maxInlineBytes must be a \
             non-negative integer (got -1)",
        );
        let both = r#"{"storage":"filesystem","storagePath":"/t"}"#;
        check_refused(
            &[ENVELOPE, (OPTIONS_VAR, both), (STORE_VAR, "memory")],
            "SPILLGATE_STORE is \"memory\": option storage of SPILLGATE_POLICY_OPTIONS says otherwise (give one)",
        );
        check_refused(
            &[ENVELOPE, (OPTIONS_VAR, both), FILE, DIR],
            "SPILLGATE_STORE_DIR is \"/s\": option storagePath of SPILLGATE_POLICY_OPTIONS says otherwise (give one)",
        );
        check_refused(
            &[(TURN_BYTES_VAR, "0")],
            "SPILLGATE_TURN_BYTES is \"0\": write a number of bytes from 1, or unset it for no bound",
        );
        check_refused(
            &[(TURN_BYTES_VAR, "+1")],
            "SPILLGATE_TURN_BYTES is \"+1\": write a whole number from 0 to 18446744073709551615",
        );
        check_refused(
            &[(STORE_SEED_VAR, "18446744073709551616")],
            "SPILLGATE_STORE_SEED is \"18446744073709551616\": write a whole number from 0 to 18446744073709551615",
        );
        check_refused(
            &[(EXPAND_TOOLS_VAR, "a,,b")],
            "SPILLGATE_EXPAND_TOOLS is \"a,,b\": write names of tools separated by commas, or unset it for none",
        );
    }
}
