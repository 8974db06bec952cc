mod leaks;
pub(crate) mod live;
mod quality;
mod tokens;

use std::collections::BTreeSet;

use spill_record::{EndReason, Mode, Outcome, RulesRecord, RunRecord};

use crate::estimate::share;
use crate::inventory::{InputPairs, Slot};
use crate::rule::{Bound, Rule, State};
use crate::verdict::{Evidence, Figures, Interval, RuleVerdict};
use crate::words::{counted, percent, plain};

/// Pairs that a rule lists as evidence at most.
pub const EVIDENCE_LIMIT: usize = 5;

/// A pair of which both runs finished.
#[derive(Clone, Copy)]
struct Compared<'a> {
    pair_id: &'a str,
    profile: &'a str,
    control: &'a RunRecord,
    candidate: &'a RunRecord,
}

/// One input's pairs under one candidate and the control.
pub(crate) struct Comparison<'a> {
    cell: &'a InputPairs<'a>,
    extra: &'a InputPairs<'a>,
    candidate: usize,
    rules: &'a RulesRecord,
    mode: Mode,
    compared: Vec<Compared<'a>>,
    planned: u64,
    /// Pairs in which a run of either arm is missing.
    missing: u64,
}

/// What a rule measured, before absent pairs are weighed.
struct Measured {
    literal: State,
    /// Whether the rule would be broken whatever the absent pairs had shown.
    settled: bool,
    observed: Option<f64>,
    limit: Option<f64>,
    bound: Option<Bound>,
    words: String,
    figures: Option<Figures>,
    evidence: Vec<Evidence>,
    /// What live mode judges by.
    interval: Option<Interval>,
    /// Pairs behind the observed value, where they are not all that could be compared.
    n: Option<u64>,
}

impl Measured {
    fn nothing(literal: State, words: impl Into<String>) -> Self {
        Self {
            literal,
            settled: false,
            observed: None,
            limit: None,
            bound: None,
            words: words.into(),
            figures: None,
            evidence: Vec::new(),
            interval: None,
            n: None,
        }
    }
}

impl<'a> Comparison<'a> {
    /// Pairs up the runs under `control` and `candidate` (columns of the plan's configurations).
    pub(crate) fn new(
        cell: &'a InputPairs<'a>,
        extra: &'a InputPairs<'a>,
        control: usize,
        candidate: usize,
        rules: &'a RulesRecord,
        mode: Mode,
    ) -> Self {
        let mut compared = Vec::new();
        let mut missing = 0;
        for pair in &cell.pairs {
            match (pair.slots[control], pair.slots[candidate]) {
                (Slot::Finished(off), Slot::Finished(on)) => compared.push(Compared {
                    pair_id: pair.pair_id,
                    profile: pair.profile,
                    control: off,
                    candidate: on,
                }),
                (Slot::Missing, _) | (_, Slot::Missing) => missing += 1,
                (Slot::Infrastructure(_), _) | (_, Slot::Infrastructure(_)) => {}
            }
        }
        let planned = cell.pairs.len() as u64;
        Self {
            cell,
            extra,
            candidate,
            rules,
            mode,
            compared,
            planned,
            missing,
        }
    }

    /// Judges `rule`.
    pub(crate) fn judge(&self, rule: Rule) -> RuleVerdict {
        let literal = match rule {
            Rule::SuccessRate => self.success_rate(),
            Rule::IterationLimit => self.iteration_limit(),
            Rule::InputTokens => self.input_tokens(),
            Rule::Quality => self.quality(),
            Rule::NothingLeaks => return self.nothing_leaks(),
        };
        let measured = match self.mode {
            Mode::Simulated => literal,
            Mode::Live => self.weigh(rule, literal),
        };
        self.finish(rule, measured)
    }

    /// Weighs the pairs that are absent: a rule holds on the planned number only.
    fn finish(&self, rule: Rule, measured: Measured) -> RuleVerdict {
        let n = self.compared.len() as u64;
        let mut words = measured.words;
        let state = match measured.literal {
            State::NotApplicable => State::NotApplicable,
            State::Broken if n == self.planned || measured.settled => State::Broken,
            literal @ (State::Holds | State::Broken | State::NotProven | State::NotRun) => {
                if self.missing > 0 || self.planned == 0 {
                    State::NotRun
                } else if n < self.planned {
                    State::NotProven
                } else {
                    literal
                }
            }
        };
        if n < self.planned && state != State::NotApplicable {
            let harness = self.planned - n - self.missing;
            words = format!(
                "{words}; {n} of {} could be compared, {} missing, {harness} lost to the harness",
                counted(self.planned, "planned pair"),
                self.missing
            );
        }
        self.row(rule, state, n, self.planned, Measured { words, ..measured })
    }

    fn row(
        &self,
        rule: Rule,
        state: State,
        n: u64,
        planned: u64,
        measured: Measured,
    ) -> RuleVerdict {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let input = self.cell.input;
        RuleVerdict {
            rule,
            number: rule.number(),
            scenario: input.scenario.clone(),
            input: input.input.clone(),
            class: input.class,
            state,
            observed: finite(measured.observed),
            limit: finite(measured.limit),
            bound: measured.bound,
            n: if state == State::NotApplicable {
                0
            } else {
                measured.n.unwrap_or(n)
            },
            planned: if state == State::NotApplicable {
                0
            } else {
                planned
            },
            words: measured.words,
            figures: measured.figures,
            interval: measured.interval,
            evidence: measured.evidence,
        }
    }

    fn success_rate(&self) -> Measured {
        let n = self.compared.len() as u64;
        let won = |record: &RunRecord| record.outcome == Outcome::Succeeded;
        let control = self
            .compared
            .iter()
            .filter(|pair| won(pair.control))
            .count() as u64;
        let candidate = self
            .compared
            .iter()
            .filter(|pair| won(pair.candidate))
            .count() as u64;
        let lost: Vec<&Compared<'_>> = self
            .compared
            .iter()
            .filter(|p| won(p.control) && !won(p.candidate))
            .collect();
        let losses = lost.len() as u64;
        let gains = candidate + losses - control;
        let (Some(observed), Some(limit)) = (share(candidate, n), share(control, n)) else {
            return Measured::nothing(State::NotRun, "no pair finished");
        };
        let evidence = lost.iter().map(|pair| {
            pair.evidence(format!(
                "ended as {} under the candidate only",
                pair.candidate.end_reason.as_str()
            ))
        });
        let nobody = candidate == 0 && control == 0;
        let why = if nobody {
            self.usual_ends()
        } else {
            String::new()
        };
        Measured {
            literal: if nobody {
                // Equal rates of nothing say nothing about the candidate.
                State::NotProven
            } else if candidate >= control {
                State::Holds
            } else {
                State::Broken
            },
            settled: losses > gains + (self.planned - n),
            observed: Some(observed),
            limit: Some(limit),
            bound: Some(Bound::AtLeast),
            words: format!(
                "{candidate} of {n} runs succeeded ({}), control {control} of {n} ({}); {} gained, {losses} lost{why}",
                percent(observed),
                percent(limit),
                counted(gains, "pair"),
            ),
            figures: Some(Figures::Success {
                control_succeeded: control,
                candidate_succeeded: candidate,
                gains,
                losses,
            }),
            evidence: evidence.take(EVIDENCE_LIMIT).collect(),
            interval: None,
            n: None,
        }
    }

    /// How the runs of both arms ended, and the first error, where none succeeded.
    fn usual_ends(&self) -> String {
        let runs = || {
            self.compared
                .iter()
                .flat_map(|pair| [pair.control, pair.candidate])
        };
        let ends: BTreeSet<&str> = runs().map(|run| run.end_reason.as_str()).collect();
        let ends: Vec<&str> = ends.into_iter().collect();
        let error = runs()
            .find_map(|run| run.error.as_deref())
            .map_or_else(String::new, |error| {
                format!(", first error: {}", plain(error))
            });
        format!("; all ended as {}{error}", ends.join(" or "))
    }

    /// Pairs that hit the limit under the candidate only, and the number that do not tell.
    fn new_limit_hits(&self) -> (Vec<&Compared<'a>>, u64) {
        let mut unknown = 0;
        let mut hits = Vec::new();
        for pair in &self.compared {
            match (hit_limit(pair.candidate), hit_limit(pair.control)) {
                (Some(true), Some(false)) => hits.push(pair),
                (Some(false), _) | (_, Some(true)) => {}
                (None, _) | (_, None) => unknown += 1,
            }
        }
        (hits, unknown)
    }

    fn iteration_limit(&self) -> Measured {
        let (hits, unknown) = self.new_limit_hits();
        if self.compared.is_empty() {
            return Measured::nothing(State::NotRun, "no pair finished");
        }
        let count = hits.len() as u64;
        let literal = match (count, unknown) {
            (0, 0) => State::Holds,
            (0, _) => State::NotProven,
            _ => State::Broken,
        };
        let mut words = format!(
            "{} hit the iteration limit under the candidate only",
            counted(count, "pair")
        );
        if unknown > 0 {
            words = format!("{words}; {} did not tell", counted(unknown, "pair"));
        }
        let evidence = hits.iter().map(|pair| {
            let iterations = pair.candidate.iterations;
            let iterations = iterations
                .map_or("an unknown number of iterations".to_owned(), |count| {
                    counted(count, "iteration")
                });
            pair.evidence(format!("hit the limit after {iterations}"))
        });
        Measured {
            literal,
            settled: true,
            observed: Some(count as f64),
            limit: Some(0.0),
            bound: Some(Bound::AtMost),
            words,
            figures: None,
            evidence: evidence.take(EVIDENCE_LIMIT).collect(),
            interval: None,
            n: None,
        }
    }
}

impl Compared<'_> {
    fn evidence(&self, words: String) -> Evidence {
        Evidence {
            pair_id: self.pair_id.to_owned(),
            run_id: self.candidate.run_id.clone(),
            control_run_id: Some(self.control.run_id.clone()),
            words,
        }
    }
}

/// Whether a run used up its iterations; `None` when nothing tells.
///
/// A run that failed for another reason has not hit the limit, even where it died before it could
/// say so.
fn hit_limit(record: &RunRecord) -> Option<bool> {
    if record.end_reason == EndReason::IterationLimit {
        return Some(true);
    }
    record
        .hit_iteration_limit
        .or((record.outcome == Outcome::Failed).then_some(false))
}
