use std::path::Path;

use spill_record::Class;

use crate::error::ScenarioError;
use crate::scenario::Scenario;

/// A scenario made from real text, and what was left out of it.
#[derive(Clone, Debug)]
pub struct RealInput {
    /// A scenario with one input, whose facts have still to be given or derived.
    pub scenario: Scenario,
    /// What was skipped and why, one line each; empty when everything was taken.
    pub notes: Vec<String>,
}

/// Makes a review scenario from a range of a git repository.
///
/// # Errors
///
/// When the folder, the range or `git` cannot be used.
pub fn from_repository(
    path: &Path,
    range: &str,
    class: Option<Class>,
) -> Result<RealInput, ScenarioError> {
    let _ = (path, range, class);
    Err(ScenarioError::Plan {
        problem: "not built yet".into(),
        way_out: String::new(),
    })
}

/// Makes a document scenario from a text file.
///
/// # Errors
///
/// When the file cannot be used.
pub fn from_document(path: &Path, class: Option<Class>) -> Result<RealInput, ScenarioError> {
    let _ = (path, class);
    Err(ScenarioError::Plan {
        problem: "not built yet".into(),
        way_out: String::new(),
    })
}

impl Scenario {
    /// Returns the scenario with facts that were given as texts in place of its own, for each of
    /// its inputs.
    ///
    /// # Errors
    ///
    /// When there is no text, or an empty one.
    pub fn with_expected(self, texts: &[String]) -> Result<Self, ScenarioError> {
        let _ = texts;
        Ok(self)
    }
}
