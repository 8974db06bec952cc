//! The final answer: findings from everything that is visible.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spill_scenario::{Recipe, ScriptedCall};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use crate::composite;
use crate::memory::Memory;
use crate::rules::{Cuts, Finding, Rules, TextKind};
use crate::seen::{Entry, Listed, Outcome, Piece, Seen, Stored, Subject};

/// Visible text of one stored result without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) text: String,
    /// Whether its first and its last line are known to be whole.
    whole_first: bool,
    whole_last: bool,
}

/// Joins head, tail and slices of a stored result where they touch or overlap.
pub(crate) fn segments(stored: &Stored<'_>) -> Vec<Segment> {
    let mut pieces: Vec<Piece<'_>> = stored.pieces.clone();
    pieces.sort_by_key(|piece| piece.start);
    let mut joined: Vec<Segment> = Vec::new();
    for piece in pieces {
        let range = piece.range();
        let open = joined.last_mut().filter(|last| last.end() >= range.start);
        match open {
            Some(last) if last.end() >= range.end => {}
            Some(last) => {
                let known = usize::try_from(last.end() - range.start).unwrap_or(usize::MAX);
                // A piece that overlaps within a character does not belong to the same text.
                last.text
                    .push_str(piece.text.get(known..).unwrap_or_default());
                last.whole_last = piece.is_lines;
            }
            None => joined.push(Segment {
                start: range.start,
                text: piece.text.to_owned(),
                whole_first: piece.is_lines,
                whole_last: piece.is_lines,
            }),
        }
    }
    joined
}

impl Segment {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.text.len() as u64)
    }

    /// Which of its ends are cuts in a text of `size` bytes.
    pub(crate) fn cuts(&self, size: u64) -> Cuts {
        Cuts {
            start: self.start > 0 && !self.whole_first,
            end: self.end() < size && !self.whole_last,
        }
    }
}

/// What was found in texts that were read before, by content.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    known: Mutex<HashMap<u128, Arc<[Finding]>>>,
    read_bytes: AtomicU64,
}

impl Readings {
    /// Reads a text, or remembers what was found in it.
    pub(crate) fn read(
        &self,
        rules: &Rules,
        kind: TextKind,
        carrier: &str,
        text: &str,
        cuts: Cuts,
    ) -> Arc<[Finding]> {
        let how = format!("{kind:?} {cuts:?} {} {carrier}", rules.key());
        let key = xxh3_128_with_seed(
            &xxh3_128(text.as_bytes()).to_le_bytes(),
            xxh3_64(how.as_bytes()),
        );
        if let Some(known) = self.known().get(&key) {
            return Arc::clone(known);
        }
        self.read_bytes
            .fetch_add(text.len() as u64, Ordering::Relaxed);
        let findings: Arc<[Finding]> = rules.read(kind, carrier, text, cuts).into();
        self.known().insert(key, Arc::clone(&findings));
        findings
    }

    /// Bytes that were read; what was remembered is not in it.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<u128, Arc<[Finding]>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How answers are written.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) recipe: Recipe,
    pub(crate) rules: &'a Rules,
    /// The calls of a transcript, where the recipe has one.
    pub(crate) script: &'a [ScriptedCall],
    pub(crate) readings: &'a Readings,
    pub(crate) max_findings: usize,
    /// What it forgets, where it does.
    pub(crate) forgets: Option<Forgets<'a>>,
}

/// How a forgetful model loses findings: each by a draw of its own.
pub(crate) struct Forgets<'a> {
    pub(crate) memory: &'a Memory,
    /// A draw from 0 to below 1 for the finding with this hash.
    pub(crate) draw: &'a dyn Fn(u64) -> f64,
}

impl std::fmt::Debug for Forgets<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.memory.fmt(formatter)
    }
}

impl Answer<'_> {
    /// Whether the model still has a finding of a text so far back.
    fn recalls(&self, finding: &str, behind: u64) -> bool {
        self.forgets.as_ref().is_none_or(|forgets| {
            (forgets.draw)(xxh3_64(finding.as_bytes())) < forgets.memory.share(behind)
        })
    }

    /// One line for each finding, in the order of the list and then of the text.
    pub(crate) fn write(&self, seen: &Seen<'_>, listed: &[Listed]) -> String {
        let mut found = match self.recipe {
            Recipe::Review | Recipe::Document | Recipe::Recorded => Vec::new(),
            Recipe::Records => counts(listed),
        };
        for entry in in_reading_order(seen, listed) {
            match &entry.outcome {
                Outcome::Nothing => {}
                Outcome::Text(text) => {
                    for (text, cuts) in text.parts() {
                        self.read(entry, text, cuts, &mut found);
                    }
                }
                Outcome::Filed(filed) => {
                    for (text, cuts) in filed.parts() {
                        self.read(entry, &text, cuts, &mut found);
                    }
                }
                Outcome::Stored(stored) => {
                    for segment in segments(stored) {
                        self.read(entry, &segment.text, segment.cuts(stored.size), &mut found);
                    }
                }
            }
        }
        let found = bounded(found, self.max_findings);
        if found.is_empty() {
            return self.nothing_found(listed).into_owned();
        }
        found
            .iter()
            .map(|finding| format!("- {finding}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Reads one visible text of a subject.
    fn read(&self, entry: &Entry<'_>, text: &str, cuts: Cuts, found: &mut Vec<String>) {
        let mut read = |kind, name: &str, text: &str, cuts| {
            let findings = self.readings.read(self.rules, kind, name, text, cuts);
            let recalled = findings.iter().map(|finding| &finding.text);
            let recalled = recalled.filter(|text| self.recalls(text, entry.behind));
            found.extend(recalled.cloned());
        };
        match entry.subject {
            Subject::List => {}
            Subject::Diffs => {
                for part in composite::parts(text, cuts) {
                    read(TextKind::Diff, part.path, part.text, part.cuts);
                }
            }
            Subject::Diff => read(TextKind::Diff, entry.name, text, cuts),
            Subject::File => read(TextKind::File, entry.name, text, cuts),
            Subject::Document => read(TextKind::Document, entry.name, text, cuts),
            Subject::Rows => read(TextKind::Rows, entry.name, text, cuts),
            Subject::Csv => read(TextKind::Csv, entry.name, text, cuts),
            Subject::Log => read(TextKind::Log, entry.name, text, cuts),
            Subject::Recorded => {
                let call = self.script.iter().find(|call| call.key == entry.name);
                if let Some(call) = call {
                    read(TextKind::Recorded, &call.id, text, cuts);
                }
            }
        }
    }

    fn nothing_found(&self, listed: &[Listed]) -> Cow<'static, str> {
        match (self.recipe, listed.is_empty()) {
            (Recipe::Review, true) => "I could not see which files changed.".into(),
            (Recipe::Document, true) => "I could not see which documents there are.".into(),
            (Recipe::Records, true) => "I could not see which tables there are.".into(),
            (Recipe::Records, false) => "I found nothing to report in these tables.".into(),
            (Recipe::Review, false) => "I found nothing to report in this change.".into(),
            (Recipe::Document, false) => "I found no sections or key sentences.".into(),
            (Recipe::Recorded, _) => "I found nothing to report in what the tools returned.".into(),
        }
    }
}

/// Numbers of rows, as the list states them.
fn counts(listed: &[Listed]) -> Vec<String> {
    let stated = listed.iter().filter_map(|entry| {
        let rows = entry.rows?;
        Some(format!("{}: rows: {rows}", entry.name))
    });
    stated.collect()
}

fn in_reading_order<'s, 'v>(seen: &'s Seen<'v>, listed: &[Listed]) -> Vec<&'s Entry<'v>> {
    let places: HashMap<&str, usize> = listed
        .iter()
        .enumerate()
        .map(|(place, entry)| (entry.name.as_str(), place))
        .collect();
    let mut entries: Vec<_> = seen.entries.iter().collect();
    entries.sort_by_key(|entry| {
        let place = places.get(entry.name).copied().unwrap_or(usize::MAX);
        (place, entry.subject)
    });
    entries
}

/// Drops repeated findings and keeps `max` of the rest: those with the smallest hashes, so that
/// two models which see nearly the same report nearly the same. Order stays.
pub(crate) fn bounded(found: Vec<String>, max: usize) -> Vec<String> {
    let mut known = HashSet::new();
    let mut found: Vec<String> = found
        .into_iter()
        .filter(|finding| known.insert(finding.clone()))
        .collect();
    if found.len() > max {
        let mut hashes: Vec<u64> = found.iter().map(|text| xxh3_64(text.as_bytes())).collect();
        hashes.sort_unstable();
        let limit = hashes.get(max).copied().unwrap_or(u64::MAX);
        found.retain(|text| xxh3_64(text.as_bytes()) < limit);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_answer_keeps_order_and_mostly_the_same_findings() {
        let all: Vec<String> = (0..50).map(|n| format!("finding {n}")).collect();
        let ten = bounded(all.clone(), 10);
        assert_eq!(ten.len(), 10);
        let places: Vec<_> = ten
            .iter()
            .map(|text| {
                all.iter()
                    .position(|known| known == text)
                    .expect("one of all")
            })
            .collect();
        assert!(places.is_sorted());
        let fewer = bounded(all[..45].to_vec(), 10);
        let common = ten.iter().filter(|text| fewer.contains(text)).count();
        let lost = ten.iter().filter(|text| all[45..].contains(text)).count();
        assert_eq!(common, 10 - lost);
        assert_eq!(
            bounded(vec!["a".into(), "a".into()], 0),
            Vec::<String>::new()
        );
        assert_eq!(
            bounded(vec!["a".into(), "b".into(), "a".into()], 5),
            ["a", "b"]
        );
    }
}
