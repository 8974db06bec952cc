//! Any agent as the subject: what is started, what it finds, and where its answer stands.

use std::collections::BTreeMap;

use crate::error::ScenarioError;
use crate::scenario::{Configuration, Limits, Scenario};
use crate::template::Template;

/// An agent that nobody here wrote, as a `[subject]` table or a file of `subjects/` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignSubject {
    /// Its name in records.
    pub name: String,
    /// The program, looked for in the caller's `PATH` unless it is a path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<Template>,
    /// Its environment; that of a configuration goes before.
    pub env: BTreeMap<String, Template>,
    /// Files that are written before it starts.
    pub files: Vec<SubjectFile>,
    /// Where its final answer stands.
    pub answer: AnswerRule,
    /// What it keeps for itself: result content there is no leak.
    pub state: Vec<OwnPlace>,
    /// What it speaks to the model.
    pub dialect: Option<String>,
    /// How to install it.
    pub install: Option<String>,
    /// Time for one process, in place of the scenario's.
    pub run_timeout_ms: Option<u64>,
}

/// A subject with the configurations of its own that its file names.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectPreset {
    /// The subject.
    pub subject: ForeignSubject,
    /// Its configurations; `None` leaves the scenario's in force.
    pub configurations: Option<Vec<Configuration>>,
}

/// A file that a subject finds when it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectFile {
    /// Where it stands.
    pub place: OwnPlace,
    /// What it holds.
    pub content: Template,
}

/// One of a run's folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnFolder {
    /// The subject's home.
    Home,
    /// Its working folder.
    Work,
    /// Its temporary folder.
    Tmp,
    /// Its output folder.
    Output,
}

impl OwnFolder {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Home, Self::Work, Self::Tmp, Self::Output];

    /// What a subject file calls it.
    #[must_use]
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Home => "{home}",
            Self::Work => "{work}",
            Self::Tmp => "{tmp}",
            Self::Output => "{output}",
        }
    }
}

/// A file or folder of the subject's: a path below one of a run's folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnPlace {
    /// The folder.
    pub folder: OwnFolder,
    /// The path in it: names with `/` between, none of them `.` or `..`; empty for the folder itself. In
    /// a state, a last `*` stands for any rest of a name.
    pub path: String,
}

/// Where the final answer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerRule {
    /// Standard output is the answer.
    StandardOutput,
    /// Standard output is one JSON value, and this pointer leads to the answer.
    Json(String),
    /// The last line of standard output from which this pointer leads to a text.
    JsonLines(String),
    /// A file that the subject wrote.
    File(OwnPlace),
    /// The last message of the model that asks for no tool, as the server sent it.
    LastMessage,
}

impl Scenario {
    /// Puts the scenario under an agent of another file, with that file's configurations.
    ///
    /// # Errors
    ///
    /// When the scenario names a subject of its own, or the file has no configurations: those of the
    /// built-in subject mean nothing to another agent.
    pub fn with_subject(mut self, preset: &SubjectPreset) -> Result<Self, ScenarioError> {
        let problem = |problem: String, way_out: &str| ScenarioError::Plan {
            problem,
            way_out: way_out.to_owned(),
        };
        let name = &preset.subject.name;
        if let Some(own) = &self.subject {
            return Err(problem(
                format!(
                    "the scenario `{}` names the subject `{}`, so it cannot run with `{name}`",
                    self.name, own.name
                ),
                "leave --subject out, or remove the scenario's [subject]",
            ));
        }
        let Some(configurations) = &preset.configurations else {
            return Err(problem(
                format!(
                    "the subject `{name}` has no configurations, and those of the scenario `{}` are settings of the built-in subject",
                    self.name
                ),
                "add [[configurations]] to the subject's file: one control, and candidates, one of them shipped",
            ));
        };
        self.configurations.clone_from(configurations);
        self.limits = preset.subject.limits(self.limits);
        self.subject = Some(preset.subject.clone());
        Ok(self)
    }
}

impl ForeignSubject {
    /// Where result content is the subject's own affair: its state, and the file of its answer.
    pub fn kept(&self) -> impl Iterator<Item = &OwnPlace> {
        let answer = match &self.answer {
            AnswerRule::File(place) => Some(place),
            AnswerRule::StandardOutput
            | AnswerRule::Json(_)
            | AnswerRule::JsonLines(_)
            | AnswerRule::LastMessage => None,
        };
        self.state.iter().chain(answer)
    }

    /// The limits of a scenario that runs it.
    pub(crate) fn limits(&self, scenario: Limits) -> Limits {
        Limits {
            run_timeout_ms: self.run_timeout_ms.unwrap_or(scenario.run_timeout_ms),
            ..scenario
        }
    }
}
