use spill_record::{Class, FactPlace, FactsOrigin, Outcome, RunRecord};

use super::{Compared, Comparison, EVIDENCE_LIMIT, Measured};
use crate::estimate::share;
use crate::rule::{Bound, State};
use crate::verdict::{Arms, Evidence, Figures};
use crate::words::{counted, figure, percent, plain};

impl Comparison<'_> {
    /// Rule 4.
    pub(super) fn quality(&self) -> Measured {
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
            interval: None,
            n: None,
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
        // A control that failed lost its facts; one that answered without any never had them.
        let answered = |pair: &Compared<'_>| pair.control.outcome == Outcome::Succeeded;
        if facts.means().control == Some(0.0) && self.compared.iter().all(answered) {
            let words = format!("{words}; the control finds no fact, so nothing can be lost");
            return (State::NotProven, words);
        }
        let words = if input
            .facts
            .iter()
            .all(|fact| fact.place != Some(FactPlace::End))
        {
            format!(
                "{words}: no fact lies in the last tenth (give one with --expect or in the scenario)"
            )
        } else {
            words
        };
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
        let expected = pairs.first().and_then(|pair| pick(pair.control).0);
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
