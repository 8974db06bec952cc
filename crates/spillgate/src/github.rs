//! What a GitHub step is told, where there is one: its summary, its outputs, its annotations.

use std::fs::OpenOptions;
use std::io::Write;

use spill_verdict::Verdict;

use crate::out;

/// File that Markdown for the step's page is appended to.
const SUMMARY_VAR: &str = "GITHUB_STEP_SUMMARY";
/// File that the step's outputs are appended to.
const OUTPUT_VAR: &str = "GITHUB_OUTPUT";
/// `true` where the log is read for workflow commands.
const ACTIONS_VAR: &str = "GITHUB_ACTIONS";

/// Tells the step that runs this process, if one does.
///
/// A file that cannot be written is said and changes nothing else: the exit code is the verdict's.
pub(crate) fn tell(verdict: &Verdict, summary: &str, report: &str) {
    append(SUMMARY_VAR, summary);
    append(OUTPUT_VAR, &spill_report::github_outputs(verdict, report));
    if std::env::var_os(ACTIONS_VAR).is_some_and(|value| value == "true") {
        // Standard error is read for commands too, and standard output stays the answer.
        for line in spill_report::github_annotations(verdict) {
            out::note(line);
        }
    }
}

fn append(variable: &str, text: &str) {
    let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
        return;
    };
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    if let Err(error) = written {
        out::note(format_args!(
            "note: {} (from {variable}) cannot be written: {error}",
            path.display()
        ));
    }
}
