//! The `inline-cap` and `envelope` policies, beside the machine's own limits on the same input in the same run.
//!
//! `text` and `rows` are a whole `shape` of a result that was just produced, into the memory store, at a limit of 32 KiB (so
//! 8 KiB passes). The limits: `memchr` counts line feeds of the text, `serde_json` serialises the rows, `memcpy` copies the text.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};
use spill_engine::{
    Bytes, Call, CallId, Envelope, EnvelopeOptions, InlineCap, InlineCapOptions, MemoryOptions,
    MemoryStore, Owner, Policy, ToolResult, line_count,
};

const SIZES: [(&str, usize); 4] = [
    ("8KiB", 8 << 10),
    ("64KiB", 64 << 10),
    ("1MiB", 1 << 20),
    ("1MiB-multibyte", 1 << 20),
];
const LIMIT: u64 = 32 << 10;
const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

fn text(name: &str, bytes: usize) -> String {
    let line = if name.ends_with("multibyte") {
        "    名前 = 設定[\"größe\"] か 既定 // 上で解決した\n"
    } else {
        "    let name = config.get(\"name\").unwrap_or_default(); // resolved above\n"
    };
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text.shrink_to_fit();
    text
}

/// Database rows of about `bytes` bytes of JSON.
fn rows(bytes: usize) -> Value {
    let row = |id| json!({"id": id, "name": format!("customer {id}"), "city": "Brno", "balance": id * 37 % 9_973, "active": id % 3 == 0});
    let each = row(1_000).to_string().len() + 1;
    (0..bytes / each).map(row).collect()
}

fn policies() -> [Arc<dyn Policy>; 2] {
    let store = || Arc::new(MemoryStore::new(MemoryOptions::shared(Bytes::new(8 << 20))));
    let options = EnvelopeOptions {
        max_payload_bytes: LIMIT,
        ..EnvelopeOptions::default()
    };
    [
        Arc::new(InlineCap::new(InlineCapOptions::capped(LIMIT), store())),
        Arc::new(Envelope::new(options, store())),
    ]
}

fn shape_text(criterion: &mut Criterion) {
    for policy in policies() {
        let mut group = criterion.benchmark_group(policy.name());
        for (name, bytes) in SIZES {
            let text = text(name, bytes);
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_with_input(BenchmarkId::new("text", name), &text, |bencher, text| {
                let owner = Owner::new("bench");
                let call = Call::new("read_file", CALL).owned_by(&owner);
                bencher.iter_batched(
                    || ToolResult::text(text.clone()),
                    |result| policy.shape(&call, result),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

fn shape_rows(criterion: &mut Criterion) {
    for policy in policies() {
        let mut group = criterion.benchmark_group(policy.name());
        for (name, bytes) in [("8KiB", 8 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)] {
            let value = rows(bytes);
            group.throughput(Throughput::Bytes(value.to_string().len() as u64));
            group.bench_with_input(BenchmarkId::new("rows", name), &value, |bencher, value| {
                let owner = Owner::new("bench");
                let call = Call::new("query", CALL).owned_by(&owner);
                bencher.iter_batched(
                    || ToolResult {
                        structured: Some(value.clone()),
                        ..ToolResult::default()
                    },
                    |result| policy.shape(&call, result),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

fn limits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("limit");
    for (name, bytes) in SIZES {
        let text = text(name, bytes);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::new("memchr", name), &text, |bencher, text| {
            bencher.iter(|| line_count(black_box(text)));
        });
        group.bench_with_input(BenchmarkId::new("memcpy", name), &text, |bencher, text| {
            let mut copy = vec![0_u8; text.len()];
            bencher.iter(|| black_box(&mut copy).copy_from_slice(black_box(text.as_bytes())));
        });
    }
    for (name, bytes) in [("8KiB", 8 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)] {
        let value = rows(bytes);
        group.throughput(Throughput::Bytes(value.to_string().len() as u64));
        group.bench_with_input(
            BenchmarkId::new("serde_json", name),
            &value,
            |bencher, value| {
                bencher.iter_batched(
                    || value.clone(),
                    |value| {
                        let json = serde_json::to_string(&value).expect("a value has a JSON form");
                        (value, json)
                    },
                    BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
}

criterion_group!(benches, shape_text, shape_rows, limits);
criterion_main!(benches);
