//! The copies of sub-call results on their way to the session's log.
//!
//! A composite tool's program gets each result whole and at once; the log gets a bounded copy. Making the copy is side work
//! that never delays the program, as long as no more than a set number of copies wait. The queue starts no thread: whoever
//! owns it drives it, by [`DispatchQueue::work`] from as many threads as it likes, and ends it with
//! [`DispatchQueue::finish`].

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::inline_cap::InlineCap;
use crate::reference::CallId;
use crate::result::ToolResult;
use crate::shaped::{Call, Kept, Shaped};
use crate::stores::{Millis, Owner};

/// The copies of one run's sub-calls.
pub struct DispatchQueue {
    policy: Arc<InlineCap>,
    most_pending: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    waiting: VecDeque<(u64, Copy)>,
    at_work: usize,
    done: BTreeMap<u64, Dispatched>,
}

impl State {
    fn pending(&self) -> usize {
        self.waiting.len() + self.at_work
    }
}

/// What a copy is made of: the call without its arguments, which exempt nobody here.
struct Copy {
    tool: String,
    call: CallId,
    sub_call: Option<u32>,
    owner: Option<Owner>,
    now: Millis,
    result: ToolResult,
}

impl Copy {
    fn of(call: &Call<'_>, result: ToolResult) -> Self {
        Self {
            tool: call.tool.to_owned(),
            call: call.call,
            sub_call: call.sub_call,
            owner: call.owner.cloned(),
            now: call.now,
            result,
        }
    }

    /// The bounded copy, or the original where shaping breaks down.
    fn shaped_by(self, policy: &InlineCap) -> Dispatched {
        let Self {
            tool,
            call,
            sub_call,
            owner,
            now,
            result,
        } = self;
        let call = Call {
            tool: &tool,
            call,
            sub_call,
            owner: owner.as_ref(),
            arguments: &Value::Null,
            now,
        };
        let original = result.clone();
        let shape = AssertUnwindSafe(|| policy.shape_log(&call, result));
        let shaped = catch_unwind(shape).unwrap_or_else(|_| Shaped::kept(original, Kept::Broken));
        Dispatched {
            call: call.id(),
            tool: tool.clone(),
            shaped,
        }
    }
}

/// A copy for the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatched {
    /// [`Call::id`]: `i1c0:code:1`.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The copy: [`Shaped::prompt`] is what the log keeps.
    pub shaped: Shaped,
}

/// The queue is full; the result is given back.
#[derive(Debug)]
pub struct DispatchFull(pub ToolResult);

impl DispatchQueue {
    /// At most `most_pending` copies wait or are being made.
    pub fn new(policy: Arc<InlineCap>, most_pending: NonZeroUsize) -> Self {
        Self {
            policy,
            most_pending: most_pending.get(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Hands a sub-call's result over for the log, and returns at once.
    ///
    /// # Errors
    /// [`DispatchFull`] when as many as may are pending.
    pub fn offer(&self, call: &Call<'_>, result: ToolResult) -> Result<(), DispatchFull> {
        let mut state = self.lock();
        if state.pending() >= self.most_pending {
            return Err(DispatchFull(result));
        }
        state.add(Copy::of(call, result));
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Hands a sub-call's result over for the log. When as many as may are pending, it waits for room, and meanwhile makes
    /// the oldest copy itself.
    pub fn submit(&self, call: &Call<'_>, result: ToolResult) {
        let mut state = self.lock();
        while state.pending() >= self.most_pending {
            state = match state.waiting.pop_front() {
                Some(oldest) => self.make(state, oldest),
                None => self.wait(state),
            };
        }
        state.add(Copy::of(call, result));
        drop(state);
        self.changed.notify_all();
    }

    /// Makes the oldest copy that waits; false when none does. Side work for another thread.
    pub fn work(&self) -> bool {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(oldest) => {
                drop(self.make(state, oldest));
                true
            }
            None => false,
        }
    }

    /// How many copies wait or are being made.
    pub fn pending(&self) -> usize {
        self.lock().pending()
    }

    /// The end of the run: makes what waits, waits for what others are making, and returns the copies in the order in which
    /// they were handed over, whatever order they were made in.
    pub fn finish(&self) -> Vec<Dispatched> {
        let mut state = self.lock();
        loop {
            state = match state.waiting.pop_front() {
                Some(oldest) => self.make(state, oldest),
                None if state.at_work > 0 => self.wait(state),
                None => break,
            };
        }
        std::mem::take(&mut state.done).into_values().collect()
    }

    /// Makes one copy without the lock.
    fn make<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        (place, copy): (u64, Copy),
    ) -> MutexGuard<'a, State> {
        state.at_work += 1;
        drop(state);
        let made = copy.shaped_by(&self.policy);
        let mut state = self.lock();
        state.at_work -= 1;
        state.done.insert(place, made);
        self.changed.notify_all();
        state
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing panics while it is held, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, copy: Copy) {
        let place = self.next;
        self.next += 1;
        self.waiting.push_back((place, copy));
    }
}
