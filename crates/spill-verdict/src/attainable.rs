use spill_record::{Class, PlanRecord};

use crate::rules::live::QUALITY_PAIRS_NEEDED;
use crate::statistics::{PairedCounts, difference_bounds, median_rank, rate_upper_bound};
use crate::words::{counted, percent};

/// What a plan of so many pairs can prove at best on a stochastic endpoint, one sentence a rule:
/// to be read before money is spent.
#[must_use]
pub fn attainable(plan: &PlanRecord) -> Vec<String> {
    let n = u64::from(plan.repetitions);
    let pairs = counted(n, "pair");
    let margin = plan.rules.success_margin;
    let mut lines = vec![
        match needed(|n| best_success(n) < margin) {
            Some(needed) if n < needed => format!(
                "rule 1 cannot hold: {pairs} an input without a failure still leave {} points, \
                 and the margin of {} needs {needed}",
                tenth(best_success(n)),
                percent(margin)
            ),
            Some(_) => format!(
                "rule 1 can hold: {pairs} without a failure leave {} points of the margin of {}",
                tenth(best_success(n)),
                percent(margin)
            ),
            None => format!("rule 1 cannot hold with a margin of {}", percent(margin)),
        },
        format!(
            "rule 2: {pairs} without a new limit hit show that fewer than {} of pairs hit it",
            percent(rate_upper_bound(0, n))
        ),
    ];
    if plan
        .inputs
        .iter()
        .any(|input| input.class != Class::Document)
    {
        lines.push(match median_rank(n) {
            Some(rank) => format!("rule 3 can hold: the bound of a median is value {rank} of {n}"),
            None => format!("rule 3 cannot hold: {pairs} do not bound a median, 5 are needed"),
        });
    }
    if plan
        .inputs
        .iter()
        .any(|input| input.class == Class::Document)
    {
        lines.push(if n < QUALITY_PAIRS_NEEDED {
            format!("rule 4 cannot hold: {pairs}, {QUALITY_PAIRS_NEEDED} are needed")
        } else {
            format!("rule 4 can hold: {pairs} are enough for a bootstrap")
        });
    }
    lines
}

/// How far below 0 the difference of success rates may still lie when no run fails.
fn best_success(n: u64) -> f64 {
    let counts = PairedCounts {
        both: n,
        ..PairedCounts::default()
    };
    difference_bounds(counts).map_or(1.0, |bounds| -bounds.lower)
}

fn tenth(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// The smallest number of pairs that is enough.
fn needed(enough: impl Fn(u64) -> bool) -> Option<u64> {
    (1..=100_000).find(|n| enough(*n))
}
