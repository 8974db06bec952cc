use std::collections::HashMap;

use serde::Serialize;
use spill_record::RunSet;
use spill_verdict::{RuleVerdict, State, Verdict, amount, deciding_number, figure, percent, plain};

use crate::background::provenance;
use crate::cells::{Cell, Spread, cells, end_facts, facts};
use crate::figures::{NOTHING, mebibytes};
use crate::pairs::place;

/// What stands in the place of something that one of two run folders does not have.
const ABSENT: &str = "not there";

/// Something that is not the same in two run folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is, such as `rule 3 (input tokens), review/large, 128KiB`.
    pub what: String,
    /// In the first folder.
    pub a: String,
    /// In the second folder.
    pub b: String,
}

/// How two run folders differ; figures that are measured are left out, since they always do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    /// Whether both were made by the same plan, so that equal programs give equal figures.
    pub same_plan: bool,
    /// Decision and exit code first, then where the runs come from, rules and figures.
    pub changed: Vec<Difference>,
    /// How many further ones are the same in both.
    pub unchanged: u64,
}

/// Finds what differs between two run folders and their verdicts.
#[must_use]
pub fn differences(a: (&RunSet, &Verdict), b: (&RunSet, &Verdict)) -> Differences {
    let mut found = Differences {
        same_plan: a.0.manifest.plan_hash == b.0.manifest.plan_hash,
        changed: Vec::new(),
        unchanged: 0,
    };
    for line in groups(a, b).into_iter().flat_map(|group| group.lines) {
        if line.measured {
            continue;
        }
        if line.changed {
            found.changed.push(Difference {
                what: line.what,
                a: line.a,
                b: line.b,
            });
        } else {
            found.unchanged += 1;
        }
    }
    found
}

/// Lines of one kind, the same as well as different ones.
#[derive(Serialize)]
pub(crate) struct Group {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One thing in both folders.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) a: String,
    pub(crate) b: String,
    /// By how much, where both are numbers.
    pub(crate) change: String,
    pub(crate) changed: bool,
    /// Whether it varies from run to run of the program.
    pub(crate) measured: bool,
}

impl Line {
    fn of(what: impl Into<String>, a: String, b: String) -> Self {
        Self {
            what: what.into(),
            changed: a != b,
            a,
            b,
            change: String::new(),
            measured: false,
        }
    }
}

impl Group {
    pub(crate) fn changed(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| line.changed && !line.measured)
            .count()
    }
}

/// Everything that is compared, in the order that it is shown.
pub(crate) fn groups(a: (&RunSet, &Verdict), b: (&RunSet, &Verdict)) -> Vec<Group> {
    vec![
        Group {
            id: "decision",
            title: "Decision",
            lines: decision(a.1, b.1),
        },
        Group {
            id: "origin",
            title: "Where the runs come from",
            lines: origin(a, b),
        },
        Group {
            id: "rules",
            title: "Rules",
            lines: rules(a.1, b.1),
        },
        Group {
            id: "figures",
            title: "Figures",
            lines: figures(a.0, b.0),
        },
    ]
}

fn decision(a: &Verdict, b: &Verdict) -> Vec<Line> {
    let line = |what: &str, of: &dyn Fn(&Verdict) -> String| Line::of(what, of(a), of(b));
    vec![
        line("decision", &|v| v.decision.as_str().to_owned()),
        line("exit code", &|v| v.exit_code().to_string()),
        line("ships today", &|v| {
            v.shipped
                .as_ref()
                .map_or(NOTHING.to_owned(), |s| plain(&s.configuration))
        }),
        line("leaking runs", &|v| v.leak_runs.to_string()),
    ]
}

fn origin((a, on_a): (&RunSet, &Verdict), (b, on_b): (&RunSet, &Verdict)) -> Vec<Line> {
    let stage = |set: &RunSet| match set.manifest.stage {
        spill_record::Stage::Quick => "quick".to_owned(),
        spill_record::Stage::Full => "full".to_owned(),
    };
    let mut lines = vec![Line::of("stage", stage(a), stage(b))];
    let rows = provenance(a, on_a).into_iter().zip(provenance(b, on_b));
    lines.extend(rows.map(|((what, a), (_, b))| Line::of(what, a, b)));
    lines
}

/// Pairs up what both sides have by key, in the order of the second, then what only the first has.
fn matched<'a, K: std::hash::Hash + Eq + Clone, T>(
    a: Vec<(K, &'a T)>,
    b: Vec<(K, &'a T)>,
) -> Vec<(K, Option<&'a T>, Option<&'a T>)> {
    let mut left: HashMap<K, &T> = a.iter().cloned().collect();
    let mut all: Vec<(K, Option<&T>, Option<&T>)> = Vec::new();
    for (key, ours) in b {
        let theirs = left.remove(&key);
        all.push((key, theirs, Some(ours)));
    }
    for (key, theirs) in a {
        if left.remove(&key).is_some() {
            all.push((key, Some(theirs), None));
        }
    }
    all
}

/// What a rule, or a candidate as a whole, came to.
struct Came {
    what: String,
    words: String,
    state: State,
}

fn came(verdict: &Verdict) -> Vec<Came> {
    let mut all = Vec::new();
    for candidate in &verdict.candidates {
        let name = plain(&candidate.configuration);
        all.push(Came {
            what: format!("all rules, {name}"),
            words: candidate.state.words().to_owned(),
            state: candidate.state,
        });
        all.extend(candidate.rules.iter().map(|row| Came {
            what: format!(
                "rule {} ({}), {}, {name}",
                row.number,
                row.rule.title(),
                row.place()
            ),
            words: rule_words(row),
            state: row.state,
        }));
    }
    all
}

fn rules(a: &Verdict, b: &Verdict) -> Vec<Line> {
    let (a, b) = (came(a), came(b));
    let keyed = |all: &'_ [Came]| -> Vec<String> { all.iter().map(|c| c.what.clone()).collect() };
    let (left, right) = (keyed(&a), keyed(&b));
    let matched = matched(
        left.iter().map(String::as_str).zip(&a).collect(),
        right.iter().map(String::as_str).zip(&b).collect(),
    );
    let exempt = |came: Option<&Came>| came.is_some_and(|c| c.state == State::NotApplicable);
    let words = |came: Option<&Came>| came.map_or(ABSENT.to_owned(), |came| came.words.clone());
    let lines = matched
        .into_iter()
        .filter(|(_, a, b)| !(exempt(*a) && exempt(*b)))
        .map(|(what, a, b)| Line::of(what, words(a), words(b)));
    lines.collect()
}

fn rule_words(row: &RuleVerdict) -> String {
    match row.state {
        State::NotApplicable => row.state.words().to_owned(),
        State::Holds | State::Broken | State::NotProven | State::NotRun => {
            format!("{}: {}", row.state.words(), deciding_number(row))
        }
    }
}

/// A figure of a cell: its name, its value, how that is written, and whether it is measured.
struct CellFigure {
    name: &'static str,
    of: fn(&Cell<'_>) -> Option<f64>,
    write: fn(f64) -> String,
    measured: bool,
}

const FIGURES: [CellFigure; 6] = [
    CellFigure {
        name: "success rate",
        of: |cell| cell.success_rate(),
        write: percent,
        measured: false,
    },
    CellFigure {
        name: "median input tokens",
        of: |cell| median(cell.spread(|r| r.input_tokens)),
        write: amount,
        measured: false,
    },
    CellFigure {
        name: "median iterations",
        of: |cell| median(cell.spread(|r| r.iterations)),
        write: amount,
        measured: false,
    },
    CellFigure {
        name: "mean quality",
        of: |cell| median(cell.coverage(facts)),
        write: percent,
        measured: false,
    },
    CellFigure {
        name: "coverage of the end",
        of: |cell| median(cell.coverage(end_facts)),
        write: percent,
        measured: false,
    },
    CellFigure {
        name: "median peak memory",
        of: |cell| median(cell.spread(|r| r.peak_rss_bytes)),
        write: mebibytes,
        measured: true,
    },
];

fn median(spread: Option<Spread>) -> Option<f64> {
    spread.map(|spread| spread.median)
}

fn figures(a: &RunSet, b: &RunSet) -> Vec<Line> {
    let (a, b) = (cells(a), cells(b));
    let keyed = |cells: &'_ [Cell<'_>]| -> Vec<String> {
        let names = cells.iter().map(|cell| {
            format!(
                "{}, {}",
                place(&cell.input.scenario, &cell.input.input),
                plain(&cell.configuration.name)
            )
        });
        names.collect()
    };
    let (left, right) = (keyed(&a), keyed(&b));
    let matched = matched(
        left.iter()
            .zip(&a)
            .map(|(key, cell)| (key.as_str(), cell))
            .collect(),
        right
            .iter()
            .zip(&b)
            .map(|(key, cell)| (key.as_str(), cell))
            .collect(),
    );
    let mut lines = Vec::new();
    for (name, left, right) in matched {
        for figure in &FIGURES {
            let value = |cell: Option<&Cell<'_>>| cell.and_then(figure.of);
            let (off, on) = (value(left), value(right));
            let words = |cell: Option<&Cell<'_>>, value: Option<f64>| match (cell, value) {
                (None, _) => ABSENT.to_owned(),
                (Some(_), None) => NOTHING.to_owned(),
                (Some(_), Some(value)) => (figure.write)(value),
            };
            if off.is_none() && on.is_none() && left.is_some() && right.is_some() {
                continue;
            }
            lines.push(Line {
                change: change(off, on),
                measured: figure.measured,
                ..Line::of(
                    format!("{}, {name}", figure.name),
                    words(left, off),
                    words(right, on),
                )
            });
        }
    }
    lines
}

/// The second over the first, as a signed percentage.
fn change(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a != b && a != 0.0 => {
            let percent = ((b / a - 1.0) * 1_000.0).round() / 10.0;
            let sign = if percent > 0.0 { "+" } else { "" };
            format!("{sign}{} %", figure(percent))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn a_change_is_a_signed_percentage_of_what_there_was() {
        assert_eq!(change(Some(100.0), Some(112.0)), "+12 %");
        assert_eq!(change(Some(100.0), Some(0.0)), "-100 %");
        assert_eq!(change(Some(3.0), Some(3.0)), "");
        assert_eq!(change(Some(0.0), Some(3.0)), "");
        assert_eq!(change(None, Some(3.0)), "");
    }
}
