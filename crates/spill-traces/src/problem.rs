//! What could not be understood, where.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where something was read: the file, its entry in an archive, the line, and the item within a line or document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file as it was given; an archive's entry follows after `!`.
    pub file: Arc<str>,
    /// The line, from 1; `None` for a document that is not read by lines.
    pub line: Option<u64>,
    /// The item (array element, message, span) within it, from 0.
    pub item: Option<u64>,
}

impl Place {
    pub(crate) fn file(name: &str) -> Self {
        Self {
            file: Arc::from(name),
            line: None,
            item: None,
        }
    }

    pub(crate) fn at_line(&self, line: u64) -> Self {
        Self {
            line: Some(line),
            ..self.clone()
        }
    }

    pub(crate) fn at_item(&self, item: usize) -> Self {
        Self {
            item: Some(item as u64),
            ..self.clone()
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(item) = self.item {
            write!(f, "[{item}]")?;
        }
        Ok(())
    }
}

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// The file could not be read.
    Unreadable,
    /// A link, a pipe or a device, which is not followed and not read.
    NotAFile,
    /// The file holds nothing.
    Empty,
    /// No format was recognised.
    NotRecognised,
    /// The format was recognised, and holds no LLM call.
    NoCalls,
    /// A limit was reached; the detail names it.
    Limit,
    /// A compression or an archive of a kind that is not read; the detail names it.
    NotUnpacked,
    /// A compressed stream or an archive is damaged, or ends before anything could be read.
    DamagedArchive,
    /// A compressed stream or an archive ends early; what is whole before the end was read.
    Cut,
    /// Bytes that are not UTF-8; they were replaced by U+FFFD.
    NotUtf8,
    /// Half of a surrogate pair in an escape; it was replaced by U+FFFD.
    LoneSurrogate,
    /// A line that is not JSON.
    TornLine,
    /// A document that is not JSON.
    NotJson,
    /// A kind of record, role or content block that is not known.
    Unknown,
    /// A field that is needed is missing or of another type.
    BadField,
    /// A tool result that answers no call.
    OrphanResult,
    /// A tool call without a result, though the conversation went on.
    UnansweredCall,
    /// An id that stands twice where it should be unique.
    DuplicateId,
    /// A reference (parent, attachment, pooled message) that leads nowhere.
    BrokenReference,
    /// Requests and responses that cannot be paired with certainty.
    Pairing,
}

impl ProblemKind {
    /// The name, in lower case with hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not-a-file",
            Self::Empty => "empty",
            Self::NotRecognised => "not-recognised",
            Self::NoCalls => "no-calls",
            Self::Limit => "limit",
            Self::NotUnpacked => "not-unpacked",
            Self::DamagedArchive => "damaged-archive",
            Self::Cut => "cut",
            Self::NotUtf8 => "not-utf8",
            Self::LoneSurrogate => "lone-surrogate",
            Self::TornLine => "torn-line",
            Self::NotJson => "not-json",
            Self::Unknown => "unknown",
            Self::BadField => "bad-field",
            Self::OrphanResult => "orphan-result",
            Self::UnansweredCall => "unanswered-call",
            Self::DuplicateId => "duplicate-id",
            Self::BrokenReference => "broken-reference",
            Self::Pairing => "pairing",
        }
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What kind.
    pub kind: ProblemKind,
    /// What it is, in words; never content of the transcript beyond ids and type names.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.kind.name(), self.detail)
    }
}

/// Problems in the order found. All are counted; of each kind the first [`Problems::KEPT_PER_KIND`] are kept whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    kept: Vec<Problem>,
    counts: BTreeMap<ProblemKind, u64>,
}

impl Problems {
    /// How many problems of one kind are kept with place and detail.
    pub const KEPT_PER_KIND: u64 = 100;

    /// The problems that are kept whole, in the order found.
    #[must_use]
    pub fn kept(&self) -> &[Problem] {
        &self.kept
    }

    /// How many problems of each kind there are, those that are not kept included.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<ProblemKind, u64> {
        &self.counts
    }

    /// How many problems there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn add(&mut self, place: &Place, kind: ProblemKind, detail: impl Into<String>) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= Self::KEPT_PER_KIND {
            self.kept.push(Problem {
                place: place.clone(),
                kind,
                detail: detail.into(),
            });
        }
    }

    /// Adds those that were found elsewhere.
    pub(crate) fn append(&mut self, more: Self) {
        let kept = more.kept.len() as u64;
        for problem in more.kept {
            self.add(&problem.place, problem.kind, problem.detail);
        }
        if more.counts.values().sum::<u64>() > kept {
            for (kind, count) in more.counts {
                *self.counts.entry(kind).or_default() += count.saturating_sub(Self::KEPT_PER_KIND);
            }
        }
    }
}
