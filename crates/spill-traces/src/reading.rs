//! One text, from its first byte to its transcripts.

use std::io::{BufRead, Cursor, Read};

use crate::detect::detect;
use crate::import::{Importer, Out, importer};
use crate::input::Imported;
use crate::json::describe;
use crate::lines::{Encoding, Line, Lines, transcode};
use crate::model::Format;
use crate::packing::Packing;
use crate::problem::{Place, ProblemKind, Problems};
use crate::seen::Turn;
use crate::source::{CutShort, kind_of, peek, read_whole};

/// One text that is being read.
pub(crate) struct Reading<'a> {
    place: Place,
    limit: u64,
    active: Option<(Format, Box<dyn Importer>)>,
    /// The format is given, and not looked for.
    decided: bool,
    formats: Vec<Format>,
    records: u64,
    /// The line read last.
    line: u64,
    out: Out<'a>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(
        place: Place,
        limit: u64,
        turn: &'a Turn,
        sink: &'a mut dyn FnMut(Imported),
    ) -> Self {
        Self {
            place,
            limit,
            active: None,
            decided: false,
            formats: Vec::new(),
            records: 0,
            line: 0,
            out: Out::new(sink, turn),
        }
    }

    /// Takes all records for records of `format`.
    pub(crate) fn of(self, format: Format) -> Self {
        Self {
            active: Some((format, importer(format))),
            formats: vec![format],
            decided: true,
            ..self
        }
    }

    /// Reads the text to its end; `layer` is 0 for a plain file.
    pub(crate) fn all(mut self, stream: Box<dyn BufRead + '_>, layer: u32) {
        let cut = CutShort::default();
        // Below a layer of compression an early end is noticed; what stands before it is read as in a plain file that was cut.
        let stream = if layer == 0 {
            stream
        } else {
            cut.watch(stream)
        };
        if let Err(error) = self.stream(stream) {
            // A plain file on disk fails to be read; below a layer of compression the stream is damaged.
            let packing = if layer == 0 {
                Packing::Plain
            } else {
                Packing::Gzip
            };
            let kind = kind_of(&error, packing);
            self.out.problem(&self.place, kind, error.to_string());
        }
        if cut.is_so() {
            self.cut();
        }
        self.finish();
    }

    fn cut(&mut self) {
        if self.line == 0 {
            let detail = "it ends before anything could be read";
            return self
                .out
                .problem(&self.place, ProblemKind::DamagedArchive, detail);
        }
        let place = self.place.at_line(self.line);
        let detail = "the compressed data ends here, before its end; what is whole before was read";
        self.out.problem(&place, ProblemKind::Cut, detail);
    }

    fn stream(&mut self, stream: Box<dyn BufRead + '_>) -> std::io::Result<()> {
        let (head, mut stream) = peek(stream, 3)?;
        let (encoding, mark) = Encoding::of(&head);
        stream.read_exact(&mut vec![0; mark])?;
        match encoding {
            Encoding::Utf8 => self.lines(Lines::new(stream, self.limit)),
            Encoding::Utf16(order) => {
                let bytes = read_whole(&mut *stream, self.limit)?;
                let text = transcode(&bytes, order, &self.place, &mut self.out.problems);
                self.lines(Lines::new(Box::new(Cursor::new(text)), self.limit))
            }
        }
    }

    fn lines(&mut self, mut lines: Lines<'_>) -> std::io::Result<()> {
        let mut first = true;
        loop {
            let line = lines.advance()?;
            self.line = lines.number();
            let place = self.place.at_line(lines.number());
            match line {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let detail = format!("the limit record_bytes of {} is reached", self.limit);
                    self.out.problem(&place, ProblemKind::Limit, detail);
                }
                Line::Read => {
                    // What is wrong with the first line of a document is said once, of the document.
                    let mut noticed = Problems::default();
                    let text = lines.text(&place, &mut noticed);
                    if text.trim().is_empty() {
                        continue;
                    }
                    let document = first && is_document(&text);
                    first = false;
                    if !document {
                        self.out.problems.append(noticed);
                        self.record(&text, &place);
                        continue;
                    }
                    if !lines.read_rest()? {
                        let detail = format!("the limit record_bytes of {} is reached", self.limit);
                        self.out.problem(&self.place, ProblemKind::Limit, detail);
                        return Ok(());
                    }
                    let text = lines.text(&self.place, &mut self.out.problems);
                    let lines_after = memchr::memchr_iter(b'\n', text.trim_end().as_bytes());
                    self.line += lines_after.count() as u64;
                    self.document(&text, &place);
                    return Ok(());
                }
            }
        }
    }

    /// A text that does not start with a whole line of JSON: one document, or lines of which the first is torn.
    fn document(&mut self, text: &str, start: &Place) {
        let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(text) else {
            return self.record(text, &self.place.clone());
        };
        let whole = |line: &str| line.trim_start().starts_with('{') && detect(line).is_some();
        if !text.lines().any(whole) {
            let jsonish = matches!(text.trim_start().as_bytes().first(), Some(b'{' | b'['));
            let (kind, detail) = if jsonish {
                (ProblemKind::NotJson, describe(text, &error))
            } else {
                (ProblemKind::NotRecognised, "no JSON".to_owned())
            };
            return self.out.problem(&self.place, kind, detail);
        }
        let offset = start.line.unwrap_or(1);
        for (index, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                let place = self.place.at_line(offset + index as u64);
                self.record(line, &place);
            }
        }
    }

    fn record(&mut self, text: &str, place: &Place) {
        self.records += 1;
        let keeps = self
            .active
            .as_ref()
            .is_some_and(|(_, active)| active.is_session());
        if !keeps
            && !self.decided
            && let Some(format) = detect(text)
        {
            let same = self
                .active
                .as_ref()
                .is_some_and(|(active, _)| *active == format);
            if !same {
                self.close();
                self.active = Some((format, importer(format)));
                self.formats.push(format);
            }
        }
        match &mut self.active {
            Some((_, active)) => active.record(text, place, &mut self.out),
            None => self.unrecognised(text, place),
        }
    }

    fn unrecognised(&mut self, text: &str, place: &Place) {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => {
                let detail = "JSON of no format that is known";
                self.out.problem(place, ProblemKind::NotRecognised, detail);
            }
            Err(error) => {
                let detail = describe(text, &error);
                self.out.problem(place, ProblemKind::TornLine, detail);
            }
        }
    }

    fn close(&mut self) {
        if let Some((_, mut active)) = self.active.take() {
            active.finish(&self.place, &mut self.out);
        }
    }

    fn finish(mut self) {
        self.close();
        self.formats.sort_unstable();
        self.formats.dedup();
        if !self.formats.is_empty() && self.out.calls == 0 {
            let names: Vec<&str> = self.formats.iter().map(|format| format.name()).collect();
            let detail = format!("recognised as {}, without an LLM call", names.join(" and "));
            self.out.problem(&self.place, ProblemKind::NoCalls, detail);
        }
        if self.records == 0 && self.out.problems.total() == 0 {
            self.out
                .problem(&self.place, ProblemKind::Empty, "no content");
        }
        self.out.file(self.place, self.formats);
    }
}

/// True when the first line is not a JSON value of its own.
fn is_document(line: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(line).is_err()
}
