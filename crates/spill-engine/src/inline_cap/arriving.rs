//! A text that passes the cap while it is still arriving.

use super::InlineCap;
use super::replacement::Original;
use crate::arriving::{Ends, Overflow};
use crate::shaped::{Arm, Call, Warning};
use crate::stores::{ItemHead, ItemName, SpillStore};

impl Original for Ends {
    fn total(&self) -> usize {
        usize::try_from(self.total).unwrap_or(usize::MAX)
    }

    fn head(&self, bytes: usize) -> &str {
        &self.head[..self.head.floor_char_boundary(bytes)]
    }

    fn tail(&self, bytes: usize) -> &str {
        let start = self.tail.len().saturating_sub(bytes);
        &self.tail[self.tail.ceil_char_boundary(start)..]
    }
}

impl Overflow for InlineCap {
    fn spill_store(&self) -> &dyn SpillStore {
        &*self.store
    }

    fn limit(&self) -> u64 {
        self.options.max_inline_bytes.unwrap_or(u64::MAX)
    }

    fn shown(&self) -> (usize, usize) {
        let most = self.options.preview_share.of(self.limit());
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        (most, most)
    }

    fn label(&self, call: &Call<'_>) -> String {
        label(call)
    }

    fn item_head(&self, call: &Call<'_>) -> Result<ItemHead, Warning> {
        let owner = call.owner.ok_or_else(|| Warning::NoOwner {
            tool: call.tool.to_owned(),
            arm: Arm::Result,
        })?;
        Ok(self.head_of(owner, call))
    }

    fn reference(&self, name: &ItemName) -> String {
        name.locator().to_owned()
    }

    fn stand_in(&self, ends: &Ends, reference: &str, is_error: bool) -> Option<String> {
        self.replacement(reference, is_error).render(ends)
    }

    fn notice_too_large(&self, call: &Call<'_>) -> Warning {
        self.too_large(call)
    }
}

/// The readable part of a name.
pub(super) fn label(call: &Call<'_>) -> String {
    format!("{}.txt", call.tool)
}
