//! Calls that several files hold.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The calls that imports have seen, shared between imports that run at the same time: each has a turn, and whether a call
/// was seen before is decided in the order of the turns, however fast they are.
#[derive(Clone, Debug, Default)]
pub struct SeenCalls(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ids: HashSet<u64>,
    /// All turns below are over.
    next: usize,
    /// Later ones that are over.
    over: BTreeSet<usize>,
}

impl SeenCalls {
    /// Waits until all turns before `turn` are over.
    pub(crate) fn wait_for(&self, turn: usize) {
        drop(self.at(turn));
    }

    /// Ends a turn that nobody takes.
    pub(crate) fn skip(&self, turn: usize) {
        self.end(turn);
    }

    fn at(&self, turn: usize) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.next < turn {
            let waited = self.0.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn end(&self, turn: usize) {
        let mut state = self.lock();
        state.over.insert(turn);
        while let next = state.next
            && state.over.remove(&next)
        {
            state.next += 1;
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// Nothing panics while it is held, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One import's turn; it is over when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    seen: SeenCalls,
    number: usize,
}

impl Turn {
    pub(crate) fn new(seen: &SeenCalls, number: usize) -> Self {
        Self {
            seen: seen.clone(),
            number,
        }
    }

    /// True the first time that an id is asked for. Waits for the turns before.
    pub(crate) fn is_new(&self, id: u64) -> bool {
        self.seen.at(self.number).ids.insert(id)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.seen.end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_turn_has_the_call_however_late_it_asks() {
        let seen = SeenCalls::default();
        let first = Turn::new(&seen, 0);
        let second = Turn::new(&seen, 1);
        std::thread::scope(|scope| {
            let second = scope.spawn(move || second.is_new(7));
            assert!(first.is_new(7));
            drop(first);
            assert!(!second.join().expect("it does not panic"));
        });
    }

    #[test]
    fn turns_may_end_in_any_order() {
        let seen = SeenCalls::default();
        drop(Turn::new(&seen, 2));
        drop(Turn::new(&seen, 1));
        drop(Turn::new(&seen, 0));
        seen.wait_for(3);
        assert!(Turn::new(&seen, 3).is_new(1));
    }
}
