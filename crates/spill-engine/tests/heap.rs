//! What storing takes of the heap, by a counting allocator. One test alone, so that nothing else is counted.

use peak_alloc::PeakAlloc;
use spill_engine::{
    Bytes, FileOptions, FileStore, ItemHead, MemoryOptions, MemoryStore, Millis, Owner, SharedText,
    SpillStore,
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
