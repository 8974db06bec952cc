use spill_record::Blessing;
use spill_record::{RunRecord, RunSet};
use spill_report::{Baseline, Context, Rendered, compare, render, run_page};
use spill_verdict::judge;

use crate::builder::Case;
use crate::calls::{self, Names, all_calls};

const EVIL: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "a\u{202e}b\u{200f}c\u{0}d\u{1b}[31m",
    "{{ 7777 * 7777 }}{% for x in y %}&lt;&#39;",
    "' onmouseover='x' <!-- --> ]]> \r\n,;\t",
];

/// The case with every name from outside replaced.
fn renamed(name: &str) -> Case {
    let alter_plan = |set: &mut RunSet| {
        let plan = &mut set.manifest.plan;
        for input in &mut plan.inputs {
            input.scenario = name.to_owned();
            input.input = format!("{name}{}", input.input);
        }
        for configuration in &mut plan.configurations {
            configuration.name = format!("{name}{}", configuration.name);
        }
        for model in &mut plan.models {
            model.scenario = name.to_owned();
            model.model = name.to_owned();
        }
        for run in &mut plan.runs {
            run.scenario = name.to_owned();
            run.input = format!("{name}{}", run.input);
            run.configuration = format!("{name}{}", run.configuration);
        }
        set.manifest.subject = name.to_owned();
        set.manifest.commit = Some(name.to_owned());
        set.manifest.versions.tokenizer = name.to_owned();
    };
    let alter_run = |run: &mut RunRecord| {
        run.scenario = name.to_owned();
        run.input = format!("{name}{}", run.input);
        run.configuration = format!("{name}{}", run.configuration);
        run.subject = name.to_owned();
        run.error = Some(name.repeat(5_000));
        run.leak_findings = vec![name.to_owned()];
    };
    Case::full().every(alter_run).set(alter_plan)
}

fn files(name: &str) -> Rendered {
    let case = renamed(name);
    calls::rendered(&case.set, &names(name))
}

fn names(name: &str) -> Names<'_> {
    Names {
        tool: name,
        reference: name,
        finish: name,
    }
}

/// Every page that there is besides the report without an accepted run.
fn other_pages(name: &str) -> [String; 3] {
    let set = renamed(name).set;
    let verdict = judge(&set);
    let mut other = set.clone();
    other.manifest.acceptance_id = name.to_owned();
    other.manifest.plan_hash = name.to_owned();
    other.manifest.host.os = name.to_owned();
    for run in &mut other.runs {
        run.input_tokens = run.input_tokens.map(|tokens| tokens * 2);
        run.policy = Some(name.to_owned());
        run.missed_facts = vec![name.to_owned()];
    }
    let baseline = Baseline {
        verdict: judge(&other),
        blessing: Blessing {
            schema: spill_record::SCHEMA,
            acceptance_id: name.to_owned(),
            reason: name.to_owned(),
            blessed_at: name.to_owned(),
            commit: Some(name.to_owned()),
            dirty: None,
            exit_code: 0,
            records_digest: String::new(),
        },
        set: other,
    };
    let context = Context {
        calls: None,
        baseline: Some(&baseline),
    };
    let calls = all_calls(&baseline.set, &names(name));
    let run = &baseline.set.runs[7];
    [
        render(&set, &verdict, context).report_html,
        run_page(&baseline.set, &calls, &run.run_id).expect("the run has a page"),
        compare((&set, &verdict), (&baseline.set, &baseline.verdict)),
    ]
}

/// Every tag of a page with the names of its attributes: what a name from outside must not change.
fn skeleton(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let close = open + rest[open..].find('>').expect("a tag is closed");
        let tag = &rest[open + 1..close];
        let names = tag.split('"').step_by(2).collect::<Vec<_>>().join("");
        tags.push(names);
        rest = &rest[close + 1..];
    }
    tags
}

#[test]
fn names_from_outside_do_not_change_a_page() {
    let expected = skeleton(&files("harmless").report_html);
    assert!(expected.len() > 1_000);
    for name in EVIL {
        let html = files(name).report_html;
        assert_eq!(skeleton(&html), expected, "{name:?} changed the page");
        let bad = html
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(bad, None, "{name:?} left a control character");
        assert!(!html.contains("60481729"), "a name was run as a template");
    }
}

#[test]
fn names_from_outside_do_not_change_the_other_pages() {
    let expected = other_pages("harmless").map(|html| skeleton(&html));
    for name in EVIL {
        let pages = other_pages(name);
        for (html, expected) in pages.iter().zip(&expected) {
            assert_eq!(&skeleton(html), expected, "{name:?} changed the page");
            let bad = html
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
            assert_eq!(bad, None, "{name:?} left a control character");
            assert!(!html.contains("60481729"), "a name was run as a template");
        }
    }
}

#[test]
fn names_from_outside_do_not_change_a_table() {
    for name in EVIL {
        let files = files(name);
        for (file, rows) in [(&files.summary_csv, 12), (&files.rules_csv, 40)] {
            let mut reader = csv::Reader::from_reader(file.as_bytes());
            let width = reader.headers().expect("there is a header").len();
            let records: Vec<csv::StringRecord> = reader
                .records()
                .map(|record| record.expect("each row is as wide as the header"))
                .collect();
            assert_eq!(records.len(), rows, "{name:?}");
            for cell in records.iter().flatten() {
                let number = cell.parse::<f64>().is_ok();
                assert!(
                    number || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
                    "{cell:?} would run"
                );
                assert!(!cell.chars().any(|c| c.is_control()), "{cell:?}");
            }
            assert!(records.iter().all(|record| record.len() == width));
        }
        let read: serde_json::Value =
            serde_json::from_str(&files.verdict_json).expect("verdict.json is JSON");
        assert_eq!(read["exit_code"], 6);
    }
}

#[test]
fn names_from_outside_do_not_change_the_files_for_ci() {
    let harmless = files("harmless");
    let rows = |text: &str| -> Vec<usize> {
        let lines = text.lines().filter(|line| line.starts_with('|'));
        lines.map(|line| line.matches('|').count()).collect()
    };
    let shape = |xml: &str| -> Vec<(usize, usize, usize)> {
        let report = quick_junit::Report::deserialize_from_str(xml).expect("it is JUnit XML");
        let suites = report.test_suites.into_iter();
        suites
            .map(|suite| {
                let properties = suite
                    .test_cases
                    .iter()
                    .map(|case| case.properties.len())
                    .sum();
                (suite.tests, suite.failures, properties)
            })
            .collect()
    };
    let results = |sarif: Option<String>| -> usize {
        let text = sarif.expect("every run leaks");
        let log: serde_json::Value = serde_json::from_str(&text).expect("SARIF is JSON");
        log["runs"][0]["results"].as_array().map_or(0, Vec::len)
    };
    for name in EVIL {
        let files = files(name);
        assert_eq!(
            rows(&files.summary_md),
            rows(&harmless.summary_md),
            "{name:?}"
        );
        assert_eq!(skeleton(&files.summary_md), [""; 0], "{name:?} is markup");
        assert_eq!(
            shape(&files.junit_xml),
            shape(&harmless.junit_xml),
            "{name:?}"
        );
        assert_eq!(
            results(files.leaks_sarif.clone()),
            results(harmless.leaks_sarif.clone())
        );
        for text in [&files.summary_md, &files.junit_xml] {
            let bad = text
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
            assert_eq!(bad, None, "{name:?} left a control character");
        }
    }
}

#[test]
fn long_texts_are_cut() {
    let html = files(&"x".repeat(1_000_000 / 5_000)).report_html;
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}
