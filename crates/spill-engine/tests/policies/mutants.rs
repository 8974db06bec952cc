//! Cases that only one changed operator tells apart.

use std::sync::Arc;

use serde_json::json;
use spill_engine::{
    Block, Call, Envelope, EnvelopeOptions, FileOptions, FileStore, InlineCap, InlineCapOptions,
    Mixed, Policy, ToolResult, Verdict,
};

use super::{Bench, CALL, memory, owner};

/// A replacement that is as large as what it replaces is no gain.
#[test]
fn a_replacement_of_equal_size_is_not_made() {
    let store = memory(1 << 30);
    let options = InlineCapOptions {
        mixed: Mixed::BoundText,
        ..InlineCapOptions::capped(600)
    };
    let bench = Bench {
        policy: Arc::new(InlineCap::new(options, store.clone())),
        store,
    };
    let picture =
        || Block::Other(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
    let (mut kept, mut replaced) = (0, 0);
    for bytes in 590..700 {
        let result = ToolResult {
            blocks: vec![Block::Text("x".repeat(bytes)), picture()],
            ..ToolResult::default()
        };
        let shaped = bench.shape("tool", result);
        match shaped.verdict {
            Verdict::Keep(_) => kept += 1,
            Verdict::Replace { .. } => {
                replaced += 1;
                assert!(shaped.prompt.len() < shaped.record_text.len(), "{bytes}");
            }
        }
    }
    assert!(kept > 12 && replaced > 12, "{kept} {replaced}");
}

/// A result that arrives has its tool's name in the file's, as one that comes whole has.
#[test]
fn what_arrives_into_files_is_named_after_its_tool() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home
        .path()
        .canonicalize()
        .expect("a directory")
        .join("spill");
    let store = Arc::new(FileStore::new(FileOptions::new(&root)).expect("a path"));
    let owner = owner();
    let call = Call::new("list_orders", CALL).owned_by(&owner);
    let policies: [Box<dyn Policy>; 2] = [
        Box::new(InlineCap::new(
            InlineCapOptions::capped(1_000),
            store.clone(),
        )),
        Box::new(Envelope::new(
            EnvelopeOptions {
                max_payload_bytes: 1_000,
                ..EnvelopeOptions::default()
            },
            store.clone(),
        )),
    ];
    for policy in &policies {
        let mut arriving = policy.begin(call);
        (0..100).for_each(|_| arriving.push(&[b'x'; 100]));
        let streamed = arriving.finish(false);
        assert!(matches!(streamed.verdict, Verdict::Replace { .. }));
    }
    let entries = std::fs::read_dir(&root).expect("the store");
    let names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a text")
        })
        .collect();
    for suffix in ["-list_orders.txt", "-list_orders"] {
        let named = names.iter().filter(|name| name.ends_with(suffix)).count();
        assert_eq!(named, 1, "{suffix}: {names:?}");
    }
}

/// A cut moves to a line's end only where half of what could be shown stays.
#[test]
fn a_late_or_early_line_end_does_not_empty_the_ends() {
    let bench = super::capped(1_000);
    let late = format!("{}\n{}", "x".repeat(9_000), "y".repeat(20));
    let shown = bench.text(late).prompt.matches('x').count();
    assert!(shown > 600, "{shown}");
    let early = format!("{}\n{}", "y".repeat(20), "x".repeat(9_000));
    let shown = bench.text(early).prompt.matches('x').count();
    assert!(shown > 600, "{shown}");
}

/// Only both marks of a data URI make one.
#[test]
fn what_only_looks_like_a_data_uri_has_its_ends_shown() {
    let bench = super::capped(1_000);
    for start in ["data: the orders of May", "<img src=\"x;base64,"] {
        let shaped = bench.text(format!("{start}{}", " and so on".repeat(500)));
        assert!(shaped.prompt.contains(start), "{start}");
    }
    let uri = format!("data:image/png;base64,{}", "A".repeat(5_000));
    assert!(!bench.text(uri).prompt.contains("AAAA"));
}
