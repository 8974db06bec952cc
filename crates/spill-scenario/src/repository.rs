//! Reads a range of a git repository through the `git` program.
//!
//! The child gets none of the caller's `GIT_*` variables, no pager, no external diff, no text
//! conversion and no network; revisions are resolved to commit ids before anything else sees them.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::defaults::MAX_DOCUMENT_BYTES;
use crate::error::ScenarioError;
use crate::input::{ChangedFile, InputData, Recipe};

/// A range with more changed files than this is not read.
const MAX_CHANGED_FILES: usize = 1_000;

const SYMLINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// Reads a range of a git repository as the data of the recipe `review`, with notes on what was
/// left out.
pub(crate) fn read(path: &Path, range: &str) -> Result<(InputData, Vec<String>), ScenarioError> {
    Git {
        program: OsStr::new("git"),
        folder: path,
    }
    .read(range)
}

struct Git<'a> {
    program: &'a OsStr,
    folder: &'a Path,
}

/// The two commits of a range.
struct Commits {
    old: String,
    new: String,
}

/// One changed file as `git diff-tree --raw` lists it.
struct Change {
    mode: String,
    blob: String,
    status: char,
    old_path: Vec<u8>,
    path: Vec<u8>,
}

impl Git<'_> {
    fn read(&self, range: &str) -> Result<(InputData, Vec<String>), ScenarioError> {
        if !self.folder.is_dir() {
            return Err(self.unusable("is not a folder", "name the folder of a git repository"));
        }
        let probe = self.run(&["rev-parse", "--git-dir"])?;
        if let Err(reason) = probe {
            let reason = reason.split(" (or any").next().unwrap_or_default();
            return Err(self.unusable(
                &format!("is not a usable git repository: {reason}"),
                "name a folder inside one",
            ));
        }
        let commits = self.commits(range)?;
        let changes = self.changes(range, &commits)?;
        let mut notes = Vec::new();
        let mut files = Vec::new();
        for change in &changes {
            match self.file(&commits, change)? {
                Ok(file) => files.push(file),
                Err(reason) => {
                    let shown = String::from_utf8_lossy(&change.path).into_owned();
                    notes.push(format!("left out {}: {reason}", shown.escape_debug()));
                }
            }
        }
        if files.is_empty() {
            return Err(self.unusable(
                &format!(
                    "no file of the range {range} can be reviewed: {}",
                    notes.join("; ")
                ),
                "choose a range that changes text files",
            ));
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok((
            InputData {
                files,
                ..InputData::empty(Recipe::Review)
            },
            notes,
        ))
    }

    /// Resolves `A..B` or `A...B`; a side that is left out is `HEAD`.
    fn commits(&self, range: &str) -> Result<Commits, ScenarioError> {
        let (old, new, from_base) = if let Some((old, new)) = range.split_once("...") {
            (old, new, true)
        } else if let Some((old, new)) = range.split_once("..") {
            (old, new, false)
        } else {
            return Err(ScenarioError::Unusable {
                file: format!("range {range:?}"),
                problem: "names no two commits".to_owned(),
                way_out: "write A..B, such as HEAD~3..HEAD".to_owned(),
            });
        };
        let (old, new) = (self.commit(range, old)?, self.commit(range, new)?);
        if !from_base {
            return Ok(Commits { old, new });
        }
        let base = self
            .run(&["merge-base", &old, &new])?
            .map_err(|_| ScenarioError::Unusable {
                file: format!("range {range:?}"),
                problem: "its sides have no common ancestor".to_owned(),
                way_out: "write A..B".to_owned(),
            })?;
        Ok(Commits {
            old: text(&base),
            new,
        })
    }

    fn commit(&self, range: &str, revision: &str) -> Result<String, ScenarioError> {
        let unknown = || ScenarioError::Unusable {
            file: format!("range {range:?}"),
            problem: format!("{revision:?} names no commit of {}", self.folder.display()),
            way_out: "see `git log` for commits, branches and tags".to_owned(),
        };
        if revision.starts_with('-') || revision.contains(|one: char| one.is_control()) {
            return Err(unknown());
        }
        let revision = if revision.is_empty() {
            "HEAD"
        } else {
            revision
        };
        let commit = format!("{revision}^{{commit}}");
        let found = self.run(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ])?;
        let id = text(&found.map_err(|_| unknown())?);
        let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id { Ok(id) } else { Err(unknown()) }
    }

    fn changes(&self, range: &str, commits: &Commits) -> Result<Vec<Change>, ScenarioError> {
        let listed = self
            .run(&[
                "diff-tree",
                "-r",
                "-M",
                "--raw",
                "-z",
                "--no-abbrev",
                &commits.old,
                &commits.new,
            ])?
            .map_err(|reason| {
                self.unusable(&format!("git cannot list it: {reason}"), "run `git fsck`")
            })?;
        let changes = parse_raw(&listed)
            .ok_or_else(|| self.unusable("git listed it in an unknown form", "update git"))?;
        if changes.is_empty() {
            return Err(ScenarioError::Unusable {
                file: format!("range {range:?}"),
                problem: "changes no file".to_owned(),
                way_out: "choose commits that differ; A..B is what B has and A has not".to_owned(),
            });
        }
        if changes.len() > MAX_CHANGED_FILES {
            return Err(ScenarioError::Unusable {
                file: format!("range {range:?}"),
                problem: format!(
                    "changes {} files, the limit is {MAX_CHANGED_FILES}",
                    changes.len()
                ),
                way_out: "choose a shorter range".to_owned(),
            });
        }
        Ok(changes)
    }

    /// One changed file, or why it is left out.
    fn file(
        &self,
        commits: &Commits,
        change: &Change,
    ) -> Result<Result<ChangedFile, &'static str>, ScenarioError> {
        let (Ok(path), Ok(old_path)) = (
            std::str::from_utf8(&change.path),
            std::str::from_utf8(&change.old_path),
        ) else {
            return Ok(Err("its name is not UTF-8"));
        };
        if path.contains(char::is_control) {
            return Ok(Err("its name holds a control character"));
        }
        match change.mode.as_str() {
            SYMLINK => return Ok(Err("it is a symbolic link")),
            SUBMODULE => return Ok(Err("it is a submodule")),
            _ => {}
        }
        let content = if change.status == 'D' {
            Vec::new()
        } else {
            match self.run(&["cat-file", "blob", &change.blob])? {
                Ok(content) => content,
                Err(_) => return Ok(Err("git cannot read it")),
            }
        };
        let Ok(diff) = self.diff(commits, old_path, path)? else {
            return Ok(Err("git cannot compare it"));
        };
        if [&content, &diff]
            .iter()
            .any(|bytes| bytes.len() as u64 > MAX_DOCUMENT_BYTES)
        {
            return Ok(Err("it is larger than 16 MiB"));
        }
        if content.contains(&0) || diff.contains(&0) || is_binary_diff(&diff) {
            return Ok(Err("it is binary"));
        }
        let (Ok(content), Ok(diff)) = (String::from_utf8(content), String::from_utf8(diff)) else {
            return Ok(Err("its text is not UTF-8"));
        };
        let status = match change.status {
            'A' => "added",
            'D' => "deleted",
            'R' => "renamed",
            _ => "modified",
        };
        Ok(Ok(ChangedFile {
            path: path.to_owned(),
            status: status.to_owned(),
            diff,
            content,
        }))
    }

    fn diff(
        &self,
        commits: &Commits,
        old_path: &str,
        path: &str,
    ) -> Result<Result<Vec<u8>, String>, ScenarioError> {
        self.run(&[
            "diff-tree",
            "-r",
            "-p",
            "-M",
            "-U3",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-commit-id",
            "--diff-algorithm=myers",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            &commits.old,
            &commits.new,
            "--",
            old_path,
            path,
        ])
    }

    /// Runs git; the inner error is the first line that it complained with.
    fn run(&self, arguments: &[&str]) -> Result<Result<Vec<u8>, String>, ScenarioError> {
        let mut command = Command::new(self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let output = command
            .arg("--no-pager")
            .arg("--literal-pathspecs")
            .arg("-C")
            .arg(self.folder)
            .args(["-c", "core.quotePath=false", "-c", "core.fsmonitor=false"])
            .args(["-c", "diff.suppressBlankEmpty=false"])
            .args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.not_started(error))?;
        if output.status.success() {
            return Ok(Ok(output.stdout));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it ended without a word");
        Ok(Err(first.trim_start_matches("fatal: ").to_owned()))
    }

    fn not_started(&self, source: io::Error) -> ScenarioError {
        ScenarioError::Unreadable {
            file: self.folder.display().to_string(),
            reason: io::Error::new(
                source.kind(),
                format!(
                    "the program `{}` does not start: {source}",
                    self.program.display()
                ),
            ),
            way_out: "install git and have it in PATH".to_owned(),
        }
    }

    fn unusable(&self, problem: &str, way_out: &str) -> ScenarioError {
        ScenarioError::Unusable {
            file: self.folder.display().to_string(),
            problem: problem.to_owned(),
            way_out: way_out.to_owned(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Whether git shows no text for it.
fn is_binary_diff(diff: &[u8]) -> bool {
    diff.split(|byte| *byte == b'\n')
        .take_while(|line| !line.starts_with(b"@@"))
        .any(|line| line.starts_with(b"Binary files ") || line == b"GIT binary patch")
}

/// Reads `:mode mode blob blob status NUL path NUL [path NUL]` entries.
fn parse_raw(listed: &[u8]) -> Option<Vec<Change>> {
    let mut fields = listed
        .split(|byte| *byte == 0)
        .filter(|field| !field.is_empty());
    let mut changes = Vec::new();
    while let Some(head) = fields.next() {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let mut words = head.split(' ');
        let old_mode = words.next()?;
        let new_mode = words.next()?;
        let (_, blob) = (words.next()?, words.next()?);
        let status = words.next()?.chars().next()?;
        let old_path = fields.next()?.to_vec();
        let path = if matches!(status, 'R' | 'C') {
            fields.next()?.to_vec()
        } else {
            old_path.clone()
        };
        let mode = if status == 'D' { old_mode } else { new_mode };
        changes.push(Change {
            mode: mode.to_owned(),
            blob: blob.to_owned(),
            status,
            old_path,
            path,
        });
    }
    Some(changes)
}

#[cfg(test)]
mod tests;
