use serde::Serialize;
use spill_record::RunSet;
use spill_verdict::{Rule, State, Verdict, deciding_number, plain};

use crate::differences::{Group, groups};
use crate::grid::{Badge, badge};
use crate::html::html;
use crate::view::{exit_words, headline};

/// Two run folders side by side.
#[derive(Serialize)]
struct Page {
    title: &'static str,
    same_plan: bool,
    a: Side,
    b: Side,
    groups: Vec<GroupPart>,
}

#[derive(Serialize)]
struct Side {
    name: &'static str,
    id: String,
    decision: &'static str,
    headline: String,
    sentence: String,
    exit_code: u8,
    exit_words: &'static str,
    candidates: Vec<String>,
    grid: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    number: u8,
    title: &'static str,
    cells: Vec<(Badge, String)>,
}

#[derive(Serialize)]
struct GroupPart {
    group: Group,
    changed: usize,
    left_out: usize,
}

/// Lines of a group; beyond that, those that are the same are left out, then the last ones.
const LINES: usize = 400;

/// Two run folders side by side, as one HTML file that needs nothing else.
#[must_use]
pub fn compare(a: (&RunSet, &Verdict), b: (&RunSet, &Verdict)) -> String {
    let groups = groups(a, b).into_iter().map(|mut group| {
        let total = group.lines.len();
        if total > LINES {
            group.lines.retain(|line| line.changed);
            group.lines.truncate(LINES);
        }
        GroupPart {
            changed: group.changed(),
            left_out: total - group.lines.len(),
            group,
        }
    });
    html(
        "compare.html",
        Page {
            title: "Spillgate: two runs side by side",
            same_plan: a.0.manifest.plan_hash == b.0.manifest.plan_hash,
            groups: groups.collect(),
            a: side("A", a.0, a.1),
            b: side("B", b.0, b.1),
        },
    )
}

fn side(name: &'static str, set: &RunSet, verdict: &Verdict) -> Side {
    let candidates = &verdict.candidates;
    let grid = Rule::ALL.into_iter().map(|rule| Row {
        number: rule.number(),
        title: rule.title(),
        cells: candidates
            .iter()
            .map(|candidate| match candidate.deciding(rule) {
                None => (badge(State::NotRun), String::new()),
                Some(row) => match row.state {
                    State::NotApplicable => (badge(row.state), String::new()),
                    State::Holds | State::Broken | State::NotProven | State::NotRun => {
                        (badge(row.state), deciding_number(row))
                    }
                },
            })
            .collect(),
    });
    Side {
        name,
        id: plain(&set.manifest.acceptance_id),
        decision: verdict.decision.as_str(),
        headline: headline(verdict),
        sentence: verdict.decision_sentence().to_owned(),
        exit_code: verdict.exit_code(),
        exit_words: exit_words(verdict.exit_code()),
        candidates: candidates.iter().map(|c| plain(&c.configuration)).collect(),
        grid: grid.collect(),
    }
}
