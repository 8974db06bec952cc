use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use crate::error::FolderError;
use crate::files::{
    check_schema, each_raw_line, io_error, malformed, read_whole, to_line, write_whole,
};
use crate::replay::session::{ProblemRecord, SessionRecord};
use crate::replay::settings::ReplayRecord;

const REPLAY: &str = "replay.json";
const SESSIONS: &str = "sessions.jsonl";
const PROBLEMS: &str = "problems.jsonl";

/// Whether a folder holds a whole replay.
#[must_use]
pub fn is_replay(folder: &Path) -> bool {
    folder.join(REPLAY).is_file()
}

/// Whether a folder was left by a replay before it ended, as by a kill.
pub(crate) fn is_replay_without_end(folder: &Path) -> bool {
    !is_replay(folder) && folder.join(SESSIONS).is_file()
}

/// An open replay folder, for writing. Nothing in it counts as a replay before [`ReplayFolder::finish`].
#[derive(Debug)]
pub struct ReplayFolder {
    path: PathBuf,
    sessions: BufWriter<File>,
    problems: BufWriter<File>,
    digest: Digest,
}

impl ReplayFolder {
    /// Makes `<reports>/<id>/` with empty record files.
    ///
    /// # Errors
    ///
    /// Fails when the folder exists already, or cannot be made or written.
    pub fn create(reports: &Path, id: &str) -> Result<Self, FolderError> {
        fs::create_dir_all(reports).map_err(|source| io_error("make folder", reports, source))?;
        let path = reports.join(id);
        fs::create_dir(&path).map_err(|source| io_error("make folder", &path, source))?;
        let open = |name: &str| {
            let path = path.join(name);
            let file = File::create_new(&path);
            file.map(BufWriter::new)
                .map_err(|source| io_error("open", &path, source))
        };
        Ok(Self {
            sessions: open(SESSIONS)?,
            problems: open(PROBLEMS)?,
            digest: Digest::default(),
            path,
        })
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a transcript.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be written, for instance on a full disk.
    pub fn append(&mut self, session: &SessionRecord) -> Result<(), FolderError> {
        let line = to_line(session) + "\n";
        self.digest.add(line.as_bytes());
        let written = self.sessions.write_all(line.as_bytes());
        written.map_err(|source| io_error("write", &self.path.join(SESSIONS), source))
    }

    /// Appends something that could not be understood.
    ///
    /// # Errors
    ///
    /// As [`ReplayFolder::append`].
    pub fn append_problem(&mut self, problem: &ProblemRecord) -> Result<(), FolderError> {
        let line = to_line(problem) + "\n";
        let written = self.problems.write_all(line.as_bytes());
        written.map_err(|source| io_error("write", &self.path.join(PROBLEMS), source))
    }

    /// Writes `replay.json` with the digest of the sessions, which makes the folder a replay.
    ///
    /// # Errors
    ///
    /// As [`ReplayFolder::append`].
    pub fn finish(mut self, mut record: ReplayRecord) -> Result<ReplayRecord, FolderError> {
        let flushed = |name: &str, file: &mut BufWriter<File>| {
            let path = self.path.join(name);
            file.flush()
                .map_err(|source| io_error("write", &path, source))
        };
        flushed(SESSIONS, &mut self.sessions)?;
        flushed(PROBLEMS, &mut self.problems)?;
        record.sessions = self.digest.lines;
        record.sessions_digest = self.digest.hex();
        let mut text = indented(&record);
        text.push('\n');
        write_whole(&self.path, REPLAY, text.as_bytes())?;
        Ok(record)
    }

    /// Reads what a replay folder says of itself.
    ///
    /// # Errors
    ///
    /// Fails when `replay.json` is not there, no record, or of a newer version.
    pub fn read(folder: &Path) -> Result<ReplayRecord, FolderError> {
        let path = folder.join(REPLAY);
        let text = read_whole(&path)?;
        check_schema(&path, 1, &text)?;
        serde_json::from_slice(&text).map_err(|error| malformed(&path, error.line(), &error))
    }

    /// Hands over the sessions one by one, in their order, without those that a later one goes on with.
    ///
    /// # Errors
    ///
    /// Fails when a line is no record, or when they are not the ones that `record` was written for.
    pub fn each_session(
        folder: &Path,
        record: &ReplayRecord,
        mut take: impl FnMut(SessionRecord),
    ) -> Result<(), FolderError> {
        let mut digest = Digest::default();
        let path = folder.join(SESSIONS);
        let fits = |session: &SessionRecord| {
            session.cells.len() == record.cells.len() && session.outcomes.len() == record.outcomes()
        };
        each(folder, SESSIONS, |line, text, session: SessionRecord| {
            digest.add(text);
            if !fits(&session) {
                return Err(FolderError::Malformed {
                    path: path.clone(),
                    line,
                    message: "other numbers of cells and outcomes than replay.json has".to_owned(),
                });
            }
            if !record.superseded.contains(&session.session_id) {
                take(session);
            }
            Ok(())
        })?;
        if digest.lines != record.sessions || digest.hex() != record.sessions_digest {
            return Err(FolderError::Changed { path });
        }
        Ok(())
    }

    /// Hands over what could not be understood, in its order.
    ///
    /// # Errors
    ///
    /// Fails when a line is no record.
    pub fn each_problem(
        folder: &Path,
        mut take: impl FnMut(ProblemRecord),
    ) -> Result<(), FolderError> {
        each(folder, PROBLEMS, |_, _, problem| {
            take(problem);
            Ok(())
        })
    }
}

fn indented(record: &impl Serialize) -> String {
    serde_json::to_string_pretty(record).expect("records have string keys and finite numbers")
}

fn each<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    mut take: impl FnMut(usize, &[u8], T) -> Result<(), FolderError>,
) -> Result<(), FolderError> {
    let path = folder.join(name);
    let mut torn = Vec::new();
    each_raw_line(folder, name, &mut torn, |number, line| {
        check_schema(&path, number, line)?;
        let record =
            serde_json::from_slice(line).map_err(|error| malformed(&path, number, &error))?;
        take(number, line, record)
    })
}

/// A digest of lines, and their number.
#[derive(Default)]
struct Digest {
    hash: Xxh3,
    lines: u64,
}

impl Digest {
    fn add(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.lines += 1;
    }

    fn hex(&self) -> String {
        format!("{:032x}", self.hash.digest128())
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Digest({} lines)", self.lines)
    }
}
