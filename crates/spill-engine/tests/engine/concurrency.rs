use std::sync::Barrier;
use std::thread;

use spill_engine::{InlineReason, MIN_BUDGET_BYTES, Placement, ReadError};

use super::{admit, low, noted, plain, read, settings, step};

const THREADS: u32 = 16;
const ROUNDS: u32 = 20;

/// Runs `work` on all threads at once and gives what each returned, in thread order.
fn together<T: Send>(work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(usize::try_from(THREADS).expect("a small number"));
    thread::scope(|scope| {
        let start = |index| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(index)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

#[test]
fn parallel_calls_never_overrun_the_budget_together() {
    for _ in 0..ROUNDS {
        let (step, notes) = noted(settings(4_096, MIN_BUDGET_BYTES));
        let text = plain(131_072);
        let placements = together(|index| admit(&step, index, text.clone()).placement);

        let stored = placements
            .iter()
            .filter(|placement| **placement == Placement::Stored)
            .count();
        let over = Placement::Inline(InlineReason::OverBudget);
        assert_eq!(stored, 8, "eight times 128 KiB are 1 MiB exactly");
        assert_eq!(
            placements
                .iter()
                .filter(|placement| **placement == over)
                .count(),
            8
        );
        let usage = step.usage();
        assert_eq!(
            (usage.persisted, usage.over_budget, usage.budget_used_bytes),
            (8, 8, MIN_BUDGET_BYTES)
        );
        assert_eq!(
            notes
                .taken()
                .iter()
                .filter(|line| line.starts_with("stored "))
                .count(),
            8
        );
        assert_eq!(
            notes
                .taken()
                .iter()
                .filter(|line| line.contains("stays inline"))
                .count(),
            1
        );
    }
}

#[test]
fn references_follow_the_call_and_not_the_order_of_completion() {
    let step = step(low());
    together(|index| admit(&step, index, format!("{index:02} ").repeat(2_000)));
    for index in 0..THREADS {
        assert_eq!(
            read(&step, index, 0, 2).expect("stored").text(),
            format!("{index:02}")
        );
    }
}

#[test]
fn overlapping_executions_of_one_step_read_their_own() {
    for _ in 0..ROUNDS {
        let both_stored = Barrier::new(usize::try_from(THREADS).expect("a small number"));
        let texts = together(|index| {
            let step = step(low());
            admit(&step, 0, format!("{index:02} ").repeat(2_000));
            both_stored.wait();
            read(&step, 0, 0, 2).expect("stored").text().to_owned()
        });
        let expected: Vec<String> = (0..THREADS).map(|index| format!("{index:02}")).collect();
        assert_eq!(texts, expected);
    }
}

#[test]
fn a_read_that_races_the_release_sees_the_slice_or_nothing() {
    for _ in 0..ROUNDS {
        let step = step(low());
        admit(&step, 0, "whole".repeat(2_000));
        let answers = together(|index| {
            if index == THREADS / 2 {
                step.release();
            }
            read(&step, 0, 0, 5)
        });
        for answer in answers {
            match answer {
                Ok(answer) => assert_eq!(answer.text(), "whole"),
                Err(error) => assert_eq!(error, ReadError::NotFound),
            }
        }
        assert_eq!(read(&step, 0, 0, 5), Err(ReadError::NotFound));
    }
}
