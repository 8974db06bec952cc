//! Reading and writing the files of a folder: whole, by lines, and never waiting for what is no file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::SCHEMA;
use crate::error::FolderError;
use crate::folder::TornLine;

/// A parser's message without its own line number: records are parsed one line at a time.
pub(crate) fn malformed(path: &Path, line: usize, error: &serde_json::Error) -> FolderError {
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(text, _)| text);
    FolderError::Malformed {
        path: path.to_owned(),
        line,
        message: format!("{text}, column {}", error.column()),
    }
}
pub(crate) fn check_schema(path: &Path, line: usize, text: &[u8]) -> Result<(), FolderError> {
    #[derive(serde::Deserialize)]
    struct Schema {
        schema: u32,
    }
    let found: Schema =
        serde_json::from_slice(text).map_err(|error| malformed(path, line, &error))?;
    if found.schema > SCHEMA {
        return Err(FolderError::NewerSchema {
            path: path.to_owned(),
            found: found.schema,
        });
    }
    Ok(())
}

/// Longer lines than this are no record of ours.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Reads a whole JSONL file.
pub(crate) fn read_lines<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    torn: &mut Vec<TornLine>,
) -> Result<Vec<(usize, T)>, FolderError> {
    let mut records = Vec::new();
    each_line(folder, name, torn, |line, record| {
        records.push((line, record));
        Ok(())
    })?;
    Ok(records)
}

/// Hands over the records of a JSONL file with their line numbers; a file that is not there has
/// none. The last line is torn when it has no line feed at its end.
pub(crate) fn each_line<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    torn: &mut Vec<TornLine>,
    mut take: impl FnMut(usize, T) -> Result<(), FolderError>,
) -> Result<(), FolderError> {
    let path = folder.join(name);
    each_raw_line(folder, name, torn, |number, line| {
        check_schema(&path, number, line)?;
        let record =
            serde_json::from_slice(line).map_err(|error| malformed(&path, number, &error))?;
        take(number, record)
    })
}

/// As [`each_line`], before a line is read as a record.
pub(crate) fn each_raw_line(
    folder: &Path,
    name: &str,
    torn: &mut Vec<TornLine>,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), FolderError>,
) -> Result<(), FolderError> {
    let path = folder.join(name);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(unreadable(&path, source)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|source| unreadable(&path, source))?;
        if read == 0 {
            break;
        }
        if read as u64 == MAX_LINE_BYTES {
            return Err(FolderError::Malformed {
                path,
                line: number,
                message: format!("longer than {MAX_LINE_BYTES} bytes"),
            });
        }
        if line.last() != Some(&b'\n') {
            torn.push(TornLine {
                file: name.to_owned(),
                line: number,
                bytes: read,
            });
            break;
        }
        take(number, &line)?;
    }
    Ok(())
}

pub(crate) fn unreadable(path: &Path, source: io::Error) -> FolderError {
    FolderError::Io {
        action: "read",
        path: path.to_owned(),
        source,
        way_out: "judge a whole copy of the folder, or run again into a new one",
    }
}

pub(crate) fn read_whole(path: &Path) -> Result<Vec<u8>, FolderError> {
    read_bounded(path).map_err(|source| unreadable(path, source))
}

/// Files that are read whole have at most these bytes; those of ten thousand runs have a tenth.
const MAX_WHOLE_BYTES: u64 = 256 << 20;

/// Opens a file of a folder. A pipe or device in its place is an error, not something to wait for.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > MAX_WHOLE_BYTES {
        let words = format!("it has more than {MAX_WHOLE_BYTES} bytes");
        return Err(io::Error::other(words));
    }
    let mut bytes = Vec::new();
    file.take(MAX_WHOLE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn append_to(path: &Path) -> Result<File, FolderError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| io_error("open", path, source))
}

pub(crate) fn write_lines(file: &mut File, path: &Path, lines: &str) -> Result<(), FolderError> {
    file.write_all(lines.as_bytes())
        .map_err(|source| io_error("write", path, source))
}

pub(crate) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
    let path = folder.join(name);
    let fail = |source| io_error("write", &path, source);
    let mut fresh = tempfile::Builder::new()
        .prefix(".writing-")
        .tempfile_in(folder)
        .map_err(fail)?;
    fresh.write_all(bytes).map_err(fail)?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fresh.as_file().set_permissions(permissions).map_err(fail)?;
    fresh.persist(&path).map_err(|error| fail(error.error))?;
    Ok(())
}

pub(crate) fn to_line<T: Serialize>(record: &T) -> String {
    serde_json::value::to_raw_value(record)
        .map(|raw: Box<RawValue>| raw.get().to_owned())
        .expect("records have string keys and finite numbers or null")
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> FolderError {
    FolderError::Io {
        action,
        path: path.to_owned(),
        source,
        way_out: "choose a writable folder with --out, or free the place",
    }
}
