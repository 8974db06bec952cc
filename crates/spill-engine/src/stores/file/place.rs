//! Opens the store's directory without following a link at any level.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::sys::{Ask, ask};
use crate::stores::StoreError;

pub(super) const PRIVATE_DIRECTORY: Mode = Mode::RWXU;
const FOR_OTHERS: u32 = 0o077;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Accept,
}

/// A handle on the directory `path`, which only its owner, who is us, can enter; `None` when it is missing and stays so.
pub(super) fn open(path: &Path, missing: Missing) -> Result<Option<OwnedFd>, StoreError> {
    let names = names_of(path)?;
    let mut at = PathBuf::from("/");
    let mut handle = directory_at(CWD, OsStr::new("/"), &at)?;
    for name in names {
        at.push(name);
        handle = match directory_at(&handle, name, &at) {
            Ok(next) => next,
            Err(StoreError::Io {
                kind: io::ErrorKind::NotFound,
                ..
            }) if missing == Missing::Accept => return Ok(None),
            Err(StoreError::Io {
                kind: io::ErrorKind::NotFound,
                ..
            }) => created_at(&handle, name, &at)?,
            Err(other) => return Err(other),
        };
    }
    let status = ask(Ask::Examine, || rustix::fs::fstat(&handle))
        .map_err(|error| failed("examining", &at, error))?;
    check_private(&status, &at)?;
    Ok(Some(handle))
}

fn names_of(path: &Path) -> Result<Vec<&OsStr>, StoreError> {
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(unusable(path, "the path is not absolute"));
    }
    let names: Vec<&OsStr> = parts
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => Err(unusable(path, "the path goes through `..`")),
        })
        .collect::<Result<_, _>>()?;
    if names.is_empty() {
        return Err(unusable(path, "it is the root directory"));
    }
    Ok(names)
}

fn directory_at(parent: impl AsFd, name: &OsStr, at: &Path) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match ask(Ask::Open, || {
        rustix::fs::openat(&parent, name, flags, Mode::empty())
    }) {
        Ok(handle) => Ok(handle),
        Err(Errno::ACCESS) => {
            // A directory on the way that we may pass through but not list.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&parent, name, flags, Mode::empty())
                .map_err(|error| failed("opening", at, error))
        }
        Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
            let status = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
            Err(status.map_or_else(
                |_| failed("opening", at, error),
                |status| unusable(at, kind_of(&status)),
            ))
        }
        Err(error) => Err(failed("opening", at, error)),
    }
}

fn created_at(parent: &OwnedFd, name: &OsStr, at: &Path) -> Result<OwnedFd, StoreError> {
    match ask(Ask::Make, || {
        rustix::fs::mkdirat(parent, name, PRIVATE_DIRECTORY)
    }) {
        Ok(()) | Err(Errno::EXIST) => directory_at(parent, name, at),
        Err(error) => Err(failed("making", at, error)),
    }
}

fn check_private(status: &Stat, at: &Path) -> Result<(), StoreError> {
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return Err(unusable(at, "another user owns it"));
    }
    if status.st_mode & FOR_OTHERS != 0 {
        let mode = status.st_mode & 0o7777;
        return Err(unusable(
            at,
            &format!("its mode is {mode:04o}, not 0700, so others can enter"),
        ));
    }
    Ok(())
}

fn kind_of(status: &Stat) -> &'static str {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Symlink => "a symbolic link stands there",
        FileType::RegularFile => "a file stands there",
        _ => "it is not a directory",
    }
}

fn unusable(place: &Path, fact: &str) -> StoreError {
    StoreError::Unusable {
        place: place.display().to_string(),
        fact: fact.to_owned(),
    }
}

fn failed(action: &str, place: &Path, error: Errno) -> StoreError {
    StoreError::io(format!("{action} {}", place.display()), &error.into())
}
