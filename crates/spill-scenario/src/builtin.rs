use std::path::Path;

use crate::error::ScenarioError;
use crate::scenario::Scenario;

/// Returns the scenarios that ship with the program: `review` and `document`.
///
/// # Errors
///
/// Never with an intact build.
pub fn built_in() -> Result<Vec<Scenario>, ScenarioError> {
    Err(ScenarioError::Plan {
        problem: "not built yet".into(),
        way_out: String::new(),
    })
}

/// Reads a scenario file. Folders and files that it names are taken relative to its own folder.
///
/// # Errors
///
/// When the file or something that it names cannot be used.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    let _ = path;
    Err(ScenarioError::Plan {
        problem: "not built yet".into(),
        way_out: String::new(),
    })
}
