//! Scenario files: from TOML to a checked [`Scenario`].

mod check;
mod configurations;
mod faults;
mod inputs;
mod policy;
mod raw;
mod sidecars;
mod source;
mod subject;
mod time;

use std::ops::Range;

pub(crate) use inputs::{Folder, natural_class};
pub(crate) use source::text_of;

use crate::error::{Place, ScenarioError};
use crate::scenario::{Configuration, Scenario};
use crate::subject::SubjectPreset;

/// A file that a person wrote: its name in messages, and its text.
pub(crate) struct SourceText<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl SourceText<'_> {
    pub(crate) fn invalid(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        way_out: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::Invalid {
            place: Place::at(self.file, self.text, span.start),
            problem: problem.into(),
            way_out: way_out.into(),
        }
    }
}

/// Reads a scenario from the bytes of its file; what it names is looked up in `folder`. Without a
/// folder its inputs are checked and left out.
pub(crate) fn parse(
    file: &str,
    bytes: &[u8],
    folder: Option<&Folder<'_>>,
) -> Result<Scenario, ScenarioError> {
    let text = source::text_of(file, bytes, "a scenario is a TOML file in UTF-8")?;
    if text.trim().is_empty() {
        return Err(ScenarioError::Unusable {
            file: file.to_owned(),
            problem: "is empty".to_owned(),
            way_out: "start from a copy of scenarios/review.toml".to_owned(),
        });
    }
    let source = SourceText { file, text };
    let raw = source::from_toml::<raw::RawScenario>(&source)?;
    check::scenario(&source, raw, folder)
}

/// Reads the configurations of a TOML text that holds nothing else.
///
/// # Errors
///
/// As for a scenario's configurations; places are those of `text`, which messages call `file`.
pub fn configurations_of(file: &str, text: &str) -> Result<Vec<Configuration>, ScenarioError> {
    let source = SourceText { file, text };
    let raw = source::from_toml::<raw::RawConfigurations>(&source)?;
    configurations::configurations(
        &source,
        &raw.configurations,
        configurations::Labels::BuiltIn,
    )
}

/// Reads a subject from the bytes of its file.
pub(crate) fn subject_of(file: &str, bytes: &[u8]) -> Result<SubjectPreset, ScenarioError> {
    let text = source::text_of(file, bytes, "a subject is a TOML file in UTF-8")?;
    let source = SourceText { file, text };
    let raw = source::from_toml::<subject::RawSubjectFile>(&source)?;
    subject::preset(&source, &raw)
}

#[cfg(test)]
mod tests;
