//! Stores beside the machine's own limits in the same run: a range of 32 KiB out of 16 MiB against `pread`, and 1 MiB into
//! the file store against a plain file write.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use spill_engine::{
    ByteRange, Bytes, FileOptions, FileStore, ItemHead, ItemKey, MemoryOptions, MemoryStore,
    Millis, Owner, Reader, SharedText, SpillStore,
};

const NOW: Millis = Millis::new(1);
const RANGE_BYTES: u64 = 32 << 10;

fn text(bytes: usize) -> String {
    let line = "    let name = config.get(\"groesse\").unwrap_or_default(); // resolved above\n";
    line.repeat(bytes / line.len() + 1)[..bytes].to_owned()
}

fn put(store: &dyn SpillStore, text: SharedText) -> ItemKey {
    let name = store.name("read_file.txt").expect("a name");
    let head = ItemHead::text_of(&Owner::new("session"), NOW);
    store.put(name, head, text.into()).expect("room").key
}

fn files(home: &tempfile::TempDir) -> FileStore {
    let root = home
        .path()
        .canonicalize()
        .expect("a directory")
        .join("spill");
    let options = FileOptions {
        quota: Bytes::new(u64::MAX),
        ..FileOptions::new(root)
    };
    FileStore::new(options).expect("a path")
}

/// Offsets all over the item, on page borders or off them.
fn offsets(shift: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |round: u64| (round * 7_919 % 500) * RANGE_BYTES + shift)
}

fn ranges(criterion: &mut Criterion) {
    let home = tempfile::tempdir().expect("a directory");
    let content = SharedText::from(text(16 << 20));
    let memory = MemoryStore::new(MemoryOptions::per_execution(Bytes::new(u64::MAX)));
    let file = files(&home);
    let reader = Reader::Of(Owner::new("session"));
    let plain = home.path().join("plain");
    std::fs::write(&plain, content.as_str()).expect("a file");
    let plain = File::open(plain).expect("a file");
    let mut group = criterion.benchmark_group("range_32KiB_of_16MiB");
    group.throughput(Throughput::Bytes(RANGE_BYTES));
    for (name, shift) in [("aligned", 0), ("unaligned", 1_234)] {
        let stores: [(&str, &dyn SpillStore); 2] = [("memory", &memory), ("file", &file)];
        for (kind, store) in stores {
            let key = put(store, content.clone());
            let mut at = offsets(shift);
            group.bench_function(format!("{kind}/{name}"), |bencher| {
                bencher.iter(|| {
                    let range = ByteRange {
                        offset: at.next().expect("endless"),
                        length: RANGE_BYTES,
                    };
                    let slice = store.read(key, &reader, range, NOW).expect("inside");
                    black_box(slice.bytes().len())
                });
            });
        }
        let mut at = offsets(shift);
        group.bench_function(format!("limit_pread/{name}"), |bencher| {
            bencher.iter(|| {
                let mut bytes = vec![0; 32 << 10];
                let offset = at.next().expect("endless");
                plain.read_exact_at(&mut bytes, offset).expect("inside");
                black_box(bytes)
            });
        });
    }
    group.finish();
}

fn writes(criterion: &mut Criterion) {
    let home = tempfile::tempdir().expect("a directory");
    let content = SharedText::from(text(1 << 20));
    let store = files(&home);
    let owner = Owner::new("session");
    let mut group = criterion.benchmark_group("write_1MiB");
    group.throughput(Throughput::Bytes(1 << 20));
    group.bench_function("file_store", |bencher| {
        bencher.iter_batched(
            || store.release(&owner),
            |()| put(&store, content.clone()),
            BatchSize::PerIteration,
        );
    });
    let plain = home.path().join("plain");
    group.bench_function("limit_plain_write", |bencher| {
        bencher.iter_batched(
            || drop(std::fs::remove_file(&plain)),
            |()| std::fs::write(&plain, content.as_str()).expect("room"),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, ranges, writes);
criterion_main!(benches);
