use spill_record::{Class, Outcome, RunRecord};

use super::{Compared, Comparison, EVIDENCE_LIMIT, Measured};
use crate::estimate::{median, ratio};
use crate::rule::{Bound, State};
use crate::verdict::{Arms, Figures, TokenBasis};
use crate::words::{amount, counted, figure, figure_beside, plain};

impl Comparison<'_> {
    /// The pairs that decide rule 3: all of them, where every run succeeded.
    pub(super) fn both_succeeded(&self) -> Vec<&Compared<'_>> {
        let won = |run: &RunRecord| run.outcome == Outcome::Succeeded;
        self.compared
            .iter()
            .filter(|pair| won(pair.control) && won(pair.candidate))
            .collect()
    }

    /// Rule 3.
    pub(super) fn input_tokens(&self) -> Measured {
        let (limit, bound) = match self.cell.input.class {
            Class::Small | Class::Medium => (self.rules.input_tokens_ratio_limit, Bound::AtMost),
            Class::Large => (self.rules.large_input_tokens_ratio_limit, Bound::Below),
            Class::Document => {
                return Measured::nothing(State::NotApplicable, "documents are exempt");
            }
        };
        let all: Vec<&Compared<'_>> = self.compared.iter().collect();
        let both = self.both_succeeded();
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
            interval: None,
            n: Some(deciding.len() as u64),
        }
    }
}

fn tokens(record: &RunRecord) -> Option<f64> {
    record.input_tokens.map(|tokens| tokens as f64)
}

pub(super) fn token_ratio(pair: &Compared<'_>) -> Option<f64> {
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
        let words = match gate.control {
            Some(0.0) => "the control spent no input tokens, so nothing can be a multiple of them",
            Some(_) | None => "some run does not tell its tokens",
        };
        return (State::NotProven, words.to_owned());
    };
    let kept = match bound {
        Bound::Below => observed < limit,
        Bound::AtMost | Bound::AtLeast => observed <= limit,
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
