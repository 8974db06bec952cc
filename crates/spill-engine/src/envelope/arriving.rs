//! A text that passes the limit while it is still arriving.

use super::Envelope;
use super::payload::{Payload, TEXT};
use crate::arriving::{Ends, Overflow};
use crate::shaped::{Call, Warning};
use crate::shared_text::SharedText;
use crate::stores::{ItemHead, ItemName, SpillStore};

impl Overflow for Envelope {
    fn spill_store(&self) -> &dyn SpillStore {
        &*self.store
    }

    fn limit(&self) -> u64 {
        self.options.max_payload_bytes
    }

    /// No preview shows more UTF-16 units than the limit has bytes, and a unit is three bytes at most.
    fn shown(&self) -> (usize, usize) {
        let limit = usize::try_from(self.limit()).unwrap_or(usize::MAX);
        let units = self.options.preview_string_chars.min(limit);
        (units.saturating_mul(3).saturating_add(8), 0)
    }

    fn label(&self, call: &Call<'_>) -> String {
        call.tool.to_owned()
    }

    fn item_head(&self, call: &Call<'_>) -> Result<ItemHead, Warning> {
        self.head_of(call, TEXT)
    }

    fn reference(&self, name: &ItemName) -> String {
        self.uri(name.key())
    }

    fn stand_in(&self, ends: &Ends, reference: &str, _is_error: bool) -> Option<String> {
        let head = SharedText::from(ends.head.clone());
        self.envelope(Payload::Text(&head), reference, TEXT, ends.total)
    }

    fn notice_too_large(&self, call: &Call<'_>) -> Warning {
        self.too_large(call)
    }
}
