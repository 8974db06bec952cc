//! Decide, store and preview at three sizes, beside the machine's own limits on the same text in the same run.
//!
//! `engine` is a whole `admit` of a text that was just produced; `read` is one slice of a threshold's length, rendered. The
//! limits: `memchr` counts line feeds, `memcpy` copies the text, `serde_json` builds the serialisation that the engine only
//! measures.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spill_engine::{
    Budget, CallId, MAX_BUDGET_BYTES, MIN_THRESHOLD_BYTES, Settings, StepId, StepSpill, Switch,
    Threshold, ToolResult, line_count, serialised_size,
};

const SIZES: [(&str, usize); 3] = [("64KiB", 64 << 10), ("1MiB", 1 << 20), ("16MiB", 16 << 20)];
const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

/// Source code as tools return it: short lines, some quotes, some accents.
fn text(bytes: usize) -> String {
    let line = "    let name = config.get(\"größe\").unwrap_or_default(); // resolved above\n";
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text.shrink_to_fit();
    text
}

fn step() -> StepSpill {
    let settings = Settings {
        enabled: Switch::On,
        threshold: Threshold::new(MIN_THRESHOLD_BYTES).expect("a bound"),
        budget: Budget::new(MAX_BUDGET_BYTES).expect("a bound"),
    };
    StepSpill::new(
        settings,
        StepId::new("bench").expect("a step id"),
        StepSpill::unobserved(),
    )
}

fn decide_store_preview(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    for (name, bytes) in SIZES {
        let text = text(bytes);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::new("admit", name), &text, |bencher, text| {
            bencher.iter_batched(
                || (step(), ToolResult::text(text.clone())),
                |(step, result)| {
                    let admitted = step.admit(CALL, "read_file", result);
                    (step, admitted)
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_with_input(BenchmarkId::new("measure", name), &text, |bencher, text| {
            bencher.iter(|| serialised_size(black_box(text)));
        });
    }
    group.finish();
}

fn read_back(criterion: &mut Criterion) {
    let step = step();
    step.admit(CALL, "read_file", ToolResult::text(text(1 << 20)));
    let range = serde_json::json!({"spillover_ref": "spillover://bench/i1c0.json", "range": {"offset": 4096, "length": 4096}});
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Bytes(4_096));
    group.bench_function("read/4KiB", |bencher| {
        bencher.iter(|| step.read(black_box(&range)).expect("a good range").render());
    });
    group.finish();
}

fn limits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("limit");
    for (name, bytes) in SIZES {
        let text = text(bytes);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::new("memchr", name), &text, |bencher, text| {
            bencher.iter(|| line_count(black_box(text)));
        });
        group.bench_with_input(BenchmarkId::new("memcpy", name), &text, |bencher, text| {
            let mut copy = vec![0_u8; text.len()];
            bencher.iter(|| black_box(&mut copy).copy_from_slice(black_box(text.as_bytes())));
        });
        group.bench_with_input(
            BenchmarkId::new("serde_json", name),
            &text,
            |bencher, text| {
                bencher.iter(|| {
                    serde_json::to_string(black_box(text)).expect("a text has a JSON form")
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, decide_store_preview, read_back, limits);
criterion_main!(benches);
