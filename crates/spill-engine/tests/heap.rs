//! What storing takes of the heap, by a counting allocator. One test alone, so that nothing else is counted.

use std::path::Path;
use std::sync::Arc;

use peak_alloc::PeakAlloc;
use spill_engine::{
    Bytes, Call, CallId, Envelope, EnvelopeOptions, FileOptions, FileStore, InlineCap,
    InlineCapOptions, ItemHead, MemoryOptions, MemoryStore, Millis, Owner, Policy, SharedText,
    SpillStore, Verdict,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const PIECE_BYTES: usize = 64 << 10;

fn head() -> ItemHead {
    ItemHead::text_of(&Owner::new("session"), Millis::new(1))
}

/// The most bytes of heap at one time during `work`, beyond those before it.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let done = work();
    (HEAP.peak_usage() - before, done)
}

#[test]
fn storing_takes_little_heap() {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().canonicalize().expect("it exists").join("spill");
    let store = FileStore::new(FileOptions::new(root)).expect("a path");
    let piece = vec![b'x'; PIECE_BYTES];
    let (peak, stored) = peak_of(|| {
        let mut writer = store
            .begin(store.name("stream").expect("a name"), head())
            .expect("room");
        for _ in 0..(64 << 20) / PIECE_BYTES {
            writer.write(&piece).expect("room");
        }
        writer.finish().expect("room")
    });
    assert_eq!(stored.size, Bytes::new(64 << 20));
    assert!(
        peak < 1 << 20,
        "streaming 64 MiB into a file took {peak} bytes of heap"
    );

    through_a_policy(home.path(), &piece);

    let texts: Vec<SharedText> = (0..16)
        .map(|_| SharedText::from("x".repeat(1 << 20)))
        .collect();
    let (peak, memory) = peak_of(|| {
        let memory = MemoryStore::new(MemoryOptions::per_execution(Bytes::new(16 << 20)));
        for text in &texts {
            let name = memory.name("tool").expect("a name");
            memory.put(name, head(), text.clone().into()).expect("room");
        }
        memory
    });
    assert_eq!(memory.usage().items, 16);
    let most = (16 << 20) / 1_000;
    assert!(
        peak < most,
        "holding 16 texts of 1 MiB took {peak} bytes beside them, at most {most}"
    );
}

/// A result of 64 MiB that is bounded while it arrives: by either policy, into a file.
fn through_a_policy(home: &Path, piece: &[u8]) {
    let root = home.canonicalize().expect("it exists").join("policies");
    let store = Arc::new(FileStore::new(FileOptions::new(root)).expect("a path"));
    let policies: [Box<dyn Policy>; 2] = [
        Box::new(InlineCap::new(
            InlineCapOptions::capped(50_000),
            store.clone(),
        )),
        Box::new(Envelope::new(EnvelopeOptions::default(), store.clone())),
    ];
    let session = Owner::new("session");
    let call = CallId {
        iteration: 1,
        index: 0,
    };
    for policy in policies {
        let (peak, streamed) = peak_of(|| {
            let mut arriving = policy.begin(Call::new("stream", call).owned_by(&session));
            for _ in 0..(64 << 20) / PIECE_BYTES {
                arriving.push(piece);
            }
            arriving.finish(false)
        });
        assert!(matches!(streamed.verdict, Verdict::Replace { .. }));
        assert_eq!(streamed.size, Bytes::new(64 << 20));
        assert!(
            peak < 1 << 20,
            "{} took {peak} bytes of heap for 64 MiB",
            policy.name()
        );
    }
}
