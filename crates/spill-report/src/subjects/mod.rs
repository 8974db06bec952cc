//! Several subjects side by side: what each made of the same inputs.

mod figures;
mod largest;
mod page;
mod same;
mod sheet;
mod terminal;
mod words;

use serde::Serialize;
use spill_record::RunSet;

pub use largest::LargestResults;
pub use same::NotComparable;

use figures::{Place, places};

/// A run folder of one subject, with what its calls tell.
#[derive(Clone, Copy, Debug)]
pub struct SubjectRuns<'a> {
    /// Manifest and records.
    pub set: &'a RunSet,
    /// What became of large results; of a folder without calls, nothing is known.
    pub largest: &'a LargestResults,
}

/// Several subjects side by side, in each form; equal folders in equal order give equal bytes.
#[derive(Clone, Debug)]
pub struct SubjectsRendered {
    /// One HTML file that needs nothing else.
    pub html: String,
    /// A row for each input, subject and configuration.
    pub csv: String,
    /// The same for programs, with why runs did not succeed.
    pub json: String,
    /// The same for a terminal of 80 columns.
    pub table: String,
}

#[derive(Serialize)]
struct Json<'a> {
    inputs: &'a [Place],
}

/// Shows the subjects of `folders` side by side, in the order that they have.
///
/// # Errors
///
/// Refuses folders whose figures cannot be held against each other: of an input that they share, each subject has
/// to have had the same text, the same facts, the same model, the same seeds, and one program has to have counted.
pub fn subjects(folders: &[SubjectRuns<'_>]) -> Result<SubjectsRendered, NotComparable> {
    same::check(folders)?;
    let places = places(folders);
    let mut json = serde_json::to_string_pretty(&Json { inputs: &places })
        .expect("rows have string keys and finite numbers");
    json.push('\n');
    Ok(SubjectsRendered {
        html: page::page(folders, &places),
        csv: sheet::csv(&places),
        json,
        table: terminal::table(&places),
    })
}
