use spill_record::RunSet;
use spill_verdict::Verdict;

use crate::calls::Calls;
use crate::cells::cells;
use crate::html::html;
use crate::since::Baseline;
use crate::{junit, sarif, sheet, summary, view};

/// What a report shows besides a run folder's plan and runs; either may be absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The calls that the report wants.
    pub calls: Option<&'a Calls>,
    /// The accepted run.
    pub baseline: Option<&'a Baseline>,
}

/// The files that are derived from a run folder, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// `report.html`: one file that needs nothing else.
    pub report_html: String,
    /// `summary.csv`: a row per scenario × input × configuration.
    pub summary_csv: String,
    /// `rules.csv`: a row per candidate × rule × input.
    pub rules_csv: String,
    /// `verdict.json`.
    pub verdict_json: String,
    /// `junit.xml`: a test case per candidate × rule × input, and one for the decision.
    pub junit_xml: String,
    /// `summary.md`: the verdict first; at most [`SUMMARY_LIMIT_BYTES`](crate::SUMMARY_LIMIT_BYTES).
    pub summary_md: String,
    /// `leaks.sarif`; `None` when nothing leaked.
    pub leaks_sarif: Option<String>,
}

/// Renders a run folder and the verdict on it; the same values give the same bytes.
#[must_use]
pub fn render(set: &RunSet, verdict: &Verdict, context: Context<'_>) -> Rendered {
    let cells = cells(set);
    let report_html = html("report.html", view::page(set, verdict, &cells, context));
    let mut verdict_json = serde_json::to_string_pretty(verdict)
        .expect("a verdict has string keys and finite numbers");
    verdict_json.push('\n');
    Rendered {
        report_html,
        summary_csv: sheet::summary(&cells),
        rules_csv: sheet::rules(verdict),
        verdict_json,
        junit_xml: junit::junit(verdict),
        summary_md: summary::summary(set, verdict),
        leaks_sarif: sarif::leaks(set),
    }
}
