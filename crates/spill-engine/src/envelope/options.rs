//! The options under their published names. Values out of bounds fail the load.

use serde::Deserialize;
use serde_json::Value;

use crate::by_content::Previews;
use crate::inline_cap::{OptionsError, number, share};
use crate::share::PreviewShare;
use crate::stores::Millis;

/// Where records are kept when the caller leaves the choice to the options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Storage {
    /// In memory.
    #[default]
    Memory,
    /// One file per record, below `storagePath`.
    Filesystem,
}

/// Which of its forms an envelope has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As the documentation of NitroStack publishes it, bounded as a whole.
    #[default]
    Published,
    /// As NitroStack's code was observed to write it: ids are `spill-` and a UUID, another hint, JavaScript's order of keys
    /// and form of numbers, binary previews of byte indexes, only the preview bounded, and records without a session that
    /// anyone may read.
    Observed,
}

/// The options of the `envelope` policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeOptions {
    /// `maxPayloadBytes`: the most bytes of a result in the prompt, and of its envelope. 0 is a limit that no envelope fits.
    pub max_payload_bytes: u64,
    /// `spilloverTtlSeconds`: how long a record lives.
    pub spillover_ttl_seconds: u64,
    /// `previewItems`: the most items of an array, or keys of an object, in the preview.
    pub preview_items: usize,
    /// `previewStringChars`: the most UTF-16 units of a text in the preview.
    pub preview_string_chars: usize,
    /// `resourceUriPrefix`: what stands before the id. Any prefix can be read back.
    pub resource_uri_prefix: String,
    /// `storage`: `memory` or `filesystem`.
    pub storage: Storage,
    /// `storagePath`: the directory for `filesystem`.
    pub storage_path: String,
    /// `form`: `published` or `observed`.
    pub form: Form,
    /// `previewShare`: how much of the limit an envelope may take, above 0 and at most 1; of the observed form, which is not
    /// bounded, how much its preview may take. What is replaced does not depend on it.
    pub preview_share: PreviewShare,
    /// `preview`: `plain` or `content`; the observed form has plain ones.
    pub preview: Previews,
}

impl Default for EnvelopeOptions {
    fn default() -> Self {
        Self {
            max_payload_bytes: 10_240,
            spillover_ttl_seconds: 3_600,
            preview_items: 3,
            preview_string_chars: 500,
            resource_uri_prefix: "resource://data-spillover/".to_owned(),
            storage: Storage::Memory,
            storage_path: "./.spillover_cache".to_owned(),
            form: Form::Published,
            preview_share: PreviewShare::ALL,
            preview: Previews::Plain,
        }
    }
}

impl EnvelopeOptions {
    /// From a JSON object with the names given at the fields. What is absent or `null` has its default.
    ///
    /// # Errors
    /// [`OptionsError`] for a number that is not whole and from 0, a name that is not known, or a value of another type.
    pub fn from_json(options: &Value) -> Result<Self, OptionsError> {
        let written = Written::deserialize(options)
            .map_err(|error| OptionsError::NotUnderstood(error.to_string()))?;
        let defaults = Self::default();
        let count =
            |option, value: Option<&Value>, default: usize| -> Result<usize, OptionsError> {
                let number = value.map(|value| number(option, value)).transpose()?;
                Ok(number.map_or(default, |number| {
                    usize::try_from(number).unwrap_or(usize::MAX)
                }))
            };
        let bytes = |option, value: Option<&Value>, default: u64| match value {
            Some(value) => number(option, value),
            None => Ok(default),
        };
        Ok(Self {
            max_payload_bytes: bytes(
                "maxPayloadBytes",
                written.max_payload_bytes.as_ref(),
                defaults.max_payload_bytes,
            )?,
            spillover_ttl_seconds: bytes(
                "spilloverTtlSeconds",
                written.spillover_ttl_seconds.as_ref(),
                defaults.spillover_ttl_seconds,
            )?,
            preview_items: count(
                "previewItems",
                written.preview_items.as_ref(),
                defaults.preview_items,
            )?,
            preview_string_chars: count(
                "previewStringChars",
                written.preview_string_chars.as_ref(),
                defaults.preview_string_chars,
            )?,
            resource_uri_prefix: written
                .resource_uri_prefix
                .unwrap_or(defaults.resource_uri_prefix),
            storage: written.storage.unwrap_or_default(),
            storage_path: written.storage_path.unwrap_or(defaults.storage_path),
            form: written.form.unwrap_or_default(),
            preview_share: share(written.preview_share.as_ref())?,
            preview: written.preview.unwrap_or_default(),
        })
    }

    /// The most bytes of an envelope.
    pub(crate) fn most_envelope_bytes(&self) -> u64 {
        self.preview_share.of(self.max_payload_bytes)
    }

    /// The life of a record.
    pub fn time_to_live(&self) -> Millis {
        Millis::new(self.spillover_ttl_seconds.saturating_mul(1_000))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    max_payload_bytes: Option<Value>,
    spillover_ttl_seconds: Option<Value>,
    preview_items: Option<Value>,
    preview_string_chars: Option<Value>,
    resource_uri_prefix: Option<String>,
    storage: Option<Storage>,
    storage_path: Option<String>,
    form: Option<Form>,
    preview_share: Option<Value>,
    preview: Option<Previews>,
}
