use std::fs;
use std::path::Path;

use crate::defaults::MAX_DOCUMENT_BYTES;
use crate::error::ScenarioError;
use crate::file::text_of;
use crate::input::{Document, InputData, Recipe};
use crate::regular_file;

/// Reads one text file as the data of the recipe `document`.
pub(crate) fn read(path: &Path) -> Result<InputData, ScenarioError> {
    let shown = path.display().to_string();
    let unreadable = |reason| ScenarioError::Unreadable {
        file: shown.clone(),
        reason,
        way_out: "name a text file that you may read".to_owned(),
    };
    let unusable = |problem: String, way_out: &str| ScenarioError::Unusable {
        file: shown.clone(),
        problem,
        way_out: way_out.to_owned(),
    };
    let about = fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(unusable(
            "is a folder, not a document".to_owned(),
            "name one text file in it; a change of files is reviewed with --repo",
        ));
    }
    if about.len() > MAX_DOCUMENT_BYTES {
        return Err(unusable(
            format!(
                "has {} bytes, the limit is {MAX_DOCUMENT_BYTES}",
                about.len()
            ),
            "name a smaller file, or split it",
        ));
    }
    let bytes = regular_file::read(path, MAX_DOCUMENT_BYTES).map_err(unreadable)?;
    let text = text_of(&shown, &bytes, "a document is a text file in UTF-8")?;
    if text.trim().is_empty() {
        return Err(unusable(
            "is empty".to_owned(),
            "name a document with text in it",
        ));
    }
    let name = path
        .file_name()
        .map_or_else(|| "document".into(), |name| name.to_string_lossy());
    let title = text
        .lines()
        .find_map(|line| line.strip_prefix("# "))
        .map_or_else(
            || name.clone().into_owned(),
            |title| title.trim().to_owned(),
        );
    Ok(InputData {
        documents: vec![Document {
            name: name.into_owned(),
            title,
            text: text.to_owned(),
        }],
        ..InputData::empty(Recipe::Document)
    })
}
