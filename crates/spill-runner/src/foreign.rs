//! A foreign subject's start and its answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use serde_json::Value;
use spill_scenario::{AnswerRule, OwnPlace, Scenario, Slot, Template};

use crate::dirs::{RunDirs, folder_name};
use crate::subject::Foreign;

/// An answer file larger than this is not read.
const ANSWER_BYTES: u64 = 64 << 20;

/// Where the servers of a run are.
pub(crate) struct Addresses {
    pub(crate) llm_url: String,
    pub(crate) llm_root: String,
    pub(crate) mcp_url: String,
}

/// What is started, and what it finds.
pub(crate) struct Start {
    pub(crate) command: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    files: Vec<(OwnPlace, String)>,
}

/// Files by the folder that findings name and the path below it, with their content.
pub(crate) type Written = BTreeMap<(&'static str, PathBuf), String>;

/// What a foreign subject that ended on its own had to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Its answer.
    Answer(String),
    /// The model's last message is its answer.
    AtServer,
    /// It ended as if all were well, and there is no answer where its file says.
    Nothing(String),
    /// It ended otherwise.
    Ended(String),
}

/// Fills in a run's addresses, folders and texts.
pub(crate) fn start(
    foreign: &Foreign,
    scenario: &Scenario,
    configuration: &BTreeMap<String, String>,
    dirs: &RunDirs,
    run_id: &str,
    addresses: Addresses,
) -> Start {
    let subject = &foreign.subject;
    let folder = |name: &str| dirs.place(name).to_string_lossy().into_owned();
    let plain = |slot: &Slot| match slot {
        Slot::LlmUrl => addresses.llm_url.clone(),
        Slot::LlmRoot => addresses.llm_root.clone(),
        Slot::McpUrl => addresses.mcp_url.clone(),
        Slot::Prompt => scenario.prompt.clone(),
        Slot::System => scenario.system.clone(),
        Slot::Home => folder("home"),
        Slot::Work => folder("work"),
        Slot::Output => folder("out"),
        Slot::Tmp => folder("tmp"),
        Slot::Model => scenario.model.name.clone(),
        Slot::Key => run_id.to_owned(),
        Slot::Path => foreign.search_path.to_string_lossy().into_owned(),
        Slot::IterationLimit => scenario.limits.iteration_limit.to_string(),
        Slot::Env(_) => String::new(),
    };
    let own = subject.env.iter();
    let mut env: BTreeMap<String, String> = own
        .map(|(name, value)| (name.clone(), value.fill(plain)))
        .collect();
    for (name, value) in configuration {
        env.insert(name.clone(), Template::checked(value).fill(plain));
    }
    let all = |slot: &Slot| match slot {
        Slot::Env(name) => env.get(name).cloned().unwrap_or_default(),
        other => plain(other),
    };
    let mut command = vec![foreign.program.clone().into_os_string()];
    let arguments = subject.arguments.iter();
    command.extend(arguments.map(|argument| argument.fill(all).into()));
    let files = subject.files.iter();
    let files = files
        .map(|file| (file.place.clone(), file.content.fill(all)))
        .collect();
    Start {
        command,
        env,
        files,
    }
}

/// Writes what the subject finds.
pub(crate) fn write_files(start: &Start, dirs: &RunDirs) -> io::Result<Written> {
    let mut written = Written::new();
    for (place, content) in &start.files {
        let path = dirs.own(place);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content)?;
        let key = (folder_name(place.folder), PathBuf::from(&place.path));
        written.insert(key, content.clone());
    }
    Ok(written)
}

/// Finds the answer of a subject that ended well; no message quotes what it printed.
pub(crate) fn told(rule: &AnswerRule, stdout: &[u8], dirs: &RunDirs) -> Told {
    let answer = match rule {
        AnswerRule::StandardOutput => text_of(stdout, "standard output"),
        AnswerRule::Json(pointer) => json_answer(stdout, pointer),
        AnswerRule::JsonLines(pointer) => last_line_answer(stdout, pointer),
        AnswerRule::File(place) => file_answer(place, dirs),
        AnswerRule::LastMessage => return Told::AtServer,
    };
    match answer {
        Ok(answer) => Told::Answer(answer),
        Err(why) => Told::Nothing(why),
    }
}

fn text_of(bytes: &[u8], what: &str) -> Result<String, String> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|error| format!("{what} is not UTF-8: {error}"))
}

fn json_answer(stdout: &[u8], pointer: &str) -> Result<String, String> {
    let value: Value = serde_json::from_slice(stdout).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!(
            "standard output is not one JSON value ({:?} error at line {line}, column {column})",
            error.classify()
        )
    })?;
    let answer = value.pointer(pointer).and_then(Value::as_str);
    answer
        .map(str::to_owned)
        .ok_or_else(|| format!("the JSON on standard output has no text at {pointer:?}"))
}

fn last_line_answer(stdout: &[u8], pointer: &str) -> Result<String, String> {
    let lines = stdout.split(|byte| *byte == b'\n').rev();
    let answers = lines.filter_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        value.pointer(pointer)?.as_str().map(str::to_owned)
    });
    let mut answers = answers;
    answers
        .next()
        .ok_or_else(|| format!("no line of standard output is JSON with a text at {pointer:?}"))
}

fn file_answer(place: &OwnPlace, dirs: &RunDirs) -> Result<String, String> {
    let shown = format!("{}/{}", place.folder.placeholder(), place.path);
    let path = dirs.own(place);
    let read = || -> io::Result<Vec<u8>> {
        // A pipe or a link is no answer: reading it could wait for ever, or leave the run's folders.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        fs::File::open(&path)?
            .take(ANSWER_BYTES)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 == ANSWER_BYTES {
            return Err(io::Error::other(
                "it holds 64 MiB or more, which is no answer",
            ));
        }
        Ok(bytes)
    };
    let bytes =
        read().map_err(|error| format!("the answer file {shown} cannot be read: {error}"))?;
    text_of(&bytes, "the answer file")
}

#[cfg(test)]
mod tests;
