//! Looks at the run folders below a reports folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use spill_record::{FolderKind, LiveFolder, RunFolder, RunRecord};
use spill_verdict::{CandidateVerdict, Verdict, judge, plain, standing};

use crate::board::{Board, Card, CardState, Counts, about, rules};
use crate::error::DashError;
use crate::metrics::{Metrics, zero_metrics};

/// Folders that are shown at most, the newest ones.
const SHOWN: usize = 1_000;
const VERDICT: &str = "verdict.json";
/// The copy of the accepted run: no acceptance of its own.
const BASELINE: &str = "baseline";

/// The run folders of a reports folder, as of the last look.
#[derive(Debug)]
pub struct Reports {
    path: PathBuf,
    followed: BTreeMap<String, Followed>,
    /// The newest folder's name and figures.
    newest: Option<(String, Metrics)>,
}

/// A folder and what was last seen of it.
#[derive(Debug)]
enum Followed {
    Readable(Box<Seen>),
    Unreadable(String),
}

#[derive(Debug)]
struct Seen {
    live: LiveFolder,
    verdict: Option<Verdict>,
    /// The rules as they stand while a process writes the folder.
    standing: Option<Vec<CandidateVerdict>>,
    /// When `verdict.json` was last written, where it was read.
    judged: Option<SystemTime>,
    state: CardState,
    counts: Counts,
}

impl Reports {
    /// Follows the folders below `path`; a folder that is not there yet has none.
    ///
    /// # Errors
    ///
    /// Fails when something stands there that cannot be listed.
    pub fn open(path: &Path) -> Result<Self, DashError> {
        let mut reports = Self {
            path: path.to_owned(),
            followed: BTreeMap::new(),
            newest: None,
        };
        reports.look()?;
        Ok(reports)
    }

    /// Reads what is new. Cost grows with the new bytes and with the number of folders.
    ///
    /// # Errors
    ///
    /// As [`Reports::open`].
    pub fn look(&mut self) -> Result<(), DashError> {
        let names = self.names()?;
        self.followed.retain(|name, _| names.contains(name));
        let newest = names.last().cloned();
        if self.newest.as_ref().map(|(name, _)| name) != newest.as_ref() {
            // Its records are counted from the first one on.
            self.newest = None;
            newest.as_ref().map(|name| self.followed.remove(name));
        }
        for name in names {
            let is_newest = newest.as_ref() == Some(&name);
            let next = match self.followed.remove(&name) {
                Some(Followed::Readable(seen)) => Ok(seen),
                Some(Followed::Unreadable(error)) => Err(error),
                None => Seen::open(&self.path.join(&name)).map(Box::new),
            };
            let next = next.and_then(|mut seen| {
                let metrics = is_newest.then(|| {
                    let made = || (name.clone(), Metrics::of(seen.live.set()));
                    &mut self.newest.get_or_insert_with(made).1
                });
                seen.refresh(metrics).map(|()| seen)
            });
            let followed = next.map_or_else(Followed::Unreadable, Followed::Readable);
            self.followed.insert(name, followed);
        }
        Ok(())
    }

    /// Names of the run folders, oldest first: an id begins with its time.
    fn names(&self) -> Result<Vec<String>, DashError> {
        let unreadable = |source| DashError::Reports {
            path: self.path.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(unreadable(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if is_folder
                && is_id(&name)
                && name != BASELINE
                && entry.path().join("manifest.json").is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        names.drain(..names.len().saturating_sub(SHOWN));
        Ok(names)
    }

    /// The path of a folder that is followed.
    #[must_use]
    pub fn folder(&self, id: &str) -> Option<PathBuf> {
        self.followed.contains_key(id).then(|| self.path.join(id))
    }

    /// What is shown of it now; `now` gives rates their time.
    #[must_use]
    pub fn board(&self, now: Timestamp) -> Board {
        let cards = self
            .followed
            .iter()
            .rev()
            .map(|(id, followed)| match followed {
                Followed::Readable(seen) => seen.card(id, now),
                Followed::Unreadable(error) => unreadable(id, error),
            });
        Board {
            cards: cards.collect(),
        }
    }

    /// The newest folder's figures, or those of no folder.
    pub(crate) fn metrics(&self, board: &Board) -> String {
        let seen = self.followed.iter().next_back();
        match (seen, &self.newest, board.cards.first()) {
            (Some((_, Followed::Readable(seen))), Some((_, metrics)), Some(card)) => {
                metrics.exposition(card, seen.verdict.as_ref())
            }
            _ => zero_metrics(),
        }
    }
}

/// The figures of one run folder in Prometheus' text format, as `/metrics` shows them while it is the
/// newest; those of no folder where it cannot be read.
#[must_use]
pub fn folder_metrics(path: &Path) -> String {
    let read = || -> Option<String> {
        let mut seen = Seen::open(path).ok()?;
        let mut metrics = Metrics::of(seen.live.set());
        seen.refresh(Some(&mut metrics)).ok()?;
        // A finished folder has no rate.
        let card = seen.card("", Timestamp::UNIX_EPOCH);
        Some(metrics.exposition(&card, seen.verdict.as_ref()))
    };
    read().unwrap_or_else(zero_metrics)
}

/// Whether the records of a folder come to `verdict`: they are judged once more.
fn is_verdict_of(verdict: &Verdict, path: &Path) -> Result<bool, String> {
    let set = RunFolder::read(path).map_err(|error| error.to_string())?;
    Ok(judge(&set) == *verdict)
}

/// A name that stands in a path and an address as it is.
fn is_id(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

impl Seen {
    fn open(path: &Path) -> Result<Self, String> {
        Ok(Self {
            live: LiveFolder::open(path).map_err(|error| error.to_string())?,
            verdict: None,
            standing: None,
            judged: None,
            state: CardState::Incomplete,
            counts: Counts::default(),
        })
    }

    /// Reads the verdict of a finished folder, or judges what an unfinished one holds so far, and counts the newest
    /// folder's new records into its `metrics`.
    fn refresh(&mut self, mut metrics: Option<&mut Metrics>) -> Result<(), String> {
        match self.live.set().manifest.kind {
            FolderKind::Acceptance => {}
            FolderKind::Sweep => return self.refresh_sweep(metrics),
        }
        let written = self.live.is_being_written();
        let path = self.live.path().join(VERDICT);
        let judged = fs::metadata(&path).and_then(|data| data.modified()).ok();
        let changed = fs::metadata(self.live.path().join("runs.jsonl"))
            .and_then(|data| data.modified())
            .ok();
        // A copy of a folder has its files in any order of time.
        let newer = judged.is_some_and(|time| changed.is_some_and(|changed| changed > time));
        let needs_records = metrics.is_some() || written || judged.is_none() || newer;
        let fresh = if needs_records {
            let count = |run: &RunRecord| {
                if let Some(metrics) = &mut metrics {
                    metrics.record(run);
                }
            };
            self.live.look(count).map_err(|error| error.to_string())?
        } else {
            0
        };
        if let Some(metrics) = metrics {
            let calls = self.live.look_at_calls();
            for call in calls.map_err(|error| error.to_string())? {
                metrics.call(&call);
            }
        }
        match judged.filter(|_| !written) {
            Some(time) if self.judged == Some(time) => {}
            Some(time) => {
                let text = RunFolder::read_derived(self.live.path(), VERDICT)
                    .map_err(|error| error.to_string())?;
                let verdict: Verdict = serde_json::from_slice(&text)
                    .map_err(|error| format!("{VERDICT} is not a verdict: {error}"))?;
                if newer && !is_verdict_of(&verdict, self.live.path())? {
                    return Err(
                        "its records are not those that it was judged on (judge it again with `spillgate judge`)".to_owned(),
                    );
                }
                self.counts = Counts::of_verdict(self.live.set(), &verdict);
                self.verdict = Some(verdict);
                self.standing = None;
                self.judged = Some(time);
                self.state = CardState::Finished;
            }
            None => {
                self.state = if written {
                    CardState::Running
                } else {
                    CardState::Incomplete
                };
                let set = self.live.set();
                let anew = fresh > 0 || self.verdict.is_none() || self.judged.is_some();
                if anew {
                    self.judged = None;
                    self.counts = Counts::of(set);
                    self.verdict = Some(judge(set));
                }
                if !written {
                    self.standing = None;
                } else if anew || self.standing.is_none() {
                    self.standing = Some(standing(set));
                }
            }
        }
        Ok(())
    }

    /// Reads what a sweep's folder holds so far; nothing of it is judged.
    fn refresh_sweep(&mut self, mut metrics: Option<&mut Metrics>) -> Result<(), String> {
        let count = |run: &RunRecord| {
            if let Some(metrics) = &mut metrics {
                metrics.record(run);
            }
        };
        let fresh = self.live.look(count).map_err(|error| error.to_string())?;
        if let Some(metrics) = metrics {
            let calls = self.live.look_at_calls();
            for call in calls.map_err(|error| error.to_string())? {
                metrics.call(&call);
            }
        }
        if fresh > 0 || self.counts.planned == 0 {
            self.counts = Counts::of(self.live.set());
        }
        self.state = if self.live.is_being_written() {
            CardState::Running
        } else if self.counts.done < self.counts.planned {
            CardState::Incomplete
        } else {
            CardState::Finished
        };
        Ok(())
    }

    fn card(&self, id: &str, now: Timestamp) -> Card {
        let set = self.live.set();
        let counts = self.counts;
        let running = self.state == CardState::Running;
        let rate = running
            .then(|| rate(&set.manifest.started_at, counts.done, now))
            .flatten();
        let left = counts.planned.saturating_sub(counts.done);
        let finished = self
            .verdict
            .as_ref()
            .filter(|_| self.state == CardState::Finished);
        Card {
            id: id.to_owned(),
            state: self.state,
            started_at: plain(&set.manifest.started_at),
            about: about(set),
            planned: counts.planned,
            done: counts.done,
            succeeded: counts.succeeded,
            failed: counts.failed,
            infrastructure: counts.infrastructure,
            cells_planned: counts.cells_planned,
            cells_done: counts.cells_done,
            runs_per_second: rate,
            eta_seconds: rate.map(|rate| left as f64 / rate),
            sentence: match (self.state, finished) {
                _ if set.manifest.kind == FolderKind::Sweep => {
                    "A sweep: settings against cost and quality, nothing is judged.".to_owned()
                }
                (_, Some(verdict)) => verdict.decision_sentence().to_owned(),
                (CardState::Running, None) => {
                    "Rules as they stand; they can turn until the planned number is reached."
                        .to_owned()
                }
                (CardState::Incomplete | CardState::Finished | CardState::Unreadable, None) => {
                    "Its process ended before the plan was done: no verdict.".to_owned()
                }
            },
            decision: finished.map(|verdict| verdict.decision.as_str().to_owned()),
            exit_code: finished.map(Verdict::exit_code),
            provisional: finished.is_none() && self.state != CardState::Finished,
            candidates: self.verdict.iter().flat_map(candidates).collect(),
            rules: self
                .verdict
                .as_ref()
                .map(|verdict| rules(verdict, self.standing.as_deref()))
                .unwrap_or_default(),
            error: None,
        }
    }
}

fn candidates(verdict: &Verdict) -> impl Iterator<Item = String> + '_ {
    let all = verdict.candidates.iter();
    all.map(|candidate| plain(&candidate.configuration))
}

/// Runs per second since the start; `None` before the first one.
fn rate(started_at: &str, done: u64, now: Timestamp) -> Option<f64> {
    let started: Timestamp = started_at.parse().ok()?;
    let seconds = now.duration_since(started).as_secs_f64();
    (done > 0 && seconds > 0.0).then(|| done as f64 / seconds)
}

fn unreadable(id: &str, error: &str) -> Card {
    Card {
        id: id.to_owned(),
        state: CardState::Unreadable,
        started_at: String::new(),
        about: String::new(),
        planned: 0,
        done: 0,
        succeeded: 0,
        failed: 0,
        infrastructure: 0,
        cells_planned: 0,
        cells_done: 0,
        runs_per_second: None,
        eta_seconds: None,
        sentence: "The folder cannot be read.".to_owned(),
        decision: None,
        exit_code: None,
        provisional: false,
        candidates: Vec::new(),
        rules: Vec::new(),
        error: Some(plain(error)),
    }
}
