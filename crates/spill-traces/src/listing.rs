//! Which files there are below a path.

use std::fs;
use std::path::{Path, PathBuf};

use crate::input::{FileReport, failed};
use crate::limits::Limits;
use crate::problem::ProblemKind;

/// A file to be read, or why something is none.
#[derive(Debug)]
pub(crate) enum Listed {
    File(PathBuf),
    Unreadable(Box<FileReport>),
}

/// The file at `path`, or all files of the folder there and of its folders in the order of their names. Symbolic links below
/// `path` are not followed.
pub(crate) fn list(path: &Path, limits: Limits) -> Vec<Listed> {
    let mut found = Vec::new();
    walk(path, 0, limits, &mut found);
    found
}

fn walk(path: &Path, depth: u32, limits: Limits, found: &mut Vec<Listed>) {
    let meta = if depth == 0 {
        fs::metadata(path)
    } else {
        fs::symlink_metadata(path)
    };
    match meta {
        Err(error) => refuse(path, ProblemKind::Unreadable, error, found),
        Ok(meta) if meta.is_dir() => folder(path, depth, limits, found),
        Ok(meta) if meta.is_file() => found.push(Listed::File(path.to_owned())),
        Ok(_) => {
            let detail =
                "neither a file nor a folder (links are not followed: name what they lead to)";
            refuse(path, ProblemKind::NotAFile, detail, found);
        }
    }
}

fn folder(path: &Path, depth: u32, limits: Limits, found: &mut Vec<Listed>) {
    if depth >= limits.depth {
        let detail = format!("the limit depth of {} is reached", limits.depth);
        return refuse(path, ProblemKind::Limit, detail, found);
    }
    let entries: Result<Vec<PathBuf>, _> =
        fs::read_dir(path).and_then(|dir| dir.map(|entry| Ok(entry?.path())).collect());
    match entries {
        Err(error) => refuse(path, ProblemKind::Unreadable, error, found),
        Ok(mut entries) => {
            entries.sort_unstable();
            for entry in entries {
                walk(&entry, depth + 1, limits, found);
            }
        }
    }
}

fn refuse(path: &Path, kind: ProblemKind, detail: impl std::fmt::Display, found: &mut Vec<Listed>) {
    let name = path.display().to_string();
    found.push(Listed::Unreadable(failed(&name, kind, detail.to_string())));
}
