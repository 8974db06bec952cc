//! A policy over a store of its own, for one step execution: `inline-cap` and `envelope`.

mod policy;
mod read_back;

use std::{
    collections::HashSet,
    mem::{Discriminant, discriminant},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::Value;
use spill_engine::{
    ByteRange, Call, CallId, Decision, DispatchQueue, Dispatched, ItemKey, Millis, Names as _,
    OsNames, Owner, Policy as _, ReadFailure, Reader, Shaped, Slice, SpillStore, StoreError,
    ToolResult, Verdict, Warning, WhenFull,
};
use tokio::time::Instant;

use self::policy::{Named, StorePolicy};
use crate::{
    counts::Counts,
    log_copies::Copy,
    open_store::Stores,
    read_tools::ReadTool,
    result::SpillFigures,
    settings::{PolicySettings, SpillSettings, StoreSettings},
};

/// The most bytes of a replacement that a turn's bound asks for.
pub(crate) const TURN_REPLACEMENT_BYTES: u64 = 1_024;

/// Which limit a result is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The policy's own.
    Usual,
    /// A lower one, since the turn as a whole is too large.
    Turn,
}

/// The results of one step execution that a policy keeps in a store.
pub(crate) struct StoredSession {
    settings: PolicySettings,
    /// True when `retrievalHint` was given: then it stays as it is.
    own_hint: bool,
    stores: Stores,
    in_files: bool,
    /// Known to nobody else; `None` when there is no entropy, and then nothing can be stored.
    owner: Option<Owner>,
    clock: Clock,
    named: OnceLock<Named>,
    counts: Mutex<Counts>,
    warned: Mutex<HashSet<Discriminant<Warning>>>,
    /// Held for reading while something is stored, so that a release waits for it.
    storing: RwLock<()>,
    released: AtomicBool,
}

/// Wall-clock time that a paused test clock moves too.
pub(crate) struct Clock {
    unix: Duration,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            unix: unix.unwrap_or_default(),
            started: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        let millis = (self.unix + self.started.elapsed()).as_millis();
        Millis::new(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

impl StoredSession {
    /// An execution with nothing stored; `None` for a policy that has a store of its own kind.
    pub(crate) fn open(settings: &SpillSettings) -> Result<Option<Self>, StoreError> {
        // An envelope's record makes room when its store is full, as its policy publishes; what a
        // notice names stays.
        let when_full = match settings.policy {
            PolicySettings::WorkflowStep => return Ok(None),
            PolicySettings::InlineCap(_) => WhenFull::Refuse,
            PolicySettings::Envelope(_) => WhenFull::Evict,
        };
        Ok(Some(Self {
            own_hint: settings.options.contains_key("retrievalHint"),
            stores: Stores::open(settings, when_full)?,
            in_files: matches!(settings.store, StoreSettings::File(_)),
            settings: settings.policy.clone(),
            owner: OsNames
                .draw()
                .ok()
                .map(|number| Owner::new(&format!("{number:032x}"))),
            clock: Clock::start(),
            named: OnceLock::new(),
            counts: Mutex::default(),
            warned: Mutex::default(),
            storing: RwLock::new(()),
            released: AtomicBool::new(false),
        }))
    }

    pub(crate) fn in_files(&self) -> bool {
        self.in_files
    }

    /// The read tools. The first call settles their names.
    pub(crate) fn read_tools(&self, taken: &dyn Fn(&str) -> bool) -> &[ReadTool] {
        &self.named(taken).tools
    }

    /// Says what stands in the prompt for a result; gives it back after the release. May wait for
    /// files.
    pub(crate) fn shape(
        &self,
        call: CallId,
        tool: &str,
        arguments: &Value,
        limit: Limit,
        result: ToolResult,
    ) -> Result<Shaped, ToolResult> {
        let _storing = self.storing.read().unwrap_or_else(PoisonError::into_inner);
        if self.is_released() {
            return Err(result);
        }
        let call = self.call(call, tool, arguments);
        let shaped = match (&self.named(&|_| false).policy, limit) {
            (StorePolicy::InlineCap { usual, .. }, Limit::Usual) => usual.shape(&call, result),
            (StorePolicy::InlineCap { turn, .. }, Limit::Turn) => turn.shape(&call, result),
            (StorePolicy::Envelope { usual, .. }, Limit::Usual) => usual.shape(&call, result),
            (StorePolicy::Envelope { turn, .. }, Limit::Turn) => turn.shape(&call, result),
        };
        match &shaped.verdict {
            Verdict::Replace { spilled, .. } => self.counts().stored(spilled),
            Verdict::Keep(_) if shaped.verdict.decision() == Decision::InlineOverBudget => {
                self.counts().over_budget();
            }
            Verdict::Keep(_) => {}
        }
        Ok(shaped)
    }

    /// The result of a composite tool's own call: the tool has it whole already.
    pub(crate) fn nested(
        &self,
        call: CallId,
        number: u32,
        tool: &str,
        arguments: &Value,
        result: ToolResult,
    ) -> Shaped {
        let call = Call {
            sub_call: Some(number),
            ..self.call(call, tool, arguments)
        };
        match &self.named(&|_| false).policy {
            StorePolicy::InlineCap { usual, .. } => usual.shape(&call, result),
            StorePolicy::Envelope { usual, .. } => usual.shape(&call, result),
        }
    }

    /// Whether the log's copy of a text is another one.
    pub(crate) fn bounds_log_copy(&self, text: &str) -> bool {
        match &self.settings {
            PolicySettings::InlineCap(options) => options
                .max_inline_bytes
                .is_some_and(|cap| text.len() as u64 > cap),
            PolicySettings::Envelope(_) | PolicySettings::WorkflowStep => false,
        }
    }

    /// Orders the log's copy of what a composite tool's own call returned; false when too many are
    /// waiting.
    pub(crate) fn order_copy(&self, copy: &Copy) -> bool {
        let StorePolicy::InlineCap { log, .. } = &self.named(&|_| false).policy else {
            return true;
        };
        let call = Call {
            sub_call: Some(copy.number),
            ..self.call(copy.call, &copy.tool, &Value::Null)
        };
        self.counts().touch();
        log.offer(&call, copy.result()).is_ok()
    }

    /// Makes the oldest copy that waits; false when none does, and after the release. May wait for
    /// files.
    pub(crate) fn make_copy(&self) -> bool {
        self.while_storing(DispatchQueue::work).unwrap_or(false)
    }

    /// Makes all copies that wait and returns them in the order of their calls. May wait for
    /// files.
    pub(crate) fn finish_copies(&self) -> Vec<Dispatched> {
        let made = self
            .while_storing(DispatchQueue::finish)
            .unwrap_or_default();
        for copy in &made {
            if let Verdict::Replace { spilled, .. } = &copy.shaped.verdict {
                self.counts().held(spilled);
            }
        }
        made
    }

    fn while_storing<T>(&self, work: impl FnOnce(&DispatchQueue) -> T) -> Option<T> {
        let _storing = self.storing.read().unwrap_or_else(PoisonError::into_inner);
        match &self.named(&|_| false).policy {
            StorePolicy::InlineCap { log, .. } if !self.is_released() => Some(work(log)),
            StorePolicy::InlineCap { .. } | StorePolicy::Envelope { .. } => None,
        }
    }

    fn call<'a>(&'a self, call: CallId, tool: &'a str, arguments: &'a Value) -> Call<'a> {
        Call {
            arguments,
            owner: self.owner.as_ref(),
            now: self.clock.now(),
            ..Call::new(tool, call)
        }
    }

    /// Logs a warning. Each kind is logged once: a store that is broken stays so.
    pub(crate) fn warn(&self, warning: &Warning) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(discriminant(warning)) {
            tracing::warn!("{warning}");
        }
    }

    /// True from the first result that left the prompt to the release.
    pub(crate) fn offers_read(&self) -> bool {
        !self.is_released() && self.counts().has_stored()
    }

    /// Bytes of a stored result for use outside the prompt. May wait for files.
    pub(crate) fn slice(&self, reference: &str, range: ByteRange) -> Result<Slice, ReadFailure> {
        let key = match &self.named(&|_| false).policy {
            StorePolicy::InlineCap { .. } => self.stores.results.key_of(reference),
            StorePolicy::Envelope { usual, .. } => usual.key_of(reference),
        };
        let key: ItemKey = key
            .filter(|_| !self.is_released())
            .ok_or(ReadFailure::NotFound)?;
        let (reader, now) = (self.reader(), self.clock.now());
        self.stores.results.read(key, &reader, range, now)
    }

    fn reader(&self) -> Reader {
        self.owner.clone().map_or(Reader::Stranger, Reader::Of)
    }

    /// The figures so far; they stay after the release.
    pub(crate) fn figures(&self) -> SpillFigures {
        let figures = self.counts().figures();
        if self.in_files {
            return figures;
        }
        // Records in memory may have made room for others.
        let peak = |store: &dyn SpillStore| store.usage().peak_bytes;
        SpillFigures {
            store_peak_bytes: peak(&*self.stores.results) + peak(&*self.stores.log),
            ..figures
        }
    }

    /// Removes everything that the execution stored. Waits for what is being stored; later
    /// results stay in the prompt, later reads find nothing. A second call does nothing.
    pub(crate) fn release(&self) {
        if self.released.swap(true, Ordering::AcqRel) {
            return;
        }
        drop(self.storing.write().unwrap_or_else(PoisonError::into_inner));
        if self.counts().holds_nothing() {
            return;
        }
        if let Some(owner) = &self.owner {
            self.stores.results.release(owner);
            self.stores.log.release(owner);
        }
    }

    fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
