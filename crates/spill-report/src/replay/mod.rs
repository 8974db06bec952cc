//! A replay of recorded transcripts as files.

mod assumptions;
mod curve;
mod page;
mod sessions;
mod sheets;
mod tables;

use spill_record::{ReplayRecord, ReplayTotals};
use spill_verdict::ReplayJudgement;

use crate::html::html;

pub use sessions::{ReplayProblems, ReplaySessions};

/// The files that are derived from a replay folder, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedReplay {
    /// `report.html`: one file that needs nothing else.
    pub report_html: String,
    /// `thresholds.csv`: a row per class × policy × threshold × size × read-back.
    pub thresholds_csv: String,
    /// `tools.csv`: a row per tool × policy × threshold × size.
    pub tools_csv: String,
    /// `sessions.csv`: a row per transcript.
    pub sessions_csv: String,
    /// `problems.csv`: a row per thing that was not understood.
    pub problems_csv: String,
}

/// Renders a replay; the same values give the same bytes.
#[must_use]
pub fn render_replay(
    record: &ReplayRecord,
    totals: &ReplayTotals,
    judgement: &ReplayJudgement,
    sessions: ReplaySessions,
    problems: ReplayProblems,
) -> RenderedReplay {
    let page = page::page(record, totals, judgement, &sessions, &problems);
    RenderedReplay {
        report_html: html("replay.html", page),
        thresholds_csv: sheets::thresholds(record, totals),
        tools_csv: sheets::tools(record, &totals.all),
        sessions_csv: sessions.into_csv(),
        problems_csv: problems.into_csv(),
    }
}
