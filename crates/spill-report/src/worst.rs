use std::collections::BTreeSet;

use serde::Serialize;
use spill_record::RunRecord;
use spill_verdict::{Rule, plain};

use crate::figures::NOTHING;
use crate::measure::{Measure, concerns};
use crate::pairs::Versus;
use crate::runs::Runs;

/// Pairs that a rule lists as its worst.
const WORST: usize = 5;

/// One of the pairs in which the candidate's run is worst against the control's.
pub(crate) struct WorstPair<'a> {
    place: String,
    candidate: String,
    control: &'a RunRecord,
    run: &'a RunRecord,
    worse: f64,
}

/// The worst pairs of one rule, worst first, then in plan order.
pub(crate) fn worst<'a>(rule: Rule, all: &[Versus<'a>]) -> Vec<WorstPair<'a>> {
    let measure = Measure::of(rule);
    let mut worst: Vec<WorstPair<'a>> = Vec::new();
    for versus in all.iter().filter(|versus| concerns(rule, versus)) {
        let pairs = versus.pairs.iter().filter_map(|(off, on)| {
            let worse = (measure.worse)(off, on)?;
            (worse > 0.0).then(|| WorstPair {
                place: versus.place(),
                candidate: versus.candidate.clone(),
                control: off,
                run: on,
                worse,
            })
        });
        worst.extend(pairs);
        // Sorting is stable: pairs that are equally bad stay in plan order.
        worst.sort_by(|a, b| b.worse.total_cmp(&a.worse));
        worst.truncate(WORST);
    }
    worst
}

/// The ids of the runs of all these pairs.
pub(crate) fn run_ids<'a>(worst: &[Vec<WorstPair<'a>>]) -> BTreeSet<&'a str> {
    worst
        .iter()
        .flatten()
        .flat_map(|pair| [&*pair.run.run_id, &*pair.control.run_id])
        .collect()
}

/// A worst pair as the template shows it.
#[derive(Serialize)]
pub(crate) struct WorstRow {
    place: String,
    candidate: String,
    repetition: u32,
    profile: String,
    control_value: String,
    value: String,
    words: String,
    run: (String, Option<String>),
    control_run: (String, Option<String>),
}

/// The rows of a rule's worst pairs.
pub(crate) fn rows(rule: Rule, worst: &[WorstPair<'_>], runs: &Runs) -> Vec<WorstRow> {
    let measure = Measure::of(rule);
    let value = |run: &RunRecord| (measure.of)(run).map_or(NOTHING.to_owned(), measure.write);
    let link = |run: &RunRecord| (short_id(&run.run_id), runs.anchor(&run.run_id));
    worst
        .iter()
        .map(|pair| WorstRow {
            place: pair.place.clone(),
            candidate: pair.candidate.clone(),
            repetition: pair.run.repetition,
            profile: plain(&pair.run.profile),
            control_value: value(pair.control),
            value: value(pair.run),
            words: (measure.worse_words)(pair.control, pair.run),
            run: link(pair.run),
            control_run: link(pair.control),
        })
        .collect()
}

/// The beginning of a run's id, which tells it from the others of a report.
pub(crate) fn short_id(id: &str) -> String {
    plain(id).chars().take(8).collect()
}
