use spill_record::{ConfigurationRecord, ConfigurationRole, Mode, PlanRecord};

use crate::inventory::{InputPairs, Slot};
use crate::rule::{Rule, State};
use crate::rules::Comparison;
use crate::verdict::{CandidateVerdict, Decision, Proposed, RuleVerdict, Shipped};
use crate::words::{counted, grouped, plain};

/// Where the ladder of candidates ends.
pub(crate) struct Climb {
    pub(crate) decision: Decision,
    pub(crate) proposed: Option<Proposed>,
    pub(crate) words: String,
}

/// Judges every candidate of the plan on `cells`, in the order of the ladder.
pub(crate) fn judge_candidates(
    plan: &PlanRecord,
    mode: Mode,
    cells: &[InputPairs<'_>],
    extra: &[InputPairs<'_>],
) -> Vec<CandidateVerdict> {
    let control = plan
        .configurations
        .iter()
        .position(|c| c.role == ConfigurationRole::Control);
    plan.configurations
        .iter()
        .enumerate()
        .filter(|(_, configuration)| configuration.role == ConfigurationRole::Candidate)
        .map(|(index, configuration)| {
            judge_candidate(plan, mode, cells, extra, control, index, configuration)
        })
        .collect()
}

fn judge_candidate(
    plan: &PlanRecord,
    mode: Mode,
    cells: &[InputPairs<'_>],
    extra: &[InputPairs<'_>],
    control: Option<usize>,
    index: usize,
    configuration: &ConfigurationRecord,
) -> CandidateVerdict {
    let mut rules = Vec::new();
    if let Some(control) = control {
        for rule in Rule::ALL {
            for (cell, extra) in cells.iter().zip(extra) {
                let comparison = Comparison::new(cell, extra, control, index, &plan.rules, mode);
                rules.push(comparison.judge(rule));
            }
        }
    }
    let results_persisted = stored(cells, index);
    let mut candidate = CandidateVerdict {
        configuration: configuration.name.clone(),
        threshold_bytes: configuration.threshold_bytes,
        state: State::NotRun,
        considered: false,
        results_persisted,
        words: String::new(),
        rules,
    };
    (candidate.state, candidate.words) = sum_up(&candidate);
    candidate
}

/// Results stored under a configuration; `None` when no finished run tells.
fn stored(cells: &[InputPairs<'_>], index: usize) -> Option<u64> {
    cells
        .iter()
        .flat_map(|cell| &cell.pairs)
        .filter_map(|pair| match pair.slots[index] {
            Slot::Finished(record) => record.results_persisted,
            Slot::Infrastructure(_) | Slot::Missing => None,
        })
        .reduce(u64::saturating_add)
}

/// The heaviest state of all rules, and why.
fn sum_up(candidate: &CandidateVerdict) -> (State, String) {
    let state = candidate
        .rules
        .iter()
        .map(|row| row.state)
        .max_by_key(|state| state.weight())
        .unwrap_or(State::NotRun);
    match state {
        State::Broken | State::NotProven | State::NotRun => {}
        State::Holds | State::NotApplicable => {
            return match candidate.results_persisted {
                Some(1..) => (State::Holds, all_hold(candidate)),
                Some(0) => (
                    State::NotProven,
                    "it stored nothing in the whole plan: it was not tried".to_owned(),
                ),
                None => (
                    State::NotProven,
                    "no run tells whether it stored anything".to_owned(),
                ),
            };
        }
    }
    let first = Rule::ALL
        .into_iter()
        .filter_map(|rule| candidate.deciding(rule))
        .find(|row| row.state == state);
    let words = first.map_or_else(
        || "there is nothing to judge".to_owned(),
        |row| {
            format!(
                "rule {} ({}) is {} on {}{}: {}",
                row.number,
                row.rule.title(),
                row.state.words(),
                row.place(),
                elsewhere(candidate, row),
                row.words
            )
        },
    );
    (state, words + &others(candidate, state, first))
}

fn all_hold(candidate: &CandidateVerdict) -> String {
    let of_success = || {
        candidate
            .rules
            .iter()
            .filter(|row| row.rule == Rule::SuccessRate)
    };
    let inputs = counted(of_success().count() as u64, "input");
    let pairs = counted(of_success().map(|row| row.n).sum(), "pair");
    format!("all rules hold on {inputs} in {pairs}")
}

/// The other inputs on which `row`'s rule came to the same state, in brackets.
fn elsewhere(candidate: &CandidateVerdict, row: &RuleVerdict) -> String {
    const NAMED: usize = 3;
    let places: Vec<String> = candidate
        .rules
        .iter()
        .filter(|other| other.rule == row.rule && other.state == row.state)
        .filter(|other| !std::ptr::eq(*other, row))
        .map(RuleVerdict::place)
        .collect();
    match places.len() {
        0 => String::new(),
        1..=NAMED => format!(" (and {})", places.join(", ")),
        more => format!(" (and {more} other inputs)"),
    }
}

/// The further rules that came to the same state.
fn others(candidate: &CandidateVerdict, state: State, first: Option<&RuleVerdict>) -> String {
    let numbers: Vec<String> = Rule::ALL
        .into_iter()
        .filter(|rule| first.is_some_and(|row| row.rule != *rule))
        .filter(|rule| {
            candidate
                .deciding(*rule)
                .is_some_and(|row| row.state == state)
        })
        .map(|rule| format!("rule {} ({})", rule.number(), rule.title()))
        .collect();
    if numbers.is_empty() {
        String::new()
    } else {
        format!("; also {}: {}", state.words(), numbers.join(", "))
    }
}

/// Climbs from the first candidate to the first that holds; anything but a broken one stops it.
pub(crate) fn climb(plan: &PlanRecord, candidates: &mut [CandidateVerdict]) -> Climb {
    let shipped = plan
        .configurations
        .iter()
        .find(|configuration| configuration.shipped);
    let mut broken = Vec::new();
    for candidate in candidates.iter_mut() {
        candidate.considered = true;
        let name = label(&candidate.configuration, candidate.threshold_bytes);
        match candidate.state {
            State::Broken => broken.push(format!("{name}: {}", candidate.words)),
            State::Holds => return accept(candidate, shipped, &broken),
            State::NotProven | State::NotApplicable | State::NotRun => {
                let words = format!("{name} is {}: {}", candidate.state.words(), candidate.words);
                return Climb {
                    decision: Decision::None,
                    proposed: None,
                    words: after(words, &broken),
                };
            }
        }
    }
    if broken.is_empty() {
        let words = "the plan has no candidate".to_owned();
        return Climb {
            decision: Decision::None,
            proposed: None,
            words,
        };
    }
    let off_ships = shipped.is_some_and(|configuration| !configuration.enabled);
    let (decision, way) = if off_ships {
        (Decision::Keep, "spilling stays off by default")
    } else {
        (Decision::Disable, "spilling is to be off by default")
    };
    Climb {
        decision,
        proposed: Some(Proposed {
            configuration: None,
            enabled: false,
            threshold_bytes: None,
        }),
        words: after(format!("every candidate is broken, so {way}"), &broken),
    }
}

fn accept(
    candidate: &CandidateVerdict,
    shipped: Option<&ConfigurationRecord>,
    broken: &[String],
) -> Climb {
    let name = label(&candidate.configuration, candidate.threshold_bytes);
    let ships = shipped.is_some_and(|shipped| shipped.name == candidate.configuration);
    let decision = if ships {
        Decision::Keep
    } else {
        Decision::Change
    };
    let words = if ships {
        candidate.words.clone()
    } else {
        format!("for {name} {}", candidate.words)
    };
    let proposed = Proposed {
        configuration: Some(candidate.configuration.clone()),
        enabled: true,
        threshold_bytes: candidate.threshold_bytes,
    };
    Climb {
        decision,
        proposed: Some(proposed),
        words: after(words, broken),
    }
}

/// `words`, then the reasons of the first broken candidates; the tables have those of all.
fn after(words: String, broken: &[String]) -> String {
    const NAMED: usize = 3;
    let mut sentences = vec![words];
    sentences.extend(broken.iter().take(NAMED).cloned());
    match broken.len().saturating_sub(NAMED) {
        0 => {}
        1 => sentences.push("One more candidate is broken".to_owned()),
        more => sentences.push(format!("{more} more candidates are broken")),
    }
    sentences.join(". ")
}

/// A configuration by name and threshold.
pub(crate) fn label(name: &str, threshold_bytes: Option<u64>) -> String {
    match threshold_bytes {
        Some(bytes) => format!("{} ({} bytes)", plain(name), grouped(bytes)),
        None => plain(name),
    }
}

/// What ships today.
pub(crate) fn shipped(plan: &PlanRecord) -> Option<Shipped> {
    plan.configurations
        .iter()
        .find(|configuration| configuration.shipped)
        .map(|configuration| Shipped {
            configuration: configuration.name.clone(),
            threshold_bytes: configuration.threshold_bytes,
        })
}
