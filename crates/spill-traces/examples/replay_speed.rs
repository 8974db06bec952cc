//! Replays 100 MB of generated transcripts over 12 thresholds × 3 assumptions, and prints time, processor time and peak memory.
//!
//! `cargo run --release -p spill-traces --example replay_speed [-- THREADS [PATH…]]`; with paths, of these instead.
#![expect(clippy::print_stdout, reason = "an example program")]

#[path = "../benches/generated/mod.rs"]
mod generated;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use spill_tokens::TokenCounter;
use spill_traces::{Cache, Policy, PolicyName, ReadBack, ReplayPlan, ReplayedItem, replay_files};

const FILES: u64 = 40;
const FILE_BYTES: usize = 2_400_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().and_then(|threads| threads.parse().ok());
    let threads = threads
        .and_then(NonZeroUsize::new)
        .unwrap_or(NonZeroUsize::MIN);
    let mut paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let folder = tempfile::tempdir()?;
    if paths.is_empty() {
        let bytes = generated::write(folder.path(), FILES, FILE_BYTES)?;
        println!("{FILES} files of {bytes} bytes in all");
        paths.push(folder.path().to_owned());
    }
    let thresholds = [4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1_024];
    let policies = thresholds.map(|kib| Policy::new(PolicyName::WorkflowStep, kib << 10, None));
    let plan = ReplayPlan {
        policies: policies.into_iter().collect::<Result<_, _>>()?,
        read_backs: vec![ReadBack::NONE, ReadBack::USED, ReadBack::WHOLE],
        cache: Cache::DEFAULT,
        window_tokens: None,
        price: None,
    };
    let counter = TokenCounter::o200k_base().remembering(2_000_000);
    let before = getrusage(UsageWho::RUSAGE_SELF)?;
    let start = Instant::now();
    let (mut sessions, mut calls) = (0_u64, 0_u64);
    let done = replay_files(&paths, &plan, &counter, threads, &mut |item| {
        if let ReplayedItem::Session(session) = item {
            sessions += 1;
            calls += session.calls;
        }
        Ok::<(), Infallible>(())
    });
    match done {
        Ok(()) => {}
    }
    let after = getrusage(UsageWho::RUSAGE_SELF)?;
    println!(
        "{sessions} transcripts, {calls} calls, {} variants on {threads} threads: {:.2} s, processor {:.2} s, peak {} MiB, {} bytes tokenised",
        plan.policies.len() * plan.read_backs.len(),
        start.elapsed().as_secs_f64(),
        seconds(&after) - seconds(&before),
        after.max_rss() / 1_024,
        counter.tokenised_bytes(),
    );
    Ok(())
}

fn seconds(usage: &Usage) -> f64 {
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros = (user.tv_sec() + system.tv_sec()) * 1_000_000 + user.tv_usec() + system.tv_usec();
    std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0)).as_secs_f64()
}
