//! Which threshold the transcripts speak for, by class of work.

use spill_record::{Class, ReplayRecord, ReplaySums, ReplayTotals};

use super::table::threshold_words;
use crate::words::{counted, grouped, percent};

/// Fewer transcripts of a class are an indication and no recommendation.
pub const LEAST_SESSIONS: u64 = 5;
/// The assumption that a recommendation rests on, where it is replayed.
const USED: &str = "used";
/// A larger threshold that saves at least this share of the best saving is preferred: it touches fewer results.
const NEARLY: f64 = 0.95;

/// What is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceKind {
    /// This threshold.
    Threshold {
        /// Its bytes.
        bytes: u64,
        /// Its place among the cells.
        cell: usize,
    },
    /// No threshold saves anything.
    Off,
    /// No result is large enough for any threshold.
    NothingToReplace,
}

/// A recommendation for one class of work under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The class; `None` for all transcripts together.
    pub class: Option<Class>,
    /// Its transcripts.
    pub sessions: u64,
    /// The policy.
    pub policy: String,
    /// The size of its replacements; `None` is its own.
    pub replacement_bytes: Option<u64>,
    /// What is advised.
    pub kind: AdviceKind,
    /// The assumption it rests on.
    pub read_back: String,
    /// Whether there are too few transcripts for more than an indication.
    pub is_indication: bool,
    /// Why.
    pub reason: String,
}

/// The assumption that recommendations rest on, as an index: `used`, or else the one that saves least of all tokens.
pub(crate) fn basis(record: &ReplayRecord, sums: &ReplaySums) -> usize {
    let used = record.read_backs.iter().position(|name| name == USED);
    used.unwrap_or_else(|| {
        let sent = |read_back: &usize| -> u64 {
            let cells = 0..record.cells.len();
            let of = |cell| sums.outcomes.get(record.outcome_index(cell, *read_back));
            cells
                .filter_map(of)
                .map(|figures| figures.input_tokens)
                .sum()
        };
        (0..record.read_backs.len()).max_by_key(sent).unwrap_or(0)
    })
}

/// The variant that single transcripts are compared under, as indices of cell and assumption: that of the first recommendation,
/// or else the lowest threshold that replaces anything, or the first one.
#[must_use]
pub fn focus(record: &ReplayRecord, totals: &ReplayTotals) -> (usize, usize) {
    let basis = basis(record, &totals.all);
    let advised = advice(record, totals)
        .into_iter()
        .find_map(|one| match one.kind {
            AdviceKind::Threshold { cell, .. } => Some(cell),
            AdviceKind::Off | AdviceKind::NothingToReplace => None,
        });
    let mut cells = totals.all.cells.iter();
    let tried = || cells.position(|cell| cell.replaced_results > 0);
    (advised.or_else(tried).unwrap_or(0), basis)
}

/// Recommendations: for all transcripts, then for each class, under each policy and size of replacements in their order.
#[must_use]
pub fn advice(record: &ReplayRecord, totals: &ReplayTotals) -> Vec<Advice> {
    let basis = basis(record, &totals.all);
    let mut series: Vec<(&str, Option<u64>)> = Vec::new();
    for cell in &record.cells {
        let one = (&*cell.policy, cell.replacement_bytes);
        if !series.contains(&one) {
            series.push(one);
        }
    }
    let classes = totals.classes.iter();
    let groups = std::iter::once((None, &totals.all))
        .chain(classes.filter_map(|(class, sums)| Some((Some((*class)?), sums))));
    groups
        .flat_map(|(class, sums)| {
            let series = series.iter();
            series.map(move |(policy, replacement)| {
                one(record, sums, class, (policy, *replacement), basis)
            })
        })
        .collect()
}

fn one(
    record: &ReplayRecord,
    sums: &ReplaySums,
    class: Option<Class>,
    (policy, replacement): (&str, Option<u64>),
    basis: usize,
) -> Advice {
    let cells = record.cells.iter().enumerate();
    let of_series =
        cells.filter(|(_, cell)| cell.policy == policy && cell.replacement_bytes == replacement);
    let saved = |cell: usize, read_back: usize| -> f64 {
        let under = sums.outcomes.get(record.outcome_index(cell, read_back));
        let before = sums.as_recorded.input_tokens as f64;
        under.map_or(0.0, |under| before - under.input_tokens as f64)
    };
    let tried: Vec<(usize, u64, f64)> = of_series
        .filter(|(index, _)| {
            sums.cells
                .get(*index)
                .is_some_and(|cell| cell.replaced_results > 0)
        })
        .map(|(index, cell)| (index, cell.threshold_bytes, saved(index, basis)))
        .collect();
    let best = tried.iter().map(|(_, _, saved)| *saved).fold(0.0, f64::max);
    let enough = |(_, _, saved): &&(usize, u64, f64)| best > 0.0 && *saved >= best * NEARLY;
    let chosen = tried
        .iter()
        .filter(enough)
        .max_by_key(|(_, bytes, _)| *bytes);
    let kind = match chosen {
        _ if tried.is_empty() => AdviceKind::NothingToReplace,
        None => AdviceKind::Off,
        Some((cell, bytes, _)) => AdviceKind::Threshold {
            bytes: *bytes,
            cell: *cell,
        },
    };
    Advice {
        class,
        sessions: sums.sessions,
        policy: policy.to_owned(),
        replacement_bytes: replacement,
        kind,
        read_back: record.read_backs.get(basis).cloned().unwrap_or_default(),
        is_indication: sums.sessions < LEAST_SESSIONS,
        reason: reason(record, sums, kind, basis, &saved),
    }
}

fn reason(
    record: &ReplayRecord,
    sums: &ReplaySums,
    kind: AdviceKind,
    basis: usize,
    saved: &dyn Fn(usize, usize) -> f64,
) -> String {
    let whole = sums.as_recorded.input_tokens as f64;
    // What saves anything saves it of something.
    let words = |saved: f64| percent((saved / whole * 1_000.0).round() / 1_000.0);
    let assumption = |index: usize| record.read_backs.get(index).map_or("", |name| name);
    match kind {
        AdviceKind::NothingToReplace => {
            "no result that was sent reaches the lowest threshold".to_owned()
        }
        AdviceKind::Off => format!(
            "under the assumption {} every threshold costs more than it saves",
            assumption(basis)
        ),
        AdviceKind::Threshold { cell, .. } => {
            let range = (0..record.read_backs.len())
                .map(|index| format!("{} ({})", words(saved(cell, index)), assumption(index)));
            let range: Vec<String> = range.collect();
            let replaced = sums.cells.get(cell).copied().unwrap_or_default();
            format!(
                "it saves, by what is read back, {} of the input tokens; it replaces {} of {}, of which {} later used word \
                 for word; no larger threshold saves nearly as much",
                range.join(", "),
                counted(replaced.replaced_results, "result"),
                grouped(sums.sent_results),
                if replaced.used_results == 1 {
                    "1 was".to_owned()
                } else {
                    format!("{} were", replaced.used_results)
                },
            )
        }
    }
}

impl Advice {
    /// The advice in one or two words.
    #[must_use]
    pub fn words(&self) -> String {
        match self.kind {
            AdviceKind::Threshold { bytes, .. } => threshold_words(bytes),
            AdviceKind::Off => "off".to_owned(),
            AdviceKind::NothingToReplace => "nothing to replace".to_owned(),
        }
    }
}
