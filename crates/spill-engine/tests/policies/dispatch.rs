//! Copies for the session's log: side work, bounded, complete at the end of the run.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use spill_engine::{
    Arm, ByteRange, Call, Content, DispatchQueue, InlineCap, InlineCapOptions, ItemHead, ItemKey,
    ItemName, ItemWriter, Kept, Millis, Owner, ReadFailure, Reader, Slice, SpillStore, StoreError,
    StoreUsage, StoredItem, Swept, ToolResult, Verdict,
};

use super::{CALL, memory, owner};

fn queue(store: Arc<dyn SpillStore>, most: usize) -> DispatchQueue {
    let policy = Arc::new(InlineCap::new(InlineCapOptions::capped(500), store));
    DispatchQueue::new(policy, NonZeroUsize::new(most).expect("not 0"))
}

fn sub_call(number: u32, owner: &Owner) -> Call<'_> {
    Call {
        sub_call: Some(number),
        ..Call::new("read", CALL).owned_by(owner)
    }
}

fn text(number: u32) -> String {
    format!("{number}-").repeat(1_000)
}

#[test]
fn copies_are_bounded_and_come_out_in_the_order_of_the_calls() {
    let queue = queue(memory(1 << 20), 100);
    let owner = owner();
    for number in 1..=9 {
        let text = if number == 4 {
            "small".to_owned()
        } else {
            text(number)
        };
        queue
            .offer(&sub_call(number, &owner), ToolResult::text(text))
            .expect("room");
    }
    assert_eq!(queue.pending(), 9);
    assert!(queue.work() && queue.work(), "side work");
    assert_eq!(queue.pending(), 7);
    let done = queue.finish();
    let calls: Vec<&str> = done.iter().map(|copy| copy.call.as_str()).collect();
    let expected: Vec<String> = (1..=9).map(|k| format!("i1c0:code:{k}")).collect();
    assert_eq!(calls, expected);
    for (number, copy) in (1..).zip(&done) {
        match (number, &copy.shaped.verdict) {
            (4, Verdict::Keep(Kept::WithinLimit)) => assert_eq!(*copy.shaped.prompt, *"small"),
            (_, Verdict::Replace { spilled, .. }) => {
                assert_eq!(
                    (spilled.arm, spilled.call.as_str()),
                    (Arm::Dispatch, copy.call.as_str())
                );
                assert!(copy.shaped.prompt.len() <= 500);
                assert_eq!(*copy.shaped.record_text, text(number));
            }
            (_, other) => panic!("{number}: {other:?}"),
        }
    }
    assert!(!queue.work() && queue.finish().is_empty(), "once");
}

#[test]
fn a_full_queue_gives_the_result_back_and_a_waiting_dispatch_makes_room() {
    let queue = queue(memory(1 << 20), 2);
    let owner = owner();
    let result = |number| ToolResult::text(text(number));
    queue.offer(&sub_call(1, &owner), result(1)).expect("room");
    queue.offer(&sub_call(2, &owner), result(2)).expect("room");
    let back = queue
        .offer(&sub_call(3, &owner), result(3))
        .expect_err("full");
    assert_eq!(back.0, result(3));
    queue.submit(&sub_call(3, &owner), back.0);
    assert_eq!(queue.pending(), 2, "the oldest was made meanwhile");
    assert_eq!(queue.finish().len(), 3);
}

/// Whoever makes the copies, the end of the run has them all, and never more than may wait.
#[test]
fn the_end_waits_for_what_other_threads_make() {
    let queue = queue(memory(1 << 30), 3);
    let (together, over) = (Barrier::new(4), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                together.wait();
                while !over.load(Ordering::Acquire) {
                    queue.work();
                    assert!(queue.pending() <= 3);
                    std::thread::yield_now();
                }
            });
        }
        let calls = [0, 200].map(|first| {
            let (queue, together) = (&queue, &together);
            scope.spawn(move || {
                together.wait();
                let owner = owner();
                for number in first..first + 200 {
                    queue.submit(&sub_call(number, &owner), ToolResult::text(text(number)));
                }
            })
        });
        for calls in calls {
            calls.join().expect("a thread of ours");
        }
        over.store(true, Ordering::Release);
    });
    let done = queue.finish();
    assert_eq!((done.len(), queue.pending()), (400, 0));
    let mut calls: Vec<String> = done.into_iter().map(|copy| copy.call).collect();
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), 400, "none twice");
}

/// A store that breaks down in the middle of a put.
struct Panicking;

impl SpillStore for Panicking {
    fn name(&self, _label: &str) -> Result<ItemName, StoreError> {
        Ok(ItemName::new(ItemKey::from_number(1), "here"))
    }

    fn put(&self, _: ItemName, _: ItemHead, _: Content) -> Result<StoredItem, StoreError> {
        panic!("a bug of the store")
    }

    fn begin<'a>(
        &'a self,
        _: ItemName,
        _: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        Err(StoreError::Taken)
    }

    fn describe(&self, _: ItemKey, _: &Reader, _: Millis) -> Result<StoredItem, ReadFailure> {
        Err(ReadFailure::NotFound)
    }

    fn read(&self, _: ItemKey, _: &Reader, _: ByteRange, _: Millis) -> Result<Slice, ReadFailure> {
        Err(ReadFailure::NotFound)
    }

    fn key_of(&self, _: &str) -> Option<ItemKey> {
        None
    }

    fn release(&self, _: &Owner) {}

    fn sweep(&self, _: Millis) -> Swept {
        Swept::default()
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}

#[test]
fn where_shaping_breaks_down_the_log_keeps_the_original() {
    let queue = queue(Arc::new(Panicking), 5);
    let owner = owner();
    queue.submit(&sub_call(1, &owner), ToolResult::text(text(1)));
    queue.submit(&sub_call(2, &owner), ToolResult::text("small"));
    let done = queue.finish();
    assert_eq!(done[0].shaped.verdict, Verdict::Keep(Kept::Broken));
    assert_eq!(*done[0].shaped.prompt, text(1));
    assert_eq!(*done[1].shaped.prompt, *"small");
}
