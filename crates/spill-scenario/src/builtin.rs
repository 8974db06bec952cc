use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::defaults::MAX_SCENARIO_BYTES;
use crate::error::ScenarioError;
use crate::file::{self, Folder};
use crate::input::Recipe;
use crate::regular_file;
use crate::scenario::Scenario;

static FIXTURES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../fixtures");

/// File names in messages, and texts.
const FILES: [(&str, &str); 2] = [
    (
        "scenarios/review.toml",
        include_str!("../../../scenarios/review.toml"),
    ),
    (
        "scenarios/document.toml",
        include_str!("../../../scenarios/document.toml"),
    ),
];

/// Returns the scenarios that ship with the program, `review` and `document`, with their inputs
/// generated or unpacked.
///
/// # Errors
///
/// Never with an intact build.
pub fn built_in() -> Result<Vec<Scenario>, ScenarioError> {
    let folder = Folder::Embedded(&FIXTURES);
    FILES
        .iter()
        .map(|(name, text)| file::parse(name, text.as_bytes(), Some(&folder)))
        .collect()
}

/// Returns the built-in scenario of a recipe without its inputs.
pub(crate) fn frame(recipe: Recipe) -> Result<Scenario, ScenarioError> {
    let (name, text) = match recipe {
        Recipe::Review => FILES[0],
        Recipe::Document => FILES[1],
        Recipe::Records => {
            return Err(ScenarioError::Plan {
                problem: "no built-in scenario has the recipe `records`".to_owned(),
                way_out: "start from scenarios/records.toml".to_owned(),
            });
        }
        Recipe::Recorded => {
            return Err(ScenarioError::Plan {
                problem: "no built-in scenario has the recipe `recorded`".to_owned(),
                way_out: "make one with `spillgate scenario from-trace`".to_owned(),
            });
        }
    };
    file::parse(name, text.as_bytes(), None)
}

/// Reads a scenario file. Folders and files that it names are taken relative to its own folder.
///
/// # Errors
///
/// When the file or something that it names cannot be used; the text names file, line and column
/// where there is one, and the way out.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    let shown = path.display().to_string();
    let bytes = regular_file::read(path, MAX_SCENARIO_BYTES).map_err(|reason| {
        ScenarioError::Unreadable {
            file: shown.clone(),
            reason,
            way_out: "name a scenario file, such as scenarios/review.toml".to_owned(),
        }
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    file::parse(&shown, &bytes, Some(&Folder::Disk(folder)))
}
