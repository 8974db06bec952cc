use spill_record::Stage;
use spill_verdict::{Verdict, judge, terminal_table};

use crate::builder::{Case, exhaust, lose, score};

fn rejected() -> Verdict {
    let case = Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "document", 2, |r| score(r, 7, 0));
    judge(&case.set)
}

#[track_caller]
fn check_width(verdict: &Verdict) {
    for line in terminal_table(verdict).lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
        assert!(
            !line.chars().any(char::is_control),
            "a control character reaches the terminal: {line:?}"
        );
    }
}

#[test]
fn the_terminal_table() {
    check_width(&judge(&Case::full().set));
    check_width(&rejected());
    insta::assert_snapshot!("table_keep", terminal_table(&judge(&Case::full().set)));
    insta::assert_snapshot!("table_disable", terminal_table(&rejected()));
}

/// The rejected candidates, seven times over.
fn many() -> Verdict {
    let mut verdict = rejected();
    let two = verdict.candidates.clone();
    for number in 1..7 {
        for mut candidate in two.clone() {
            candidate.configuration = format!("policy-{number}-{}", candidate.configuration);
            verdict.candidates.push(candidate);
        }
    }
    verdict
}

#[test]
fn many_candidates_stand_below_each_other() {
    check_width(&many());
    insta::assert_snapshot!("table_many", terminal_table(&many()));
}

#[test]
fn facts_lost_where_no_rule_judges_them_are_said() {
    let whole = judge(&Case::full().set);
    assert_eq!(whole.warnings, [""; 0]);
    let lost = judge(
        &Case::full()
            .one("32KiB", "large", 2, |r| score(r, 2, 0))
            .set,
    );
    assert_eq!(lost.warnings.len(), 1, "{:?}", lost.warnings);
    assert!(
        lost.warnings[0].contains("Under 32KiB"),
        "{}",
        lost.warnings[0]
    );
    assert!(lost.warnings[0].contains("large"), "{}", lost.warnings[0]);
    assert_eq!(lost.exit_code(), whole.exit_code());
}

#[test]
fn decision_sentences() {
    let sentence = |case: Case| judge(&case.set).decision_sentence().to_owned();
    let all = [
        sentence(Case::full()),
        sentence(Case::with_repetitions(Stage::Quick, 2)),
        sentence(Case::full().cell("128KiB", "large", exhaust)),
        rejected().decision_sentence().to_owned(),
        sentence(Case::full().one("128KiB", "large", 0, lose)),
        sentence(Case::full().without(|r| r.input == "small" && r.repetition == 0)),
        sentence(Case::full().one("off", "small", 0, |r| r.files_written = Some(1))),
        sentence(Case::full().one("off", "small", 0, |r| r.prompt_digest = None)),
    ];
    insta::assert_snapshot!("sentences", all.join("\n"));
}

#[test]
fn verdict_json() {
    let text = serde_json::to_string_pretty(&judge(
        &Case::full().one("128KiB", "medium", 2, exhaust).set,
    ));
    insta::assert_snapshot!("verdict_json", text.expect("a verdict is JSON"));
}

#[test]
fn hostile_names_stay_text() {
    let evil = "\u{1b}[31mred\u{202e}<script>\"'=cmd()\r\n\u{0}";
    let case = Case::full()
        .set(|set| {
            for input in &mut set.manifest.plan.inputs {
                input.scenario = evil.to_owned();
            }
            for run in &mut set.manifest.plan.runs {
                run.scenario = evil.to_owned();
            }
            set.manifest.plan.configurations[1].name = evil.repeat(30);
            for run in &mut set.manifest.plan.runs {
                if run.configuration == "128KiB" {
                    run.configuration = evil.repeat(30);
                }
            }
        })
        .every(|r| {
            r.scenario = evil.to_owned();
            if r.configuration == "128KiB" {
                r.configuration = evil.repeat(30);
            }
        });
    let verdict = judge(&case.set);
    assert_eq!(verdict.exit_code(), 0, "{}", verdict.decision_sentence());
    check_width(&verdict);
    assert!(
        !verdict
            .decision_sentence()
            .chars()
            .any(|c| c.is_control() || c == '\u{202e}')
    );
}
