//! What a literal result proves on a stochastic endpoint.

use spill_record::{Outcome, RunRecord};

use super::tokens::token_ratio;
use super::{Compared, Comparison, Measured};
use crate::rule::{Bound, Rule, State};
use crate::statistics::{
    Bounds, CONFIDENCE, PairedCounts, difference_bounds, mean_bounds, median_bounds, not_above,
    not_below, rate_upper_bound, signs,
};
use crate::verdict::{Interval, IntervalOf};
use crate::words::{counted, figure, percent};

/// Pairs below which a bootstrap of qualities covers too little to be used: docs/statistics.md.
pub(crate) const QUALITY_PAIRS_NEEDED: u64 = 20;

impl Comparison<'_> {
    /// `measured` with the interval that live mode judges by, and the state that it proves.
    ///
    /// What the literal comparison could not judge stays as it is, and so does rule 5.
    pub(super) fn weigh(&self, rule: Rule, measured: Measured) -> Measured {
        match measured.literal {
            State::NotProven | State::NotApplicable | State::NotRun => return measured,
            State::Holds | State::Broken => {}
        }
        match rule {
            Rule::SuccessRate => self.weigh_success(measured),
            Rule::IterationLimit => self.weigh_limit_hits(measured),
            Rule::InputTokens => self.weigh_tokens(measured),
            Rule::Quality => self.weigh_quality(measured),
            Rule::NothingLeaks => measured,
        }
    }

    fn weigh_success(&self, measured: Measured) -> Measured {
        let margin = self.rules.success_margin;
        let Some(bounds) = difference_bounds(paired_counts(&self.compared)) else {
            return measured;
        };
        let words = format!(
            "difference {}, margin -{}",
            between(bounds, points),
            points(margin)
        );
        proven(
            measured,
            not_below(bounds, margin),
            words,
            Interval::of(IntervalOf::SuccessDifference, bounds, Some(-margin)),
        )
    }

    /// No event is allowed, so the literal state stands; the bound says how often it may happen.
    fn weigh_limit_hits(&self, measured: Measured) -> Measured {
        let n = self.compared.len() as u64;
        let hits = self.new_limit_hits().0.len() as u64;
        let upper = rate_upper_bound(hits, n);
        let words = format!("below {} of pairs at 95 %", percent(upper));
        let state = measured.literal;
        let interval = Interval {
            of: IntervalOf::NewLimitHitRate,
            lower: None,
            upper: Some(upper),
            confidence: CONFIDENCE,
            margin: None,
            p_value: None,
        };
        proven(measured, state, words, interval)
    }

    fn weigh_tokens(&self, measured: Measured) -> Measured {
        let (Some(limit), Some(bound)) = (measured.limit, measured.bound) else {
            return measured;
        };
        let ratios: Option<Vec<f64>> = self
            .both_succeeded()
            .iter()
            .map(|p| token_ratio(p))
            .collect();
        let ratios = ratios.unwrap_or_default();
        let Some(bounds) = median_bounds(&ratios) else {
            let words = format!(
                "{} cannot bound a median at 95 %, 5 are needed",
                counted(ratios.len() as u64, "pair")
            );
            return Measured {
                literal: State::NotProven,
                words: format!("{}; {words}", measured.words),
                ..measured
            };
        };
        let mut words = format!("median paired ratio {}", between(bounds, figure));
        let mut interval = Interval::of(IntervalOf::MedianTokenRatio, bounds, Some(limit));
        let state = match bound {
            Bound::Below => {
                let signs = signs(&ratios, limit);
                words = format!(
                    "{words}; {} of {} below the limit, sign test p = {}",
                    signs.below,
                    signs.n,
                    figure(signs.p_value)
                );
                interval.p_value = Some(signs.p_value);
                signs.state
            }
            Bound::AtMost | Bound::AtLeast => not_above(bounds, limit),
        };
        proven(measured, state, words, interval)
    }

    fn weigh_quality(&self, measured: Measured) -> Measured {
        let margin = self.rules.quality_margin;
        let facts = self.differences(|r| (r.facts_expected, r.facts_found));
        let end = self.differences(|r| (r.end_facts_expected, r.end_facts_found));
        let n = facts.len() as u64;
        let seed = bootstrap_seed(&self.compared);
        let (Some(all), Some(end)) = (mean_bounds(&facts, seed), mean_bounds(&end, seed)) else {
            return measured;
        };
        let words = format!(
            "difference {}, of the end {}, margin -{}",
            between(all, points),
            between(end, points),
            points(margin)
        );
        let worse = if end.lower < all.lower { end } else { all };
        let interval = Interval::of(IntervalOf::QualityDifference, worse, Some(-margin));
        if n < QUALITY_PAIRS_NEEDED {
            let words = format!(
                "{words}; {} are too few to bound it, {QUALITY_PAIRS_NEEDED} are needed",
                counted(n, "pair")
            );
            return proven(measured, State::NotProven, words, interval);
        }
        let states = [all, end].map(|bounds| not_below(bounds, margin));
        let state = states
            .into_iter()
            .max_by_key(|state| state.weight())
            .expect("two of them");
        proven(measured, state, words, interval)
    }

    /// The differences within pairs of the share that was found; empty where any is not known.
    fn differences(&self, pick: fn(&RunRecord) -> (Option<u64>, Option<u64>)) -> Vec<f64> {
        let share = |run: &RunRecord| {
            let (expected, found) = pick(run);
            crate::estimate::share(found?, expected?)
        };
        let all: Option<Vec<f64>> = self
            .compared
            .iter()
            .map(|pair| Some(share(pair.candidate)? - share(pair.control)?))
            .collect();
        all.unwrap_or_default()
    }
}

fn paired_counts(pairs: &[Compared<'_>]) -> PairedCounts {
    let won = |run: &RunRecord| run.outcome == Outcome::Succeeded;
    let mut counts = PairedCounts::default();
    for pair in pairs {
        let count = match (won(pair.candidate), won(pair.control)) {
            (true, true) => &mut counts.both,
            (true, false) => &mut counts.gained,
            (false, true) => &mut counts.lost,
            (false, false) => &mut counts.neither,
        };
        *count += 1;
    }
    counts
}

fn proven(measured: Measured, state: State, words: String, interval: Interval) -> Measured {
    Measured {
        literal: state,
        words: format!("{}; {words}", measured.words),
        interval: Some(interval),
        ..measured
    }
}

fn between(bounds: Bounds, write: fn(f64) -> String) -> String {
    format!(
        "{} to {} at 95 % each",
        write(bounds.lower),
        write(bounds.upper)
    )
}

/// A difference of shares in points.
fn points(difference: f64) -> String {
    format!("{} points", figure((difference * 1_000.0).round() / 10.0))
}

/// The pairs' own seeds, so that the same records give the same bounds.
fn bootstrap_seed(pairs: &[Compared<'_>]) -> u64 {
    pairs
        .iter()
        .fold(0, |seed, pair| seed.rotate_left(7) ^ pair.control.seed)
}
