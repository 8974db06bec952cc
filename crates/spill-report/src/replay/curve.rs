//! Figures over thresholds, on a logarithmic axis.

use spill_record::{ReplayRecord, ReplaySums};
use spill_verdict::threshold_words;

use crate::canvas::{At, Frame, Ink, Sheet, Side, sheet, units};

const SIZE: (u32, u32) = (720, 260);
const LEFT: f64 = 56.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 226.0;
/// Lines that leave the drawing below this share are cut there; the table has the figures.
const LOWEST: f64 = -0.5;
/// Series that have a line.
pub(super) const MOST_SERIES: usize = 5;

/// Cells of one policy with one size of replacements, as indices, by threshold.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) cells: Vec<usize>,
}

/// All series in their order.
pub(super) fn series(record: &ReplayRecord) -> Vec<Series> {
    let mut found: Vec<(&str, Option<u64>, Vec<usize>)> = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        let same = |one: &&mut (&str, Option<u64>, Vec<usize>)| {
            one.0 == cell.policy && one.1 == cell.replacement_bytes
        };
        match found.iter_mut().find(same) {
            Some((_, _, cells)) => cells.push(index),
            None => found.push((&cell.policy, cell.replacement_bytes, vec![index])),
        }
    }
    found
        .into_iter()
        .map(|(policy, replacement, cells)| Series {
            name: match replacement {
                None => policy.to_owned(),
                Some(bytes) => format!("{policy}, {} each", threshold_words(bytes)),
            },
            cells,
        })
        .collect()
}

/// The share of input tokens that a cell saves under an assumption; `None` when nothing was sent.
pub(super) fn saved(
    record: &ReplayRecord,
    sums: &ReplaySums,
    cell: usize,
    read_back: usize,
) -> Option<f64> {
    let under = sums.outcomes.get(record.outcome_index(cell, read_back))?;
    let before = sums.as_recorded.input_tokens as f64;
    (before > 0.0).then(|| (before - under.input_tokens as f64) / before)
}

/// Thresholds across, shares up.
struct Axes {
    least: f64,
    most: f64,
    bottom: f64,
    top: f64,
}

impl Axes {
    fn of(record: &ReplayRecord, bottom: f64, top: f64) -> Self {
        let thresholds = record
            .cells
            .iter()
            .map(|cell| cell.threshold_bytes.max(1) as f64);
        let (least, most) = thresholds.fold((f64::MAX, 1.0_f64), |(least, most), bytes| {
            (least.min(bytes), most.max(bytes))
        });
        Self {
            least: least.min(most).ln(),
            most: most.ln(),
            bottom,
            top,
        }
    }

    fn across(&self, bytes: u64) -> i32 {
        let span = self.most - self.least;
        let part = if span > 0.0 {
            ((bytes.max(1) as f64).ln() - self.least) / span
        } else {
            0.5
        };
        units(LEFT + part * (RIGHT - LEFT))
    }

    fn up(&self, share: f64) -> i32 {
        let part = (share.clamp(self.bottom, self.top) - self.bottom) / (self.top - self.bottom);
        units(BOTTOM - part * (BOTTOM - TOP))
    }

    fn draw(&self, sheet: &Sheet<'_>, record: &ReplayRecord) {
        let step = if self.top - self.bottom > 0.6 {
            0.25
        } else {
            0.1
        };
        let mut share = (self.bottom / step).ceil() * step;
        while share <= self.top + 1e-9 {
            let ink = if share.abs() < 1e-9 {
                Ink::Whisker
            } else {
                Ink::Line
            };
            let y = self.up(share);
            sheet.line((units(LEFT), y), (units(RIGHT), y), ink, 1);
            let words = format!("{:.0} %", share * 100.0 + 0.0);
            let at = (units(LEFT) - 6, y);
            sheet.text(at, &words, 11.0, Ink::Text, Side::LeftOf);
            share += step;
        }
        let mut thresholds: Vec<u64> = record.cells.iter().map(|c| c.threshold_bytes).collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        let mut last = i32::MIN / 2;
        for bytes in thresholds {
            let x = self.across(bytes);
            if x - last < 46 {
                continue;
            }
            last = x;
            let at = (x, units(BOTTOM) + 8);
            sheet.text(at, &threshold_words(bytes), 11.0, Ink::Text, Side::Under);
        }
    }
}

/// Savings over thresholds: a line for each series under the assumption `basis`, and for the first the surface between the
/// assumptions that save most and least.
pub(super) fn savings(
    record: &ReplayRecord,
    sums: &ReplaySums,
    all: &[Series],
    basis: usize,
) -> String {
    let frame = Frame {
        id: "chart-savings",
        title: "Input tokens saved, by threshold",
        description: "A line for each policy: the share of all input tokens that a threshold saves. Around the \
                      first line, the surface between the read-back assumptions that save most and least. The \
                      table below has the same figures; lines that leave the drawing are below -50 %.",
        size: SIZE,
    };
    let shown = &all[..all.len().min(MOST_SERIES)];
    let every = shown
        .iter()
        .flat_map(|series| &series.cells)
        .flat_map(|cell| {
            (0..record.read_backs.len())
                .filter_map(|read_back| saved(record, sums, *cell, read_back))
        });
    let (least, most) = every.fold((0.0_f64, 0.05_f64), |(least, most), share| {
        (least.min(share), most.max(share))
    });
    let axes = Axes::of(record, least.max(LOWEST), most * 1.05);
    sheet(&frame, |sheet| {
        if let Some(first) = shown.first() {
            let band = band(record, sums, first, &axes);
            if let [upper, lower] = *band {
                // Of one threshold there is no surface.
                sheet.line(upper, lower, Ink::Whisker, 2);
            } else {
                sheet.surface(band, Ink::Band(1));
            }
        }
        axes.draw(sheet, record);
        for (number, series) in (1u8..).zip(shown) {
            let points = points(record, series, &axes, |cell| {
                saved(record, sums, cell, basis)
            });
            line(sheet, points, Ink::Series(number));
        }
    })
}

/// Dots, and a line through them: a single threshold has a dot alone.
fn line(sheet: &Sheet<'_>, points: Vec<At>, ink: Ink) {
    for point in &points {
        sheet.dot(*point, 3, ink);
    }
    if points.len() > 1 {
        sheet.path(points, ink, 2);
    }
}

fn points(
    record: &ReplayRecord,
    series: &Series,
    axes: &Axes,
    share: impl Fn(usize) -> Option<f64>,
) -> Vec<At> {
    let points = series.cells.iter().filter_map(|cell| {
        let bytes = record.cells[*cell].threshold_bytes;
        Some((axes.across(bytes), axes.up(share(*cell)?)))
    });
    points.collect()
}

fn band(record: &ReplayRecord, sums: &ReplaySums, series: &Series, axes: &Axes) -> Vec<At> {
    let shares = |cell: usize| {
        (0..record.read_backs.len())
            .filter_map(move |read_back| saved(record, sums, cell, read_back))
    };
    let mut upper = points(record, series, axes, |cell| shares(cell).reduce(f64::max));
    let lower = points(record, series, axes, |cell| shares(cell).reduce(f64::min));
    upper.extend(lower.into_iter().rev());
    upper
}

/// The share of sent results, and of their bytes, that stay in the prompt under the first series.
pub(super) fn inline(record: &ReplayRecord, sums: &ReplaySums, series: &Series) -> String {
    let frame = Frame {
        id: "chart-kept",
        title: "Results that stay in the prompt, by threshold",
        description: "Two lines for the first policy: the share of the sent results that a threshold leaves in the \
                      prompt, and the share of their bytes. The table below has the same figures.",
        size: SIZE,
    };
    let axes = Axes::of(record, 0.0, 1.0);
    sheet(&frame, |sheet| {
        axes.draw(sheet, record);
        let results = points(record, series, &axes, |cell| {
            kept(sums, cell).map(|kept| kept.0)
        });
        let bytes = points(record, series, &axes, |cell| {
            kept(sums, cell).map(|kept| kept.1)
        });
        line(sheet, results, Ink::Series(1));
        line(sheet, bytes, Ink::Series(2));
    })
}

/// The shares of results and of bytes that a cell leaves in the prompt.
pub(super) fn kept(sums: &ReplaySums, cell: usize) -> Option<(f64, f64)> {
    let cell = sums.cells.get(cell)?;
    let share =
        |replaced: u64, whole: u64| (whole > 0).then(|| 1.0 - replaced as f64 / whole as f64);
    Some((
        share(cell.replaced_results, sums.sent_results)?,
        share(cell.replaced_bytes, sums.sent_result_bytes)?,
    ))
}
