use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};

use crate::rule::{Rule, State};
use crate::verdict::{CandidateVerdict, RuleVerdict, Verdict};
use crate::words::{figure, figure_beside, percent, plain};

/// Columns of the terminal that the table fits.
const WIDTH: u16 = 80;

/// Rules × candidates as plain text, at most 80 columns wide, without a line feed at the end.
///
/// Each cell has the state, the deciding number with its limit and n, and the input that decides.
#[must_use]
pub fn terminal_table(verdict: &Verdict) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
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
    let sums = verdict.candidates.iter().map(|candidate| {
        if candidate.considered {
            candidate.state.words().to_uppercase()
        } else {
            format!("{} (not reached)", candidate.state.words())
        }
    });
    table.add_row(std::iter::once("candidate".to_owned()).chain(sums));
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
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
    let (Some(observed), Some(limit), Some(bound)) = (row.observed, row.limit, row.bound) else {
        return "not measured".to_owned();
    };
    let sign = bound.sign();
    let beside = figure_beside(observed, limit);
    let (observed, limit) = match row.rule {
        Rule::SuccessRate => (percent(observed), percent(limit)),
        Rule::IterationLimit => (format!("{beside} new hits"), figure(limit)),
        Rule::InputTokens => (format!("{beside}× control"), figure(limit)),
        Rule::Quality => (format!("{beside} difference"), figure(limit)),
        Rule::NothingLeaks => (format!("{beside} runs"), figure(limit)),
    };
    format!("{observed} (limit {sign} {limit})")
}
