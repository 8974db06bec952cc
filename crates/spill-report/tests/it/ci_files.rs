use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};
use spill_record::{RunRecord, Stage};
use spill_report::{
    Context, Rendered, SUMMARY_LIMIT_BYTES, github_annotations, github_outputs, render,
};
use spill_verdict::{State, Verdict, judge};

use crate::builder::{Case, exhaust, lose, score};

fn files(case: &Case) -> (Verdict, Rendered) {
    let verdict = judge(&case.set);
    let rendered = render(&case.set, &verdict, Context::default());
    (verdict, rendered)
}

/// Broken, not proven, not applicable and holding rules.
fn mixed() -> Case {
    Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "document", 2, |r| score(r, 7, 0))
        .one("off", "small", 1, lose)
}

fn leaking() -> Case {
    let leak = |r: &mut RunRecord| {
        r.files_written = Some(1);
        r.leak_findings = vec!["a canary in a file below home".to_owned()];
    };
    Case::full()
        .one("32KiB", "small", 1, leak)
        .one("off", "large", 0, leak)
}

/// No result reached a threshold, so all runs of a pair sent the same requests.
fn store_nothing(run: &mut RunRecord) {
    run.results_persisted = Some(0);
    run.prompt_digest = Some("same".to_owned());
    run.offered_tools_digest = Some("same".to_owned());
}

fn kind(case: &TestCase) -> &'static str {
    match &case.status {
        TestCaseStatus::Success { .. } => "success",
        TestCaseStatus::NonSuccess { kind, .. } => match kind {
            NonSuccessKind::Failure => "failure",
            NonSuccessKind::Error => "error",
        },
        TestCaseStatus::Skipped { .. } => "skipped",
    }
}

/// Known fault 130: Flank/flank #1634.
#[test]
fn junit_has_every_rule_and_its_state() {
    let incomplete = Case::full().without(|r| r.input == "large" && r.repetition > 2);
    for case in [mixed(), Case::full(), incomplete, leaking()] {
        let (verdict, files) = files(&case);
        let report = Report::deserialize_from_str(&files.junit_xml).expect("it is JUnit XML");
        assert_eq!(report.test_suites.len(), verdict.candidates.len() + 1);
        for (suite, candidate) in report.test_suites[1..].iter().zip(&verdict.candidates) {
            assert_eq!(suite.test_cases.len(), candidate.rules.len());
            let names: BTreeMap<&str, ()> = suite
                .test_cases
                .iter()
                .map(|case| (case.name.as_str(), ()))
                .collect();
            assert_eq!(
                names.len(),
                candidate.rules.len(),
                "names tell the cases apart"
            );
            for (case, row) in suite.test_cases.iter().zip(&candidate.rules) {
                let expected = match (row.state, candidate.considered) {
                    (State::Holds, _) => "success",
                    (State::Broken, true) => "failure",
                    (State::NotRun, true) => "error",
                    (_, _) => "skipped",
                };
                assert_eq!(kind(case), expected, "{:?}", case.name);
                let property = |name: &str| {
                    let found = case.properties.iter().find(|p| p.name.as_str() == name);
                    found.map(|property| property.value.as_str().to_owned())
                };
                assert_eq!(
                    property("observed"),
                    row.observed.map(|value| value.to_string())
                );
                assert_eq!(property("n"), Some(row.n.to_string()));
            }
        }
    }
}

#[test]
fn junit_fails_when_the_gate_does() {
    let decision = |case: &Case| {
        let (verdict, files) = files(case);
        let report = Report::deserialize_from_str(&files.junit_xml).expect("it is JUnit XML");
        let red = report.failures + report.errors > 0;
        (
            verdict.exit_code(),
            kind(&report.test_suites[0].test_cases[0]),
            red,
        )
    };
    assert_eq!(decision(&Case::full()), (0, "success", false));
    let second_is_broken = Case::full().cell("32KiB", "large", exhaust);
    assert_eq!(decision(&second_is_broken), (0, "success", false));
    let change = Case::full().cell("128KiB", "large", exhaust);
    assert_eq!(decision(&change), (3, "failure", true));
    let nothing_stored = Case::full().every(store_nothing);
    assert_eq!(decision(&nothing_stored), (4, "skipped", false));
    assert_eq!(
        decision(&Case::full().without(|_| true)),
        (5, "error", true)
    );
    assert_eq!(decision(&leaking()), (6, "failure", true));
    let no_plan = Case::full().set(|set| {
        set.runs.clear();
        set.manifest.plan.runs.clear();
        set.manifest.plan.inputs.clear();
        set.manifest.plan.configurations.clear();
    });
    assert_eq!(decision(&no_plan), (5, "error", true));
}

#[test]
fn texts_for_ci() {
    let (verdict, files) = files(&mixed());
    insta::assert_snapshot!("junit", files.junit_xml);
    insta::assert_snapshot!("summary_md", files.summary_md);
    insta::assert_snapshot!("annotations", github_annotations(&verdict).join("\n"));
    insta::assert_snapshot!("outputs", github_outputs(&verdict, "reports/x/report.html"));
}

#[test]
fn the_verdict_comes_first_and_a_huge_summary_is_cut() {
    let many = Case::full().set(|set| {
        let plan = &mut set.manifest.plan;
        let first = plan.inputs[0].clone();
        plan.inputs.extend((0..300).map(|index| {
            let mut input = first.clone();
            input.input = format!("input-{index}-{}", "|".repeat(100));
            input
        }));
    });
    let (verdict, files) = files(&many);
    let text = files.summary_md;
    assert!(text.len() <= SUMMARY_LIMIT_BYTES, "{} bytes", text.len());
    assert!(text.len() > SUMMARY_LIMIT_BYTES / 2);
    assert!(text.starts_with(&format!("# Spillgate: {}\n", verdict.decision.as_str())));
    assert!(
        text.trim_end()
            .ends_with("`report.html` and `rules.csv` have them.")
    );
}

#[test]
fn sarif_is_there_only_for_leaks() {
    assert_eq!(files(&mixed()).1.leaks_sarif, None);
    let sarif = files(&leaking()).1.leaks_sarif.expect("something leaked");
    insta::assert_snapshot!("sarif", sarif);
    let extra = Case::full().set(|set| {
        let mut run = set.runs[0].clone();
        run.run_id = "extra".to_owned();
        run.leak_findings = vec!["64 bytes of a result in standard error".to_owned()];
        set.sensitivity.push(run);
    });
    let sarif = files(&extra).1.leaks_sarif.expect("an extra run leaked");
    assert!(sarif.contains("\"uri\": \"sensitivity.jsonl\""));
}

#[test]
fn a_sarif_location_is_the_line_of_the_run() {
    let case = leaking().every(|r| r.error = Some("two\nlines".to_owned()));
    let csv = spill_record::runs_csv(&case.set);
    let sarif = files(&case).1.leaks_sarif.expect("something leaked");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).expect("SARIF is JSON");
    let results = sarif["runs"][0]["results"]
        .as_array()
        .expect("results are a list");
    assert_eq!(results.len(), 4);
    for result in results {
        let location = &result["locations"][0];
        let line = location["physicalLocation"]["region"]["startLine"].as_u64();
        let run = location["logicalLocations"][0]["name"]
            .as_str()
            .expect("a run");
        let at = usize::try_from(line.expect("a line")).expect("a small number") - 1;
        let text = csv.lines().nth(at).expect("the line is there");
        assert!(text.contains(run), "line {at} is {text}");
    }
}

#[test]
fn annotations_name_what_is_broken_and_nothing_else() {
    let lines = |case: Case| github_annotations(&judge(&case.set));
    assert_eq!(lines(Case::full()), [""; 0]);
    let not_reached = Case::full().cell("32KiB", "large", exhaust);
    assert_eq!(lines(not_reached), [""; 0]);
    let broken = lines(Case::full().cell("128KiB", "large", exhaust));
    assert!(
        broken
            .iter()
            .all(|line| line.starts_with("::error title=spillgate%3A rule "))
    );
    assert!(!broken.is_empty());
    let incomplete = lines(Case::full().without(|_| true));
    assert_eq!(incomplete.len(), 1);
    let quick = Case::with_repetitions(Stage::Quick, 2).every(store_nothing);
    let not_proven = lines(quick);
    assert!(
        not_proven[0].starts_with("::warning title=spillgate::"),
        "{not_proven:?}"
    );
}

#[test]
fn outputs_tell_the_threshold() {
    let threshold = |case: Case| {
        let outputs = github_outputs(&judge(&case.set), "r.html");
        outputs.lines().nth(4).expect("the second value").to_owned()
    };
    assert_eq!(threshold(Case::full()), "131072");
    assert_eq!(
        threshold(Case::full().cell("128KiB", "large", exhaust)),
        "32768"
    );
    let both = Case::full()
        .cell("128KiB", "large", exhaust)
        .cell("32KiB", "large", exhaust);
    assert_eq!(threshold(both), "off");
    assert_eq!(threshold(Case::full().without(|_| true)), "");
}
