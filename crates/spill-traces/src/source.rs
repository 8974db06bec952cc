//! Where bytes come from: plain, compressed, in an archive; always bounded.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use crate::limits::Limits;
use crate::packing::Packing;
use crate::problem::ProblemKind;

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
        Packing::Zstd | Packing::Gzip | Packing::Zip | Packing::Unread(_) => {
            ProblemKind::DamagedArchive
        }
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
        Packing::Plain | Packing::Zip | Packing::Unread(_) => packed,
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

/// The first bytes of a stream, up to `wanted`, and the stream with them put back. An error behind the first byte is met
/// where it stood.
pub(crate) fn peek<'a>(
    mut stream: Box<dyn BufRead + 'a>,
    wanted: usize,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut head = Vec::new();
    let outcome = stream.by_ref().take(wanted as u64).read_to_end(&mut head);
    let rest: Box<dyn BufRead + 'a> = match outcome {
        Ok(_) => stream,
        Err(error) if head.is_empty() => return Err(error),
        Err(error) => Box::new(Failing(Some(error), stream)),
    };
    let whole = Cursor::new(head.clone()).chain(rest);
    Ok((head, Box::new(whole)))
}

/// A stream that fails first, with what it failed with before.
struct Failing<'a>(Option<io::Error>, Box<dyn BufRead + 'a>);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(error) => Err(error),
            None => self.1.read(buffer),
        }
    }
}

impl BufRead for Failing<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.0.take() {
            Some(error) => Err(error),
            None => self.1.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.1.consume(amount);
    }
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
