//! The `envelope` policy: a result over the limit is stored, and a JSON envelope of eight keys stands for it.
//!
//! The behaviour is that of the data spillover of NitroStack, observed by running it, with its weaknesses mended: the whole
//! envelope is bounded, a store that fails leaves the result where it was, and what nobody owns is not stored.
//! [`Form::Observed`] gives the observed envelope byte for byte.

mod arriving;
mod json;
mod options;
mod payload;
mod preview;
mod resource;
mod uri;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use options::{EnvelopeOptions, Form, Storage};
pub use payload::Payload;
pub use resource::Resource;

use crate::arriving::{ArrivingResult, Gathered, Overflowing};
use crate::by_content::{self, Previews};
use crate::measure::Bytes;
use crate::policy::Decision;
use crate::result::ToolResult;
use crate::shaped::{
    Arm, Call, Canonical, Kept, Opened, Policy, Shaped, Spilled, Verdict, Warning,
};
use crate::share::PreviewShare;
use crate::stores::{ItemHead, ItemKey, SpillStore, StoreError, Visibility};
use payload::Serialised;
use preview::Extent;

/// Stands where a preview is too large.
const OMITTED: &str = "[preview omitted]";

/// Decides about a result of `size` serialised bytes: stored when larger than `limit` (`>`: the equal case stays). What a
/// store may hold is the store's to say, and only of what is to be stored.
#[must_use]
pub fn decide_envelope(size: Bytes, limit: u64) -> Decision {
    if size.get() > limit {
        Decision::Store
    } else {
        Decision::Inline
    }
}

/// The `envelope` policy with its options and the store behind it.
///
/// A result over the limit is stored, and a JSON envelope of eight keys stands for it: what it is, how large, a preview, a
/// resource URI. The envelope is within the limit and smaller than the result, or the result stays; it stays too, with a
/// warning, when the store fails.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::{Value, json};
/// use spill_engine::{
///     Bytes, Call, CallId, MemoryOptions, MemoryStore, Owner, ToolResult, configure,
/// };
///
/// let store = Arc::new(MemoryStore::new(MemoryOptions::shared(Bytes::new(100 << 20))));
/// let options = json!({"maxPayloadBytes": 4_096, "previewItems": 2, "spilloverTtlSeconds": 600});
/// let policy = configure("envelope", &options, store)?;
///
/// let session = Owner::new("session 1");
/// let call = Call::new("query", CallId { iteration: 1, index: 0 }).owned_by(&session);
/// let rows: Value = (0..1_500).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
/// let result = ToolResult { structured: Some(rows), ..ToolResult::default() };
///
/// let shaped = policy.shape(&call, result);
/// let envelope: Value = serde_json::from_str(&shaped.prompt)?;
/// assert_eq!(envelope["totalItems"], 1_500);
/// assert_eq!(envelope["preview"][1]["name"], "row 1");
/// assert!(envelope["resourceUri"].as_str().is_some_and(|uri| uri.starts_with("resource://data-spillover/")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Envelope {
    options: EnvelopeOptions,
    store: Arc<dyn SpillStore>,
}

/// Keys in wire order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(rename = "_spillover")]
    spillover: bool,
    resource_uri: &'a str,
    mime_type: &'a str,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_items: Option<usize>,
    summary: &'a str,
    preview: Value,
    hint: &'a str,
}

impl Envelope {
    /// Stores in `store`.
    pub fn new(options: EnvelopeOptions, store: Arc<dyn SpillStore>) -> Self {
        Self { options, store }
    }

    /// The options.
    pub fn options(&self) -> &EnvelopeOptions {
        &self.options
    }

    /// The store behind the policy.
    pub fn store(&self) -> &Arc<dyn SpillStore> {
        &self.store
    }

    /// Decides about one payload. [`Verdict::Replace`] holds the envelope as compact JSON.
    pub fn wrap(&self, call: &Call<'_>, payload: Payload<'_>) -> Verdict {
        if matches!(payload, Payload::Json(Value::Null)) {
            return Verdict::Keep(Kept::Nothing);
        }
        let form = self.options.form;
        if let (Payload::Json(value), Form::Observed) = (payload, form) {
            let ordered = json::js_ordered(value);
            let payload = Payload::Json(&ordered);
            return self.place(call, payload, payload.serialise(form));
        }
        self.place(call, payload, payload.serialise(form))
    }

    fn place(&self, call: &Call<'_>, payload: Payload<'_>, serialised: Serialised) -> Verdict {
        let size = Bytes::of(&serialised.text);
        match decide_envelope(size, self.options.max_payload_bytes) {
            Decision::Inline | Decision::InlineOverBudget => Verdict::Keep(Kept::WithinLimit),
            Decision::Store => self
                .replace(call, payload, serialised)
                .unwrap_or_else(|warning| Verdict::Keep(Kept::Warned(warning))),
        }
    }

    /// The envelope is made first, so that nothing is stored that nobody is told of.
    fn replace(
        &self,
        call: &Call<'_>,
        payload: Payload<'_>,
        serialised: Serialised,
    ) -> Result<Verdict, Warning> {
        let failed = |error: StoreError| Warning::of_store(call, &error);
        let head = self.head_of(call, serialised.media_type)?;
        let name = self.store.name(call.tool).map_err(failed)?;
        let uri = self.uri(name.key());
        let size = Bytes::of(&serialised.text).get();
        let text = self
            .envelope(payload, &uri, serialised.media_type, size)
            .ok_or_else(|| self.too_large(call))?;
        let stored = self
            .store
            .put(name, head, serialised.text.into())
            .map_err(failed)?;
        let spilled = Spilled::new(uri, &stored, call, Arm::Result);
        Ok(Verdict::Replace {
            text: text.into(),
            spilled,
        })
    }

    fn head_of(&self, call: &Call<'_>, media_type: &str) -> Result<ItemHead, Warning> {
        Ok(ItemHead {
            visibility: self.visibility(call)?,
            media_type: media_type.to_owned(),
            now: call.now,
            time_to_live: Some(self.options.time_to_live()),
        })
    }

    fn too_large(&self, call: &Call<'_>) -> Warning {
        Warning::NoticeTooLarge {
            tool: call.tool.to_owned(),
            limit: match self.options.preview_share {
                PreviewShare::ALL => "maxPayloadBytes",
                _ => "previewShare of maxPayloadBytes",
            },
        }
    }

    fn visibility(&self, call: &Call<'_>) -> Result<Visibility, Warning> {
        match (call.owner, self.options.form) {
            (Some(owner), _) => Ok(Visibility::Only(owner.clone())),
            (None, Form::Observed) => Ok(Visibility::Anyone),
            (None, Form::Published) => Err(Warning::NoOwner {
                tool: call.tool.to_owned(),
                arm: Arm::Result,
            }),
        }
    }

    /// The envelope of a payload of `size` serialised bytes; `None` when none is small enough.
    fn envelope(&self, payload: Payload<'_>, uri: &str, mime: &str, size: u64) -> Option<String> {
        let options = &self.options;
        let summary = preview::summary(payload, size, options.form);
        let hint = self.hint(uri, &summary);
        let written = |preview: Value| {
            let wire = Wire {
                spillover: true,
                resource_uri: uri,
                mime_type: mime,
                size_bytes: size,
                total_items: preview::total_items(payload, options.form),
                summary: &summary,
                preview,
                hint: &hint,
            };
            json::text(&wire, options.form)
        };
        let extent = Extent {
            items: options.preview_items,
            chars: options.preview_string_chars,
            bytes: options.most_envelope_bytes(),
            form: options.form,
        };
        match options.form {
            Form::Observed => {
                let shown = preview::preview(payload, extent);
                Some(written(shown.unwrap_or_else(|| Value::from(OMITTED))))
            }
            Form::Published => {
                let limit = options.most_envelope_bytes().min(size.saturating_sub(1));
                let fits = |text: &String| text.len() as u64 <= limit;
                if let Some(text) = self.by_content(payload, limit, &written) {
                    return Some(text);
                }
                smaller_and_smaller(extent)
                    .filter_map(|extent| preview::preview(payload, extent))
                    .map(written)
                    .find(fits)
                    .or_else(|| Some(written(Value::from(OMITTED))).filter(fits))
            }
        }
    }

    /// A text's preview by content, where the options ask for it and it fits with its escapes.
    fn by_content(
        &self,
        payload: Payload<'_>,
        limit: u64,
        written: &dyn Fn(Value) -> String,
    ) -> Option<String> {
        let text = match (payload, self.options.preview) {
            (_, Previews::Plain) => return None,
            (Payload::Text(text), Previews::Content) => text.as_str(),
            (Payload::Json(Value::String(text)), Previews::Content) => text,
            (Payload::Json(_) | Payload::Bytes(_) | Payload::Blocks(_), Previews::Content) => {
                return None;
            }
        };
        let kind = by_content::kind_of(text)?;
        let frame = written(Value::from("")).len() as u64;
        let room = usize::try_from(limit.checked_sub(frame)?).unwrap_or(usize::MAX);
        [room, room / 4 * 3, room / 2, room / 4]
            .into_iter()
            .filter_map(|room| by_content::within(text, kind, room))
            .map(|preview| written(Value::from(preview)))
            .find(|envelope| envelope.len() as u64 <= limit)
    }

    fn hint(&self, uri: &str, summary: &str) -> String {
        match self.options.form {
            Form::Published => format!(
                "The response exceeded the size limit and was saved as a resource. Call resources/read with URI '{uri}' \
                 (add ?offset=0&length={} for a part), or work from the preview.",
                self.options.max_payload_bytes
            ),
            Form::Observed => format!(
                "Full dataset ({summary}) exceeded prompt limit. Read full data via MCP resources/read with URI '{uri}'."
            ),
        }
    }

    fn uri(&self, key: ItemKey) -> String {
        let id = uri::id_of(key, self.options.form);
        format!("{}{id}", self.options.resource_uri_prefix)
    }

    /// The key that a URI of this policy names, whatever follows a `?`.
    pub fn key_of(&self, uri: &str) -> Option<ItemKey> {
        let id = uri.strip_prefix(&self.options.resource_uri_prefix)?;
        let id = id.split_once('?').map_or(id, |(id, _)| id);
        match self.options.form {
            Form::Published => self.store.key_of(id),
            Form::Observed => uri::key_of(id),
        }
    }

    fn is_stored(&self, uri: &str, call: &Call<'_>) -> bool {
        self.key_of(uri)
            .is_some_and(|key| self.store.describe(key, &call.reader(), call.now).is_ok())
    }
}

impl Policy for Envelope {
    fn name(&self) -> &'static str {
        "envelope"
    }

    fn shape(&self, call: &Call<'_>, result: ToolResult) -> Shaped {
        if call.sub_call.is_some() {
            return Shaped::kept(result, Kept::Nested);
        }
        let opened = Opened::new(result);
        if call.reads_back(&|text: &str| self.is_stored(text, call)) {
            return opened.shaped(None, Verdict::Keep(Kept::ReadBack), None);
        }
        let serialised = || Serialised {
            text: opened.text.clone(),
            media_type: payload::JSON,
        };
        let verdict = match (&opened.canonical, self.options.form) {
            (Canonical::Text, _) => self.wrap(call, Payload::Text(&opened.text)),
            (Canonical::Blocks(blocks), _) => {
                self.place(call, Payload::Blocks(blocks), serialised())
            }
            (Canonical::Value(value @ (Value::Array(_) | Value::Object(_))), Form::Published) => {
                self.place(call, Payload::Json(value), serialised())
            }
            (Canonical::Value(value), _) => self.wrap(call, Payload::Json(value)),
        };
        let measured = Some(Bytes::of(&opened.text));
        let prompt = match &verdict {
            Verdict::Keep(_) => None,
            Verdict::Replace { text, .. } => Some(text.clone()),
        };
        opened.shaped(measured, verdict, prompt)
    }

    fn begin<'a>(&'a self, call: Call<'a>) -> Box<dyn ArrivingResult + 'a> {
        if call.sub_call.is_some() || call.reads_back(&|text: &str| self.is_stored(text, &call)) {
            return Box::new(Gathered::new(self, call));
        }
        Box::new(Overflowing::new(self, call))
    }
}

/// Extents to try, each showing less than the one before: texts are halved down to 32 units, then items, then texts again.
fn smaller_and_smaller(first: Extent) -> impl Iterator<Item = Extent> {
    let most = usize::try_from(first.bytes).unwrap_or(usize::MAX);
    let first = Extent {
        items: first.items.min(most),
        chars: first.chars.min(most),
        ..first
    };
    std::iter::successors(Some(first), |extent| {
        let Extent { items, chars, .. } = *extent;
        let (items, chars) = match (items, chars) {
            (_, 65..) => (items, chars / 2),
            (2.., _) => (items / 2, chars),
            (_, 1..) => (items, chars / 2),
            (1, 0) => (0, 0),
            (_, 0) => return None,
        };
        Some(Extent {
            items,
            chars,
            ..*extent
        })
    })
}
