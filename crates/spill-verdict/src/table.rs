use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};

use crate::rule::{Rule, State};
use crate::verdict::{CandidateVerdict, RuleVerdict, Verdict};
use crate::words::{figure, figure_beside, percent, plain};

/// Columns of the terminal that the table fits.
const WIDTH: u16 = 80;

/// Columns for the names of candidates that stand below each other: `workflow-step-10KiB` and a space on each side.
const NAMES: u16 = 21;

/// Candidates that fit beside each other; more of them stand below each other.
const BESIDE: usize = 3;

/// Rules × candidates as plain text, at most 80 columns wide, without a line feed at the end.
///
/// Each cell has the state, the deciding number with its limit and n, and the input that decides; of
/// more than three candidates, each has a row, and a cell the state and the number.
#[must_use]
pub fn terminal_table(verdict: &Verdict) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    if verdict.candidates.len() > BESIDE {
        a_row_each(&mut table, verdict);
    } else {
        a_column_each(&mut table, verdict);
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

fn a_column_each(table: &mut Table, verdict: &Verdict) {
    let heads = verdict
        .candidates
        .iter()
        .map(|candidate| plain(&candidate.configuration));
    table.set_header(std::iter::once("rule".to_owned()).chain(heads));
    for rule in Rule::ALL {
        let cells = verdict
            .candidates
            .iter()
            .map(|candidate| cell(candidate, rule));
        table.add_row(std::iter::once(format!("{} {}", rule.number(), rule.title())).chain(cells));
    }
    let sums = verdict.candidates.iter().map(sum);
    table.add_row(std::iter::once("candidate".to_owned()).chain(sums));
}

fn a_row_each(table: &mut Table, verdict: &Verdict) {
    let heads = Rule::ALL.map(|rule| match rule {
        Rule::SuccessRate => "1 success",
        Rule::IterationLimit => "2 limit",
        Rule::InputTokens => "3 tokens",
        Rule::Quality => "4 quality",
        Rule::NothingLeaks => "5 leaks",
    });
    table.set_header(
        std::iter::once("candidate")
            .chain(heads)
            .chain(["all rules"]),
    );
    for candidate in &verdict.candidates {
        let cells = Rule::ALL.map(|rule| match candidate.deciding(rule) {
            None => State::NotRun.words().to_owned(),
            Some(row) => match (row.state, numbers(row)) {
                (State::NotApplicable, _) => "n/a".to_owned(),
                (_, None) => row.state.words().to_owned(),
                (state, Some((observed, _))) => {
                    // The head says what is counted.
                    let number = match row.rule {
                        Rule::SuccessRate => &*observed,
                        Rule::IterationLimit
                        | Rule::InputTokens
                        | Rule::Quality
                        | Rule::NothingLeaks => observed.split(' ').next().unwrap_or_default(),
                    };
                    format!("{}\n{number}", state.words())
                }
            },
        });
        table.add_row(
            std::iter::once(plain(&candidate.configuration))
                .chain(cells)
                .chain([sum(candidate)]),
        );
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(NAMES)));
    }
}

fn sum(candidate: &CandidateVerdict) -> String {
    if candidate.considered {
        candidate.state.words().to_uppercase()
    } else {
        format!("{} (not reached)", candidate.state.words())
    }
}

fn cell(candidate: &CandidateVerdict, rule: Rule) -> String {
    let Some(row) = candidate.deciding(rule) else {
        return State::NotRun.words().to_owned();
    };
    match row.state {
        State::NotApplicable => row.state.words().to_owned(),
        State::Holds | State::Broken | State::NotProven | State::NotRun => {
            format!(
                "{}
{}
{}, n {}",
                row.state.words(),
                deciding_number(row),
                row.place(),
                row.n
            )
        }
    }
}

/// The deciding number with its limit, such as `1.02× control (limit ≤ 1.1)`.
#[must_use]
pub fn deciding_number(row: &RuleVerdict) -> String {
    match (numbers(row), row.bound) {
        (Some((observed, limit)), Some(bound)) => {
            format!("{observed} (limit {} {limit})", bound.sign())
        }
        (None, _) | (_, None) => "not measured".to_owned(),
    }
}

/// The number that decided and its limit, in the rule's own measure.
fn numbers(row: &RuleVerdict) -> Option<(String, String)> {
    let (observed, limit) = (row.observed?, row.limit?);
    let beside = figure_beside(observed, limit);
    Some(match row.rule {
        Rule::SuccessRate => (percent(observed), percent(limit)),
        Rule::IterationLimit => (several(&beside, "new hit"), figure(limit)),
        Rule::InputTokens => (format!("{beside}× control"), figure(limit)),
        Rule::Quality => (format!("{beside} difference"), figure(limit)),
        Rule::NothingLeaks => (several(&beside, "run"), figure(limit)),
    })
}

/// A figure with its noun.
fn several(figure: &str, noun: &str) -> String {
    let plural = if figure == "1" { "" } else { "s" };
    format!("{figure} {noun}{plural}")
}
