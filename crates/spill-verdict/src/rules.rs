use spill_record::{Class, EndReason, FactsOrigin, Outcome, RulesRecord, RunRecord};

use crate::estimate::{median, ratio, share};
use crate::inventory::{InputPairs, Slot, leaks};
use crate::verdict::{Arms, Bound, Evidence, Figures, Rule, RuleVerdict, State, TokenBasis};
use crate::words::{amount, counted, figure, figure_beside, grouped, percent, plain};

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
            compared,
            planned,
            missing,
        }
    }

    /// Judges `rule`.
    pub(crate) fn judge(&self, rule: Rule) -> RuleVerdict {
        match rule {
            Rule::SuccessRate => self.finish(rule, self.success_rate()),
            Rule::IterationLimit => self.finish(rule, self.iteration_limit()),
            Rule::InputTokens => self.finish(rule, self.input_tokens()),
            Rule::Quality => self.finish(rule, self.quality()),
            Rule::NothingLeaks => self.nothing_leaks(),
        }
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
            n: if state == State::NotApplicable { 0 } else { n },
            planned: if state == State::NotApplicable {
                0
            } else {
                planned
            },
            words: measured.words,
            figures: measured.figures,
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
        Measured {
            literal: if candidate >= control {
                State::Holds
            } else {
                State::Broken
            },
            settled: losses > gains + (self.planned - n),
            observed: Some(observed),
            limit: Some(limit),
            bound: Some(Bound::AtLeast),
            words: format!(
                "{candidate} of {n} runs succeeded ({}), control {control} of {n} ({}); {} gained, {losses} lost",
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
        }
    }

    fn iteration_limit(&self) -> Measured {
        let mut unknown = 0;
        let mut hits: Vec<&Compared<'_>> = Vec::new();
        for pair in &self.compared {
            match (hit_limit(pair.candidate), hit_limit(pair.control)) {
                (Some(true), Some(false)) => hits.push(pair),
                (Some(false), _) | (_, Some(true)) => {}
                (None, _) | (_, None) => unknown += 1,
            }
        }
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
            let iterations = iterations.map_or("an unknown number of".to_owned(), grouped);
            pair.evidence(format!("hit the limit after {iterations} iterations"))
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
        }
    }

    fn input_tokens(&self) -> Measured {
        let (limit, bound) = match self.cell.input.class {
            Class::Small | Class::Medium => (self.rules.input_tokens_ratio_limit, Bound::AtMost),
            Class::Large => (self.rules.large_input_tokens_ratio_limit, Bound::Below),
            Class::Document => {
                return Measured::nothing(State::NotApplicable, "documents are exempt");
            }
        };
        let won = |p: &&Compared<'_>| {
            p.control.outcome == Outcome::Succeeded && p.candidate.outcome == Outcome::Succeeded
        };
        let all: Vec<&Compared<'_>> = self.compared.iter().collect();
        let both: Vec<&Compared<'_>> = self.compared.iter().filter(won).collect();
        let (basis, deciding) = if both.len() == all.len() {
            (TokenBasis::AllRuns, &all)
        } else {
            (TokenBasis::BothSucceeded, &both)
        };
        let mut ratios: Vec<(f64, &Compared<'_>)> = deciding
            .iter()
            .filter_map(|p| Some((token_ratio(p)?, *p)))
            .collect();
        ratios.sort_by(|a, b| {
            b.0.total_cmp(&a.0)
                .then_with(|| a.1.pair_id.cmp(b.1.pair_id))
        });
        let paired: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
        let gate = token_medians(deciding);
        let observed = ratio(gate.candidate, gate.control);
        let evidence = ratios.iter().map(|(ratio, pair)| {
            pair.evidence(format!(
                "{} times the control's input tokens ({})",
                figure(*ratio),
                plain(pair.profile)
            ))
        });
        let (literal, words) = token_words(
            basis,
            deciding.len() as u64,
            all.len() as u64,
            gate,
            observed,
            limit,
            bound,
        );
        let shown = if literal == State::Broken {
            EVIDENCE_LIMIT
        } else {
            1
        };
        Measured {
            literal,
            settled: false,
            observed,
            limit: Some(limit),
            bound: Some(bound),
            words,
            figures: Some(Figures::Tokens {
                basis,
                all_runs: token_medians(&all),
                both_succeeded: token_medians(&both),
                both_succeeded_pairs: both.len() as u64,
                per_success: Arms {
                    control: per_success(all.iter().map(|p| p.control)),
                    candidate: per_success(all.iter().map(|p| p.candidate)),
                },
                median_paired_ratio: median(&paired).filter(|_| paired.len() == deciding.len()),
            }),
            evidence: evidence.take(shown).collect(),
        }
    }

    fn quality(&self) -> Measured {
        match self.cell.input.class {
            Class::Small | Class::Medium | Class::Large => {
                return Measured::nothing(State::NotApplicable, "concerns documents only");
            }
            Class::Document => {}
        }
        let limit = 0.0 - self.rules.quality_allowance;
        let facts = Scores::of(&self.compared, |r| (r.facts_expected, r.facts_found));
        let end = Scores::of(&self.compared, |r| {
            (r.end_facts_expected, r.end_facts_found)
        });
        let differences = [facts.difference(), end.difference()];
        let observed = differences.iter().flatten().copied().reduce(f64::min);
        let (literal, words) = self.quality_words(&facts, &end, limit);
        // Each absent pair could at best have gained everything.
        let absent = (self.planned - self.compared.len() as u64) as f64;
        let settled = literal == State::Broken
            && [&facts, &end].iter().any(|scores| {
                scores.difference().is_some_and(|mean| {
                    (mean * self.compared.len() as f64 + absent) / (self.planned as f64) < limit
                })
            });
        Measured {
            literal,
            settled,
            observed,
            limit: Some(limit),
            bound: Some(Bound::AtLeast),
            words,
            figures: Some(Figures::Quality {
                quality: facts.means(),
                quality_difference: facts.difference(),
                end_coverage: end.means(),
                end_difference: end.difference(),
            }),
            evidence: self.worst_scores(),
        }
    }

    fn quality_words(&self, facts: &Scores, end: &Scores, limit: f64) -> (State, String) {
        let input = self.cell.input;
        let derived = match input.facts_origin {
            FactsOrigin::Derived => true,
            FactsOrigin::Scenario | FactsOrigin::Expected => false,
        };
        if input.facts.is_empty() {
            return (
                State::NotProven,
                "no facts are expected, so quality is not measured".to_owned(),
            );
        }
        if derived && (input.facts.len() as u64) < self.rules.derived_facts_needed {
            let words = format!(
                "{} derived, {} are needed",
                counted(input.facts.len() as u64, "fact"),
                self.rules.derived_facts_needed
            );
            return (State::NotProven, words);
        }
        let name = if derived {
            "self-consistency"
        } else {
            "quality"
        };
        let part = |scores: &Scores, name: &str| match (scores.means(), scores.difference()) {
            (
                Arms {
                    control: Some(off),
                    candidate: Some(on),
                },
                Some(difference),
            ) => format!(
                "{name} {} against {} (mean paired difference {})",
                percent(on),
                percent(off),
                figure(difference)
            ),
            _ => format!("{name} not measured"),
        };
        let words = format!(
            "{}; {}",
            part(facts, name),
            part(end, "coverage of the end")
        );
        let lower = |scores: &Scores| scores.difference().is_some_and(|mean| mean < limit);
        let state = if lower(facts) || lower(end) {
            State::Broken
        } else if facts.difference().is_none() || end.difference().is_none() {
            State::NotProven
        } else {
            State::Holds
        };
        (state, words)
    }

    /// The pairs that lost most facts, worst first; pairs that lost none are no evidence.
    fn worst_scores(&self) -> Vec<Evidence> {
        let mut losses: Vec<(i128, &Compared<'_>)> = self
            .compared
            .iter()
            .filter_map(|pair| {
                let lost =
                    |off: Option<u64>, on: Option<u64>| Some(i128::from(off?) - i128::from(on?));
                let all = lost(pair.control.facts_found, pair.candidate.facts_found)?;
                let end = lost(pair.control.end_facts_found, pair.candidate.end_facts_found);
                Some((all.max(end.unwrap_or(all)), pair))
            })
            .filter(|(lost, _)| *lost > 0)
            .collect();
        losses.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.pair_id.cmp(b.1.pair_id)));
        losses
            .iter()
            .take(EVIDENCE_LIMIT)
            .map(|(lost, pair)| {
                pair.evidence(format!(
                    "{lost} fewer found than under the control ({})",
                    plain(pair.profile)
                ))
            })
            .collect()
    }

    /// Absolute, so the control takes no part; any run that has a record was searched.
    fn nothing_leaks(&self) -> RuleVerdict {
        let mut found: Vec<(&str, &RunRecord)> = Vec::new();
        let (mut searched, mut unsearched, mut lost, mut missing) = (0u64, 0u64, 0u64, 0u64);
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
            "{} wrote a file or let result content out, {searched} searched",
            counted(count, "run")
        );
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
        };
        self.row(Rule::NothingLeaks, state, searched, self.planned, measured)
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

fn tokens(record: &RunRecord) -> Option<f64> {
    record.input_tokens.map(|tokens| tokens as f64)
}

fn token_ratio(pair: &Compared<'_>) -> Option<f64> {
    ratio(tokens(pair.candidate), tokens(pair.control))
}

/// Medians of both arms; `None` for an arm of which any run does not tell its tokens.
fn token_medians(pairs: &[&Compared<'_>]) -> Arms {
    let of = |pick: fn(&Compared<'_>) -> Option<f64>| {
        let values: Option<Vec<f64>> = pairs.iter().map(|pair| pick(pair)).collect();
        values.and_then(|values| median(&values))
    };
    Arms {
        control: of(|p| tokens(p.control)),
        candidate: of(|p| tokens(p.candidate)),
    }
}

/// What one success costs: all input tokens spent, over the number of successes.
fn per_success<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Option<f64> {
    let (mut spent, mut successes) = (0.0, 0.0);
    for run in runs {
        spent += tokens(run)?;
        successes += f64::from(u8::from(run.outcome == Outcome::Succeeded));
    }
    ratio(Some(spent), Some(successes))
}

fn token_words(
    basis: TokenBasis,
    n: u64,
    all: u64,
    gate: Arms,
    observed: Option<f64>,
    limit: f64,
    bound: Bound,
) -> (State, String) {
    if all == 0 {
        return (State::NotRun, "no pair finished".to_owned());
    }
    if n == 0 {
        let words = "no pair succeeded under both, so token counts cannot be compared";
        return (State::NotProven, words.to_owned());
    }
    let (Some(observed), Some(off), Some(on)) = (observed, gate.control, gate.candidate) else {
        let words = "some run does not tell its tokens, or the control spent none";
        return (State::NotProven, words.to_owned());
    };
    let kept = match bound {
        Bound::AtMost => observed <= limit,
        Bound::Below => observed < limit,
        Bound::AtLeast => observed >= limit,
    };
    let over = match basis {
        TokenBasis::AllRuns => format!("{} of both", counted(n, "run")),
        TokenBasis::BothSucceeded => format!(
            "the {} of {all} that succeeded under both",
            counted(n, "pair")
        ),
    };
    let words = format!(
        "median {} against {} tokens, ratio {}, limit {} {limit}, over {over}",
        amount(on),
        amount(off),
        figure_beside(observed, limit),
        bound.sign(),
    );
    (if kept { State::Holds } else { State::Broken }, words)
}

/// Facts found under both arms. Sums are whole numbers, so that equal scores differ by exactly 0.
struct Scores {
    /// Facts expected in each pair, when all pairs agree and every run was scored.
    expected: Option<u64>,
    pairs: u64,
    control: u64,
    candidate: u64,
}

impl Scores {
    fn of(pairs: &[Compared<'_>], pick: fn(&RunRecord) -> (Option<u64>, Option<u64>)) -> Self {
        let mut scores = Self {
            expected: None,
            pairs: pairs.len() as u64,
            control: 0,
            candidate: 0,
        };
        let expected = pairs
            .first()
            .and_then(|pair| pick(pair.control).0)
            .filter(|n| *n > 0);
        for pair in pairs {
            let (off_expected, off_found) = pick(pair.control);
            let (on_expected, on_found) = pick(pair.candidate);
            let (Some(off), Some(on)) = (off_found, on_found) else {
                return scores;
            };
            if off_expected != expected || on_expected != expected {
                return scores;
            }
            scores.control += off;
            scores.candidate += on;
        }
        scores.expected = expected;
        scores
    }

    fn means(&self) -> Arms {
        let whole = self.expected.map_or(0, |expected| expected * self.pairs);
        Arms {
            control: share(self.control, whole),
            candidate: share(self.candidate, whole),
        }
    }

    fn difference(&self) -> Option<f64> {
        let whole = self.expected? * self.pairs;
        let gained = share(self.candidate.saturating_sub(self.control), whole)?;
        let lost = share(self.control.saturating_sub(self.candidate), whole)?;
        Some(gained - lost)
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
