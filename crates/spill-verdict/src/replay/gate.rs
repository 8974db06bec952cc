//! `FIGURE [KEY=VALUE, …] OP NUMBER [%]`: one thing that a replay must hold.

use std::fmt;

use spill_record::{CellPlan, ReplayRecord, ReplaySums};

use super::expression::{Compare, Selector, Threshold, compare, limit, selector, unknown_figure};
use super::figure::{Observed, ReplayFigure, ReplayVariant};
use super::table::variant_words;
use crate::words::{figure_beside, grouped};

/// The threshold that is meant where none is named: the shipped one.
const SHIPPED_BYTES: u64 = 131_072;
/// The assumption that is meant where none is named.
const USED: &str = "used";
/// A longer expression is a mistake.
const LONGEST: usize = 400;

/// One thing that a replay must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    figure: ReplayFigure,
    selector: Selector,
    compare: Compare,
    limit: f64,
    is_share: bool,
}

/// An expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// It is not of the described form.
    #[error(
        "the gate {text:?} is not understood: {problem} (write it like 'saved_input_tokens >= 10%' or \
         'extra_calls[threshold=32KiB, read_back=used] <= 5%')"
    )]
    Malformed {
        /// The expression, cut.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// It names no variant that is replayed, or several.
    #[error("the gate {text:?} {problem}")]
    NoVariant {
        /// The expression, cut.
        text: String,
        /// Which variants there are, and what to do.
        problem: String,
    },
}

/// What became of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// It holds.
    Holds,
    /// It does not.
    Broken,
    /// The transcripts do not say.
    NotProven,
}

impl GateState {
    /// The state's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::NotProven => "not_proven",
        }
    }
}

/// A gate held against a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct GateVerdict {
    /// The expression.
    pub gate: String,
    /// What became of it.
    pub state: GateState,
    /// The figure, in the limit's unit; `None` where it is not known.
    pub observed: Option<f64>,
    /// What it was held against.
    pub limit: f64,
    /// Transcripts behind it.
    pub sessions: u64,
    /// The variant, and why nothing is proven where it is not.
    pub words: String,
}

impl Gate {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// [`GateError::Malformed`] when it is none.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let text = text.trim();
        let malformed = |problem: String| GateError::Malformed {
            text: text.chars().take(80).collect(),
            problem,
        };
        if text.len() > LONGEST {
            let problem = format!("it is longer than {LONGEST} bytes");
            return Err(malformed(problem));
        }
        let end = text.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let figure = ReplayFigure::ALL.into_iter().find(|f| f.name() == name);
        let figure = figure.ok_or_else(|| malformed(unknown_figure(name)))?;
        let (selector, rest) = selector(rest.trim_start()).map_err(malformed)?;
        let (compare, rest) = compare(rest.trim_start()).map_err(malformed)?;
        let (limit, is_share) = limit(rest.trim()).map_err(malformed)?;
        if is_share && !figure.has_share() {
            let problem = format!("{name} is a number and no share, so its limit has no %");
            return Err(malformed(problem));
        }
        if selector.threshold == Some(Threshold::Off) && !figure.is_absolute() {
            return Err(malformed(nothing_at_off(name)));
        }
        Ok(Self {
            text: text.to_owned(),
            figure,
            selector,
            compare,
            limit,
            is_share,
        })
    }

    /// The expression.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What must be given for it to be known, and is not: a flag.
    #[must_use]
    pub fn lacks(&self, prices: bool, window: bool) -> Option<&'static str> {
        if self.figure.needs_prices() && !prices {
            return Some("--prices");
        }
        (self.figure.needs_window(self.is_share) && !window).then_some("--window")
    }

    /// Which cell and which read-back assumption it is about, or what is recorded (`threshold=off`). What the expression does not name is the only one there is; a
    /// threshold, the shipped one (128 KiB); an assumption, `used`.
    ///
    /// # Errors
    ///
    /// [`GateError::NoVariant`] when that is none or several.
    pub fn variant(
        &self,
        cells: &[CellPlan],
        read_backs: &[String],
    ) -> Result<ReplayVariant, GateError> {
        if self.selector.threshold == Some(Threshold::Off) {
            return Ok(ReplayVariant::AsRecorded);
        }
        let fail = |problem: String| GateError::NoVariant {
            text: self.text.chars().take(80).collect(),
            problem,
        };
        let named: Vec<usize> = (0..cells.len())
            .filter(|index| self.selector.admits(&cells[*index]))
            .collect();
        let cell = match *named.as_slice() {
            [] => return Err(fail("is about nothing that is replayed (name a policy, threshold and replacement that are)".to_owned())),
            [one] => one,
            _ => {
                let shipped = |index: &&usize| cells[**index].threshold_bytes == SHIPPED_BYTES;
                let mut shipped = named.iter().filter(shipped);
                match (self.selector.threshold, shipped.next(), shipped.next()) {
                    (None, Some(one), None) => *one,
                    _ => return Err(fail(ambiguous(self.figure, cells, &named))),
                }
            }
        };
        let wanted = self.selector.read_back.as_deref();
        let found = |wanted: &str| read_backs.iter().position(|name| name == wanted);
        let read_back = match (wanted, read_backs) {
            (Some(wanted), _) => found(wanted),
            (None, [_]) => Some(0),
            (None, _) => found(USED),
        };
        let read_back = read_back.ok_or_else(|| {
            let all = read_backs.join(", ");
            fail(format!("must name one of the read-backs that are replayed, such as [read_back={}] (they are {all})", read_backs.first().map_or("", |name| name)))
        })?;
        Ok(ReplayVariant::Under { cell, read_back })
    }

    /// Holds it against a replay. No data is never a pass.
    ///
    /// # Errors
    ///
    /// As [`Gate::variant`].
    pub fn judge(
        &self,
        record: &ReplayRecord,
        sums: &ReplaySums,
    ) -> Result<GateVerdict, GateError> {
        let variant = self.variant(&record.cells, &record.read_backs)?;
        let observed = self.figure.of(record, sums, variant);
        let name = match variant {
            ReplayVariant::AsRecorded => "as recorded".to_owned(),
            ReplayVariant::Under { cell, read_back } => {
                variant_words(&record.cells[cell], Some(&record.read_backs[read_back]))
            }
        };
        let (state, value, words) = match self.value(sums, variant, observed) {
            Err(reason) => (GateState::NotProven, None, format!("{name}: {reason}")),
            Ok(value) if self.compare.holds(value, self.limit) => {
                (GateState::Holds, Some(value), name)
            }
            Ok(value) => (GateState::Broken, Some(value), name),
        };
        Ok(GateVerdict {
            gate: self.text.clone(),
            state,
            observed: value,
            limit: self.limit,
            sessions: sums.sessions,
            words,
        })
    }

    /// The figure in the limit's unit, or why there is none.
    fn value(
        &self,
        sums: &ReplaySums,
        variant: ReplayVariant,
        observed: Observed,
    ) -> Result<f64, &'static str> {
        if sums.as_recorded.calls == 0 {
            return Err("there are no LLM calls");
        }
        let untried = match variant {
            ReplayVariant::AsRecorded => false,
            ReplayVariant::Under { cell, .. } => {
                let cell = sums.cells.get(cell);
                cell.is_none_or(|cell| cell.replaced_results == 0)
            }
        };
        if self.figure.needs_replacements() && untried {
            return Err("no result was replaced, so it was not tried");
        }
        let value = observed.value.ok_or(match self.figure {
            ReplayFigure::SavedCost | ReplayFigure::InputCost
                if sums.as_recorded.input_cost.is_some() =>
            {
                "some transcripts have no price"
            }
            ReplayFigure::SavedCost | ReplayFigure::InputCost => {
                "there are no prices (give --prices)"
            }
            _ => "there is no window (give --window)",
        })?;
        if !self.is_share {
            return Ok(value);
        }
        match observed.whole {
            Some(whole) if whole > 0.0 => Ok(100.0 * value / whole),
            Some(_) => Err("it is a share of nothing"),
            None => Err("there is no window (give --window)"),
        }
    }
}

impl GateVerdict {
    /// One line: what became of it, the expression, the figure.
    #[must_use]
    pub fn line(&self) -> String {
        let state = self.state.as_str().replace('_', " ");
        format!("{state} {}", self.figure_line())
    }

    /// The expression and the figure.
    #[must_use]
    pub fn figure_line(&self) -> String {
        let unit = if self.gate.ends_with('%') { " %" } else { "" };
        let observed = match self.observed {
            Some(value) => format!("{}{unit}", figure_beside(value, self.limit)),
            None => "not known".to_owned(),
        };
        format!(
            "{}: {observed} ({}; n = {})",
            self.gate,
            self.words,
            grouped(self.sessions),
        )
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn nothing_at_off(name: &str) -> String {
    let all = ReplayFigure::ALL.into_iter();
    let names: Vec<&str> = all
        .filter(|f| f.is_absolute())
        .map(ReplayFigure::name)
        .collect();
    format!(
        "off is what is recorded, where nothing is replaced: {name} says nothing of it (at off there are {})",
        names.join(", ")
    )
}

fn ambiguous(figure: ReplayFigure, cells: &[CellPlan], named: &[usize]) -> String {
    let off = if figure.is_absolute() {
        "; as recorded: [threshold=off]"
    } else {
        ""
    };
    let names = named
        .iter()
        .take(4)
        .map(|index| variant_words(&cells[*index], None));
    let names: Vec<String> = names.collect();
    format!(
        "is about {} policies or thresholds, such as {} (say which: [policy=…, threshold=…, replacement=…]{off})",
        named.len(),
        names.join("; ")
    )
}
