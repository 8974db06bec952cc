use spill_record::{Class, FactPlace, FactsOrigin};

use crate::recorded::RecordedCall;

/// What the agent is asked to do; it decides which tools are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// Review the files of a change.
    Review,
    /// Summarise documents.
    Document,
    /// Answer questions about tables, exports and logs.
    Records,
    /// Do what a recorded agent did, with the results that it got.
    Recorded,
}

impl Recipe {
    /// The recipe's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Document => "document",
            Self::Records => "records",
            Self::Recorded => "recorded",
        }
    }
}

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path after the change, with `/` between folders.
    pub path: String,
    /// `added`, `modified`, `deleted` or `renamed`.
    pub status: String,
    /// Its unified diff, three lines of context.
    pub diff: String,
    /// Its text after the change; empty when it was deleted.
    pub content: String,
}

/// One document to be summarised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The name by which the tools serve it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its whole text.
    pub text: String,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFormat {
    /// Rows of a database: a JSON array of objects, compact, without line breaks.
    Rows,
    /// An export: comma-separated values below a line of column names.
    Csv,
    /// A log: one event a line.
    Log,
}

impl TableFormat {
    /// The format's name as the tools spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Csv => "csv",
            Self::Log => "log",
        }
    }
}

/// One table, export or log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name by which the tools serve it.
    pub name: String,
    /// How it is written.
    pub format: TableFormat,
    /// Its rows; of a log, its lines. A line of column names is not counted.
    pub rows: u64,
    /// Its whole text. Rows and exports have a column in which canaries can be planted, see
    /// [`crate::plant`].
    pub text: String,
}

/// What the tools have to serve; it holds no answer key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputData {
    /// Which tools serve it.
    pub recipe: Recipe,
    /// The changed files, sorted by path; of the recipe `review`.
    pub files: Vec<ChangedFile>,
    /// The documents; of the recipe `document`.
    pub documents: Vec<Document>,
    /// The tables, exports and logs; of the recipe `records`.
    pub tables: Vec<Table>,
    /// The calls of a transcript, in their order; of the recipe `recorded`.
    pub calls: Vec<RecordedCall>,
}

impl InputData {
    /// Nothing yet for this recipe.
    #[must_use]
    pub fn empty(recipe: Recipe) -> Self {
        Self {
            recipe,
            files: Vec::new(),
            documents: Vec::new(),
            tables: Vec::new(),
            calls: Vec::new(),
        }
    }
}

/// Something that a good final answer contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its id, unique within the input.
    pub id: String,
    /// The text that the answer has to contain.
    pub expect: String,
    /// What carries it: a file's path, [`diff_carrier`] of a path, a document's or table's name, a
    /// recorded call's id, or the list tool.
    pub carrier: String,
    /// Bytes of the carrier as served.
    pub carrier_bytes: u64,
    /// Where it sits in the carrier; `None` when that is not known.
    pub place: Option<FactPlace>,
}

/// One input of a scenario: the data and, apart from it, the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name, unique within the scenario.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// What the tools serve.
    pub data: InputData,
    /// What answers are scored against.
    pub facts: Vec<Fact>,
    /// Where the facts come from; `Derived` while they have still to be derived.
    pub facts_origin: FactsOrigin,
    /// What of real input was left out, and why; one line each.
    pub notes: Vec<String>,
}

/// The carrier's name for facts that stand in the list of tables: the tool that returns it.
pub const LIST_OF_TABLES: &str = "list_tables";

/// Returns the carrier's name for facts that stand in the diff of `path`.
#[must_use]
pub fn diff_carrier(path: &str) -> String {
    format!("diff of {path}")
}

/// Returns where `offset` sits in a text of `len` bytes: the first tenth, the last tenth, or
/// between. An offset on the border to the last tenth belongs to the last tenth.
#[must_use]
pub fn place_of(offset: usize, len: usize) -> FactPlace {
    if offset * 10 < len {
        FactPlace::Beginning
    } else if offset * 10 >= len * 9 {
        FactPlace::End
    } else {
        FactPlace::Middle
    }
}

/// The class of a review input whose largest result has this many bytes, as served.
#[must_use]
pub fn class_of(largest_result_bytes: u64) -> Class {
    match largest_result_bytes {
        0..32_768 => Class::Small,
        32_768..131_072 => Class::Medium,
        131_072.. => Class::Large,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_begin_at_their_bound() {
        assert_eq!(class_of(0), Class::Small);
        assert_eq!(class_of(32_767), Class::Small);
        assert_eq!(class_of(32_768), Class::Medium);
        assert_eq!(class_of(131_071), Class::Medium);
        assert_eq!(class_of(131_072), Class::Large);
    }

    #[test]
    fn tenths_begin_at_their_bound() {
        assert_eq!(place_of(0, 100), FactPlace::Beginning);
        assert_eq!(place_of(9, 100), FactPlace::Beginning);
        assert_eq!(place_of(10, 100), FactPlace::Middle);
        assert_eq!(place_of(89, 100), FactPlace::Middle);
        assert_eq!(place_of(90, 100), FactPlace::End);
    }
}
