//! What may be set, and what a bad value means: nothing is clamped, the load fails.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::by_content::Previews;
use crate::retain::whole_number;
use crate::share::PreviewShare;
use crate::stores::Millis;
use crate::stores::StoreError;

/// How a replacement is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A marker with the number of bytes left out stands at the cut, the ends are cut at lines where that costs little, and
    /// a large cap has a first line that says where the whole is.
    #[default]
    Marked,
    /// Head and tail with nothing between them, as DeepSeek Harness writes them.
    Glued,
}

/// What happens to a result that is not text alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mixed {
    /// It stays whole.
    #[default]
    Leave,
    /// Its text blocks are bounded together, the others stay.
    BoundText,
}

/// The options of the `inline-cap` policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineCapOptions {
    /// `maxInlineBytes`: the most bytes of a text in the prompt. `None` is off; 0 is a cap that no notice fits.
    pub max_inline_bytes: Option<u64>,
    /// `skipTools`: tools whose results stay, by name; `read` unless set.
    pub skip: BTreeSet<String>,
    /// `mixedContent`: `leave` or `bound-text`.
    pub mixed: Mixed,
    /// `layout`: `marked` or `glued`.
    pub layout: Layout,
    /// `retrievalHint`: the notice's last sentence, which says how to read the whole.
    pub retrieval_hint: String,
    /// `previewShare`: how much of the cap a replacement may take, above 0 and at most 1. What is replaced does not depend
    /// on it.
    pub preview_share: PreviewShare,
    /// `preview`: `plain` or `content`.
    pub preview: Previews,
    /// How long a stored result lives; `None` as long as its store. The embedding program's to set, under no published name:
    /// it is what lets a later sweep remove the results of a process that was killed.
    pub time_to_live: Option<Millis>,
}

impl Default for InlineCapOptions {
    fn default() -> Self {
        Self {
            max_inline_bytes: None,
            skip: BTreeSet::from(["read".to_owned()]),
            mixed: Mixed::default(),
            layout: Layout::default(),
            retrieval_hint: "Use read with offset/limit, or grep this path to search within it."
                .to_owned(),
            preview_share: PreviewShare::ALL,
            preview: Previews::Plain,
            time_to_live: None,
        }
    }
}

impl InlineCapOptions {
    /// The defaults with a cap.
    pub fn capped(max_inline_bytes: u64) -> Self {
        Self {
            max_inline_bytes: Some(max_inline_bytes),
            ..Self::default()
        }
    }

    /// From a JSON object with the names given at the fields. What is absent has its default.
    ///
    /// # Errors
    /// [`OptionsError`] for a value out of bounds or a name that is not known.
    pub fn from_json(options: &Value) -> Result<Self, OptionsError> {
        let written = Written::deserialize(options)
            .map_err(|error| OptionsError::NotUnderstood(error.to_string()))?;
        let defaults = Self::default();
        Ok(Self {
            max_inline_bytes: written.cap()?,
            preview_share: share(written.preview_share.as_ref())?,
            preview: written.preview.unwrap_or_default(),
            skip: written.skip_tools.unwrap_or(defaults.skip),
            mixed: written.mixed_content.unwrap_or_default(),
            layout: written.layout.unwrap_or_default(),
            retrieval_hint: written.retrieval_hint.unwrap_or(defaults.retrieval_hint),
            time_to_live: defaults.time_to_live,
        })
    }
}

/// Options that a policy cannot be loaded with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A cap that is no whole number from 0.
    #[error("spill-policy: {option} must be a non-negative integer (got {got})")]
    NotANumber {
        /// The option.
        option: &'static str,
        /// What it was.
        got: String,
    },
    /// No share of a limit.
    #[error("spill-policy: {option} must be a number above 0 and at most 1 (got {got})")]
    NotAShare {
        /// The option.
        option: &'static str,
        /// What it was.
        got: String,
    },
    /// A name that is not known, or a value of another type.
    #[error("spill-policy: the options are not understood: {0}")]
    NotUnderstood(String),
    /// The store that the options name cannot be used.
    #[error("spill-policy: the store cannot be used: {0}")]
    Store(#[from] StoreError),
    /// A policy that is not known.
    #[error("spill-policy: no policy is called {0:?} (use inline-cap or envelope)")]
    NoSuchPolicy(String),
}

/// The number `value` of `option`.
pub(crate) fn number(option: &'static str, value: &Value) -> Result<u64, OptionsError> {
    whole_number(value).ok_or_else(|| OptionsError::NotANumber {
        option,
        got: value.to_string(),
    })
}

/// The `previewShare` that `value` is; all when there is none.
pub(crate) fn share(value: Option<&Value>) -> Result<PreviewShare, OptionsError> {
    let Some(value) = value else {
        return Ok(PreviewShare::ALL);
    };
    PreviewShare::from_json(value).ok_or_else(|| OptionsError::NotAShare {
        option: "previewShare",
        got: value.to_string(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    #[serde(default, deserialize_with = "present")]
    max_inline_bytes: Option<Value>,
    skip_tools: Option<BTreeSet<String>>,
    mixed_content: Option<Mixed>,
    layout: Option<Layout>,
    retrieval_hint: Option<String>,
    preview_share: Option<Value>,
    preview: Option<Previews>,
}

impl Written {
    fn cap(&self) -> Result<Option<u64>, OptionsError> {
        let cap = self.max_inline_bytes.as_ref();
        cap.map(|value| number("maxInlineBytes", value)).transpose()
    }
}

/// An explicit `null` is a value and no number; only an absent cap is off.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}
