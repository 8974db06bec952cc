//! The variables as they are written: each value checked, and against the others.

use std::path::{self, PathBuf};

use serde_json::{Map, Value};
use spill_engine::{ENABLED_VAR, EnvelopeOptions, InlineCapOptions, Millis, OptionsError, Storage};
use thiserror::Error;

use super::{
    EXPAND_TOOLS_VAR, OPTIONS_VAR, POLICY_VAR, PolicySettings, STORE_DIR_VAR, STORE_VAR,
    StoreSettings, TURN_BYTES_VAR,
};

/// How long a result lives at most. A step releases its own at its end; those of a step that was killed
/// are removed by the first start on their directory after this time.
const LONGEST_LIFE: Millis = Millis::new(24 * 60 * 60 * 1_000);

/// Characters of a bad value that are repeated.
const SHOWN_VALUE_CHARS: usize = 200;

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

/// The variables that are set.
pub(super) struct Given<'a> {
    pub(super) lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Given<'_> {
    fn get(&self, variable: &str) -> Option<String> {
        (self.lookup)(variable)
    }

    pub(super) fn options(&self) -> Result<Map<String, Value>, SettingsError> {
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

    pub(super) fn policy(
        &self,
        options: &Map<String, Value>,
    ) -> Result<PolicySettings, SettingsError> {
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
                .map(|options| {
                    PolicySettings::InlineCap(InlineCapOptions {
                        time_to_live: Some(LONGEST_LIFE),
                        ..options
                    })
                })
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
    pub(super) fn store(
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

    pub(super) fn sweep(&self, store: &StoreSettings) -> Result<Option<PathBuf>, SettingsError> {
        match store {
            StoreSettings::File(directory) => Ok(Some(directory.clone())),
            StoreSettings::Memory => self.directory(None),
        }
    }

    /// Plain digits: a sign is not accepted.
    pub(super) fn number(&self, variable: &'static str) -> Result<Option<u64>, SettingsError> {
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

    pub(super) fn turn_bytes(&self) -> Result<Option<u64>, SettingsError> {
        match self.number(TURN_BYTES_VAR)? {
            Some(0) => Err(bad(
                TURN_BYTES_VAR,
                "0",
                "write a number of bytes from 1, or unset it for no bound",
            )),
            number => Ok(number),
        }
    }

    pub(super) fn expand_tools(&self) -> Result<Vec<String>, SettingsError> {
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
