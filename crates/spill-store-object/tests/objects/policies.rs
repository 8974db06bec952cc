//! The engine's policies in front of an object store.

use std::sync::Arc;

use object_store::memory::InMemory;
use serde_json::{Value, json};
use spill_engine::{Call, CallId, Kept, Policy, Shaped, ToolResult, Verdict, configure};
use spill_store_object::Staging;

use super::*;

const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

fn policies(staging: &Arc<Staging>) -> [Arc<dyn Policy>; 2] {
    let make = |name, options: Value| configure(name, &options, staging.clone());
    [
        make("inline-cap", json!({"maxInlineBytes": 1_000})).expect("good options"),
        make("envelope", json!({"maxPayloadBytes": 1_000})).expect("good options"),
    ]
}

fn replaced(shaped: &Shaped) -> (&str, ItemKey) {
    match &shaped.verdict {
        Verdict::Replace { spilled, .. } => (&spilled.reference, spilled.key.expect("a key")),
        Verdict::Keep(kept) => panic!("kept: {kept:?}"),
    }
}

#[test]
fn what_a_policy_replaces_is_stored_first_and_read_by_any_replica() {
    both(async |objects| {
        let staging = Arc::new(Staging::new(Arc::new(store(&objects))));
        let owner = owner();
        let call = Call {
            now: NOW,
            ..Call::new("tool", CALL).owned_by(&owner)
        };
        let text = "row after row\n".repeat(20_000);
        for policy in policies(&staging) {
            let shaped = staging
                .shape(&*policy, &call, ToolResult::text(text.clone()))
                .await;
            assert!(shaped.prompt.len() <= 1_000);
            let (reference, key) = replaced(&shaped);
            assert!(shaped.prompt.contains(reference));
            assert_eq!(
                read(&store(&objects), key).await,
                Ok(text.clone().into_bytes())
            );

            // Another replica knows the reference as a read-back.
            let other = Arc::new(Staging::new(Arc::new(store(&objects))));
            let arguments = json!({"deep": [reference]});
            let again = Call {
                arguments: &arguments,
                ..call
            };
            for policy in policies(&other) {
                let own = policy.name() == shaped_by(reference);
                let passed = other
                    .shape(&*policy, &again, ToolResult::text(text.clone()))
                    .await;
                assert_eq!(passed.verdict == Verdict::Keep(Kept::ReadBack), own);
            }
            let small = staging
                .shape(&*policy, &call, ToolResult::text("small"))
                .await;
            assert_eq!(small.verdict, Verdict::Keep(Kept::WithinLimit));
        }
    });
}

fn shaped_by(reference: &str) -> &'static str {
    if reference.contains("://") {
        "envelope"
    } else {
        "inline-cap"
    }
}

#[test]
fn what_cannot_be_stored_stays_and_somebody_is_told() {
    runtime().block_on(async {
        let endpoint = Endpoint::start().await;
        let staging = Arc::new(Staging::new(Arc::new(store(&endpoint.stranger()))));
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let text = "secret ".repeat(1_000);
        for policy in policies(&staging) {
            let shaped = staging
                .shape(&*policy, &call, ToolResult::text(text.clone()))
                .await;
            assert!(shaped.prompt.ptr_eq(&shaped.record_text), "untouched");
            let warning = shaped.verdict.warning().expect("a warning").to_string();
            assert!(warning.contains("keeping the inline content"), "{warning}");
            assert!(!warning.contains("secret"), "{warning}");
        }
    });
}

#[test]
fn a_policy_with_another_store_is_found_out() {
    runtime().block_on(async {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let staging = Staging::new(Arc::new(store(&objects)));
        let memory = spill_engine::MemoryOptions::shared(spill_engine::Bytes::new(1 << 20));
        let memory = Arc::new(spill_engine::MemoryStore::new(memory));
        let policy = configure("inline-cap", &json!({"maxInlineBytes": 1_000}), memory);
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let text = "x".repeat(5_000);
        let shaped = staging
            .shape(
                &*policy.expect("good options"),
                &call,
                ToolResult::text(text.clone()),
            )
            .await;
        assert_eq!(
            *shaped.prompt, text,
            "no reference that the object store does not hold"
        );
    });
}

/// A result that is still arriving is gathered: the staging takes whole results.
#[test]
fn a_stream_in_front_of_a_staging_stays_whole() {
    runtime().block_on(async {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let staging = Arc::new(Staging::new(Arc::new(store(&objects))));
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        for policy in policies(&staging) {
            let mut arriving = policy.begin(call);
            (0..50).for_each(|_| arriving.push(&[b'x'; 100]));
            let streamed = arriving.finish(false);
            assert_eq!(*streamed.prompt, "x".repeat(5_000));
            assert!(streamed.verdict.warning().is_some());
        }
    });
}
