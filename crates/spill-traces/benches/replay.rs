//! Import and replay of generated transcripts: `cargo bench -p spill-traces`.

mod generated;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spill_tokens::TokenCounter;
use spill_traces::{
    Cache, Import, Imported, Limits, Policy, PolicyName, ReadBack, ReplayPlan, counts,
    replay_files, session,
};

const FILES: u64 = 4;
const FILE_BYTES: usize = 2_500_000;

/// Twelve thresholds and three assumptions.
fn plan() -> ReplayPlan {
    let thresholds = [4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1_024];
    let policies = thresholds.map(|kib| {
        Policy::new(PolicyName::WorkflowStep, kib << 10, None).expect("within the bounds")
    });
    ReplayPlan {
        policies: policies.to_vec(),
        read_backs: vec![ReadBack::NONE, ReadBack::USED, ReadBack::WHOLE],
        cache: Cache::DEFAULT,
        window_tokens: None,
        price: None,
    }
}

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bytes = generated::write(folder.path(), FILES, FILE_BYTES).expect("room");
    let paths = [folder.path().to_owned()];
    let mut group = criterion.benchmark_group("transcripts");
    group.sample_size(10).throughput(Throughput::Bytes(bytes));
    group.bench_function("import", |bencher| {
        bencher.iter(|| {
            let mut calls = 0;
            Import::new(Limits::DEFAULT).path(folder.path(), &mut |imported| {
                if let Imported::Transcript(transcript) = imported {
                    calls += counts(&transcript).calls;
                }
            });
            calls
        });
    });
    group.bench_function("import and replay, tokens known", |bencher| {
        let counter = TokenCounter::o200k_base();
        run(&paths, &counter, 1);
        bencher.iter(|| run(&paths, &counter, 1));
    });
    group.bench_function("import, count tokens and replay", |bencher| {
        bencher.iter(|| run(&paths, &TokenCounter::o200k_base(), 1));
    });
    group.bench_function("the same on two threads", |bencher| {
        bencher.iter(|| run(&paths, &TokenCounter::o200k_base(), 2));
    });
    let mut largest = None;
    Import::new(Limits::DEFAULT).path(&folder.path().join("0000.json"), &mut |imported| {
        if let Imported::Transcript(transcript) = imported {
            largest = Some(transcript);
        }
    });
    let transcript = largest.expect("one conversation");
    let counter = TokenCounter::o200k_base();
    group.throughput(Throughput::Bytes(bytes / FILES));
    group.bench_function("replay of one transcript, tokens known", |bencher| {
        bencher.iter(|| session(&transcript, &plan(), &counter));
    });
    group.finish();
}

fn run(paths: &[PathBuf], counter: &TokenCounter, threads: usize) -> usize {
    let mut items = 0;
    let threads = NonZeroUsize::new(threads).expect("one or two");
    let done = replay_files(paths, &plan(), counter, threads, &mut |_| {
        items += 1;
        Ok::<(), Infallible>(())
    });
    match done {
        Ok(()) => items,
    }
}

criterion_group!(all, benches);
criterion_main!(all);
