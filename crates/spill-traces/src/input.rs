//! From a path to transcripts.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use crate::limits::Limits;
use crate::listing::{Listed, list};
use crate::model::{Format, Transcript};
use crate::packing::{HEAD_BYTES, Packing};
use crate::problem::{Place, ProblemKind, Problems};
use crate::reading::Reading;
use crate::seen::{SeenCalls, Turn};
use crate::source::{Allowance, kind_of, metered, peek, read_whole, unpack};

/// What was found in one file, or in one entry of an archive.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file.
    pub place: Place,
    /// The formats that were recognised, sorted; empty when none was.
    pub formats: Vec<Format>,
    /// How many transcripts it gave.
    pub transcripts: u64,
    /// What was left out on purpose (bookkeeping records, duplicates), by kind, with how often.
    pub left_out: BTreeMap<&'static str, u64>,
    /// What could not be understood. Problems within a transcript stand in the transcript.
    pub problems: Problems,
}

/// What an import hands on.
#[derive(Clone, Debug)]
pub enum Imported {
    /// A transcript, as soon as it is complete.
    Transcript(Box<Transcript>),
    /// A file's report, after its transcripts.
    File(Box<FileReport>),
}

/// Reads transcripts. One import knows the calls it has seen, so that a call that several files hold (resumed sessions) is
/// made once and copied otherwise.
#[derive(Debug, Default)]
pub struct Import {
    pub(crate) limits: Limits,
    turn: Turn,
}

impl Import {
    /// An import that has seen nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            turn: Turn::default(),
        }
    }

    /// An import beside others: what those of lower turns have seen counts as seen, and it waits for them where it needs to
    /// know. Its turn is over when it is dropped; every turn from 0 on must have an import.
    #[must_use]
    pub fn in_turn(limits: Limits, seen: &SeenCalls, turn: usize) -> Self {
        Self {
            limits,
            turn: Turn::new(seen, turn),
        }
    }

    /// Reads a file, or all files of a folder and its folders in the order of their names. Symbolic links below `path` are not
    /// followed. Everything that goes wrong is a problem of some report; a path that does not exist is one, too.
    pub fn path(&mut self, path: &Path, sink: &mut dyn FnMut(Imported)) {
        for listed in list(path, self.limits) {
            self.listed(&listed, sink);
        }
    }

    /// Reads what [`list`] found.
    pub(crate) fn listed(&mut self, listed: &Listed, sink: &mut dyn FnMut(Imported)) {
        match listed {
            Listed::File(path) => self.file(path, &path.display().to_string(), sink),
            Listed::Unreadable(report) => sink(Imported::File(report.clone())),
        }
    }

    /// Reads one stream as if it were a file of the given name.
    pub fn stream(&mut self, name: &str, bytes: &[u8], sink: &mut dyn FnMut(Imported)) {
        let allowance = Allowance::new(&self.limits);
        let file = File {
            place: Place::file(name),
            layer: 0,
            allowance: &allowance,
        };
        self.packed(&file, Source::Bytes(bytes), sink);
    }

    /// Reads a plain stream as records of `format`, whatever its content looks like.
    pub fn stream_of(
        &mut self,
        format: Format,
        name: &str,
        bytes: &[u8],
        sink: &mut dyn FnMut(Imported),
    ) {
        let limit = self.limits.record_bytes;
        let reading = Reading::new(Place::file(name), limit, &self.turn, sink);
        reading.of(format).all(Box::new(bytes), 0);
    }

    fn file(&mut self, path: &Path, name: &str, sink: &mut dyn FnMut(Imported)) {
        match fs::File::open(path) {
            Err(error) => fail(name, ProblemKind::Unreadable, error.to_string(), sink),
            Ok(opened) => {
                let allowance = Allowance::new(&self.limits);
                let file = File {
                    place: Place::file(name),
                    layer: 0,
                    allowance: &allowance,
                };
                self.packed(&file, Source::File(opened), sink);
            }
        }
    }

    fn packed(&mut self, file: &File<'_>, source: Source<'_>, sink: &mut dyn FnMut(Imported)) {
        let mut source = source;
        let packing = match source.head() {
            Ok(head) => Packing::of(&head),
            Err(error) => {
                let detail = error.to_string();
                return fail(&file.place.file, ProblemKind::Unreadable, detail, sink);
            }
        };
        match (packing, source) {
            (Packing::Zip, Source::File(opened)) => self.zip(file, BufReader::new(opened), sink),
            (Packing::Zip, Source::Bytes(bytes)) => self.zip(file, Cursor::new(bytes), sink),
            (_, source) => self.layers(file, source.reader(), sink),
        }
    }

    /// Unpacks layer by layer until plain text or an archive comes out.
    pub(crate) fn layers(
        &mut self,
        file: &File<'_>,
        stream: Box<dyn BufRead + '_>,
        sink: &mut dyn FnMut(Imported),
    ) {
        let name = &file.place.file;
        let (head, stream) = match peek(stream, HEAD_BYTES) {
            Ok(peeked) => peeked,
            Err(error) => {
                let kind = kind_of(&error, Packing::Gzip);
                return fail(name, kind, error.to_string(), sink);
            }
        };
        let packing = Packing::of(&head);
        match packing {
            Packing::Plain => return self.text(file, stream, sink),
            Packing::Unread(what) => {
                let detail =
                    format!("{what}, which is not read (unpack it, and name what it holds)");
                return fail(name, ProblemKind::NotUnpacked, detail, sink);
            }
            Packing::Zstd | Packing::Gzip | Packing::Zip => {}
        }
        if file.layer >= self.limits.nesting {
            let detail = format!("the limit nesting of {} is reached", self.limits.nesting);
            return fail(name, ProblemKind::Limit, detail, sink);
        }
        let inner = File {
            place: file.place.clone(),
            layer: file.layer + 1,
            allowance: file.allowance,
        };
        if packing == Packing::Zip {
            let mut stream = stream;
            return match read_whole(&mut *stream, self.limits.record_bytes) {
                Ok(bytes) => self.zip(&inner, Cursor::new(bytes), sink),
                Err(error) => fail(name, kind_of(&error, packing), error.to_string(), sink),
            };
        }
        match unpack(stream, packing, file.allowance) {
            Ok(unpacked) => self.layers(&inner, unpacked, sink),
            Err(error) => fail(name, kind_of(&error, packing), error.to_string(), sink),
        }
    }

    fn zip<R: Read + Seek>(
        &mut self,
        file: &File<'_>,
        mut bytes: R,
        sink: &mut dyn FnMut(Imported),
    ) {
        let name = &file.place.file;
        let mut archive = match zip::ZipArchive::new(&mut bytes) {
            Ok(archive) => archive,
            Err(error) => return self.cut_zip(file, &mut bytes, &error.to_string(), sink),
        };
        if archive.len() > self.limits.entries {
            let (count, limit) = (archive.len(), self.limits.entries);
            let detail = format!("{count} entries, the limit entries is {limit}");
            return fail(name, ProblemKind::Limit, detail, sink);
        }
        let mut names: Vec<(String, usize)> = Vec::with_capacity(archive.len());
        for (index, entry) in archive.file_names().enumerate() {
            match entry {
                Ok(entry) => names.push((entry.into_owned(), index)),
                Err(error) => fail(name, ProblemKind::DamagedArchive, error.to_string(), sink),
            }
        }
        names.sort_unstable();
        let inspect = names.iter().any(|(entry, _)| entry == "header.json")
            && names.iter().any(|(entry, _)| entry.starts_with("samples/"));
        for (entry, index) in names {
            if entry.ends_with('/') || (inspect && !entry.starts_with("samples/")) {
                continue;
            }
            let place = Place::file(&format!("{name}!{entry}"));
            match archive.by_index(index) {
                Err(error) => {
                    fail(
                        &place.file,
                        ProblemKind::DamagedArchive,
                        error.to_string(),
                        sink,
                    );
                }
                Ok(opened) => {
                    let inner = File {
                        place,
                        layer: file.layer + 1,
                        allowance: file.allowance,
                    };
                    self.layers(&inner, metered(opened, file.allowance), sink);
                }
            }
        }
    }

    fn text(
        &mut self,
        file: &File<'_>,
        stream: Box<dyn BufRead + '_>,
        sink: &mut dyn FnMut(Imported),
    ) {
        let limit = self.limits.record_bytes;
        let reading = Reading::new(file.place.clone(), limit, &self.turn, sink);
        reading.all(stream, file.layer);
    }
}

/// A file, or what is in it.
pub(crate) struct File<'a> {
    pub(crate) place: Place,
    pub(crate) layer: u32,
    pub(crate) allowance: &'a Allowance,
}

enum Source<'a> {
    File(fs::File),
    Bytes(&'a [u8]),
}

impl<'a> Source<'a> {
    fn head(&mut self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes[..bytes.len().min(HEAD_BYTES)].to_vec()),
            Self::File(file) => {
                let mut head = Vec::new();
                file.by_ref()
                    .take(HEAD_BYTES as u64)
                    .read_to_end(&mut head)?;
                file.rewind()?;
                Ok(head)
            }
        }
    }

    fn reader(self) -> Box<dyn BufRead + 'a> {
        match self {
            Self::File(file) => Box::new(BufReader::with_capacity(1 << 16, file)),
            Self::Bytes(bytes) => Box::new(bytes),
        }
    }
}

/// A file that could not be read at all.
pub(crate) fn fail(
    name: &str,
    kind: ProblemKind,
    detail: impl Into<String>,
    sink: &mut dyn FnMut(Imported),
) {
    sink(Imported::File(failed(name, kind, detail)));
}

pub(crate) fn failed(name: &str, kind: ProblemKind, detail: impl Into<String>) -> Box<FileReport> {
    let place = Place::file(name);
    let mut problems = Problems::default();
    problems.add(&place, kind, detail);
    Box::new(FileReport {
        place,
        formats: Vec::new(),
        transcripts: 0,
        left_out: BTreeMap::new(),
        problems,
    })
}
