//! A policy over a store of its own, for one step execution: `inline-cap` and `envelope`.

use std::{
    collections::HashSet,
    iter::once,
    mem::{Discriminant, discriminant},
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use spill_engine::{
    Answer, AnswerCap, Ask, AskError, ByteRange, Call, CallId, Decision, DispatchQueue, Dispatched,
    Envelope, EnvelopeOptions, InlineCap, InlineCapOptions, ItemKey, Millis, Names as _, OsNames,
    Owner, Part, Pattern, Policy as _, PreviewShare, ReadFailure, Reader, Reading, Resource,
    SearchAsk, Shaped, Slice, SpillStore, StoreError, ToolResult, Verdict, Warning, WhenFull,
};
use tokio::time::Instant;

use crate::{
    counts::Counts,
    log_copies::Copy,
    open_store::Stores,
    read_tools::{Arguments, Contents, Header, ReadBack, ReadKind, ReadTool, ResourceContent},
    result::SpillFigures,
    settings::{PolicySettings, SpillSettings, StoreSettings},
};

/// The most bytes of an answer where the policy has no limit.
const USUAL_ANSWER_BYTES: u64 = 32 << 10;
/// The most bytes of a replacement that a turn's bound asks for.
pub(crate) const TURN_REPLACEMENT_BYTES: u64 = 1_024;
/// How much of an answer's header the engine reserves a place for beside a longer reference.
const RESERVED_REFERENCE_BYTES: u64 = 100;
/// Bytes shown on each side of a match when nothing else is asked for.
const USUAL_CONTEXT_BYTES: u64 = 80;
/// The most copies for the log that may wait.
const MOST_COPIES: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
const BINARY: &str = "application/octet-stream";

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

/// What depends on the names of the read tools, which depend on those of the server's.
struct Named {
    policy: StorePolicy,
    tools: Vec<ReadTool>,
}

/// A policy with its usual limit, and the same with the limit that a turn's bound asks for.
enum StorePolicy {
    InlineCap {
        usual: InlineCap,
        turn: InlineCap,
        /// The log's copies, under the usual limit.
        log: DispatchQueue,
    },
    Envelope {
        usual: Envelope,
        turn: Envelope,
    },
}

/// Wall-clock time that a paused test clock moves too.
struct Clock {
    unix: Duration,
    started: Instant,
}

impl Clock {
    fn start() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            unix: unix.unwrap_or_default(),
            started: Instant::now(),
        }
    }

    fn now(&self) -> Millis {
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

    fn named(&self, taken: &dyn Fn(&str) -> bool) -> &Named {
        self.named.get_or_init(|| {
            let kinds: &[ReadKind] = match self.settings {
                PolicySettings::WorkflowStep => &[],
                PolicySettings::InlineCap(_) => &[ReadKind::Bytes, ReadKind::Search],
                PolicySettings::Envelope(_) => &[ReadKind::Resource],
            };
            let tools: Vec<ReadTool> = kinds.iter().map(|kind| kind.tool(taken)).collect();
            Named {
                policy: self.policy(&tools),
                tools,
            }
        })
    }

    fn policy(&self, tools: &[ReadTool]) -> StorePolicy {
        let store = || Arc::clone(&self.stores.results);
        match &self.settings {
            PolicySettings::InlineCap(options) => {
                let options = InlineCapOptions {
                    retrieval_hint: self.hint(options, tools),
                    ..options.clone()
                };
                let turn = InlineCapOptions {
                    max_inline_bytes: Some(at_most_for_a_turn(options.max_inline_bytes)),
                    preview_share: PreviewShare::ALL,
                    ..options.clone()
                };
                StorePolicy::InlineCap {
                    log: self.log_queue(options.clone()),
                    usual: InlineCap::new(options, store()),
                    turn: InlineCap::new(turn, store()),
                }
            }
            PolicySettings::Envelope(options) => {
                let turn = EnvelopeOptions {
                    max_payload_bytes: at_most_for_a_turn(Some(options.max_payload_bytes)),
                    preview_share: PreviewShare::ALL,
                    ..options.clone()
                };
                StorePolicy::Envelope {
                    usual: Envelope::new(options.clone(), store()),
                    turn: Envelope::new(turn, store()),
                }
            }
            PolicySettings::WorkflowStep => unreachable!("open() makes no such session"),
        }
    }

    fn log_queue(&self, options: InlineCapOptions) -> DispatchQueue {
        let policy = InlineCap::new(options, Arc::clone(&self.stores.log));
        DispatchQueue::new(Arc::new(policy), MOST_COPIES)
    }

    /// The notice names the tools as they are called; a hint that was given stays.
    fn hint(&self, options: &InlineCapOptions, tools: &[ReadTool]) -> String {
        let renamed = tools.iter().any(|tool| tool.name != tool.kind.usual_name());
        match tools {
            [read, grep] if renamed && !self.own_hint => format!(
                "Use {} with offset/limit, or {} this path to search within it.",
                read.name, grep.name
            ),
            _ => options.retrieval_hint.clone(),
        }
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
        if self.released.load(Ordering::Acquire) {
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
            StorePolicy::InlineCap { log, .. } if !self.released.load(Ordering::Acquire) => {
                Some(work(log))
            }
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
        !self.released.load(Ordering::Acquire) && self.counts().has_stored()
    }

    /// Answers a call of a read tool. May wait for files.
    ///
    /// # Errors
    /// A text for the model, without content.
    pub(crate) fn read(
        &self,
        kind: ReadKind,
        arguments: &Map<String, Value>,
    ) -> Result<ReadBack, String> {
        let arguments = Arguments(arguments);
        match kind {
            ReadKind::Bytes => self.read_bytes(&arguments),
            ReadKind::Search => self.search(&arguments),
            ReadKind::Resource => self.read_resource(&arguments),
            ReadKind::Step => Err(ReadFailure::NotFound.to_string()),
        }
    }

    fn read_bytes(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["path", "offset", "limit"])?;
        let path = arguments.text("path")?;
        let (offset, limit) = (arguments.number("offset")?, arguments.number("limit")?);
        let ask = Ask::Bytes(ByteRange {
            offset: offset.unwrap_or(0),
            length: limit.unwrap_or(u64::MAX),
        });
        let answer = self.ask(path, &ask).map_err(|error| error.to_string())?;
        let with_range = offset.is_some() || limit.is_some();
        let length = answer.bytes().len() as u64;
        let part = answer.offset..answer.offset + length;
        self.counts().read(answer.key, once(part), with_range);
        Ok(rendered(path, &answer, length, None))
    }

    fn search(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["path", "pattern", "ignore_case", "context", "offset"])?;
        let path = arguments.text("path")?;
        let pattern = arguments.text("pattern")?;
        let pattern = if arguments.flag("ignore_case")? {
            format!("(?i){pattern}")
        } else {
            pattern.to_owned()
        };
        let ask = Ask::Search(SearchAsk {
            pattern: Pattern::Regex(pattern),
            context: arguments.number("context")?.unwrap_or(USUAL_CONTEXT_BYTES),
            from: arguments.number("offset")?.unwrap_or(0),
            most: None,
        });
        let answer = self.ask(path, &ask).map_err(|error| match error {
            AskError::Pattern(why) => {
                format!("the pattern is not accepted: {why} (correct it; a \\ before . * + ? ( ) [ ] {{ }} | ^ $ searches for that sign)")
            }
            other => other.to_string(),
        })?;
        let Part::Hits(hits) = &answer.part else {
            return Err(ReadFailure::NotFound.to_string());
        };
        let shown = hits.iter().map(|hit| {
            let start = hit.excerpt_offset;
            start..start + hit.excerpt.len() as u64
        });
        self.counts().read(answer.key, shown.clone(), true);
        let bytes = shown.map(|part| part.end - part.start).sum();
        Ok(rendered(path, &answer, bytes, Some(hits.len())))
    }

    /// Asks for no more than the answer limit, the line before the text included.
    fn ask(&self, path: &str, ask: &Ask) -> Result<Answer, AskError> {
        let key = self.stores.results.key_of(path);
        let key = key.ok_or(ReadFailure::NotFound)?;
        let longer = (path.len() as u64).saturating_sub(RESERVED_REFERENCE_BYTES);
        let most = self.answer_bytes().saturating_sub(longer);
        let cap =
            AnswerCap::new(most.max(AnswerCap::MIN_BYTES)).expect("no less than the least cap");
        let store: &dyn SpillStore = &*self.stores.results;
        Reading::new(store, self.reader(), cap).answer(key, ask, self.clock.now())
    }

    fn answer_bytes(&self) -> u64 {
        match &self.settings {
            PolicySettings::InlineCap(options) => {
                options.max_inline_bytes.unwrap_or(USUAL_ANSWER_BYTES)
            }
            PolicySettings::Envelope(options) => options.max_payload_bytes,
            PolicySettings::WorkflowStep => USUAL_ANSWER_BYTES,
        }
    }

    fn read_resource(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["uri", "range"])?;
        let uri = arguments.text("uri")?;
        let range = arguments.object("range")?;
        let plain = uri.split_once('?').map_or(uri, |(plain, _)| plain);
        let asked = match &range {
            None => uri.to_owned(),
            Some(range) => {
                range.only(&["offset", "length"])?;
                let offset = range.number("offset")?.unwrap_or(0);
                let length = range.number("length")?.unwrap_or(u64::MAX);
                format!("{plain}?offset={offset}&length={length}")
            }
        };
        let StorePolicy::Envelope { usual, .. } = &self.named(&|_| false).policy else {
            return Err(ReadFailure::NotFound.to_string());
        };
        let key = usual.key_of(plain);
        let resource = usual
            .read_resource(&asked, &self.reader(), self.clock.now())
            .map_err(|error| error.to_string())?;
        let bytes = resource.text.len() as u64;
        let with_range = asked != plain;
        if let Some(key) = key {
            let part = resource.offset..resource.offset + bytes;
            self.counts().read(key, once(part), with_range);
        }
        Ok(ReadBack {
            reference: plain.to_owned(),
            offset: resource.offset,
            bytes,
            text: contents(plain, &resource, with_range),
        })
    }

    /// Bytes of a stored result for use outside the prompt. May wait for files.
    pub(crate) fn slice(&self, reference: &str, range: ByteRange) -> Result<Slice, ReadFailure> {
        let key = match &self.named(&|_| false).policy {
            StorePolicy::InlineCap { .. } => self.stores.results.key_of(reference),
            StorePolicy::Envelope { usual, .. } => usual.key_of(reference),
        };
        let key: ItemKey = key.ok_or(ReadFailure::NotFound)?;
        let (reader, now) = (self.reader(), self.clock.now());
        self.stores.results.read(key, &reader, range, now)
    }

    fn reader(&self) -> Reader {
        self.owner.clone().map_or(Reader::Stranger, Reader::Of)
    }

    /// The figures so far; they stay after the release.
    pub(crate) fn figures(&self) -> SpillFigures {
        self.counts().figures()
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

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at_most_for_a_turn(limit: Option<u64>) -> u64 {
    limit.map_or(TURN_REPLACEMENT_BYTES, |limit| {
        limit.min(TURN_REPLACEMENT_BYTES)
    })
}

fn rendered(path: &str, answer: &Answer, bytes: u64, matches: Option<usize>) -> ReadBack {
    let text = answer.text();
    let header = Header {
        spillover_ref: path,
        offset: answer.offset,
        length: text.len() as u64,
        matches,
        next_offset: answer.next_offset,
        size_bytes: answer.size,
    };
    ReadBack {
        reference: path.to_owned(),
        offset: answer.offset,
        bytes,
        text: header.before(&text),
    }
}

fn contents(uri: &str, resource: &Resource, with_range: bool) -> String {
    let is_part = with_range || resource.offset > 0 || resource.next_offset.is_some();
    let text = Some(resource.text.as_str());
    let (text, blob) = if resource.media_type == BINARY {
        (None, text)
    } else {
        (text, None)
    };
    let contents = Contents {
        contents: [ResourceContent {
            uri,
            mime_type: &resource.media_type,
            text,
            blob,
            offset: is_part.then_some(resource.offset),
            length: is_part.then_some(resource.text.len() as u64),
            next_offset: is_part.then_some(resource.next_offset),
            size_bytes: is_part.then_some(resource.size),
        }],
    };
    serde_json::to_string(&contents).expect("texts and numbers have a JSON form")
}
