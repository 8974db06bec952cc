//! A stream as text, line by line, within the record limit.

use std::io::{self, BufRead};

use crate::problem::{Place, ProblemKind, Problems};

/// How the text is encoded, by its byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16(ByteOrder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl Encoding {
    /// The encoding and the length of the mark.
    pub(crate) fn of(head: &[u8]) -> (Self, usize) {
        match head {
            [0xEF, 0xBB, 0xBF, ..] => (Self::Utf8, 3),
            [0xFF, 0xFE, ..] => (Self::Utf16(ByteOrder::Little), 2),
            [0xFE, 0xFF, ..] => (Self::Utf16(ByteOrder::Big), 2),
            _ => (Self::Utf8, 0),
        }
    }
}

/// Reads lines; the memory it takes is that of the longest line that the limit allows.
pub(crate) struct Lines<'a> {
    stream: Box<dyn BufRead + 'a>,
    limit: u64,
    line: u64,
    buffer: Vec<u8>,
}

/// What came of reading a line.
pub(crate) enum Line {
    /// It is in the buffer.
    Read,
    /// It is longer than the limit, and was skipped.
    TooLong,
    /// There is none.
    End,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(stream: Box<dyn BufRead + 'a>, limit: u64) -> Self {
        Self {
            stream,
            limit,
            line: 0,
            buffer: Vec::new(),
        }
    }

    /// The number of the line read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The line read last.
    pub(crate) fn text(&self, place: &Place, problems: &mut Problems) -> String {
        decode(&self.buffer, place, problems)
    }

    /// Reads the next line.
    pub(crate) fn advance(&mut self) -> io::Result<Line> {
        self.buffer.clear();
        let read = {
            let mut bounded = io::Read::take(&mut self.stream, self.limit.saturating_add(1));
            bounded.read_until(b'\n', &mut self.buffer)?
        };
        if read == 0 {
            return Ok(Line::End);
        }
        self.line += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if read as u64 > self.limit {
            self.buffer = Vec::new();
            self.skip_line()?;
            return Ok(Line::TooLong);
        }
        Ok(Line::Read)
    }

    /// Appends everything that is left to the line read last; `false` when that is more than the limit.
    pub(crate) fn read_rest(&mut self) -> io::Result<bool> {
        self.buffer.push(b'\n');
        let room = self.limit.saturating_sub(self.buffer.len() as u64);
        let read = io::Read::take(&mut self.stream, room.saturating_add(1));
        let read = io::Read::read_to_end(&mut { read }, &mut self.buffer)?;
        Ok(read as u64 <= room)
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let available = self.stream.fill_buf()?;
            if available.is_empty() {
                return Ok(());
            }
            let end = memchr::memchr(b'\n', available);
            let used = end.map_or(available.len(), |at| at + 1);
            self.stream.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// Bytes as text; what is no UTF-8 is replaced and reported.
pub(crate) fn decode(bytes: &[u8], place: &Place, problems: &mut Problems) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(error) => {
            problems.add(
                place,
                ProblemKind::NotUtf8,
                format!("{error}; replaced by U+FFFD"),
            );
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// UTF-16 as UTF-8; unpaired units are replaced and reported.
pub(crate) fn transcode(
    bytes: &[u8],
    order: ByteOrder,
    place: &Place,
    problems: &mut Problems,
) -> String {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| match order {
        ByteOrder::Little => u16::from_le_bytes(*pair),
        ByteOrder::Big => u16::from_be_bytes(*pair),
    });
    let mut replaced = odd.len();
    let text: String = char::decode_utf16(units)
        .map(|unit| {
            unit.unwrap_or_else(|_| {
                replaced += 1;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    if replaced > 0 {
        let detail = format!("UTF-16 with {replaced} broken units; replaced by U+FFFD");
        problems.add(place, ProblemKind::NotUtf8, detail);
    }
    text
}
