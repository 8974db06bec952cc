use spill_record::RunSet;

use crate::inventory::{self, InputPairs, Pair, Slot};
use crate::ladder;
use crate::rule::{Rule, State};
use crate::verdict::{CandidateVerdict, RuleVerdict};

/// The rules as they stand in a folder that is still being written, for each candidate in the order of
/// the plan. No verdict: the next run can turn any of them but those that [`judge()`](crate::judge())
/// calls broken already.
///
/// Pairs whose runs all have a record are judged as though the plan asked for them alone. An input
/// without such a pair has no row, unless no other input has one; `planned` stays the plan's number. A
/// candidate's own state is [`State::NotRun`] throughout: the ladder is climbed on the whole plan only.
#[must_use]
pub fn standing(set: &RunSet) -> Vec<CandidateVerdict> {
    let plan = &set.manifest.plan;
    let inventory = inventory::take(set);
    let complete: Vec<InputPairs<'_>> = inventory.inputs.iter().map(complete).collect();
    let all =
        ladder::judge_candidates(plan, set.manifest.mode, &inventory.inputs, &inventory.extra);
    let mut candidates =
        ladder::judge_candidates(plan, set.manifest.mode, &complete, &inventory.extra);
    for (candidate, all) in candidates.iter_mut().zip(all) {
        candidate.rules = Rule::ALL
            .into_iter()
            .flat_map(|rule| {
                let rows = candidate.rules.iter().zip(&all.rules);
                rows_of(rows.filter(|(row, _)| row.rule == rule))
            })
            .collect();
        candidate.state = State::NotRun;
        candidate.words = "the planned number of runs is not reached".to_owned();
    }
    candidates
}

/// The pairs of an input that miss no run.
fn complete<'a>(input: &InputPairs<'a>) -> InputPairs<'a> {
    let whole = |pair: &&Pair<'_>| {
        let mut slots = pair.slots.iter();
        !slots.any(|slot| matches!(slot, Slot::Missing))
    };
    InputPairs {
        input: input.input,
        pairs: input.pairs.iter().filter(whole).cloned().collect(),
    }
}

/// The rows of one rule that say something: judged on the complete pairs, or on the whole plan where
/// that is broken already.
fn rows_of<'a>(rows: impl Iterator<Item = (&'a RuleVerdict, &'a RuleVerdict)>) -> Vec<RuleVerdict> {
    let rows: Vec<(bool, RuleVerdict)> = rows
        .map(|(so_far, whole)| match whole.state {
            State::Broken => (true, whole.clone()),
            State::Holds | State::NotProven | State::NotApplicable | State::NotRun => {
                let says = so_far.planned > 0;
                let planned = whole.planned;
                (
                    says,
                    RuleVerdict {
                        planned,
                        ..so_far.clone()
                    },
                )
            }
        })
        .collect();
    let any = rows.iter().any(|(says, _)| *says);
    let kept = rows.into_iter().filter(|(says, _)| *says || !any);
    kept.map(|(_, row)| row).collect()
}
