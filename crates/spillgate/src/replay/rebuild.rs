//! Everything that is rebuilt from a replay folder.

use std::path::Path;

use spill_record::{ProblemRecord, ReplayFolder, ReplayRecord, ReplayTotals, RunFolder};
use spill_report::{ReplayProblems, ReplaySessions, render_replay};
use spill_verdict::{ReplayJudgement, judge_replay, plain, replay_summary, replay_text};

use crate::{Failure, out};

pub(crate) use spill_record::is_replay;

/// A replay with what it comes to.
pub(crate) struct Rebuilt {
    record: ReplayRecord,
    totals: ReplayTotals,
    judgement: ReplayJudgement,
    summary_json: String,
    /// The first things that were not understood, with their places.
    named: Vec<String>,
}

/// What was not understood is named on the terminal up to this many times; `problems.csv` has all.
const MOST_NAMED: usize = 10;

/// Judges a folder's records and writes every derived file.
pub(crate) fn rebuild(verb: &'static str, folder: &Path) -> Result<Rebuilt, Failure> {
    write(folder).map_err(|error| Failure::usage(verb, error))
}

fn write(folder: &Path) -> anyhow::Result<Rebuilt> {
    let record = ReplayFolder::read(folder)?;
    let mut totals = ReplayTotals::default();
    ReplayFolder::each_session(folder, &record, |session| totals.add(&session))?;
    let judgement = judge_replay(&record, &totals)?;
    let summary = replay_summary(&record, &totals, &judgement);
    let summary_json = serde_json::to_string_pretty(&summary)? + "\n";
    let mut sessions = ReplaySessions::of(&record, &totals);
    ReplayFolder::each_session(folder, &record, |session| sessions.take(&session))?;
    let mut problems = ReplayProblems::default();
    let mut named = Vec::new();
    ReplayFolder::each_problem(folder, |problem| {
        if named.len() < MOST_NAMED {
            named.push(words(&problem));
        }
        problems.take(problem);
    })?;
    let rendered = render_replay(&record, &totals, &judgement, sessions, problems);
    let files = [
        ("summary.json", &summary_json),
        ("thresholds.csv", &rendered.thresholds_csv),
        ("sessions.csv", &rendered.sessions_csv),
        ("tools.csv", &rendered.tools_csv),
        ("problems.csv", &rendered.problems_csv),
        ("report.html", &rendered.report_html),
    ];
    for (name, text) in files {
        RunFolder::write_derived(folder, name, text.as_bytes())?;
    }
    Ok(Rebuilt {
        record,
        totals,
        judgement,
        summary_json,
        named,
    })
}

/// Place, kind and words of what was not understood.
fn words(problem: &ProblemRecord) -> String {
    let line = problem
        .line
        .map_or(String::new(), |line| format!(":{line}"));
    let item = problem
        .item
        .map_or(String::new(), |item| format!("[{item}]"));
    format!(
        "{}{line}{item}: {}: {}",
        plain(&problem.file),
        problem.kind,
        plain(&problem.detail)
    )
}

impl Rebuilt {
    /// Names what was not understood, beside the answer.
    pub(crate) fn note_problems(&self) {
        for words in &self.named {
            out::note(format_args!("note: {words}"));
        }
        let total: u64 = self.record.problems.values().sum();
        if let Some(more @ 1..) = total.checked_sub(self.named.len() as u64) {
            out::note(format_args!("note: {more} more are in problems.csv"));
        }
    }

    /// Prints the summary, as text or as JSON.
    pub(crate) fn print(&self, json: bool) {
        if json {
            out::line(self.summary_json.trim_end());
            return;
        }
        out::line(replay_text(&self.record, &self.totals, &self.judgement));
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.judgement.exit_code
    }
}
