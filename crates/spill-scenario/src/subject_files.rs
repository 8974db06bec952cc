use std::path::Path;

use crate::defaults::MAX_SCENARIO_BYTES;
use crate::error::ScenarioError;
use crate::file;
use crate::regular_file;
use crate::subject::SubjectPreset;

/// Names, and texts.
const PRESETS: [(&str, &str); 4] = [
    ("codex", include_str!("../../../subjects/codex.toml")),
    (
        "claude-code",
        include_str!("../../../subjects/claude-code.toml"),
    ),
    ("opencode", include_str!("../../../subjects/opencode.toml")),
    (
        "gemini-cli",
        include_str!("../../../subjects/gemini-cli.toml"),
    ),
];

/// Returns the names of the subjects that ship with the program, beside the built-in one.
#[must_use]
pub fn subject_names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// Returns the subject of that name; `None` when none ships with the program.
///
/// # Errors
///
/// Never with an intact build.
pub fn built_in_subject(name: &str) -> Result<Option<SubjectPreset>, ScenarioError> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found
        .map(|(name, text)| file::subject_of(&format!("subjects/{name}.toml"), text.as_bytes()))
        .transpose()
}

/// Reads a subject file.
///
/// # Errors
///
/// When it cannot be used; the text names file, line and column where there is one, and the way out.
pub fn load_subject(path: &Path) -> Result<SubjectPreset, ScenarioError> {
    let shown = path.display().to_string();
    let bytes = regular_file::read(path, MAX_SCENARIO_BYTES).map_err(|reason| {
        ScenarioError::Unreadable {
            file: shown.clone(),
            reason,
            way_out: "name a subject file; docs/subjects.md describes it".to_owned(),
        }
    })?;
    file::subject_of(&shown, &bytes)
}
