use schemars::JsonSchema;
use serde::Serialize;
use spill_verdict::{CandidateVerdict, Rule, State, plain};

/// How a candidate stands while runs are still to come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// The configuration's name.
    pub configuration: String,
    /// Whether the ladder has reached it.
    pub considered: bool,
    /// All rules together.
    pub state: State,
    /// Rules on inputs that hold.
    pub holds: u64,
    /// Those that are broken.
    pub broken: u64,
    /// Those that the runs do not prove.
    pub not_proven: u64,
    /// Those that wait for runs.
    pub open: u64,
    /// Each rule, on the input that decides it by now.
    pub rules: Vec<RuleStanding>,
}

/// How a rule stands for a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleStanding {
    /// The rule.
    pub rule: Rule,
    /// Its state; `not_run` while runs are still to come.
    pub state: State,
    /// The deciding input, with its scenario; `None` where there is none yet.
    pub place: Option<String>,
    /// The number that decides by now; `None` where nothing was measured.
    pub observed: Option<f64>,
    /// What it is held against.
    pub limit: Option<f64>,
}

/// The candidates as [`spill_verdict::standing`] judges them on the runs made so far, or as a verdict
/// has them, in the order of the ladder.
#[must_use]
pub fn standings(candidates: &[CandidateVerdict]) -> Vec<Standing> {
    candidates.iter().map(standing).collect()
}

fn standing(candidate: &CandidateVerdict) -> Standing {
    let count = |state| {
        let of_state = candidate.rules.iter().filter(|row| row.state == state);
        of_state.count() as u64
    };
    let rule = |rule| match candidate.deciding(rule) {
        Some(row) => RuleStanding {
            rule,
            state: row.state,
            place: Some(row.place()),
            observed: row.observed,
            limit: row.limit,
        },
        None => RuleStanding {
            rule,
            state: State::NotRun,
            place: None,
            observed: None,
            limit: None,
        },
    };
    Standing {
        configuration: candidate.configuration.clone(),
        considered: candidate.considered,
        state: candidate.state,
        holds: count(State::Holds),
        broken: count(State::Broken),
        not_proven: count(State::NotProven),
        open: count(State::NotRun),
        rules: Rule::ALL.map(rule).to_vec(),
    }
}

impl Standing {
    /// One line for a terminal, such as `128KiB (provisional): holds 8, broken 1 (rule 3 on large), open 7`:
    /// how many rules on inputs are in which state.
    #[must_use]
    pub fn words(&self) -> String {
        let broken = self.rules.iter().filter(|rule| rule.state == State::Broken);
        let broken: Vec<String> = broken
            .map(|rule| match &rule.place {
                Some(place) => format!("rule {} on {place}", rule.rule.number()),
                None => format!("rule {}", rule.rule.number()),
            })
            .collect();
        let mut parts = vec![format!("holds {}", self.holds)];
        if self.broken > 0 {
            parts.push(format!("broken {} ({})", self.broken, broken.join("; ")));
        }
        if self.not_proven > 0 {
            parts.push(format!("not proven {}", self.not_proven));
        }
        if self.open > 0 {
            parts.push(format!("open {}", self.open));
        }
        let name = plain(&self.configuration);
        format!("{name} (provisional): {}", parts.join(", "))
    }
}
