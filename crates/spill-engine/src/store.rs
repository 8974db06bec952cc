//! Holds the stored results of one step execution, in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::coverage::Coverage;
use crate::measure::Bytes;
use crate::reference::CallId;
use crate::shared_text::SharedText;

/// Nothing is ever replaced or removed: a reference means the same text for as long as the store lives.
#[derive(Default)]
pub(crate) struct Store {
    results: BTreeMap<CallId, Stored>,
    measured: Bytes,
}

pub(crate) struct Stored {
    pub(crate) text: SharedText,
    pub(crate) read: Coverage,
}

impl Store {
    /// The sum of the serialised sizes of what is stored: what the budget counts.
    pub(crate) fn measured(&self) -> Bytes {
        self.measured
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// False, and nothing changes, when `call` has a result already.
    #[must_use]
    pub(crate) fn insert(&mut self, call: CallId, text: SharedText, measured: Bytes) -> bool {
        let Entry::Vacant(place) = self.results.entry(call) else {
            return false;
        };
        place.insert(Stored {
            text,
            read: Coverage::default(),
        });
        self.measured = self.measured + measured;
        true
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut Stored> {
        self.results.get_mut(&call)
    }
}
