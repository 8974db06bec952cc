//! Many files under one plan, on several threads.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use spill_record::{ProblemRecord, SCHEMA, SessionRecord};
use spill_tokens::TokenCounter;

use crate::copies::{HandedOn, Identity, identity};
use crate::input::{FileReport, Import, Imported};
use crate::limits::Limits;
use crate::listing::{Listed, list};
use crate::model::Transcript;
use crate::problem::{Place, Problem, ProblemKind, Problems};
use crate::seen::SeenCalls;
use crate::session::{ReplayPlan, session};

/// How many files may be ahead of the first one that is not read: what they gave waits in memory.
const AHEAD: usize = 64;
/// Records that wait between the threads and the sink.
const WAITING: usize = 64;

/// What a replay hands on, in the order of the files whatever thread was faster.
#[derive(Debug)]
pub enum ReplayedItem {
    /// A transcript's record.
    Session(Box<SessionRecord>),
    /// A session handed on before is the beginning of the next one, and counts no more.
    Superseded {
        /// Its `session_id`.
        session_id: String,
        /// The kind that it is left out as.
        left_out: &'static str,
    },
    /// Something that could not be understood.
    Problem(ProblemRecord),
    /// A file's report, after its transcripts.
    File(ReplayedFile),
    /// What is to be read; before everything else.
    Listed(FilesAmount),
    /// What was read since this was said before.
    Read(FilesAmount),
}

/// Files on disk and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesAmount {
    /// Files.
    pub files: u64,
    /// Their bytes as they stand on disk.
    pub bytes: u64,
}

/// What came of one file, or of one entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedFile {
    /// How many transcripts it gave.
    pub transcripts: u64,
    /// Whether something was lost as a whole: unreadable, packed in a way that is not read, damaged, over a
    /// limit, or a document that is no JSON.
    pub lost: bool,
    /// What could not be understood in it outside of its transcripts, by kind.
    pub problems: BTreeMap<String, u64>,
    /// What was left out on purpose, in it and in its transcripts, by kind.
    pub left_out: BTreeMap<String, u64>,
}

/// Replays every transcript of the files at `paths` and below, and hands on what comes of it. Memory holds one file's largest
/// transcript for each thread, and the records of files that wait for their turn. A file that is reached twice is read once.
///
/// # Errors
///
/// The first error of `sink`, after which nothing more is handed on.
pub fn replay_files<E>(
    paths: &[PathBuf],
    plan: &ReplayPlan,
    counter: &TokenCounter,
    threads: NonZeroUsize,
    sink: &mut dyn FnMut(ReplayedItem) -> Result<(), E>,
) -> Result<(), E> {
    let files = files(paths);
    let sizes = files.iter().map(bytes_of);
    sink(ReplayedItem::Listed(FilesAmount {
        files: files.len() as u64,
        bytes: sizes.sum(),
    }))?;
    let work = Work {
        files: &files,
        plan,
        counter,
        seen: SeenCalls::default(),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let (sender, received) = sync_channel(WAITING);
        for _ in 0..threads.get().min(files.len()) {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work.run(&sender));
        }
        drop(sender);
        let mut in_order = InOrder::default();
        let mut outcome = Ok(());
        // Goes on after a failure, so that no thread waits for room for ever.
        for (index, message) in received {
            if outcome.is_ok() {
                outcome = in_order.take(index, message, sink);
                if outcome.is_err() {
                    work.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        outcome
    })
}

/// All files in order, each once.
fn files(paths: &[PathBuf]) -> Vec<Listed> {
    let mut known: HashSet<PathBuf> = HashSet::new();
    let mut is_new = |path: &Path| match path.canonicalize() {
        Ok(path) => known.insert(path),
        Err(_) => true,
    };
    let listed = paths.iter().flat_map(|path| list(path, Limits::DEFAULT));
    listed
        .filter(|listed| match listed {
            Listed::File(path) => is_new(path),
            Listed::Unreadable(_) => true,
        })
        .collect()
}

/// A file's bytes; 0 where that is not known, and then it is not read either.
fn bytes_of(listed: &Listed) -> u64 {
    match listed {
        Listed::File(path) => std::fs::metadata(path).map_or(0, |meta| meta.len()),
        Listed::Unreadable(_) => 0,
    }
}

struct Work<'a> {
    files: &'a [Listed],
    plan: &'a ReplayPlan,
    counter: &'a TokenCounter,
    seen: SeenCalls,
    next: AtomicUsize,
    stop: AtomicBool,
}

/// What a thread sends: items of a file, and its end.
type Message = (usize, Option<Made>);

/// An item, and which transcript it is of.
struct Made {
    item: ReplayedItem,
    identity: Option<Identity>,
}

impl From<ReplayedItem> for Made {
    fn from(item: ReplayedItem) -> Self {
        Self {
            item,
            identity: None,
        }
    }
}

impl Work<'_> {
    fn run(&self, sender: &SyncSender<Message>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(listed) = self.files.get(index) else {
                return;
            };
            if self.stop.load(Ordering::Relaxed) {
                return self.seen.skip(index);
            }
            self.seen.wait_for(index.saturating_sub(AHEAD));
            // A send fails only when nobody receives any more, and then nobody misses it.
            let send = |made| drop(sender.send((index, Some(made))));
            self.file(index, listed, &send);
            let read = FilesAmount {
                files: 1,
                bytes: bytes_of(listed),
            };
            send(ReplayedItem::Read(read).into());
            drop(sender.send((index, None)));
        }
    }

    fn file(&self, index: usize, listed: &Listed, send: &dyn Fn(Made)) {
        let mut left_out = BTreeMap::new();
        let mut waiting = Vec::new();
        let mut reports = Vec::new();
        let mut import = Import::in_turn(Limits::DEFAULT, &self.seen, index);
        import.listed(listed, &mut |imported| match imported {
            Imported::Transcript(transcript) if transcript.format.tells_calls_apart() => {
                waiting.push(transcript);
            }
            Imported::Transcript(transcript) => self.transcript(&transcript, &mut left_out, send),
            Imported::File(report) if waiting.is_empty() => {
                self.report(&report, std::mem::take(&mut left_out), send);
            }
            Imported::File(report) => reports.push(report),
        });
        // What follows takes most of the time and needs no turn.
        drop(import);
        for transcript in waiting {
            self.transcript(&transcript, &mut left_out, send);
        }
        for report in reports {
            self.report(&report, std::mem::take(&mut left_out), send);
        }
    }

    fn transcript(
        &self,
        transcript: &Transcript,
        left_out: &mut BTreeMap<String, u64>,
        send: &dyn Fn(Made),
    ) {
        for (kind, count) in &transcript.left_out {
            *left_out.entry((*kind).to_owned()).or_default() += count;
        }
        let record = session(transcript, self.plan, self.counter);
        send(Made {
            item: ReplayedItem::Session(Box::new(record)),
            identity: identity(transcript),
        });
        send_problems(&transcript.problems, send);
    }

    fn report(
        &self,
        report: &FileReport,
        mut left_out: BTreeMap<String, u64>,
        send: &dyn Fn(Made),
    ) {
        for (kind, count) in &report.left_out {
            *left_out.entry((*kind).to_owned()).or_default() += count;
        }
        send_problems(&report.problems, send);
        let counts = report.problems.counts();
        let file = ReplayedFile {
            transcripts: report.transcripts,
            lost: counts.keys().any(|kind| is_loss(*kind)),
            problems: counts
                .iter()
                .map(|(kind, count)| (kind.name().to_owned(), *count))
                .collect(),
            left_out,
        };
        send(ReplayedItem::File(file).into());
    }
}

/// Whether something that may be a transcript is missing as a whole.
fn is_loss(kind: ProblemKind) -> bool {
    match kind {
        ProblemKind::Unreadable
        | ProblemKind::Limit
        | ProblemKind::NotUnpacked
        | ProblemKind::DamagedArchive
        | ProblemKind::NotJson => true,
        ProblemKind::NotAFile
        | ProblemKind::Empty
        | ProblemKind::NotRecognised
        | ProblemKind::NoCalls
        | ProblemKind::Cut
        | ProblemKind::NotUtf8
        | ProblemKind::LoneSurrogate
        | ProblemKind::TornLine
        | ProblemKind::Unknown
        | ProblemKind::BadField
        | ProblemKind::OrphanResult
        | ProblemKind::UnansweredCall
        | ProblemKind::DuplicateId
        | ProblemKind::BrokenReference
        | ProblemKind::Pairing => false,
    }
}

/// Hands on the problems that are kept whole, and says of how many of a kind only the number is known.
fn send_problems(problems: &Problems, send: &dyn Fn(Made)) {
    for Problem {
        place,
        kind,
        detail,
    } in problems.kept()
    {
        send(ReplayedItem::Problem(record(place, *kind, detail.clone())).into());
    }
    let Some(last) = problems.kept().last() else {
        return;
    };
    for (kind, count) in problems.counts() {
        if let Some(more @ 1..) = count.checked_sub(Problems::KEPT_PER_KIND) {
            let place = Place::file(&last.place.file);
            let detail = format!("{more} more of this kind, whose places are not kept");
            send(ReplayedItem::Problem(record(&place, *kind, detail)).into());
        }
    }
}

fn record(place: &Place, kind: ProblemKind, detail: String) -> ProblemRecord {
    ProblemRecord {
        schema: SCHEMA,
        file: place.file.to_string(),
        line: place.line,
        item: place.item,
        kind: kind.name().to_owned(),
        detail,
    }
}

/// Holds back what comes too early.
#[derive(Default)]
struct InOrder {
    next: usize,
    early: BTreeMap<usize, Vec<Option<Made>>>,
    handed_on: HandedOn,
}

impl InOrder {
    fn take<E>(
        &mut self,
        index: usize,
        message: Option<Made>,
        sink: &mut dyn FnMut(ReplayedItem) -> Result<(), E>,
    ) -> Result<(), E> {
        if index != self.next {
            self.early.entry(index).or_default().push(message);
            return Ok(());
        }
        if let Some(made) = message {
            return self.hand_on(made, sink);
        }
        self.next += 1;
        // The next file may be over, or still at work: then the rest of it comes as it is made.
        while let Some(messages) = self.early.remove(&self.next) {
            let mut over = false;
            for message in messages {
                match message {
                    Some(made) => self.hand_on(made, sink)?,
                    None => over = true,
                }
            }
            if !over {
                break;
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Hands on what is neither a copy nor the beginning of another; the file's report tells how many were.
    fn hand_on<E>(
        &mut self,
        made: Made,
        sink: &mut dyn FnMut(ReplayedItem) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut item = made.item;
        match &mut item {
            ReplayedItem::Session(session) => {
                let shorter = self.handed_on.take(made.identity, &session.session_id);
                let Some(shorter) = shorter else {
                    return Ok(());
                };
                for (session_id, left_out) in shorter {
                    sink(ReplayedItem::Superseded {
                        session_id,
                        left_out,
                    })?;
                }
            }
            ReplayedItem::File(file) => {
                for (kind, count) in self.handed_on.take_left_out(file.transcripts) {
                    file.transcripts -= count;
                    *file.left_out.entry(kind.to_owned()).or_default() += count;
                }
            }
            ReplayedItem::Superseded { .. }
            | ReplayedItem::Problem(_)
            | ReplayedItem::Listed(_)
            | ReplayedItem::Read(_) => {}
        }
        sink(item)
    }
}
