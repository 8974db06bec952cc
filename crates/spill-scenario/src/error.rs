use std::fmt;
use std::io;

/// A place in a file that a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// Returns the place of a byte offset in `text`.
    #[must_use]
    pub fn at(file: &str, text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why there is no scenario or no plan. Every text names the place, the fact and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Something in a file that a person wrote is wrong.
    #[error("{place}: {problem} ({way_out})")]
    Invalid {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        way_out: String,
    },
    /// A file could not be read.
    #[error("{file}: cannot be read: {reason} ({way_out})")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// What the system said.
        reason: io::Error,
        /// What to do about it.
        way_out: String,
    },
    /// A file or folder is not usable as what it was named for.
    #[error("{file}: {problem} ({way_out})")]
    Unusable {
        /// The file, folder or option as it was named.
        file: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        way_out: String,
    },
    /// A plan would be larger than its scenarios allow.
    #[error(
        "matrix expands to {runs} runs, limit is {limit} (raise `max_runs`, ask for fewer repetitions, or drop an input)"
    )]
    TooManyRuns {
        /// Runs that the plan would have.
        runs: u64,
        /// The smallest `max_runs` of its scenarios.
        limit: u64,
    },
    /// Scenarios do not fit into one plan, or the plan cannot be made.
    #[error("{problem} ({way_out})")]
    Plan {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        way_out: String,
    },
}
