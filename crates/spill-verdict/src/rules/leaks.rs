use spill_record::{Outcome, RunRecord};

use super::{Comparison, EVIDENCE_LIMIT, Measured};
use crate::inventory::{Slot, leaks};
use crate::rule::{Bound, Rule, State};
use crate::verdict::{Evidence, RuleVerdict};
use crate::words::{counted, grouped, plain};

impl Comparison<'_> {
    /// Rule 5. Absolute, so the control takes no part; any run that has a record was searched.
    pub(super) fn nothing_leaks(&self) -> RuleVerdict {
        let mut found: Vec<(&str, &RunRecord)> = Vec::new();
        let (mut searched, mut unsearched, mut lost, mut missing) = (0u64, 0u64, 0u64, 0u64);
        let mut beside = 0u64;
        for pair in self.cell.pairs.iter().chain(&self.extra.pairs) {
            let record = match pair.slots[self.candidate] {
                Slot::Finished(record) => record,
                Slot::Infrastructure(record) => {
                    lost += u64::from(!pair.extra);
                    record
                }
                Slot::Missing => {
                    missing += u64::from(!pair.extra);
                    continue;
                }
            };
            if leaks(record) {
                found.push((pair.pair_id, record));
                beside += u64::from(pair.extra);
            }
            let finished = record.outcome != Outcome::Infrastructure;
            if record.files_written.is_none() || record.leak_check.is_empty() {
                unsearched += u64::from(finished && !pair.extra);
            } else {
                searched += u64::from(finished && !pair.extra);
            }
        }
        let count = found.len() as u64;
        let state = if count > 0 {
            State::Broken
        } else if missing > 0 || self.planned == 0 {
            State::NotRun
        } else if lost > 0 || unsearched > 0 {
            State::NotProven
        } else {
            State::Holds
        };
        let mut words = format!(
            "{} of {searched} searched wrote a file or let result content out",
            counted(count - beside, "run")
        );
        if beside > 0 {
            words = format!("{words}, and {} of the extra pairs", counted(beside, "run"));
        }
        for (number, what) in [
            (unsearched, "not searched"),
            (missing, "missing"),
            (lost, "lost to the harness"),
        ] {
            if number > 0 {
                words = format!("{words}, {number} {what}");
            }
        }
        let evidence = found
            .iter()
            .take(EVIDENCE_LIMIT)
            .map(|(pair_id, record)| Evidence {
                pair_id: (*pair_id).to_owned(),
                run_id: record.run_id.clone(),
                control_run_id: None,
                words: leak_words(record),
            });
        let measured = Measured {
            literal: state,
            settled: true,
            observed: (searched > 0 || count > 0).then_some(count as f64),
            limit: Some(0.0),
            bound: Some(Bound::AtMost),
            words,
            figures: None,
            evidence: evidence.collect(),
            interval: None,
            n: None,
        };
        self.row(Rule::NothingLeaks, state, searched, self.planned, measured)
    }
}

fn leak_words(record: &RunRecord) -> String {
    let files = record.files_written.map_or("unknown".to_owned(), grouped);
    let first = record
        .leak_findings
        .first()
        .map(|place| format!(", first in {}", plain(place)));
    format!(
        "files written: {files}; places with content: {}{}",
        record.leak_findings.len(),
        first.unwrap_or_default()
    )
}
