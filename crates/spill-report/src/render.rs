use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};
use spill_record::RunSet;
use spill_verdict::Verdict;

use crate::cells::cells;
use crate::figures::figures;
use crate::{junit, sarif, sheet, summary, view};

const TEMPLATE: &str = include_str!("templates/report.html");
const STYLE: &str = include_str!("templates/report.css");

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
pub fn render(set: &RunSet, verdict: &Verdict) -> Rendered {
    let cells = cells(set);
    let figures = figures(&cells, set.manifest.plan.configurations.len());
    let page = Value::from(Serde(view::page(set, verdict, figures)));
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("the default delimiters do not clash"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
        .add_template("report.html", TEMPLATE)
        .expect("the template is part of the program and parses");
    let report_html = environment
        .get_template("report.html")
        .and_then(|template| template.render(context! { page => page, style => STYLE }))
        .expect("the template names only what the page has");
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
