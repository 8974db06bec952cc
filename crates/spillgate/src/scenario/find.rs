//! From a file to the one transcript that is meant.

use std::path::Path;

use anyhow::{bail, ensure};
use spill_traces::{Import, Imported, Limits, Problem, ProblemKind, Transcript};
use spill_verdict::counted;

/// Transcripts that an error names.
const NAMED: usize = 10;

/// The transcript, and what else the file holds.
pub(crate) struct Found {
    pub(crate) transcript: Transcript,
    /// Transcripts of sub-agents that were not taken.
    pub(crate) others: usize,
    /// Problems of the file outside its transcripts.
    pub(crate) problems: u64,
}

/// One transcript with tool results, in a few words.
struct Summary {
    number: usize,
    id: Option<String>,
    is_sub_agent: bool,
    results: usize,
}

impl Summary {
    fn words(&self) -> String {
        let id = self.id.as_deref().unwrap_or("without an id");
        let kind = if self.is_sub_agent {
            ", a sub-agent"
        } else {
            ""
        };
        format!(
            "{} ({id:.60}{kind}, {})",
            self.number,
            counted(self.results as u64, "result")
        )
    }

    /// How well it is what was asked for: by its id, or else by its number.
    fn rank(&self, wanted: Option<&str>) -> u8 {
        match wanted {
            Some(wanted) if self.id.as_deref() == Some(wanted) => 2,
            Some(wanted) => u8::from(wanted.parse() == Ok(self.number)),
            None if self.is_sub_agent => 1,
            None => 2,
        }
    }
}

/// Reads the file and returns the session `wanted`: its id, or its number from 1 among those with tool results. Without
/// one, the only transcript that is no sub-agent's.
pub(crate) fn transcript(file: &Path, wanted: Option<&str>) -> anyhow::Result<Found> {
    let shown = file.display().to_string();
    let about = std::fs::metadata(file);
    let about = about
        .map_err(|error| anyhow::anyhow!("{shown}: cannot be read: {error} (name a transcript)"))?;
    ensure!(
        !about.is_dir(),
        "{shown}: is a folder (name one transcript in it; `spillgate replay` takes folders)"
    );
    ensure!(
        about.is_file(),
        "{shown}: is no regular file (name a transcript)"
    );
    let mut reading = Reading {
        wanted,
        ..Reading::default()
    };
    Import::new(Limits::DEFAULT).path(file, &mut |imported| reading.take(imported));
    reading.finish(&shown)
}

#[derive(Default)]
struct Reading<'a> {
    wanted: Option<&'a str>,
    known: Vec<Summary>,
    /// The first of the transcripts that are meant best.
    kept: Option<Transcript>,
    /// How well it is what was asked for; 0 without one.
    kept_rank: u8,
    without_results: usize,
    problems: u64,
    first_problem: Option<Problem>,
}

impl Reading<'_> {
    fn take(&mut self, imported: Imported) {
        match imported {
            Imported::File(report) => {
                self.problems += report.problems.total();
                let first = report.problems.kept().first();
                if self.first_problem.is_none() {
                    self.first_problem = first.cloned();
                }
            }
            Imported::Transcript(transcript) if transcript.results.is_empty() => {
                self.without_results += 1;
            }
            Imported::Transcript(transcript) => self.with_results(*transcript),
        }
    }

    fn with_results(&mut self, transcript: Transcript) {
        let summary = Summary {
            number: self.known.len() + 1,
            id: transcript.id.clone(),
            is_sub_agent: transcript.parent.is_some(),
            results: transcript.results.len(),
        };
        let rank = summary.rank(self.wanted);
        if rank > self.kept_rank {
            self.kept = Some(transcript);
            self.kept_rank = rank;
        }
        self.known.push(summary);
    }

    fn finish(self, shown: &str) -> anyhow::Result<Found> {
        if self.known.is_empty() {
            return Err(self.nothing(shown));
        }
        let main = self.known.iter().filter(|one| !one.is_sub_agent).count();
        let candidates = if main > 0 { main } else { self.known.len() };
        let is_open = self.wanted.is_none() && candidates > 1;
        let Some(transcript) = self.kept.filter(|_| !is_open) else {
            let named: Vec<String> = self.known.iter().take(NAMED).map(Summary::words).collect();
            let more = match self.known.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let what = match self.wanted {
                Some(wanted) => format!("no session {wanted:?} with tool results"),
                None => "several sessions with tool results".to_owned(),
            };
            bail!(
                "{shown}: {what}; there are {}{more} (choose one with --session, by number or id)",
                named.join(", ")
            );
        };
        Ok(Found {
            others: self.known.len() - 1,
            problems: self.problems + transcript.problems.total(),
            transcript,
        })
    }

    fn nothing(self, shown: &str) -> anyhow::Error {
        let fact = match (self.without_results, self.first_problem) {
            (0, Some(problem)) if problem.kind == ProblemKind::NotUnpacked => {
                return anyhow::anyhow!("{}: {}", problem.place, problem.detail);
            }
            (0, Some(Problem { kind, detail, .. })) => {
                format!("holds no transcript: {}: {detail}", kind.name())
            }
            (0, None) => "holds no transcript".to_owned(),
            (1, _) => "holds a transcript without tool results".to_owned(),
            (many, _) => format!("holds {many} transcripts without tool results"),
        };
        anyhow::anyhow!(
            "{shown}: {fact} (name a transcript whose agent called tools; docs/replay.md has the formats)"
        )
    }
}
