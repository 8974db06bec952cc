//! The agent under test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spill_scenario::ForeignSubject;

/// The agent under test.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// `spillgate step`.
    BuiltIn,
    /// A command that takes `step`'s arguments and environment and prints a step result.
    Command {
        /// Its name in records.
        name: String,
        /// The program and its first arguments; those of `step` follow.
        command: Vec<OsString>,
    },
    /// Any agent, as its file describes it; it says nothing about itself.
    Foreign(Foreign),
}

/// An agent that nobody here wrote, found on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// What its file says.
    pub subject: Arc<ForeignSubject>,
    /// Its program.
    pub program: PathBuf,
    /// The caller's search path for programs.
    pub search_path: OsString,
}

impl Subject {
    /// The subject's name in records.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::BuiltIn => "built-in".to_owned(),
            Self::Command { name, .. } => name.clone(),
            Self::Foreign(foreign) => foreign.subject.name.clone(),
        }
    }

    /// The command line of one step or question to it; a foreign subject takes no such arguments.
    pub(crate) fn command(&self, spillgate: &Path, arguments: &[OsString]) -> Vec<OsString> {
        let mut command = match self {
            Self::BuiltIn => vec![spillgate.into(), "step".into()],
            Self::Command { command, .. } => command.clone(),
            Self::Foreign(foreign) => return vec![foreign.program.clone().into()],
        };
        command.extend_from_slice(arguments);
        command
    }
}
