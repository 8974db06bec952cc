use serde::Serialize;
use spill_verdict::{CandidateVerdict, Rule, RuleVerdict, State, Verdict, deciding_number};

use crate::figures::NOTHING;

/// A state in words, with its icon and the class that colours it.
#[derive(Serialize)]
pub(crate) struct Badge {
    class: &'static str,
    words: &'static str,
    icon: &'static str,
}

/// A rule and what each candidate came to under it.
#[derive(Serialize)]
pub(crate) struct GridRow {
    number: u8,
    title: &'static str,
    demands: &'static str,
    cells: Vec<GridCell>,
}

#[derive(Serialize)]
struct GridCell {
    state: Badge,
    number: String,
    place: String,
    href: String,
    words: String,
}

/// The badge of `state`.
pub(crate) fn badge(state: State) -> Badge {
    let icon = match state {
        State::Holds => "✓",
        State::Broken => "✕",
        State::NotProven => "?",
        State::NotApplicable => "–",
        State::NotRun => "○",
    };
    Badge {
        class: state.as_str(),
        words: state.words(),
        icon,
    }
}

/// The row of `rule`: the input that decides it for each candidate.
pub(crate) fn grid_row(verdict: &Verdict, rule: Rule) -> GridRow {
    let cells = verdict
        .candidates
        .iter()
        .enumerate()
        .map(|(column, candidate)| {
            candidate.deciding(rule).map_or_else(
                || GridCell {
                    state: badge(State::NotRun),
                    number: NOTHING.to_owned(),
                    place: String::new(),
                    href: format!("rule-{}", rule.number()),
                    words: String::new(),
                },
                |row| GridCell {
                    state: badge(row.state),
                    number: match row.state {
                        State::NotApplicable => "no input of the class".to_owned(),
                        State::Holds | State::Broken | State::NotProven | State::NotRun => {
                            unbroken(&deciding_number(row))
                        }
                    },
                    place: format!("{}, n {}", row.place(), row.n),
                    href: row_id(rule, column, candidate, row),
                    words: row.words.clone(),
                },
            )
        });
    GridRow {
        number: rule.number(),
        title: rule.title(),
        demands: rule.demands(),
        cells: cells.collect(),
    }
}

/// A deciding number that breaks before its limit only.
fn unbroken(number: &str) -> String {
    number.replace(' ', "\u{a0}").replace("\u{a0}(", " (")
}

/// The id of a rule's row, from its place in the verdict.
fn row_id(rule: Rule, column: usize, candidate: &CandidateVerdict, row: &RuleVerdict) -> String {
    let place = candidate
        .rules
        .iter()
        .position(|other| std::ptr::eq(other, row))
        .unwrap_or(0);
    format!("rule-{}-{column}-{place}", rule.number())
}
