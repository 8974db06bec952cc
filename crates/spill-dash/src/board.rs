//! What the dashboard shows at one moment.

use serde::Serialize;
use spill_record::{Outcome, RunRecord, RunSet};
use spill_verdict::{CandidateVerdict, Rule, RuleVerdict, State, Verdict, deciding_number, plain};

/// The run folders below a reports folder, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Board {
    /// One card a folder.
    pub cards: Vec<Card>,
}

/// How far an acceptance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CardState {
    /// A process is writing its folder.
    Running,
    /// It was judged.
    Finished,
    /// Nobody writes it any more, and it was never judged: its process was killed.
    Incomplete,
    /// Its folder cannot be read.
    Unreadable,
}

impl CardState {
    /// The state as pages spell it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Incomplete => "incomplete",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One acceptance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Its id: the folder's name.
    pub id: String,
    /// How far it is.
    pub state: CardState,
    /// When it was started, as its manifest says.
    pub started_at: String,
    /// Scenarios, stage and subject, in words.
    pub about: String,
    /// Runs that the plan asks for.
    pub planned: u64,
    /// Runs recorded.
    pub done: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that the harness lost.
    pub infrastructure: u64,
    /// Cells (scenario × input × configuration) of the plan.
    pub cells_planned: u64,
    /// Cells all of whose runs are recorded.
    pub cells_done: u64,
    /// Runs recorded per second since the start; only while it runs.
    pub runs_per_second: Option<f64>,
    /// Seconds until the planned number is reached at that rate; only while it runs.
    pub eta_seconds: Option<f64>,
    /// The decision, or why there is none yet.
    pub sentence: String,
    /// `keep`, `change`, `disable` or `none`; only of a finished one.
    pub decision: Option<String>,
    /// The exit code of a finished one.
    pub exit_code: Option<u8>,
    /// Whether the rules' states can still turn: the planned number is not reached.
    pub provisional: bool,
    /// Candidates in the order of the ladder.
    pub candidates: Vec<String>,
    /// The rules as they stand.
    pub rules: Vec<CardRule>,
    /// Why the folder cannot be read.
    pub error: Option<String>,
}

/// One rule, with a state for each candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardRule {
    /// Its number, 1 to 5.
    pub number: u8,
    /// Its title.
    pub title: &'static str,
    /// A state for each candidate.
    pub cells: Vec<CardCell>,
}

/// A rule for one candidate, on the input that decides it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardCell {
    /// The state as files spell it.
    pub state: &'static str,
    /// The state in words.
    pub words: &'static str,
    /// The number that decides.
    pub number: String,
    /// The deciding input.
    pub place: String,
    /// Pairs behind the number.
    pub n: u64,
    /// Pairs that the plan asks for.
    pub planned: u64,
    /// Whether the next run can turn the state.
    pub provisional: bool,
    /// The number alone; `None` where nothing was measured.
    pub observed: Option<f64>,
    /// What it is held against.
    pub limit: Option<f64>,
}

/// Counts of the records made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) planned: u64,
    pub(crate) done: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) infrastructure: u64,
    pub(crate) cells_planned: u64,
    pub(crate) cells_done: u64,
}

impl Counts {
    pub(crate) fn of(set: &RunSet) -> Self {
        let plan = &set.manifest.plan;
        let count = |outcome| {
            let of_outcome = set.runs.iter().filter(|run| run.outcome == outcome);
            of_outcome.count() as u64
        };
        let cells_planned = (plan.inputs.len() * plan.configurations.len()) as u64;
        let mut by_cell = std::collections::HashMap::new();
        for RunRecord {
            scenario,
            input,
            configuration,
            ..
        } in &set.runs
        {
            *by_cell
                .entry((scenario, input, configuration))
                .or_insert(0u64) += 1;
        }
        let repetitions = u64::from(plan.repetitions);
        Self {
            planned: plan.runs.len() as u64,
            done: set.runs.len() as u64,
            succeeded: count(Outcome::Succeeded),
            failed: count(Outcome::Failed),
            infrastructure: count(Outcome::Infrastructure),
            cells_planned,
            cells_done: by_cell.values().filter(|n| **n >= repetitions).count() as u64,
        }
    }

    /// The counts that a verdict holds.
    pub(crate) fn of_verdict(set: &RunSet, verdict: &Verdict) -> Self {
        let d = verdict.denominators;
        let plan = &set.manifest.plan;
        let cells = (plan.inputs.len() * plan.configurations.len()) as u64;
        Self {
            planned: d.planned,
            done: d.finished + d.infrastructure,
            succeeded: d.succeeded,
            failed: d.failed,
            infrastructure: d.infrastructure,
            cells_planned: cells,
            cells_done: if d.missing == 0 { cells } else { 0 },
        }
    }
}

/// The rules of a verdict, with a cell for each candidate; of a folder that is still written, as they
/// stand on the pairs that are complete.
pub(crate) fn rules(verdict: &Verdict, standing: Option<&[CandidateVerdict]>) -> Vec<CardRule> {
    let rule = |rule: Rule| CardRule {
        number: rule.number(),
        title: rule.title(),
        cells: verdict
            .candidates
            .iter()
            .enumerate()
            .map(|(column, judged)| {
                let standing = standing.and_then(|standing| standing.get(column));
                match standing {
                    None => cell(judged.deciding(rule), false),
                    Some(standing) => {
                        let judged = judged.deciding(rule).map(|row| row.state);
                        let settled = judged == Some(State::Broken);
                        cell(standing.deciding(rule), !settled)
                    }
                }
            })
            .collect(),
    };
    Rule::ALL.into_iter().map(rule).collect()
}

/// The cell of the row that decides; `can_turn` when a run that is still to come may change it.
fn cell(row: Option<&RuleVerdict>, can_turn: bool) -> CardCell {
    let state = row.map_or(State::NotRun, |row| row.state);
    let (tells, counts) = match state {
        State::NotApplicable => (false, false),
        State::NotRun => (!can_turn, false),
        State::Holds | State::Broken | State::NotProven => (true, true),
    };
    let told = row.filter(|_| tells);
    CardCell {
        state: state.as_str(),
        words: state.words(),
        number: told.map(deciding_number).unwrap_or_default(),
        place: row.map(RuleVerdict::place).unwrap_or_default(),
        n: row.map_or(0, |row| row.n),
        planned: row.map_or(0, |row| row.planned),
        provisional: can_turn && counts,
        observed: told.and_then(|row| row.observed),
        limit: row.and_then(|row| row.limit),
    }
}

/// What an acceptance is about, in a few words.
pub(crate) fn about(set: &RunSet) -> String {
    let manifest = &set.manifest;
    let mut scenarios: Vec<String> = manifest
        .plan
        .inputs
        .iter()
        .map(|input| plain(&input.scenario))
        .collect();
    scenarios.dedup();
    let stage = match manifest.stage {
        spill_record::Stage::Quick => "quick",
        spill_record::Stage::Full => "full",
    };
    format!(
        "{} · {stage} · subject {}",
        scenarios.join(", "),
        plain(&manifest.subject)
    )
}
