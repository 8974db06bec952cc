use spill_record::{ConfigurationRole, ExecutionsRecord, RunSet};

use crate::words::{counted, grouped, percent, plain};

/// How much more memory than with the control is still "not above".
pub const EXECUTIONS_MEMORY_SLACK: f64 = 0.02;

/// What many executions in one process show that an owner has to know; no rule judges it.
pub(crate) fn notes(set: &RunSet) -> Vec<String> {
    let records = &set.executions;
    records
        .iter()
        .flat_map(|one| {
            let who = format!(
                "{} at once under {}",
                counted(one.executions, "execution"),
                plain(&one.configuration)
            );
            [
                unfinished(one),
                over_the_limit(one),
                above_the_control(one, control_of(set, one)),
                kept(one),
                leaked(one),
            ]
            .into_iter()
            .flatten()
            .map(move |words| format!("{who} {words}"))
        })
        .collect()
}

/// The control's record beside `one`.
#[must_use]
pub fn control_of<'a>(set: &'a RunSet, one: &ExecutionsRecord) -> Option<&'a ExecutionsRecord> {
    let configurations = &set.manifest.plan.configurations;
    let control = configurations
        .iter()
        .find(|configuration| configuration.role == ConfigurationRole::Control)?;
    set.executions.iter().find(|other| {
        (&other.scenario, &other.input, other.executions)
            == (&one.scenario, &one.input, one.executions)
            && other.configuration == control.name
    })
}

fn unfinished(one: &ExecutionsRecord) -> Option<String> {
    if let Some(error) = &one.error {
        return Some(format!("could not be measured: {}.", plain(error)));
    }
    (one.answered != one.executions).then(|| {
        format!(
            "gave {} alone: their memory is not that of whole steps.",
            counted(one.answered, "answer")
        )
    })
}

fn over_the_limit(one: &ExecutionsRecord) -> Option<String> {
    let limit = one.memory_limit_bytes;
    if let Some(peak) = one.peak_bytes.filter(|peak| *peak > limit) {
        return Some(format!(
            "took {} bytes, above the memory limit of {} bytes: run fewer on one host, or give it more memory.",
            grouped(peak),
            grouped(limit)
        ));
    }
    let budgets = one.budgets_bytes().filter(|budgets| *budgets > limit)?;
    Some(format!(
        "may store {} bytes, above the memory limit of {} bytes: lower the budget, or run fewer on one host.",
        grouped(budgets),
        grouped(limit)
    ))
}

fn above_the_control(one: &ExecutionsRecord, control: Option<&ExecutionsRecord>) -> Option<String> {
    let control = control?;
    let ratio = one.peak_bytes? as f64 / control.peak_bytes.filter(|peak| *peak > 0)? as f64;
    (ratio > 1.0 + EXECUTIONS_MEMORY_SLACK).then(|| {
        format!(
            "took {} more memory than under {}.",
            percent(ratio - 1.0),
            plain(&control.configuration)
        )
    })
}

/// Of one execution alone little is allocated, and the warm program is most of what stays.
fn kept(one: &ExecutionsRecord) -> Option<String> {
    let (peak, after) = (one.peak_anonymous_bytes()?, one.after_anonymous_bytes?);
    (one.executions > 1 && after.saturating_mul(2) > peak).then(|| {
        format!(
            "left {} of {} allocated bytes when the last had ended.",
            grouped(after),
            grouped(peak)
        )
    })
}

/// What stands in the folders and the log of the process, which are those of no run.
fn leaked(one: &ExecutionsRecord) -> Option<String> {
    if !one.leak_findings.is_empty() {
        let findings: Vec<String> = one.leak_findings.iter().map(|found| plain(found)).collect();
        return Some(format!("left result content: {}.", findings.join("; ")));
    }
    let files = one.files_written.filter(|files| *files > 0)?;
    Some(format!(
        "wrote {} in folders where nothing may appear.",
        counted(files, "file")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(executions: u64, budget: Option<u64>) -> ExecutionsRecord {
        ExecutionsRecord {
            schema: 2,
            scenario: "s".to_owned(),
            input: "i".to_owned(),
            configuration: "c".to_owned(),
            executions,
            answered: executions,
            results_persisted: 0,
            budget_bytes: budget,
            memory_limit_bytes: 1000,
            before_bytes: Some(100),
            before_anonymous_bytes: Some(10),
            peak_bytes: Some(500),
            after_bytes: Some(200),
            after_anonymous_bytes: Some(100),
            files_written: Some(0),
            leak_findings: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn budgets_together_may_fill_the_limit_and_not_exceed_it() {
        let check = |executions, budget, over: bool| {
            let said = over_the_limit(&record(executions, budget));
            assert_eq!(said.is_some(), over, "{said:?}");
        };
        check(10, Some(100), false);
        check(10, Some(101), true);
        check(u64::MAX, Some(u64::MAX), true);
        check(1_000_000, None, false);
    }

    #[test]
    fn a_peak_may_fill_the_limit_and_not_exceed_it() {
        let check = |peak, over: bool| {
            let mut one = record(1, None);
            one.peak_bytes = peak;
            assert_eq!(over_the_limit(&one).is_some(), over, "{peak:?}");
        };
        check(Some(1000), false);
        check(Some(1001), true);
        check(None, false);
    }

    #[test]
    fn two_percent_above_the_control_is_not_above() {
        let control = record(8, None);
        let check = |peak, above: bool| {
            let mut one = record(8, None);
            one.peak_bytes = peak;
            let said = above_the_control(&one, Some(&control));
            assert_eq!(said.is_some(), above, "{peak:?}");
        };
        check(Some(510), false);
        check(Some(511), true);
        check(None, false);
        assert_eq!(above_the_control(&record(8, None), None), None);
    }

    #[test]
    fn memory_falls_back_when_half_of_it_is_free_again() {
        let check = |executions, after, stays: bool| {
            let mut one = record(executions, None);
            // 100 bytes are mapped files.
            (one.after_bytes, one.after_anonymous_bytes) = (Some(after + 100), Some(after));
            assert_eq!(kept(&one).is_some(), stays, "{after}");
        };
        check(8, 200, false);
        check(8, 201, true);
        check(1, 399, false);
        let mut unknown = record(8, None);
        unknown.after_anonymous_bytes = None;
        assert_eq!(kept(&unknown), None);
    }

    #[test]
    fn what_is_left_behind_is_told() {
        let mut one = record(8, None);
        assert_eq!(leaked(&one), None);
        one.files_written = None;
        assert_eq!(leaked(&one), None, "not searched");
        one.files_written = Some(1);
        assert!(leaked(&one).is_some_and(|words| words.contains("wrote 1 file in")));
        one.leak_findings = vec!["a canary in standard error".to_owned()];
        let words = leaked(&one).unwrap_or_default();
        assert_eq!(words, "left result content: a canary in standard error.");
    }

    #[test]
    fn executions_that_did_not_answer_are_told() {
        let mut one = record(8, None);
        assert_eq!(unfinished(&one), None);
        one.answered = 7;
        assert!(unfinished(&one).is_some_and(|words| words.contains("7 answers")));
        one.error = Some("gone".to_owned());
        assert!(unfinished(&one).is_some_and(|words| words.contains("gone")));
    }
}
