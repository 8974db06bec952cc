use std::path::Path;

use spill_record::{Class, FactsOrigin};

use crate::builtin::frame;
use crate::error::ScenarioError;
use crate::file::natural_class;
use crate::generate::served_bytes;
use crate::input::{Fact, Input, InputData, Recipe, diff_carrier, place_of};
use crate::scenario::Scenario;
use crate::{document_file, repository};

/// Makes a review scenario from a range `A..B` (or `A...B`) of a git repository: everything but
/// the input is that of the built-in scenario `review`. Without `class`, the largest result as
/// served decides.
///
/// Binary files, links, submodules and text that is not UTF-8 are left out with a note.
///
/// # Errors
///
/// When the folder, the range or `git` cannot be used, or nothing is left to review.
pub fn from_repository(
    path: &Path,
    range: &str,
    class: Option<Class>,
) -> Result<Scenario, ScenarioError> {
    let (data, notes) = repository::read(path, range)?;
    scenario_of(data, &safe_name(range, "range"), class, notes)
}

/// Makes a document scenario from a text file: everything but the input is that of the built-in
/// scenario `document`. Without `class`, its class is `document`.
///
/// # Errors
///
/// When the file is missing, a folder, empty, not UTF-8 text or larger than
/// [`crate::defaults::MAX_DOCUMENT_BYTES`].
pub fn from_document(path: &Path, class: Option<Class>) -> Result<Scenario, ScenarioError> {
    let data = document_file::read(path)?;
    let name = safe_name(&data.documents[0].name, "document");
    scenario_of(data, &name, class, Vec::new())
}

fn scenario_of(
    data: InputData,
    name: &str,
    class: Option<Class>,
    notes: Vec<String>,
) -> Result<Scenario, ScenarioError> {
    let mut scenario = frame(data.recipe)?;
    scenario.inputs = vec![Input {
        name: name.to_owned(),
        class: class.unwrap_or_else(|| natural_class(&data)),
        data,
        facts: Vec::new(),
        facts_origin: FactsOrigin::Derived,
        notes,
    }];
    Ok(scenario)
}

/// Makes a name that is safe in paths and ids: other characters become `-`, 64 bytes at most.
fn safe_name(text: &str, fallback: &str) -> String {
    let kept: String = text
        .chars()
        .map(|one| {
            if one.is_ascii_alphanumeric() || "._-".contains(one) {
                one
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    let kept = kept.trim_start_matches(|one: char| !one.is_ascii_alphanumeric());
    if kept.is_empty() {
        fallback.to_owned()
    } else {
        kept.to_owned()
    }
}

impl Scenario {
    /// Returns the scenario with facts that were given as texts, in place of its own, for each of
    /// its inputs. What carries a fact is the first text that contains it, or else the file that
    /// it begins with; without either, the largest text, at no known place.
    ///
    /// # Errors
    ///
    /// When there is no text, an empty one, or one twice.
    pub fn with_expected(mut self, texts: &[String]) -> Result<Self, ScenarioError> {
        let refuse = |problem: String, way_out: &str| ScenarioError::Unusable {
            file: "--expect".to_owned(),
            problem,
            way_out: way_out.to_owned(),
        };
        if texts.is_empty() {
            return Err(refuse(
                "no text is given".to_owned(),
                "give a text that a good answer contains",
            ));
        }
        for (index, text) in texts.iter().enumerate() {
            if text.trim().is_empty() {
                return Err(refuse(
                    format!(
                        "text {} is empty, so every answer would contain it",
                        index + 1
                    ),
                    "give a text that a good answer contains",
                ));
            }
            if texts[..index].contains(text) {
                return Err(refuse(
                    format!("{text:?} is given twice"),
                    "give each text once",
                ));
            }
        }
        for input in &mut self.inputs {
            input.facts = texts
                .iter()
                .enumerate()
                .map(|(index, text)| expected_fact(&input.data, index, text))
                .collect();
            input.facts_origin = FactsOrigin::Expected;
        }
        Ok(self)
    }
}

fn expected_fact(data: &InputData, index: usize, expect: &str) -> Fact {
    let mut carriers: Vec<(String, &str)> = Vec::new();
    match data.recipe {
        Recipe::Review => {
            for file in &data.files {
                carriers.push((diff_carrier(&file.path), &file.diff));
                carriers.push((file.path.clone(), &file.content));
            }
        }
        Recipe::Document => {
            for document in &data.documents {
                carriers.push((document.name.clone(), &document.text));
            }
        }
        Recipe::Records => {
            for table in &data.tables {
                carriers.push((table.name.clone(), &table.text));
            }
        }
        Recipe::Recorded => {
            for call in &data.calls {
                carriers.push((call.id.clone(), &call.result));
            }
        }
    }
    let found = carriers.iter().find_map(|(name, text)| {
        text.find(expect)
            .map(|at| (name, *text, Some(place_of(at, text.len()))))
    });
    let named = || {
        carriers
            .iter()
            .find(|(name, _)| {
                expect
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(':'))
            })
            .or_else(|| carriers.iter().max_by_key(|(_, text)| text.len()))
            .map(|(name, text)| (name, *text, None))
    };
    let (carrier, text, place) = found
        .or_else(named)
        .map_or((String::new(), "", None), |(name, text, place)| {
            (name.clone(), text, place)
        });
    Fact {
        id: format!("{:02}-expected", index + 1),
        expect: expect.to_owned(),
        carrier,
        carrier_bytes: served_bytes(text),
        place,
    }
}

#[cfg(test)]
mod tests;
