//! `--subject`: which agent is under test.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use spill_runner::{Foreign, Subject};
use spill_scenario::{
    ForeignSubject, Plan, Scenario, SubjectPreset, built_in_subject, load_subject, subject_names,
};

/// The name of the built-in subject.
const BUILT_IN: &str = "built-in";

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The scenarios' own, or the built-in one.
    Scenario,
    /// The built-in one.
    BuiltIn,
    /// An executable that takes `step`'s arguments and environment.
    Executable(Subject),
    /// An agent that a file describes.
    Preset(Box<SubjectPreset>),
}

/// Reads `--subject`: the name of a subject that ships, a subject file, or an executable.
pub(crate) fn asked(given: Option<&Path>) -> anyhow::Result<Asked> {
    let Some(path) = given else {
        return Ok(Asked::Scenario);
    };
    if path == Path::new(BUILT_IN) {
        return Ok(Asked::BuiltIn);
    }
    if let Some(preset) = path.to_str().map(built_in_subject).transpose()?.flatten() {
        return Ok(Asked::Preset(Box::new(preset)));
    }
    if path.extension() == Some(OsStr::new("toml")) {
        return Ok(Asked::Preset(Box::new(load_subject(path)?)));
    }
    executable(path).map(Asked::Executable)
}

/// Puts the scenarios under the agent that the command line asks for.
pub(crate) fn under(asked: &Asked, scenarios: Vec<Scenario>) -> anyhow::Result<Vec<Scenario>> {
    let own = scenarios.iter().find_map(|scenario| {
        let subject = scenario.subject.as_ref()?;
        Some((&scenario.name, &subject.name))
    });
    match (asked, own) {
        (Asked::Preset(preset), _) => {
            let under = scenarios.into_iter().map(|one| one.with_subject(preset));
            Ok(under.collect::<Result<_, _>>()?)
        }
        (Asked::BuiltIn | Asked::Executable(_), Some((scenario, subject))) => anyhow::bail!(
            "the scenario {scenario} names the subject {subject}, and no other one can run it here (leave --subject out of `accept`, or remove the scenario's [subject])"
        ),
        (Asked::Scenario | Asked::BuiltIn | Asked::Executable(_), _) => Ok(scenarios),
    }
}

/// The agent under test of a plan, found on this machine.
pub(crate) fn of_plan(asked: Asked, plan: &Plan) -> anyhow::Result<Subject> {
    match (asked, &plan.scenarios[0].subject) {
        (Asked::Executable(subject), _) => Ok(subject),
        (_, Some(subject)) => found(subject, std::env::var_os("PATH").unwrap_or_default()),
        (Asked::Scenario | Asked::BuiltIn | Asked::Preset(_), None) => Ok(Subject::BuiltIn),
    }
}

/// Looks for a foreign subject's program.
fn found(subject: &ForeignSubject, search_path: OsString) -> anyhow::Result<Subject> {
    anyhow::ensure!(
        subject.name != BUILT_IN,
        "a subject of others cannot be named {BUILT_IN}, since reports tell subjects apart by their names (choose another `name`)"
    );
    let name = Path::new(&subject.program);
    let is_path = subject.program.contains('/');
    let program = if is_path {
        std::fs::canonicalize(name)
            .ok()
            .filter(|path| is_executable(path))
    } else {
        let folders = std::env::split_paths(&search_path);
        let mut places = folders.map(|folder| folder.join(name));
        places
            .find(|place| is_executable(place))
            .map(|place| std::path::absolute(&place).unwrap_or(place))
    };
    let program = program.with_context(|| {
        let place = if is_path {
            "no executable"
        } else {
            "not in PATH"
        };
        let install = subject.install.as_deref();
        let install = install.map_or("install it, or correct `command`".to_owned(), |how| {
            format!("install it: {how}")
        });
        format!(
            "the subject {} cannot be started: its program {} is {place} ({install})",
            subject.name, subject.program
        )
    })?;
    Ok(Subject::Foreign(Foreign {
        subject: Arc::new(subject.clone()),
        program,
        search_path,
    }))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn executable(path: &Path) -> anyhow::Result<Subject> {
    let found: PathBuf = std::fs::canonicalize(path).with_context(|| {
        format!(
            "the subject {} cannot be used (--subject takes {BUILT_IN}, {}, a subject file NAME.toml, or the path of an executable)",
            path.display(),
            subject_names().join(", ")
        )
    })?;
    anyhow::ensure!(
        is_executable(&found),
        "the subject {} is not an executable file (chmod +x it, or name another)",
        path.display()
    );
    Ok(Subject::Command {
        name: found.to_string_lossy().into_owned(),
        command: vec![found.into()],
    })
}
