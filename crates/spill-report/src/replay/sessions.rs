//! What a report takes of single transcripts and problems, one at a time.

use csv::Writer;
use spill_record::{ProblemRecord, ReplayRecord, ReplayTotals, SessionRecord};
use spill_verdict::{focus, plain};

use crate::sheet::{number, whole};
use spill_record::csv_text as text;

/// Transcripts at each end that the page shows.
const SHOWN: usize = 10;
/// Problems that the page shows.
const SHOWN_PROBLEMS: usize = 200;

const COLUMNS: [&str; 33] = [
    "session_id",
    "file",
    "line",
    "format",
    "id",
    "parent_id",
    "class",
    "models",
    "calls",
    "copied_calls",
    "results",
    "result_bytes",
    "largest_result_bytes",
    "sent_results",
    "incomplete_results",
    "boundaries",
    "recorded_input_tokens",
    "recorded_uncached_input_tokens",
    "recorded_cache_read_tokens",
    "recorded_cache_write_tokens",
    "recorded_output_tokens",
    "counted_input_tokens",
    "input_bytes",
    "input_tokens",
    "cached_input_tokens",
    "peak_context_tokens",
    "calls_over_window",
    "input_cost",
    "problems",
    "policy",
    "threshold_bytes",
    "replaced_results",
    "used_results",
];

/// A transcript that the page shows.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) place: String,
    pub(crate) format: String,
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) replaced: u64,
    /// Tokens saved, by read-back assumption.
    pub(crate) saved: Vec<i64>,
}

/// The transcripts of a replay: the best and the worst under the variant in focus, and the rows of all.
pub struct ReplaySessions {
    cell: usize,
    read_back: usize,
    read_backs: usize,
    policy: String,
    threshold_bytes: u64,
    /// Best first.
    best: Vec<Shown>,
    /// Worst first.
    worst: Vec<Shown>,
    rows: Writer<Vec<u8>>,
}

impl ReplaySessions {
    /// For the transcripts that `totals` are the sums of.
    #[must_use]
    pub fn of(record: &ReplayRecord, totals: &ReplayTotals) -> Self {
        let (cell, read_back) = focus(record, totals);
        let mut rows = Writer::from_writer(Vec::new());
        let saved = record.read_backs.iter();
        let saved = saved.map(|name| format!("saved_input_tokens_under_{name}"));
        let columns = COLUMNS.map(str::to_owned).into_iter().chain(saved);
        rows.write_record(columns)
            .expect("a vector takes every write");
        let plan = record.cells.get(cell);
        Self {
            cell,
            read_back,
            read_backs: record.read_backs.len(),
            policy: plan.map_or(String::new(), |plan| plan.policy.clone()),
            threshold_bytes: plan.map_or(0, |plan| plan.threshold_bytes),
            best: Vec::new(),
            worst: Vec::new(),
            rows,
        }
    }

    /// Takes a transcript. In their order, so that equal ones stay in it.
    pub fn take(&mut self, session: &SessionRecord) {
        let saved = self.saved(session);
        self.row(session, &saved);
        let Some(cell) = session.cells.get(self.cell) else {
            return;
        };
        let shown = Shown {
            place: place(session),
            format: session.format.clone(),
            calls: session.calls,
            input_tokens: session.as_recorded.input_tokens,
            replaced: cell.replaced_results,
            saved,
        };
        let at = self.read_back;
        let of = |shown: &Shown| shown.saved.get(at).copied().unwrap_or(0);
        if of(&shown) > 0 {
            keep(&mut self.best, shown, |one| -of(one));
        } else if of(&shown) < 0 {
            keep(&mut self.worst, shown, of);
        }
    }

    fn saved(&self, session: &SessionRecord) -> Vec<i64> {
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let first = self.cell * self.read_backs;
        let outcomes = session.outcomes.iter().skip(first).take(self.read_backs);
        let before = signed(session.as_recorded.input_tokens);
        outcomes
            .map(|figures| before - signed(figures.input_tokens))
            .collect()
    }

    fn row(&mut self, session: &SessionRecord, saved: &[i64]) {
        let cell = session.cells.get(self.cell);
        let base = &session.as_recorded;
        let recorded = &session.recorded;
        let named = |name: Option<&String>| name.map(|name| text(&plain(name))).unwrap_or_default();
        let mut row = vec![
            session.session_id.clone(),
            text(&plain(&session.file)),
            whole(session.line),
            session.format.clone(),
            named(session.id.as_ref()),
            named(session.parent_id.as_ref()),
            session.class.map_or("", |class| class.as_str()).to_owned(),
            text(&plain(&session.models.join(" "))),
            session.calls.to_string(),
            session.copied_calls.to_string(),
            session.results.to_string(),
            session.result_bytes.to_string(),
            whole(session.largest_result_bytes),
            session.sent_results.to_string(),
            session.incomplete_results.to_string(),
            session.boundaries.to_string(),
            whole(recorded.input_tokens),
            whole(recorded.uncached_input_tokens),
            whole(recorded.cache_read_tokens),
            whole(recorded.cache_write_tokens),
            whole(recorded.output_tokens),
            whole(recorded.counted_input_tokens),
            base.input_bytes.to_string(),
            base.input_tokens.to_string(),
            base.cached_input_tokens.to_string(),
            base.peak_context_tokens.to_string(),
            whole(base.calls_over_window),
            number(base.input_cost),
            session.problems.values().sum::<u64>().to_string(),
            self.policy.clone(),
            self.threshold_bytes.to_string(),
            whole(cell.map(|cell| cell.replaced_results)),
            whole(cell.map(|cell| cell.used_results)),
        ];
        row.extend(saved.iter().map(ToString::to_string));
        row.resize(COLUMNS.len() + self.read_backs, String::new());
        self.rows
            .write_record(row)
            .expect("a vector takes every write");
    }

    pub(crate) fn best(&self) -> &[Shown] {
        &self.best
    }

    pub(crate) fn worst(&self) -> &[Shown] {
        &self.worst
    }

    pub(crate) fn cell(&self) -> usize {
        self.cell
    }

    pub(crate) fn read_back(&self) -> usize {
        self.read_back
    }

    pub(crate) fn into_csv(self) -> String {
        into_text(self.rows)
    }
}

/// Puts one into a short list that is sorted by `key`.
fn keep(list: &mut Vec<Shown>, one: Shown, key: impl Fn(&Shown) -> i64) {
    let at = list.partition_point(|other| key(other) <= key(&one));
    if at < SHOWN {
        list.insert(at, one);
        list.truncate(SHOWN);
    }
}

fn place(session: &SessionRecord) -> String {
    const LONGEST: usize = 60;
    let mut place = plain(&session.file);
    let count = place.chars().count();
    if count > LONGEST {
        let end: String = place.chars().skip(count - LONGEST).collect();
        place = format!("…{end}");
    }
    if let Some(line) = session.line {
        place = format!("{place}:{line}");
    }
    match &session.id {
        Some(id) => format!("{place} ({})", plain(id)),
        None => place,
    }
}

/// What could not be understood: the first problems for the page, and the rows of all.
pub struct ReplayProblems {
    first: Vec<ProblemRecord>,
    more: u64,
    rows: Writer<Vec<u8>>,
}

impl Default for ReplayProblems {
    fn default() -> Self {
        let mut rows = Writer::from_writer(Vec::new());
        let columns = ["file", "line", "item", "kind", "detail"];
        rows.write_record(columns)
            .expect("a vector takes every write");
        Self {
            first: Vec::new(),
            more: 0,
            rows,
        }
    }
}

impl ReplayProblems {
    /// Takes a problem.
    pub fn take(&mut self, problem: ProblemRecord) {
        let row = [
            text(&plain(&problem.file)),
            whole(problem.line),
            whole(problem.item),
            problem.kind.clone(),
            text(&plain(&problem.detail)),
        ];
        self.rows
            .write_record(row)
            .expect("a vector takes every write");
        if self.first.len() < SHOWN_PROBLEMS {
            self.first.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn first(&self) -> &[ProblemRecord] {
        &self.first
    }

    pub(crate) fn more(&self) -> u64 {
        self.more
    }

    pub(crate) fn into_csv(self) -> String {
        into_text(self.rows)
    }
}

fn into_text(rows: Writer<Vec<u8>>) -> String {
    let bytes = rows.into_inner().expect("a vector takes every write");
    String::from_utf8(bytes).expect("cells are UTF-8")
}
