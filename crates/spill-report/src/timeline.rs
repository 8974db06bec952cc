use std::collections::BTreeMap;

use serde::Serialize;
use spill_record::{CallRecord, ContextBytes, ToolCallRecord, ToolResultForm};
use spill_verdict::{figure, grouped, plain};

use crate::canvas::{At, Frame, Ink, Side, sheet, units};
use crate::figures::NOTHING;

const SIZE: (u32, u32) = (720, 200);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 712.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 172.0;
/// Bars of the drawing; beyond that, several calls share one, and the largest of them is shown.
const BARS: usize = 130;
/// Results that a call names; further ones are counted.
const RESULTS: usize = 6;

/// Where bytes of a request come from, and how many of them do.
type Origin = (&'static str, fn(&ContextBytes) -> u64);

/// The origins in the order that bars are stacked.
const ORIGINS: [Origin; 5] = [
    ("instructions and tool list", |c| {
        c.system_bytes + c.user_bytes + c.tool_schema_bytes
    }),
    ("assistant", |c| c.assistant_bytes),
    ("results inline", |c| c.inline_result_bytes),
    ("previews", |c| c.preview_bytes),
    ("read back", |c| c.read_back_bytes),
];

/// A run's calls as the template shows them: sizes, ids and names only.
#[derive(Serialize)]
pub(crate) struct Timeline {
    /// SVG, escaped already.
    chart: String,
    origins: Vec<&'static str>,
    rows: Vec<CallRow>,
    left_out: usize,
    stored: Vec<StoredRow>,
}

#[derive(Serialize)]
struct CallRow {
    iteration: u64,
    status: u16,
    /// Uncached input, cache read, cache write, output.
    tokens: [String; 4],
    context: Vec<String>,
    results: Vec<String>,
    asks: String,
    finish: String,
}

#[derive(Serialize)]
struct StoredRow {
    reference: String,
    tool: String,
    iteration: u64,
    bytes: String,
    preview: String,
    reads: String,
    read_bytes: String,
    share: String,
}

/// The timeline of `calls`; `id` is unique within the page, `most` bounds the rows of its table.
pub(crate) fn timeline(id: &str, calls: &[CallRecord], most: usize) -> Timeline {
    Timeline {
        chart: draw(id, calls),
        origins: ORIGINS.iter().map(|(name, _)| *name).collect(),
        rows: calls.iter().take(most).map(row).collect(),
        left_out: calls.len().saturating_sub(most),
        stored: stored(calls, most),
    }
}

fn row(call: &CallRecord) -> CallRow {
    let mut results: Vec<String> = call.new_results.iter().take(RESULTS).map(result).collect();
    if call.new_results.len() > RESULTS {
        results.push(format!("and {} more", call.new_results.len() - RESULTS));
    }
    let mut asks: Vec<String> = Vec::new();
    for tool in call.calls_tools.iter().take(RESULTS) {
        asks.push(plain(tool));
    }
    if call.calls_tools.len() > RESULTS {
        asks.push(format!("and {} more", call.calls_tools.len() - RESULTS));
    }
    CallRow {
        iteration: call.iteration,
        status: call.status,
        tokens: match call.tokens {
            Some(tokens) => [
                tokens.uncached_input_tokens,
                tokens.cache_read_tokens,
                tokens.cache_write_tokens,
                tokens.output_tokens,
            ]
            .map(grouped),
            None => [(); 4].map(|()| NOTHING.to_owned()),
        },
        context: ORIGINS
            .iter()
            .map(|(_, of)| grouped(of(&call.context)))
            .collect(),
        results,
        asks: asks.join(", "),
        finish: plain(&call.finish_reason),
    }
}

fn result(result: &ToolCallRecord) -> String {
    let tool = plain(&result.tool);
    let size = grouped(result.prompt_bytes);
    let stored = result.stored_bytes.map_or("?".to_owned(), grouped);
    let reference = result.reference.as_deref().map_or("?".to_owned(), short);
    match result.form {
        ToolResultForm::Inline => format!("{tool}: {size} bytes inline"),
        ToolResultForm::Preview => {
            format!("{tool}: {stored} bytes stored as {reference}, preview of {size}")
        }
        ToolResultForm::Slice => {
            let offset = result.offset_bytes.map_or("?".to_owned(), grouped);
            format!("{stored} bytes of {reference} read back from {offset}")
        }
        ToolResultForm::Error => format!("{tool}: error of {size} bytes"),
        ToolResultForm::Cut => format!("{tool}: cut to {size} bytes, with no way to the rest"),
    }
}

/// The end of a reference, which tells it from the others of its run.
fn short(reference: &str) -> String {
    plain(reference.rsplit('/').next().unwrap_or(reference))
}

/// What one stored result came to.
#[derive(Default)]
struct Kept {
    tool: String,
    iteration: u64,
    bytes: u64,
    preview: u64,
    reads: u64,
    read_bytes: u64,
    ranges: Vec<(u64, u64)>,
}

fn stored(calls: &[CallRecord], most: usize) -> Vec<StoredRow> {
    let mut kept: Vec<(&str, Kept)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        for result in &call.new_results {
            let Some(reference) = result.reference.as_deref() else {
                continue;
            };
            let index = *places.entry(reference).or_insert_with(|| {
                kept.push((reference, Kept::default()));
                kept.len() - 1
            });
            let entry = &mut kept[index].1;
            let bytes = result.stored_bytes.unwrap_or(0);
            match result.form {
                ToolResultForm::Preview => {
                    entry.tool = plain(&result.tool);
                    entry.iteration = call.iteration;
                    entry.bytes = bytes;
                    entry.preview = result.prompt_bytes;
                }
                ToolResultForm::Slice => {
                    entry.reads += 1;
                    entry.read_bytes += bytes;
                    let from = result.offset_bytes.unwrap_or(0);
                    entry.ranges.push((from, from.saturating_add(bytes)));
                }
                ToolResultForm::Inline | ToolResultForm::Error | ToolResultForm::Cut => {}
            }
        }
    }
    let rows = kept.into_iter().take(most);
    rows.map(|(reference, entry)| {
        let distinct = distinct(entry.ranges);
        StoredRow {
            reference: short(reference),
            tool: entry.tool,
            iteration: entry.iteration,
            bytes: grouped(entry.bytes),
            preview: grouped(entry.preview),
            reads: grouped(entry.reads),
            read_bytes: grouped(entry.read_bytes),
            share: spill_verdict::share(distinct, entry.bytes)
                .map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
        }
    })
    .collect()
}

/// Bytes that lie in at least one of the ranges.
fn distinct(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, to) in ranges {
        let from = from.max(end);
        if to > from {
            sum += to - from;
            end = to;
        }
    }
    sum
}

fn draw(id: &str, calls: &[CallRecord]) -> String {
    let per_bar = calls.len().div_ceil(BARS).max(1);
    let total = |call: &CallRecord| ORIGINS.iter().map(|(_, of)| of(&call.context)).sum::<u64>();
    let bars: Vec<&CallRecord> = calls
        .chunks(per_bar)
        .filter_map(|chunk| chunk.iter().max_by_key(|call| total(call)))
        .collect();
    let top = bars
        .iter()
        .map(|call| total(call))
        .max()
        .unwrap_or(0)
        .max(1) as f64;
    let shared = if per_bar > 1 {
        format!(" Each bar is the largest of {per_bar} calls.")
    } else {
        String::new()
    };
    let description = format!(
        "A bar for each of {} LLM calls: the bytes of its messages and tool list, stacked by where they \
         come from. The last has {} bytes.{shared} The table below has the same figures.",
        grouped(calls.len() as u64),
        grouped(calls.last().map_or(0, total)),
    );
    let frame = Frame {
        id,
        title: "Context of each LLM call, by origin",
        description: &description,
        size: SIZE,
    };
    let slot = (RIGHT - LEFT) / bars.len().max(1) as f64;
    let up = |bytes: f64| units(BOTTOM - bytes / top * (BOTTOM - TOP));
    sheet(&frame, |sheet| {
        for part in [0.0, 0.5, 1.0] {
            let y = up(top * part);
            sheet.line((units(LEFT), y), (units(RIGHT), y), Ink::Line, 1);
            sheet.text(
                (units(LEFT) - 6, y),
                &kilobytes(top * part),
                11.0,
                Ink::Text,
                Side::LeftOf,
            );
        }
        let every = bars.len().div_ceil(10).max(1);
        for (index, call) in bars.iter().enumerate() {
            let left = LEFT + slot * index as f64;
            let right = left + slot * if slot > 4.0 { 0.86 } else { 1.0 };
            let mut base = 0u64;
            for (origin, (_, of)) in (0u8..).zip(&ORIGINS) {
                let bytes = of(&call.context);
                let low: At = (units(left), up(base as f64));
                base += bytes;
                let high: At = (units(right).max(low.0 + 1), up(base as f64));
                if high.1 < low.1 {
                    sheet.block((low.0, high.1), (high.0, low.1), Ink::Origin(origin));
                }
            }
            if index % every == 0 {
                let at = (units(f64::midpoint(left, right)), units(BOTTOM) + 8);
                sheet.text(at, &grouped(call.iteration), 11.0, Ink::Text, Side::Under);
            }
        }
    })
}

fn kilobytes(bytes: f64) -> String {
    if bytes >= 1e6 {
        format!("{} MB", figure((bytes / 1e5).round() / 10.0))
    } else {
        format!("{:.0} kB", bytes / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn bytes_read_twice_are_distinct_once() {
        assert_eq!(distinct(vec![]), 0);
        assert_eq!(distinct(vec![(0, 10), (5, 15), (20, 30)]), 25);
        assert_eq!(distinct(vec![(20, 30), (0, 40), (3, 4)]), 40);
        assert_eq!(distinct(vec![(5, 5), (7, 2)]), 0);
    }
}
