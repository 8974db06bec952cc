//! How a subject's process that ended on its own did.

use spill_record::EndReason;
use spill_scenario::AnswerRule;

use crate::assemble::ProcessEnd;
use crate::dirs::RunDirs;
use crate::foreign::{self, Told};
use crate::process::Finished;
use crate::step_result;

/// Reads how a foreign subject's process that ended on its own did: it has no codes of ours.
pub(crate) fn foreign_end(rule: &AnswerRule, finished: &Finished, dirs: &RunDirs) -> ProcessEnd {
    let report = match &finished.report {
        Ok(report) => report,
        Err(said) => return no_report(said),
    };
    let how = match (report.exit_code, report.signal) {
        (Some(0), _) => return ProcessEnd::Told(foreign::told(rule, &finished.stdout, dirs)),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    };
    ProcessEnd::Told(Told::Ended(format!("the subject ended with {how}")))
}

/// The launcher did not do its work.
fn no_report(said: &str) -> ProcessEnd {
    let why = format!("the launcher left no report: {said}");
    ProcessEnd::Harness(EndReason::LaunchFailed, why)
}

/// How a process was ended when its time was over. A launcher that could not tell may have been what took it.
pub(crate) fn timed_out(finished: &Finished, limit_ms: u64) -> ProcessEnd {
    match &finished.report {
        Ok(_) => {
            let why = format!("the process was killed after run_timeout_ms = {limit_ms}");
            ProcessEnd::Subject(EndReason::Timeout, why)
        }
        Err(said) => no_report(said),
    }
}

/// Reads how a process that ended on its own did.
pub(crate) fn end_of(finished: &Finished) -> ProcessEnd {
    let report = match &finished.report {
        Ok(report) => report,
        Err(said) => return no_report(said),
    };
    match (report.exit_code, step_result::parse(&finished.stdout)) {
        (Some(0), Ok(result)) => ProcessEnd::Reported(Box::new(result)),
        (Some(2), _) => {
            let why = "the subject refused its settings or its job (exit code 2)".to_owned();
            ProcessEnd::Subject(EndReason::BadSettings, why)
        }
        (Some(code), Ok(_)) => {
            let why = format!("the subject printed a step result and ended with exit code {code}");
            ProcessEnd::Subject(EndReason::Crashed, why)
        }
        (code, Err(why)) => {
            let how = match (code, report.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "an unknown status".to_owned(),
            };
            ProcessEnd::Subject(EndReason::Crashed, format!("{why}; it ended with {how}"))
        }
        (None, Ok(_)) => {
            let why = "the subject printed a step result and was ended by a signal".to_owned();
            ProcessEnd::Subject(EndReason::Crashed, why)
        }
    }
}
