//! Everything that is rebuilt from a replay folder.

use std::path::Path;

use spill_record::{ReplayFolder, ReplayRecord, ReplayTotals, RunFolder};
use spill_report::{ReplayProblems, ReplaySessions, render_replay};
use spill_verdict::{ReplayJudgement, judge_replay, replay_summary, replay_text};

use crate::{Failure, out};

pub(crate) use spill_record::is_replay;

/// A replay with what it comes to.
pub(crate) struct Rebuilt {
    record: ReplayRecord,
    totals: ReplayTotals,
    judgement: ReplayJudgement,
    summary_json: String,
}

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
    ReplayFolder::each_problem(folder, |problem| problems.take(problem))?;
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
    })
}

impl Rebuilt {
    /// Prints the summary, as text or as JSON.
    pub(crate) fn print(&self, json: bool) {
        if json {
            out::line(self.summary_json.trim_end());
            return;
        }
        out::line(replay_text(&self.record, &self.totals));
        for gate in &self.judgement.gates {
            out::line(gate.line());
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.judgement.exit_code
    }
}
