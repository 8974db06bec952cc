use serde::Serialize;
use spill_record::{Blessing, RunSet};
use spill_verdict::{Verdict, counted, plain};

use crate::differences::{Group, Line, groups};

/// The accepted run that a report is held against: `reports/baseline`.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Its plan and records.
    pub set: RunSet,
    /// The verdict on them.
    pub verdict: Verdict,
    /// Why it was accepted.
    pub blessing: Blessing,
}

/// Lines of the section; further ones are counted.
const LINES: usize = 100;

/// What changed since the accepted run.
#[derive(Serialize)]
pub(crate) struct Since {
    /// For the first screen.
    words: String,
    /// What differs, for the section; empty without an accepted run.
    lines: Vec<Line>,
    left_out: usize,
}

/// Holds a run against the accepted one.
pub(crate) fn since(baseline: Option<&Baseline>, set: &RunSet, verdict: &Verdict) -> Since {
    let nothing = |words: String| Since {
        words,
        lines: Vec::new(),
        left_out: 0,
    };
    let Some(baseline) = baseline else {
        return nothing(
            "No report has been accepted here yet: spillgate accept --bless REASON accepts one."
                .to_owned(),
        );
    };
    let why = format!(
        "accepted on {}: {}",
        day(&baseline.blessing.blessed_at),
        plain(&baseline.blessing.reason)
    );
    if baseline.set.manifest.acceptance_id == set.manifest.acceptance_id {
        return nothing(ended(format!("This run is the accepted one, {why}")));
    }
    let groups = groups((&baseline.set, &baseline.verdict), (set, verdict));
    let words = ended(format!("{} The other was {why}", sentence(&groups)));
    let mut lines: Vec<Line> = groups
        .into_iter()
        .flat_map(|group| group.lines)
        .filter(|line| line.changed && !line.measured)
        .collect();
    let left_out = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    Since {
        words,
        lines,
        left_out,
    }
}

/// A sentence that ends with what somebody wrote, who may have ended it already.
fn ended(words: String) -> String {
    if words.ends_with(['.', '!', '?', '…']) {
        words
    } else {
        words + "."
    }
}

fn sentence(groups: &[Group]) -> String {
    let changed = |id: &str| {
        let group = groups.iter().find(|group| group.id == id);
        group.map_or((0, 0), |group| {
            (group.changed() as u64, group.lines.len() as u64)
        })
    };
    let decision = groups
        .iter()
        .flat_map(|group| &group.lines)
        .find(|line| line.what == "decision");
    let decision = match decision {
        Some(line) if line.changed => format!("The decision was {}, is {}", line.a, line.b),
        Some(line) => format!("The decision is still {}", line.b),
        None => "There is no decision".to_owned(),
    };
    let (rules, of_rules) = changed("rules");
    let (figures, _) = changed("figures");
    let plan = groups
        .iter()
        .flat_map(|group| &group.lines)
        .any(|line| line.what == "plan hash" && line.changed);
    let plan = if plan { "; the plan is another" } else { "" };
    format!(
        "{decision}; {rules} of {} and {} changed{plan}.",
        counted(of_rules, "rule result"),
        counted(figures, "figure")
    )
}

/// The day of a time as manifests spell it.
fn day(time: &str) -> String {
    plain(time.split('T').next().unwrap_or(time))
}
