//! What a full budget costs in memory, by a counting allocator. Alone in its binary: the allocator counts every thread.

#![expect(
    clippy::print_stderr,
    reason = "the figures are part of what the test is for: `cargo test --test memory -- --nocapture`"
)]

use peak_alloc::PeakAlloc;
use spill_engine::{
    Admitted, CallId, DEFAULT_BUDGET_BYTES, Placement, PromptText, Settings, StepId, StepSpill,
    Switch, ToolResult,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Texts whose serialisations fill the budget to the last byte.
fn filling(count: usize) -> Vec<ToolResult> {
    let budget = usize::try_from(DEFAULT_BUDGET_BYTES).expect("16 MiB");
    let text = || "x".repeat(budget / count - 2);
    (0..count).map(|_| ToolResult::text(text())).collect()
}

/// Bytes held for a step's results when all have passed: now, and at the highest point on the way.
struct Held {
    now: usize,
    peak: usize,
}

/// What the caller keeps of an admitted result until the step ends.
#[derive(Clone, Copy)]
enum Kept {
    /// Record and prompt text, as the step loop's messages would.
    RecordAndPrompt,
    /// The record alone: what is left is the engine's own.
    Record,
}

fn held(count: usize, enabled: Switch, kept: Kept) -> Held {
    let before = ALLOCATOR.current_usage();
    let results = filling(count);
    let step = StepSpill::new(
        Settings {
            enabled,
            ..Settings::DEFAULT
        },
        StepId::new("step").expect("a step id"),
        StepSpill::unobserved(),
    );
    ALLOCATOR.reset_peak_usage();
    let mut admitted: Vec<(_, Option<PromptText>)> = Vec::with_capacity(count);
    for (index, result) in (0..).zip(results) {
        let Admitted {
            record_text,
            prompt,
            placement,
            ..
        } = step.admit(
            CallId {
                iteration: 1,
                index,
            },
            "tool",
            result,
        );
        assert_eq!(placement == Placement::Stored, enabled.is_on());
        admitted.push((
            record_text,
            matches!(kept, Kept::RecordAndPrompt).then_some(prompt),
        ));
    }
    Held {
        now: ALLOCATOR.current_usage() - before,
        peak: ALLOCATOR.peak_usage() - before,
    }
}

/// Added bytes in millionths of what inline mode holds.
fn check_added(count: usize, kept: Kept, limit_ppm: usize) {
    let inline = held(count, Switch::Off, kept);
    let spilled = held(count, Switch::On, kept);
    let budget = usize::try_from(DEFAULT_BUDGET_BYTES).expect("16 MiB");
    assert!(
        inline.now >= budget - 2 * count,
        "inline mode holds every text"
    );
    for (name, inline, spilled) in [
        ("now", inline.now, spilled.now),
        ("peak", inline.peak, spilled.peak),
    ] {
        let added = spilled.saturating_sub(inline);
        let ppm = added * 1_000_000 / inline;
        eprintln!(
            "{count} results, {name}: inline {inline} bytes, stored adds {added} ({ppm} ppm)"
        );
        assert!(
            ppm <= limit_ppm,
            "{count} results, {name}: {ppm} ppm, limit {limit_ppm}"
        );
    }
}

#[test]
fn a_full_budget_adds_at_most_one_percent_to_what_inline_mode_holds() {
    // The engine's own share: store, accounting, the temporary summary.
    check_added(16, Kept::Record, 1_000);
    check_added(128, Kept::Record, 1_000);
    // With every summary kept beside the record, which a step loop need not do.
    check_added(1, Kept::RecordAndPrompt, 1_000);
    check_added(16, Kept::RecordAndPrompt, 10_000);
    check_added(55, Kept::RecordAndPrompt, 10_000);

    let before = ALLOCATOR.current_usage();
    let _figures = held(16, Switch::On, Kept::Record);
    assert_eq!(
        ALLOCATOR.current_usage(),
        before,
        "the end of a step frees everything"
    );
}
