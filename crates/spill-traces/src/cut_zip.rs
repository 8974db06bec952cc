//! An archive without its directory, which stands at the end: cut, or damaged.

use std::io::{self, BufReader, Read, Seek};

use zip::read::read_zipfile_from_stream;
use zip::result::{ZipError, ZipResult};

use crate::input::{File, Import, Imported, fail};
use crate::problem::{Place, ProblemKind};
use crate::source::metered;

/// Whatever reads on where the file ends learns that it was cut.
struct EndsEarly<R>(R);

impl<R: Read> Read for EndsEarly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

/// How the entries came to their end.
enum Ended {
    /// In the directory, or at the end of the file.
    Cut,
    /// At something that is no entry, or one that cannot be read without the directory.
    Damaged(ZipError),
    Limit(String),
}

impl Import {
    /// Reads the entries that stand whole before the end, in the order of the file.
    pub(crate) fn cut_zip<R: Read + Seek>(
        &mut self,
        file: &File<'_>,
        bytes: &mut R,
        error: &str,
        sink: &mut dyn FnMut(Imported),
    ) {
        let archive = &file.place.file;
        let damaged = |detail: String, sink: &mut dyn FnMut(Imported)| {
            fail(archive, ProblemKind::DamagedArchive, detail, sink);
        };
        let Ok(names) = names(bytes, self.limits.entries) else {
            return damaged(error.to_owned(), sink);
        };
        // The header of an Inspect log is its last entry, its journal the first.
        let inspect = names.iter().any(|name| name.starts_with("_journal/"));
        let wanted =
            |name: &str| !name.ends_with('/') && (!inspect || name.starts_with("samples/"));
        let ended = entries(bytes, self.limits.entries, &mut |name, entry| {
            if wanted(name) {
                let inner = File {
                    place: Place::file(&format!("{archive}!{name}")),
                    layer: file.layer + 1,
                    allowance: file.allowance,
                };
                self.layers(&inner, metered(entry, file.allowance), sink);
            }
        });
        match ended {
            Err(error) => damaged(error.to_string(), sink),
            Ok(Ended::Limit(detail)) => fail(archive, ProblemKind::Limit, detail, sink),
            Ok(Ended::Damaged(error)) => damaged(error.to_string(), sink),
            Ok(Ended::Cut) if !names.iter().any(|name| wanted(name)) => {
                damaged(error.to_owned(), sink);
            }
            Ok(Ended::Cut) => {
                let last = names.last().map_or("", |name| name);
                let detail = format!(
                    "the archive ends before its end, in or behind its entry {last:?}; what is whole before was read"
                );
                fail(archive, ProblemKind::Cut, detail, sink);
            }
        }
    }
}

fn names<R: Read + Seek>(bytes: &mut R, limit: usize) -> ZipResult<Vec<String>> {
    let mut names = Vec::new();
    entries(bytes, limit, &mut |name, _| names.push(name.to_owned()))?;
    Ok(names)
}

/// Hands on entry by entry, as the file has them.
fn entries<R: Read + Seek>(
    bytes: &mut R,
    limit: usize,
    take: &mut dyn FnMut(&str, &mut dyn Read),
) -> ZipResult<Ended> {
    bytes.rewind()?;
    let mut stream = EndsEarly(BufReader::new(bytes));
    for _ in 0..limit {
        match read_zipfile_from_stream(&mut stream) {
            Ok(None) => return Ok(Ended::Cut),
            Ok(Some(mut entry)) => {
                let name = entry.name()?.into_owned();
                take(&name, &mut entry);
            }
            Err(error) if is_end(&error) => return Ok(Ended::Cut),
            Err(error) => return Ok(Ended::Damaged(error)),
        }
    }
    Ok(Ended::Limit(format!(
        "the limit entries of {limit} is reached"
    )))
}

/// A header that is itself cut is an invalid one to the reader of archives.
fn is_end(error: &ZipError) -> bool {
    match error {
        ZipError::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        ZipError::InvalidArchive(detail) => detail.contains("beyond file boundary"),
        _ => false,
    }
}
