//! One importer per format.

mod anthropic;
mod api_capture;
mod atif;
mod claude_code;
mod claude_tree;
mod codex;
mod deepseek;
mod gemini;
mod inspect;
mod mini_swe_agent;
mod openai_chat;
mod otel;
mod otel_spans;
mod swe_agent;

use std::collections::BTreeMap;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::builder::Builder;
use crate::input::{FileReport, Imported};
use crate::json::parse;
use crate::model::Format;
use crate::problem::{Place, ProblemKind, Problems};
use crate::seen::Turn;

/// Reads the records of one file. A record is a line, or a whole document.
pub(crate) trait Importer {
    /// Takes one record.
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>);

    /// Hands on what is complete only at the end of the file.
    fn finish(&mut self, place: &Place, out: &mut Out<'_>);

    /// True when the records of a file belong together, so that the format is decided once per file.
    fn is_session(&self) -> bool;
}

/// The importer of a format.
pub(crate) fn importer(format: Format) -> Box<dyn Importer> {
    match format {
        Format::ClaudeCode => Box::new(claude_code::ClaudeCode::default()),
        Format::CodexRollout => Box::new(codex::Codex::default()),
        Format::OpenAiChat => Box::new(openai_chat::OpenAiChat::default()),
        Format::ApiCapture => Box::new(api_capture::ApiCapture::new()),
        Format::AnthropicMessages => Box::new(anthropic::Anthropic::default()),
        Format::SweAgent => Box::new(swe_agent::SweAgent),
        Format::MiniSweAgent => Box::new(mini_swe_agent::MiniSweAgent),
        Format::Inspect => Box::new(inspect::Inspect),
        Format::Atif => Box::new(atif::Atif),
        Format::Otel => Box::new(otel::Otel::default()),
        Format::GeminiCli => Box::new(gemini::Gemini::default()),
        Format::DeepSeekHarness => Box::new(deepseek::DeepSeek::default()),
    }
}

/// Where importers put what they find.
pub(crate) struct Out<'a> {
    sink: &'a mut dyn FnMut(Imported),
    turn: &'a Turn,
    pub(crate) problems: Problems,
    left_out: BTreeMap<&'static str, u64>,
    transcripts: u64,
    pub(crate) calls: u64,
}

impl<'a> Out<'a> {
    pub(crate) fn new(sink: &'a mut dyn FnMut(Imported), turn: &'a Turn) -> Self {
        Self {
            sink,
            turn,
            problems: Problems::default(),
            left_out: BTreeMap::new(),
            transcripts: 0,
            calls: 0,
        }
    }

    /// A line's or a document's value; `None`, with a problem, when it is no JSON.
    pub(crate) fn parse(&mut self, text: &str, place: &Place) -> Option<Value> {
        let kind = if place.line.is_some() {
            ProblemKind::TornLine
        } else {
            ProblemKind::NotJson
        };
        parse(text, kind, place, &mut self.problems)
    }

    pub(crate) fn problem(&mut self, place: &Place, kind: ProblemKind, detail: impl Into<String>) {
        self.problems.add(place, kind, detail);
    }

    pub(crate) fn left_out(&mut self, kind: &'static str) {
        *self.left_out.entry(kind).or_default() += 1;
    }

    /// True the first time that an id is asked for in this import.
    pub(crate) fn is_new(&mut self, id: &str) -> bool {
        self.turn.is_new(xxh3_64(id.as_bytes()))
    }

    /// Hands a transcript on; one without any message is none.
    pub(crate) fn transcript(&mut self, builder: Builder) {
        if builder.is_empty() {
            self.problem(
                &builder.transcript.place.clone(),
                ProblemKind::Empty,
                "a transcript without messages",
            );
            return;
        }
        self.transcripts += 1;
        let transcript = builder.finish();
        self.calls += transcript.calls.len() as u64;
        (self.sink)(Imported::Transcript(Box::new(transcript)));
    }

    pub(crate) fn file(self, place: Place, formats: Vec<Format>) {
        (self.sink)(Imported::File(Box::new(FileReport {
            place,
            formats,
            transcripts: self.transcripts,
            left_out: self.left_out,
            problems: self.problems,
        })));
    }
}
