use std::collections::BTreeSet;

use proptest::prelude::*;
use spill_record::{RunRecord, Stage};
use spill_report::{Context, Rendered, render};
use spill_verdict::judge;

use crate::builder::{Case, exhaust, fail, lose, score};
use crate::calls::{self, NAMES};

fn rendered(case: &Case) -> Rendered {
    calls::rendered(&case.set, &NAMES)
}

/// One case with every state: broken, not proven, holds and not applicable.
fn mixed() -> Case {
    Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "document", 2, |r| score(r, 7, 0))
        .one("off", "small", 1, lose)
}

/// Values of an attribute, in order.
pub(crate) fn attribute<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    html.match_indices(&start)
        .map(|(at, _)| {
            let value = &html[at + start.len()..];
            &value[..value.find('"').expect("an attribute is closed")]
        })
        .collect()
}

/// The text that a reader sees, a line for each block.
pub(crate) fn text(html: &str) -> String {
    let body = &html[html.find("<body>").expect("there is a body")..];
    let body = body.split("<script>").next().unwrap_or_default();
    let mut text = String::new();
    let mut rest = body;
    while let Some(open) = rest.find('<') {
        text.push_str(rest[..open].trim_matches('\n'));
        let close = open + rest[open..].find('>').expect("a tag is closed");
        let tag = rest[open + 1..close].trim_start_matches('/');
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        match name {
            "tr" | "p" | "h1" | "h2" | "h3" | "li" | "div" | "section" | "caption" | "br"
            | "desc" | "summary" | "details" => {
                text.push('\n');
            }
            "td" | "th" | "dd" | "dt" | "text" | "title" => text.push_str(" | "),
            _ => {}
        }
        rest = &rest[close + 1..];
    }
    let lines = text
        .lines()
        .map(|line| line.replace(" |  | ", " | ").trim().to_owned());
    lines
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_text_of_a_report() {
    insta::assert_snapshot!("mixed", text(&rendered(&mixed()).report_html));
    let first_screen = |case: Case| {
        let html = rendered(&case).report_html;
        let end = html
            .find("<h2 id=\"rules\">")
            .expect("the rules follow the first screen");
        text(&html[..end])
    };
    insta::assert_snapshot!("keep", first_screen(Case::full()));
    let incomplete = Case::full().without(|r| r.input == "large" && r.repetition > 2);
    insta::assert_snapshot!("incomplete", first_screen(incomplete));
    insta::assert_snapshot!(
        "quick",
        first_screen(Case::with_repetitions(Stage::Quick, 2))
    );
}

/// Known fault 128: anthropics/skills #1394; anthropics/claude-plugins-official #5589; sjnims/claude-code-plugin-eval #82; oracletrace PR #85.
#[test]
fn a_report_needs_nothing_but_itself() {
    needs_nothing(&rendered(&mixed()).report_html);
}

/// Holds a page to its own promise: no request, no code but the one script whose hash it names.
pub(crate) fn needs_nothing(whole: &str) {
    let (html, script) = whole.split_once("<script>").expect("there is a script");
    let (script, rest) = script.split_once("</script>").expect("the script ends");
    assert_eq!(rest, "\n</body>\n</html>");
    for way_out in [
        "fetch",
        "XMLHttp",
        "import",
        "eval",
        "innerHTML",
        "src",
        "Worker",
        "cookie",
    ] {
        assert!(!script.contains(way_out), "the script has {way_out}");
    }
    for name in ["style", "script"] {
        let hash = format!("{name}-src &#x27;sha256-").replace("&#x27;", "'");
        assert!(html.contains(&hash), "the policy names no {name}");
    }
    assert!(!html.contains("unsafe"), "the policy lets other code run");
    for outside in [
        "<script", "http:", "https:", "@import", "url(", "src=\"", "<link", "<iframe", " style=",
        " on",
    ] {
        let found = html.find(outside).map(|at| {
            html[at.saturating_sub(40)..]
                .chars()
                .take(90)
                .collect::<String>()
        });
        match outside {
            " on" => assert!(
                !html.contains(" onload=") && !html.contains(" onclick="),
                "{found:?}"
            ),
            _ => assert_eq!(found, None, "{outside} is in the report"),
        }
    }
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    assert!(
        html.trim_start()
            .starts_with("<!DOCTYPE html>\n<html lang=\"en\">")
    );
}

#[test]
fn ids_are_unique_and_every_link_has_its_end() {
    let html = rendered(&mixed()).report_html;
    let ids = attribute(&html, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is used twice");
    let links = attribute(&html, "href");
    assert!(links.len() > 20, "the grid and the evidence are linked");
    for link in links {
        assert!(
            unique.contains(link.trim_start_matches('#')),
            "{link} leads nowhere"
        );
    }
    for labels in attribute(&html, "aria-labelledby") {
        assert!(
            labels.split(' ').all(|label| unique.contains(label)),
            "{labels} is not there"
        );
    }
}

#[test]
fn every_chart_has_a_name_a_description_and_a_table() {
    let html = rendered(&mixed()).report_html;
    let charts: Vec<&str> = html.split("<svg ").skip(1).collect();
    assert!(charts.len() > 12, "{} charts", charts.len());
    for chart in charts {
        assert!(chart.contains("<title id=\"chart-") && chart.contains("<desc id=\"chart-"));
        let (drawing, after) = chart.split_once("</svg>").expect("a chart ends");
        assert!(
            !drawing.contains('#'),
            "a colour that the style sheet does not set"
        );
        let linked =
            html.contains("href=\"#forest-table\"") && chart.contains("chart-forest-title");
        assert!(
            linked
                || after
                    .trim_start()
                    .starts_with("</div>\n<div class=\"scroll\""),
            "no table follows {:?}",
            after.get(..80)
        );
    }
}

/// Known fault 76: bird-bench/mini_dev #47.
/// Known fault 91: confident-ai/deepeval PR #3234.
#[test]
fn nothing_measured_is_shown_as_nothing() {
    let empty = Case::full().without(|_| true);
    let bare = Case::full().every(|r| {
        (
            r.input_tokens,
            r.iterations,
            r.peak_rss_bytes,
            r.duration_ms,
        ) = (None, None, None, None);
        (r.facts_found, r.quality, r.end_facts_found) = (None, None, None);
    });
    let no_plan = Case::full().set(|set| {
        set.runs.clear();
        set.manifest.plan.runs.clear();
        set.manifest.plan.inputs.clear();
        set.manifest.plan.configurations.clear();
        set.manifest.plan.models.clear();
    });
    for case in [empty, bare, no_plan] {
        let files = rendered(&case);
        for file in [
            &files.report_html,
            &files.summary_csv,
            &files.rules_csv,
            &files.verdict_json,
        ] {
            let file = file.split("<script>").next().unwrap_or_default();
            assert!(
                !file.contains("NaN") && !file.contains("inf,"),
                "a number that is none"
            );
        }
        assert!(files.report_html.contains("n&#x2f;a") || files.summary_csv.lines().count() == 1);
    }
}

/// Known fault 77: smarr/ReBenchDB #224; MDA2AV/HttpArena PR #1322.
/// Known fault 85: Lamatic/AgentKit PR #229.
#[test]
fn failed_runs_are_no_durations() {
    let slow = |r: &mut RunRecord| {
        fail(r);
        r.duration_ms = Some(9_999_999.0);
    };
    let html = rendered(&Case::full().one("128KiB", "large", 0, slow)).report_html;
    let start = html.find("id=\"durations\"").expect("durations are shown");
    let section = &html[start..start + html[start..].find("</section>").expect("it ends")];
    assert!(
        !section.contains("9999999") && !section.contains("9,999"),
        "{section}"
    );
}

#[test]
fn what_is_not_there_is_said() {
    let case = mixed();
    let bare = render(&case.set, &judge(&case.set), Context::default()).report_html;
    let whole = rendered(&case).report_html;
    let missing = "Not measured: this folder holds no calls";
    assert_eq!(
        (
            bare.matches(missing).count(),
            whole.matches(missing).count()
        ),
        (2, 0)
    );
    for html in [bare, whole] {
        assert!(html.contains(
            "<dt>self-test</dt><dd>reduced to records: 11 planted faults as expected</dd>"
        ));
        assert!(html.contains("No report has been accepted here yet"));
    }
}

/// Known fault 129: UKGovernmentBEIS/inspect_ai #1375, #2249 and #2418.
#[test]
fn ten_thousand_runs_stay_below_two_megabytes() {
    let many = Case::with_repetitions(Stage::Full, 834)
        .cell("128KiB", "large", exhaust)
        .cell("off", "document", fail)
        .one("32KiB", "small", 700, lose);
    assert!(many.set.runs.len() >= 10_000);
    let html = rendered(&many).report_html;
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("further runs are in runs.csv"));
    let rows = attribute(&html, "id")
        .into_iter()
        .filter(|id| id.starts_with("run-"))
        .count();
    assert_eq!(rows, 200);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    #[test]
    fn the_order_of_runs_does_not_change_a_byte(shuffle in proptest::collection::vec(any::<u32>(), 60)) {
        let case = mixed();
        let before = rendered(&case);
        let mut keyed: Vec<(u32, RunRecord)> = shuffle.into_iter().zip(case.set.runs.clone()).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let runs = keyed.into_iter().map(|(_, run)| run).collect();
        prop_assert_eq!(rendered(&case.set(|set| set.runs = runs)), before);
    }
}

#[test]
fn more_than_three_candidates_are_rows_with_every_rule() {
    let case = mixed();
    let mut verdict = judge(&case.set);
    let two = verdict.candidates.clone();
    for number in 1..3 {
        for mut candidate in two.clone() {
            candidate.configuration = format!("policy-{number}-{}", candidate.configuration);
            verdict.candidates.push(candidate);
        }
    }
    let html = render(&case.set, &verdict, Context::default()).report_html;
    let start = html.find("<caption>Candidates × rules").expect("a grid");
    let grid = &html[start..start + html[start..].find("</table>").expect("its end")];
    assert_eq!(grid.matches("<th scope=\"row\">").count(), 6);
    assert_eq!(grid.matches("<td>").count(), 6 * 6);
    assert!(grid.contains("policy-2-32KiB"));
    let few = rendered(&case).report_html;
    assert!(few.contains("<caption>Rules × candidates"));
}
