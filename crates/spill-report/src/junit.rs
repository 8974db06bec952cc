use quick_junit::{
    NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite, XmlString,
};
use spill_verdict::{
    CandidateVerdict, Decision, RuleVerdict, State, Verdict, deciding_number, exit, plain,
};

/// `junit.xml`: a suite per candidate, a test case per rule on an input, and one for the decision.
///
/// *Broken* is a failure, *not run* an error; *not proven* and *not applicable* are skipped with
/// their reason. Rules of a candidate that the ladder did not reach decide nothing: where they do not
/// hold they are skipped, so that an accepted default has no failure in its file.
pub(crate) fn junit(verdict: &Verdict) -> String {
    let mut report = Report::new("spillgate");
    report.add_test_suite(decision(verdict));
    for candidate in &verdict.candidates {
        report.add_test_suite(suite(candidate));
    }
    report
        .to_string()
        .expect("writing XML to memory does not fail")
}

/// The decision as a test case of its own: a verdict without any rule is not an empty, green file.
fn decision(verdict: &Verdict) -> TestSuite {
    let mut status = match verdict.exit_code() {
        exit::ACCEPTED => TestCaseStatus::success(),
        exit::REJECTED | exit::LEAK => TestCaseStatus::non_success(NonSuccessKind::Failure),
        exit::NOT_PROVEN => TestCaseStatus::skipped(),
        _ => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    let sentence = verdict.decision_sentence();
    say(&mut status, verdict.decision.as_str(), sentence);
    let mut case = TestCase::new("decision", status);
    case.set_classname("verdict");
    case.add_property(property("decision", verdict.decision.as_str()));
    case.add_property(property("exit_code", verdict.exit_code().to_string()));
    if let (Some(proposed), Decision::Keep | Decision::Change) =
        (&verdict.proposed, verdict.decision)
    {
        add_number(&mut case, "threshold_bytes", proposed.threshold_bytes);
    }
    case.add_property(property("words", sentence));
    let d = verdict.denominators;
    let mut suite = TestSuite::new("verdict");
    for (name, count) in [
        ("runs_planned", d.planned),
        ("runs_finished", d.finished),
        ("runs_infrastructure", d.infrastructure),
        ("runs_missing", d.missing),
        ("runs_leaking", verdict.leak_runs),
    ] {
        suite.add_property(property(name, count.to_string()));
    }
    suite.add_test_case(case);
    suite
}

fn suite(candidate: &CandidateVerdict) -> TestSuite {
    let name = plain(&candidate.configuration);
    let mut suite = TestSuite::new(xml(&format!("candidate {name}")));
    suite.add_property(property("state", candidate.state.as_str()));
    suite.add_property(property("considered", candidate.considered.to_string()));
    if let Some(bytes) = candidate.threshold_bytes {
        suite.add_property(property("threshold_bytes", bytes.to_string()));
    }
    if let Some(results) = candidate.results_persisted {
        suite.add_property(property("results_persisted", results.to_string()));
    }
    for row in &candidate.rules {
        suite.add_test_case(case(&name, candidate, row));
    }
    suite
}

fn case(class: &str, candidate: &CandidateVerdict, row: &RuleVerdict) -> TestCase {
    let mut status = status(row.state, candidate.considered);
    let words = if candidate.considered {
        row.words.clone()
    } else {
        format!(
            "the ladder did not reach {class}, whose rule is {}: {}",
            row.state.words(),
            row.words
        )
    };
    say(&mut status, row.state.as_str(), &words);
    let name = format!(
        "rule {} {} on {}",
        row.number,
        row.rule.title(),
        row.place()
    );
    let mut case = TestCase::new(xml(&name), status);
    case.set_classname(xml(class));
    case.add_property(property("rule", row.rule.as_str()));
    case.add_property(property("state", row.state.as_str()));
    case.add_property(property("class", row.class.as_str()));
    add_number(
        &mut case,
        "observed",
        row.observed.filter(|value| value.is_finite()),
    );
    add_number(
        &mut case,
        "limit",
        row.limit.filter(|value| value.is_finite()),
    );
    if let Some(bound) = row.bound {
        case.add_property(property("bound", bound.as_str()));
    }
    add_number(&mut case, "n", Some(row.n));
    add_number(&mut case, "planned", Some(row.planned));
    case.add_property(property("number", deciding_number(row)));
    case.add_property(property("words", &row.words));
    case
}

fn status(state: State, considered: bool) -> TestCaseStatus {
    match (state, considered) {
        (State::Holds, _) => TestCaseStatus::success(),
        (State::Broken, true) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (State::NotRun, true) => TestCaseStatus::non_success(NonSuccessKind::Error),
        (State::NotProven | State::NotApplicable, _) | (State::Broken | State::NotRun, false) => {
            TestCaseStatus::skipped()
        }
    }
}

fn say(status: &mut TestCaseStatus, kind: &str, words: &str) {
    match status {
        TestCaseStatus::Success { .. } => {}
        TestCaseStatus::NonSuccess { .. } | TestCaseStatus::Skipped { .. } => {
            status.set_message(xml(words)).set_type(kind);
        }
    }
}

/// A value that was not measured has no property.
fn add_number(case: &mut TestCase, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        case.add_property(property(name, value.to_string()));
    }
}

fn property(name: &str, value: impl AsRef<str>) -> Property {
    Property::new(name, xml(value.as_ref()))
}

/// Text without the characters that XML 1.0 does not allow.
fn xml(text: &str) -> XmlString {
    let allowed: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .collect();
    XmlString::new(allowed) // takes out the control characters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::xml;

    /// The production `Char` of XML 1.0.
    fn is_char(c: char) -> bool {
        matches!(c,
            '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn only_characters_of_xml_are_left(text in any::<String>(), more in "[\u{0}-\u{20}\u{fff0}-\u{10010}]*") {
            let text = format!("{text}{more}");
            prop_assert!(xml(&text).chars().all(is_char));
        }

        #[test]
        fn harmless_text_stays(text in "[ -~äöü文🙂]*") {
            prop_assert_eq!(String::from(xml(&text)), text);
        }
    }
}
