use spill_record::{ConfigurationRole, InputRecord, Outcome, RunRecord};
use spill_verdict::{plain, ratio};

use crate::cells::{Cell, Spread};

/// The pairs of one input under one candidate and the control, of which both runs finished.
pub(crate) struct Versus<'a> {
    pub(crate) input: &'a InputRecord,
    /// The candidate's name, as people read it.
    pub(crate) candidate: String,
    /// Place of the candidate among the configurations of the plan.
    pub(crate) series: u8,
    /// The control's run and the candidate's.
    pub(crate) pairs: Vec<(&'a RunRecord, &'a RunRecord)>,
}

/// Every input under every candidate, inputs in plan order and candidates within each.
pub(crate) fn versus<'a>(cells: &[Cell<'a>], configurations: usize) -> Vec<Versus<'a>> {
    let mut all = Vec::new();
    for group in cells.chunks(configurations.max(1)) {
        let role = |cell: &Cell<'_>| cell.configuration.role;
        let Some(control) = group.iter().find(|c| role(c) == ConfigurationRole::Control) else {
            continue;
        };
        for (series, cell) in (0u8..).zip(group) {
            match role(cell) {
                ConfigurationRole::Control => {}
                ConfigurationRole::Candidate => all.push(Versus {
                    input: cell.input,
                    candidate: plain(&cell.configuration.name),
                    series,
                    pairs: cell.paired_with(control),
                }),
            }
        }
    }
    all
}

impl Versus<'_> {
    /// The input with its scenario, as people read it.
    pub(crate) fn place(&self) -> String {
        place(&self.input.scenario, &self.input.input)
    }

    /// Candidate over control in input tokens, over the pairs that rule 3 decides on: those that
    /// both succeeded.
    pub(crate) fn token_ratios(&self) -> Option<Spread> {
        let won = |run: &RunRecord| run.outcome == Outcome::Succeeded;
        let ratios: Vec<f64> = self
            .pairs
            .iter()
            .filter(|(off, on)| won(off) && won(on))
            .filter_map(|(off, on)| token_ratio(off, on))
            .collect();
        Spread::of(&ratios)
    }
}

/// Candidate over control in input tokens; `None` where a run does not tell, or the control's are 0.
pub(crate) fn token_ratio(off: &RunRecord, on: &RunRecord) -> Option<f64> {
    ratio(
        on.input_tokens.map(|tokens| tokens as f64),
        off.input_tokens.map(|tokens| tokens as f64),
    )
}

/// An input with its scenario; one name when both are the same.
pub(crate) fn place(scenario: &str, input: &str) -> String {
    if scenario == input {
        plain(input)
    } else {
        format!("{}/{}", plain(scenario), plain(input))
    }
}
