//! The `inline-cap` and `envelope` policies and what puts them around tools.

mod arriving;
mod content;
mod dispatch;
mod envelope;
mod faults;
mod inline_cap;
mod laws;
mod matrix;
mod mutants;
mod share;
mod wrap;

use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    ByteRange, Bytes, Call, CallId, Envelope, EnvelopeOptions, InlineCap, InlineCapOptions,
    MemoryOptions, MemoryStore, Millis, Owner, Policy, Reader, SeededNames, Shaped, SpillStore,
    Spilled, ToolResult, Verdict,
};

pub(crate) const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

/// A store whose names are the same in every test.
pub(crate) fn memory(quota: u64) -> Arc<MemoryStore> {
    let options = MemoryOptions::per_execution(Bytes::new(quota));
    Arc::new(MemoryStore::new(
        options.with_names(Arc::new(SeededNames::new(7))),
    ))
}

pub(crate) fn owner() -> Owner {
    Owner::new("session")
}

/// A policy and the store behind it.
pub(crate) struct Bench {
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) store: Arc<MemoryStore>,
}

pub(crate) fn capped(cap: u64) -> Bench {
    cap_with(InlineCapOptions::capped(cap))
}

pub(crate) fn cap_with(options: InlineCapOptions) -> Bench {
    let store = memory(1 << 30);
    Bench {
        policy: Arc::new(InlineCap::new(options, store.clone())),
        store,
    }
}

pub(crate) fn limited(limit: u64) -> Bench {
    enveloped(EnvelopeOptions {
        max_payload_bytes: limit,
        ..EnvelopeOptions::default()
    })
}

pub(crate) fn enveloped(options: EnvelopeOptions) -> Bench {
    let store = memory(1 << 30);
    Bench {
        policy: Arc::new(Envelope::new(options, store.clone())),
        store,
    }
}

impl Bench {
    pub(crate) fn shape(&self, tool: &str, result: ToolResult) -> Shaped {
        let owner = owner();
        self.policy
            .shape(&Call::new(tool, CALL).owned_by(&owner), result)
    }

    pub(crate) fn text(&self, text: impl Into<String>) -> Shaped {
        self.shape("tool", ToolResult::text(text))
    }

    /// All that is stored under what the replacement names.
    pub(crate) fn stored(&self, shaped: &Shaped) -> String {
        let key = spilled(shaped).key.expect("a store's key");
        let slice = self
            .store
            .read(key, &Reader::Of(owner()), ByteRange::ALL, Millis::new(0))
            .expect("what was just stored");
        String::from_utf8(slice.bytes().to_vec()).expect("a text")
    }
}

pub(crate) fn spilled(shaped: &Shaped) -> &Spilled {
    match &shaped.verdict {
        Verdict::Replace { spilled, .. } => spilled,
        Verdict::Keep(kept) => panic!("kept: {kept:?}"),
    }
}

pub(crate) fn rows(count: usize) -> Value {
    let row = |id| json!({"id": id, "name": format!("row {id}"), "ok": true});
    (0..count).map(row).collect()
}

pub(crate) fn structured(value: Value) -> ToolResult {
    ToolResult {
        structured: Some(value),
        ..ToolResult::default()
    }
}
