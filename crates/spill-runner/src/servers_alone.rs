//! A run of which the servers alone tell: what they counted, and how it ended.

use std::collections::BTreeSet;

use spill_mocks::{Journal, NewResult, ResultForm};
use spill_record::{EndReason, Outcome, RunRecord};

use crate::foreign::Told;

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) reason: EndReason,
    pub(crate) error: Option<String>,
}

/// Fills in what a step result tells of other subjects, as far as the servers saw it.
pub(crate) fn fill(record: &mut RunRecord, journal: &Journal, iteration_limit: u64) {
    let results = || journal.llm.iter().flat_map(|call| &call.new_results);
    let of_form = |form| results().filter(move |result| result.form == form);
    let slices: Vec<&NewResult> = of_form(ResultForm::Slice).collect();
    let ranged = slices.iter().filter(|slice| slice.with_range == Some(true));
    record.results_persisted = Some(of_form(ResultForm::Preview).count() as u64);
    for stored in of_form(ResultForm::Preview) {
        *record
            .persisted_by_tool
            .entry(stored.tool.clone())
            .or_default() += 1;
    }
    record.reads = Some(slices.len() as u64);
    record.reads_with_range = Some(ranged.count() as u64);
    record.read_bytes = Some(slices.iter().map(|slice| slice.text_bytes).sum());
    record.results_read_back = distinct(&slices);
    let iterations = journal.llm.iter().map(|call| call.iteration).max();
    let used_up = iterations.unwrap_or(0) >= iteration_limit;
    record.hit_iteration_limit = Some(used_up && journal.last_answer.is_none());
}

/// Distinct references that were read; `None` when one of the reads names none.
fn distinct(slices: &[&NewResult]) -> Option<u64> {
    let references: Option<BTreeSet<&str>> = slices
        .iter()
        .map(|slice| slice.reference.as_deref())
        .collect();
    Some(references?.len() as u64)
}

/// The answer, and how the run ended: what the servers saw last explains a run without an answer.
pub(crate) fn end_of(told: Told, journal: &Journal) -> (String, End) {
    let failed = |reason, error| End {
        outcome: Outcome::Failed,
        reason,
        error: Some(error),
    };
    let refused = refused_last(journal);
    let answer = match told {
        Told::Ended(how) => {
            let reason = refused.unwrap_or(EndReason::Crashed);
            return (String::new(), failed(reason, how));
        }
        Told::Nothing(why) => {
            let reason = refused.unwrap_or(EndReason::EmptyAnswer);
            return (String::new(), failed(reason, why));
        }
        Told::Answer(answer) => answer,
        Told::AtServer => journal.last_answer.clone().unwrap_or_default(),
    };
    if answer.trim().is_empty() {
        let why = "the answer is empty".to_owned();
        let reason = refused.unwrap_or(EndReason::EmptyAnswer);
        return (answer, failed(reason, why));
    }
    let end = End {
        outcome: Outcome::Succeeded,
        reason: EndReason::Answered,
        error: None,
    };
    (answer, end)
}

/// Why the model's server refused the last request, where it did.
fn refused_last(journal: &Journal) -> Option<EndReason> {
    let last = journal.llm.last().filter(|call| call.status != 200)?;
    Some(match last.finish_reason.as_str() {
        "context_length_exceeded" => EndReason::ContextWindow,
        _ => EndReason::ModelError,
    })
}

#[cfg(test)]
mod tests {
    use spill_mocks::LlmCallEntry;

    use super::*;

    fn journal(status: u16, finish_reason: &str, last_answer: Option<&str>) -> Journal {
        Journal {
            llm: vec![LlmCallEntry {
                status,
                finish_reason: finish_reason.to_owned(),
                ..LlmCallEntry::default()
            }],
            last_answer: last_answer.map(str::to_owned),
            ..Journal::default()
        }
    }

    fn check(told: Told, journal: &Journal, reason: EndReason, answer: &str) {
        let (said, end) = end_of(told.clone(), journal);
        assert_eq!((end.reason, &*said), (reason, answer), "{told:?}");
        let succeeded = end.outcome == Outcome::Succeeded;
        assert_eq!(succeeded, reason == EndReason::Answered);
        assert_eq!(succeeded, end.error.is_none());
    }

    #[test]
    fn an_end_is_told_by_answer_process_and_servers() {
        let told = || Told::Answer("done".to_owned());
        let good = journal(200, "stop", Some("by the model"));
        let full = journal(400, "context_length_exceeded", None);
        let busy = journal(429, "rate_limit_exceeded", None);
        check(told(), &good, EndReason::Answered, "done");
        check(told(), &full, EndReason::Answered, "done");
        check(Told::AtServer, &good, EndReason::Answered, "by the model");
        check(Told::AtServer, &full, EndReason::ContextWindow, "");
        check(
            Told::Answer(" \n".to_owned()),
            &good,
            EndReason::EmptyAnswer,
            " \n",
        );
        let nothing = || Told::Nothing("no file".to_owned());
        check(nothing(), &good, EndReason::EmptyAnswer, "");
        check(nothing(), &busy, EndReason::ModelError, "");
        let crashed = || Told::Ended("exit code 1".to_owned());
        check(crashed(), &good, EndReason::Crashed, "");
        check(crashed(), &full, EndReason::ContextWindow, "");
        check(crashed(), &Journal::default(), EndReason::Crashed, "");
    }

    #[test]
    fn reads_without_a_reference_are_not_told_apart() {
        let slice = |reference: Option<&str>| NewResult {
            tool: "read".to_owned(),
            argument_bytes: 0,
            text_bytes: 1,
            prompt_bytes: 1,
            form: ResultForm::Slice,
            reference: reference.map(str::to_owned),
            offset_bytes: None,
            stored_bytes: None,
            with_range: None,
        };
        let (a, b, none) = (slice(Some("a")), slice(Some("b")), slice(None));
        assert_eq!(distinct(&[]), Some(0));
        assert_eq!(distinct(&[&a, &b, &a]), Some(2));
        assert_eq!(distinct(&[&a, &none]), None);
    }
}
