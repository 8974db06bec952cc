//! Where bytes come from: plain, compressed, in an archive; always bounded.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use crate::limits::Limits;
use crate::problem::ProblemKind;

/// How a file is packed, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Zstd,
    Gzip,
    Zip,
}

impl Packing {
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Zstd,
            [0x1F, 0x8B, ..] => Self::Gzip,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            _ => Self::Plain,
        }
    }
}

/// What is left of the decompressed bytes that a file may have; shared by everything within it.
#[derive(Clone)]
pub(crate) struct Allowance {
    left: Rc<Cell<u64>>,
    whole: u64,
}

impl Allowance {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            left: Rc::new(Cell::new(limits.decompressed_bytes)),
            whole: limits.decompressed_bytes,
        }
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        let Some(left) = self.left.get().checked_sub(bytes as u64) else {
            return Err(io::Error::other(LimitReached {
                name: "decompressed_bytes",
                limit: self.whole,
            }));
        };
        self.left.set(left);
        Ok(())
    }
}

/// A limit that ended a stream.
#[derive(Debug, thiserror::Error)]
#[error("the limit {name} of {limit} is reached")]
pub(crate) struct LimitReached {
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
}

/// The kind of problem that an I/O error is.
pub(crate) fn kind_of(error: &io::Error, packing: Packing) -> ProblemKind {
    let limit = error
        .get_ref()
        .is_some_and(|inner| inner.downcast_ref::<LimitReached>().is_some());
    match packing {
        _ if limit => ProblemKind::Limit,
        Packing::Plain => ProblemKind::Unreadable,
        Packing::Zstd | Packing::Gzip | Packing::Zip => ProblemKind::DamagedArchive,
    }
}

/// Counts what it hands on against the allowance.
struct Metered<R> {
    inner: R,
    allowance: Allowance,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.allowance.spend(read)?;
        Ok(read)
    }
}

/// Whether a stream ended before its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutShort(Rc<Cell<bool>>);

impl CutShort {
    pub(crate) fn is_so(&self) -> bool {
        self.0.get()
    }

    /// The stream, whose early end is an end like that of a plain file, and known here.
    pub(crate) fn watch<'a>(&self, inner: Box<dyn BufRead + 'a>) -> Box<dyn BufRead + 'a> {
        Box::new(UntilCut {
            inner,
            cut: self.clone(),
        })
    }

    fn or_end<T>(&self, read: io::Result<T>, end: T) -> io::Result<T> {
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.0.set(true);
                Ok(end)
            }
            read => read,
        }
    }
}

struct UntilCut<'a> {
    inner: Box<dyn BufRead + 'a>,
    cut: CutShort,
}

impl Read for UntilCut<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut.is_so() {
            return Ok(0);
        }
        self.cut.or_end(self.inner.read(buffer), 0)
    }
}

impl BufRead for UntilCut<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.cut.is_so() {
            return Ok(&[]);
        }
        self.cut.or_end(self.inner.fill_buf(), &[])
    }

    fn consume(&mut self, amount: usize) {
        if !self.cut.is_so() {
            self.inner.consume(amount);
        }
    }
}

/// Unpacks one layer of compression.
pub(crate) fn unpack<'a>(
    packed: Box<dyn BufRead + 'a>,
    packing: Packing,
    allowance: &Allowance,
) -> io::Result<Box<dyn BufRead + 'a>> {
    let allowance = allowance.clone();
    Ok(match packing {
        Packing::Plain | Packing::Zip => packed,
        Packing::Zstd => {
            let mut inner = zstd::stream::read::Decoder::with_buffer(packed)?;
            // A frame may ask for a window of up to 2 GiB; 128 MiB is what the command line tool accepts by default.
            inner.window_log_max(27)?;
            Box::new(BufReader::with_capacity(
                1 << 16,
                Metered { inner, allowance },
            ))
        }
        Packing::Gzip => {
            let inner = flate2::bufread::MultiGzDecoder::new(packed);
            Box::new(BufReader::with_capacity(
                1 << 16,
                Metered { inner, allowance },
            ))
        }
    })
}

/// Counts an archive's entry against the allowance.
pub(crate) fn metered<'a>(entry: impl Read + 'a, allowance: &Allowance) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(
        1 << 16,
        Metered {
            inner: entry,
            allowance: allowance.clone(),
        },
    ))
}

/// The first bytes of a stream, up to `wanted`, and the stream with them put back.
pub(crate) fn peek<'a>(
    mut stream: Box<dyn BufRead + 'a>,
    wanted: u64,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut head = Vec::new();
    stream.by_ref().take(wanted).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(stream);
    Ok((head, Box::new(whole)))
}

/// Reads a stream whole, or fails when it is longer than `limit`.
pub(crate) fn read_whole(stream: &mut dyn BufRead, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(LimitReached {
            name: "record_bytes",
            limit,
        }));
    }
    Ok(bytes)
}
