//! Texts from outside change nothing: each kind of hostile text, in every place of a folder, in every
//! output.

use std::collections::BTreeSet;

use spill_record::{RunSet, runs_csv};
use spill_report::{Context, compare, github_annotations, render, run_page, terminal_money};
use spill_verdict::{Verdict, judge, terminal_table};
use unicode_width::UnicodeWidthStr;

use crate::everywhere::{KINDS, bad, everywhere, replaced, skeleton, spoiled};
use crate::html::attribute;
use crate::outputs::{HARMLESS, case, each_kind, side_by_side};

#[test]
fn texts_are_everywhere_in_the_records() {
    let set = everywhere(&case(), "\u{1b}MARK");
    let manifest = serde_json::to_string(&set.manifest).expect("a manifest is JSON");
    let runs = serde_json::to_string(&set.runs).expect("records are JSON");
    for (what, text) in [("manifest", manifest), ("runs", runs)] {
        let texts = text.matches("MARK").count();
        assert!(texts > 500, "{what}: {texts}");
    }
    let run = &set.runs[0];
    for text in [&run.scenario, &run.profile, &run.leak_check, &run.model] {
        assert!(text.starts_with("\u{1b}MARK"), "{text:?}");
    }
    let mut tools = run.persisted_by_tool.keys();
    assert!(tools.all(|tool| tool.starts_with("\u{1b}MARK")));
    assert_eq!(judge(&set).exit_code(), judge(&case()).exit_code());
}

/// Known fault 128: anthropics/skills #1394; anthropics/claude-plugins-official #5589; sjnims/claude-code-plugin-eval #82; oracletrace PR #85.
#[test]
fn pages_keep_their_shape() {
    let expected: Vec<_> = HARMLESS
        .pages
        .iter()
        .map(|(_, html)| skeleton(html))
        .collect();
    assert!(expected.iter().map(Vec::len).min() > Some(100));
    each_kind(|kind, outputs| {
        for ((page, html), expected) in outputs.pages.iter().zip(&expected) {
            let found = skeleton(html);
            let differs = found
                .iter()
                .zip(expected)
                .position(|(found, expected)| found != expected);
            let at = differs.unwrap_or(expected.len()).saturating_sub(3);
            let around = found.iter().skip(at).take(6).collect::<Vec<_>>();
            let wanted = expected.iter().skip(at).take(6).collect::<Vec<_>>();
            assert!(
                found == *expected,
                "{kind} changed {page} at tag {at}: {around:?} in place of {wanted:?}"
            );
            assert_eq!(bad(html), None, "{kind} in {page}");
            assert!(
                !html.contains("60481729"),
                "{kind} in {page} was run as a template"
            );
            for target in ["href", "src", "action", "style"].map(|name| attribute(html, name)) {
                assert!(
                    target.iter().all(|to| to.starts_with('#')),
                    "{kind} in {page}: {target:?}"
                );
            }
        }
    });
}

/// Ids are made by the program; those of a folder that was not may be anything.
#[test]
fn ids_from_outside_bring_no_markup() {
    let known: BTreeSet<String> = HARMLESS
        .pages
        .iter()
        .flat_map(|(_, html)| skeleton(html))
        .collect();
    for (kind, text) in KINDS {
        let set = replaced(&case(), &|_, old| format!("{text}{old}"));
        let verdict = judge(&set);
        let files = render(&set, &verdict, Context::default());
        let page = run_page(&set, &[], &set.runs[7].run_id).expect("the run has a page");
        for html in [&files.report_html, &page] {
            let new = skeleton(html).into_iter().find(|tag| !known.contains(tag));
            assert_eq!((new, bad(html)), (None, None), "{kind}");
        }
        for text in [
            &files.summary_md,
            &files.junit_xml,
            &files.rules_csv,
            &runs_csv(&set),
        ] {
            assert_eq!(bad(text), None, "{kind}");
        }
    }
}

/// Known fault 93: dorny/test-reporter PR #795; oekazuma/svelte-vitals PR #465; microsoft/markitdown PR #2266.
#[test]
fn tables_keep_their_rows_and_execute_nothing() {
    /// Cells of a spreadsheet hold no more; some readers refuse fields of 131,072 bytes.
    const LONGEST: usize = 32_767;
    let read = |csv: &str| -> Vec<csv::StringRecord> {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let records = reader.records();
        records
            .map(|record| record.expect("each row is as wide as the header"))
            .collect()
    };
    let numbers = |rows: &[csv::StringRecord]| -> Vec<bool> {
        let cells = rows.iter().flatten();
        cells.map(|cell| cell.parse::<f64>().is_ok()).collect()
    };
    let expected: Vec<_> = HARMLESS
        .tables
        .iter()
        .map(|(_, csv)| numbers(&read(csv)))
        .collect();
    each_kind(|kind, outputs| {
        for ((table, csv), expected) in outputs.tables.iter().zip(&expected) {
            let rows = read(csv);
            assert!(
                numbers(&rows) == *expected,
                "{kind} changed what is a number in {table}"
            );
            for cell in rows.iter().flatten() {
                let text = cell.trim_start();
                let starts = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
                let executes = text.starts_with(starts) && cell.parse::<f64>().is_err();
                assert!(!executes, "{kind} in {table}: {cell:?} would run");
                assert_eq!(bad(cell), None, "{kind} in {table}");
                assert!(!cell.contains('\n'), "{kind} in {table}");
                assert!(cell.chars().count() <= LONGEST);
            }
        }
    });
}

#[test]
fn files_for_ci_keep_their_shape() {
    let rows = |text: &str| -> Vec<usize> {
        let lines = text.lines().filter(|line| line.starts_with('|'));
        lines.map(|line| line.matches('|').count()).collect()
    };
    let cases = |xml: &str| -> Vec<(usize, usize, usize)> {
        let report = quick_junit::Report::deserialize_from_str(xml).expect("it is JUnit XML");
        let suites = report.test_suites.into_iter();
        let properties = |suite: &quick_junit::TestSuite| {
            let cases = suite.test_cases.iter();
            cases.map(|case| case.properties.len()).sum()
        };
        suites
            .map(|s| (s.tests, s.failures, properties(&s)))
            .collect()
    };
    let results = |text: &str| -> usize {
        let log: serde_json::Value = serde_json::from_str(text).expect("SARIF is JSON");
        log["runs"][0]["results"].as_array().map_or(0, Vec::len)
    };
    assert!(results(&HARMLESS.sarif) > 2 && HARMLESS.commands.len() > 1);
    each_kind(|kind, outputs| {
        assert_eq!(rows(&outputs.summary), rows(&HARMLESS.summary), "{kind}");
        assert_eq!(skeleton(&outputs.summary), [""; 0], "{kind} is markup");
        assert_eq!(cases(&outputs.junit), cases(&HARMLESS.junit), "{kind}");
        assert_eq!(results(&outputs.sarif), results(&HARMLESS.sarif), "{kind}");
        for text in [&outputs.summary, &outputs.junit, &outputs.sarif] {
            assert_eq!(bad(text), None, "{kind}");
        }
        assert_eq!(outputs.commands.len(), HARMLESS.commands.len(), "{kind}");
        for line in &outputs.commands {
            assert!(
                line.starts_with("::") && !line.contains(['\n', '\r']),
                "{kind}: {line:?}"
            );
            assert_eq!(bad(line), None, "{kind}");
        }
        assert_eq!(
            set_outputs(&outputs.outputs),
            set_outputs(&HARMLESS.outputs),
            "{kind}"
        );
    });
}

/// The names that a step's output file sets, read as GitHub reads it.
fn set_outputs(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, end) = line.split_once("<<").expect("an output begins");
        names.push(name.to_owned());
        assert!(lines.any(|line| line == end), "{name} does not end");
    }
    names
}

#[test]
fn programs_read_what_was_meant() {
    each_kind(|kind, outputs| {
        for (event, line) in &outputs.json {
            let read: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert!(
                read.is_ok() && bad(line).is_none() && !line.contains('\n'),
                "{kind} in {event}"
            );
        }
        assert_eq!(
            outputs.verdict.exit_code(),
            HARMLESS.verdict.exit_code(),
            "{kind}"
        );
        let json = serde_json::to_string(&outputs.verdict).expect("a verdict is JSON");
        let again: Verdict = serde_json::from_str(&json).expect("it is read back");
        assert!(again == outputs.verdict, "{kind}");
    });
}

#[test]
fn a_terminal_of_80_columns_shows_it() {
    each_kind(|kind, outputs| {
        for (what, text) in &outputs.terminal {
            assert_eq!(bad(text), None, "{kind} in {what}");
            let is_table = matches!(*what, "rules" | "costs" | "subjects");
            for line in text.lines().filter(|_| is_table) {
                assert!(
                    line.width() <= 80,
                    "{kind} in {what}: {} columns: {line}",
                    line.width()
                );
            }
        }
    });
}

#[test]
fn a_megabyte_in_any_place_stays_in_bounds() {
    let long = "x".repeat(1 << 20);
    // In the records of one run, and in the plan where a text stands once.
    let mut set = case();
    let lengthened = |old: &str| format!("{old}{long}");
    let run_id = set.runs[7].run_id.clone();
    let mut run = spoiled(&set.runs[7], &|_, old| lengthened(old));
    run.run_id.clone_from(&run_id);
    set.runs[7] = run;
    set.manifest.subject = lengthened("subject");
    set.manifest.commit = Some(lengthened("commit"));
    set.manifest.versions.tokenizer = lengthened("tokenizer");
    set.manifest.plan.models[0].model = lengthened("model");
    set.manifest.plan.inputs[0].notes = vec![lengthened("note")];
    check_bounds(&set, &run_id);

    // A scenario and a configuration, which stand in every row.
    let mut set = case();
    let long = "y".repeat(100_000);
    let rename = |name: &mut String, old: &str| {
        if name == old {
            *name = format!("{old}{long}");
        }
    };
    for input in &mut set.manifest.plan.inputs {
        rename(&mut input.scenario, "review");
        rename(&mut input.input, "large");
    }
    for configuration in &mut set.manifest.plan.configurations {
        rename(&mut configuration.name, "32KiB");
    }
    for model in &mut set.manifest.plan.models {
        rename(&mut model.scenario, "review");
    }
    for run in &mut set.manifest.plan.runs {
        rename(&mut run.scenario, "review");
        rename(&mut run.input, "large");
        rename(&mut run.configuration, "32KiB");
    }
    for run in &mut set.runs {
        rename(&mut run.scenario, "review");
        rename(&mut run.input, "large");
        rename(&mut run.configuration, "32KiB");
    }
    check_bounds(&set, &run_id);
}

fn check_bounds(set: &RunSet, run_id: &str) {
    let verdict = judge(set);
    let files = render(set, &verdict, Context::default());
    let other = case();
    let page = run_page(set, &[], run_id).expect("the run has a page");
    let money = terminal_money(set).expect("there are prices");
    let several = side_by_side(set);
    for (what, text, most) in [
        ("report.html", &files.report_html, 1_000_000),
        ("run page", &page, 100_000),
        (
            "compare.html",
            &compare((set, &verdict), (&other, &judge(&other))),
            1_000_000,
        ),
        ("subjects.html", &several.html, 1_000_000),
        ("subjects.csv", &several.csv, 100_000),
        ("subjects", &several.table, 50_000),
        ("summary.csv", &files.summary_csv, 100_000),
        ("rules.csv", &files.rules_csv, 200_000),
        ("junit.xml", &files.junit_xml, 200_000),
        ("summary.md", &files.summary_md, 200_000),
        (
            "leaks.sarif",
            files.leaks_sarif.as_ref().expect("two runs leak"),
            100_000,
        ),
        ("rules", &terminal_table(&verdict), 50_000),
        ("costs", &money, 50_000),
        (
            "annotations",
            &github_annotations(&verdict).join("\n"),
            50_000,
        ),
    ] {
        assert!(text.len() <= most, "{what} has {} bytes", text.len());
    }
    for line in [terminal_table(&verdict), money]
        .iter()
        .flat_map(|table| table.lines())
    {
        assert!(line.width() <= 80, "{line}");
    }
    let mut reader = csv::Reader::from_reader(std::io::Cursor::new(runs_csv(set)));
    for record in reader.records() {
        let record = record.expect("a row");
        assert!(record.iter().all(|cell| cell.chars().count() <= 32_767));
    }
}
