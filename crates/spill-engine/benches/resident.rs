//! Memory that 16 results of 1 MiB take under each policy, beside the same results kept inline; by a counting allocator, so
//! the figures are exact and equal on every run. `cargo bench -p spill-engine --bench resident`.
//!
//! The record of each call is kept in every line. The first column is the engine's own share; the second has what stands in
//! the prompt for each result kept beside it, which a loop that writes its request at once need not do.

#![expect(clippy::print_stdout, reason = "a bench's tables are for its reader")]

use std::sync::Arc;

use peak_alloc::PeakAlloc;
use spill_engine::{
    Budget, Bytes, Call, CallId, Envelope, EnvelopeOptions, InlineCap, InlineCapOptions,
    MAX_BUDGET_BYTES, MemoryOptions, MemoryStore, Owner, Policy, Settings, SharedText, StepId,
    StepSpill, Switch, Threshold, ToolResult,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const RESULTS: u32 = 16;
const LIMIT_BYTES: u64 = 32 << 10;

fn main() {
    println!("| 16 × 1 MiB, limit 32 KiB | the engine's own share | with every replacement kept |");
    println!("|---|---|---|");
    for name in ["workflow-step", "inline-cap", "envelope"] {
        let added = |keep: Keep| {
            let inline = held(&policy("off"), keep);
            let stored = held(&policy(name), keep);
            let more = stored.saturating_sub(inline);
            #[expect(clippy::cast_precision_loss, reason = "far below the precision's end")]
            let percent = more as f64 * 100.0 / inline as f64;
            format!("{more} bytes, {percent:.3} %")
        };
        println!(
            "| {name} | {} | {} |",
            added(Keep::Record),
            added(Keep::Both)
        );
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Record,
    Both,
}

/// Makes the policy when its memory is being counted.
fn policy(name: &'static str) -> impl Fn() -> Box<dyn Policy> {
    let store = || {
        Arc::new(MemoryStore::new(MemoryOptions::shared(Bytes::new(
            64 << 20,
        ))))
    };
    move || match name {
        "inline-cap" => Box::new(InlineCap::new(
            InlineCapOptions::capped(LIMIT_BYTES),
            store(),
        )),
        "envelope" => {
            let options = EnvelopeOptions {
                max_payload_bytes: LIMIT_BYTES,
                ..EnvelopeOptions::default()
            };
            Box::new(Envelope::new(options, store()))
        }
        _ => {
            let settings = Settings {
                enabled: if name == "off" {
                    Switch::Off
                } else {
                    Switch::On
                },
                threshold: Threshold::new(LIMIT_BYTES).expect("a bound"),
                budget: Budget::new(MAX_BUDGET_BYTES).expect("a bound"),
            };
            let id = StepId::new("bench").expect("a step id");
            Box::new(StepSpill::new(settings, id, StepSpill::unobserved()))
        }
    }
}

/// Bytes in use when all results are through.
fn held(make: &dyn Fn() -> Box<dyn Policy>, keep: Keep) -> usize {
    let owner = Owner::new("bench");
    let before = ALLOCATOR.current_usage();
    let policy = make();
    let mut kept: Vec<(SharedText, Option<SharedText>)> = Vec::with_capacity(16);
    for index in 0..RESULTS {
        let call = CallId {
            iteration: 1,
            index,
        };
        let call = Call::new("read_file", call).owned_by(&owner);
        let shaped = policy.shape(&call, ToolResult::text(text()));
        kept.push((
            shaped.record_text,
            (keep == Keep::Both).then_some(shaped.prompt),
        ));
    }
    ALLOCATOR.current_usage() - before
}

fn text() -> String {
    let line = "    let name = config.get(\"size\").unwrap_or_default(); // resolved above\n";
    let mut text = line.repeat((1 << 20) / line.len());
    text.shrink_to_fit();
    text
}
