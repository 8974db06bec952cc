use std::collections::BTreeMap;

use spill_verdict::{grouped, percent, share};

use crate::calls::Calls;
use crate::canvas::{At, Frame, Ink, Side, sheet, units};
use crate::table::Table;

/// Thresholds of the table, in bytes: powers of two from 4 KiB to 1 MiB.
const THRESHOLDS: [u64; 9] = [
    4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576,
];
/// Inputs that have a line and a column; all of them count in the column of all.
const INPUTS: usize = 6;
const SIZE: (u32, u32) = (720, 220);
const LEFT: f64 = 56.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 190.0;

/// How much of the control's results a threshold would leave in the prompt.
pub(crate) struct InlineShare {
    pub(crate) chart: String,
    pub(crate) table: Table,
    pub(crate) inputs: Vec<String>,
}

/// The curve over the control's results; `None` where no call of the control is known.
pub(crate) fn inline_share(calls: &Calls) -> Option<InlineShare> {
    let by_input = calls.result_sizes();
    if by_input.is_empty() {
        return None;
    }
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (bytes, count) in by_input.iter().flat_map(|(_, sizes)| sizes.iter()) {
        *all.entry(*bytes).or_insert(0) += count;
    }
    let named = &by_input[..by_input.len().min(INPUTS)];
    let rows = THRESHOLDS.map(|threshold| {
        let cell = |part: Option<f64>| part.map_or_else(String::new, percent);
        let mut row = vec![kibibytes(threshold), cell(below(&all, threshold))];
        row.push(cell(bytes_below(&all, threshold)));
        row.extend(named.iter().map(|(_, sizes)| cell(below(sizes, threshold))));
        row
    });
    let results: u64 = all.values().sum();
    let mut columns = vec!["of all results", "of their bytes"];
    columns.extend(named.iter().map(|(name, _)| *name));
    let caption = format!(
        "Share of the control's {} results below a threshold, by input",
        grouped(results)
    );
    Some(InlineShare {
        chart: draw(named),
        table: Table::new(
            "inline-table",
            caption,
            &["threshold"],
            &columns,
            rows.to_vec(),
        ),
        inputs: named.iter().map(|(name, _)| (*name).to_owned()).collect(),
    })
}

fn kibibytes(bytes: u64) -> String {
    if bytes == 1_048_576 {
        "1 MiB".to_owned()
    } else {
        format!("{} KiB", bytes / 1_024)
    }
}

/// Share of the results that are smaller than `threshold`: those that stay.
fn below(sizes: &BTreeMap<u64, u64>, threshold: u64) -> Option<f64> {
    share(
        sizes.range(..threshold).map(|(_, count)| count).sum(),
        sizes.values().sum(),
    )
}

fn bytes_below(sizes: &BTreeMap<u64, u64>, threshold: u64) -> Option<f64> {
    let sum = |pairs: &mut dyn Iterator<Item = (&u64, &u64)>| {
        pairs.fold(0u64, |sum, (bytes, count)| {
            sum.saturating_add(bytes.saturating_mul(*count))
        })
    };
    share(sum(&mut sizes.range(..threshold)), sum(&mut sizes.iter()))
}

fn draw(named: &[(&str, &BTreeMap<u64, u64>)]) -> String {
    let frame = Frame {
        id: "chart-inline",
        title: "Share of results that stay inline, by threshold",
        description: "A line for each input: the share of the control's tool results that are smaller \
                      than a threshold, over thresholds from 1 KiB to 1 MiB on a logarithmic axis. The \
                      table below has the same figures.",
        size: SIZE,
    };
    let (least, most) = (1_024f64.ln(), 1_048_576f64.ln());
    let across = |bytes: f64| {
        let share = ((bytes.max(1.0).ln() - least) / (most - least)).clamp(0.0, 1.0);
        units(LEFT + share * (RIGHT - LEFT))
    };
    let up = |part: f64| units(BOTTOM - part * (BOTTOM - TOP));
    sheet(&frame, |sheet| {
        for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
            sheet.line(
                (units(LEFT), up(part)),
                (units(RIGHT), up(part)),
                Ink::Line,
                1,
            );
            let words = format!("{:.0} %", part * 100.0);
            sheet.text(
                (units(LEFT) - 6, up(part)),
                &words,
                11.0,
                Ink::Text,
                Side::LeftOf,
            );
        }
        for threshold in THRESHOLDS {
            let at = (across(threshold as f64), units(BOTTOM) + 8);
            sheet.text(at, &kibibytes(threshold), 11.0, Ink::Text, Side::Under);
        }
        for (series, (_, sizes)) in (1u8..).zip(named) {
            let total: u64 = sizes.values().sum();
            let mut points: Vec<At> = vec![(across(1.0), up(0.0))];
            let mut seen = 0u64;
            for (bytes, count) in *sizes {
                let x = across(*bytes as f64);
                points.push((x, up(seen as f64 / total as f64)));
                seen += count;
                points.push((x, up(seen as f64 / total as f64)));
            }
            points.push((across(1_048_576.0), up(1.0)));
            points.dedup();
            sheet.path(points, Ink::Series(series), 2);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{below, bytes_below};

    #[test]
    fn a_result_of_the_thresholds_size_does_not_stay() {
        let sizes = BTreeMap::from([(10, 1), (20, 2), (50, 1)]);
        assert_eq!(below(&sizes, 20), Some(0.25));
        assert_eq!(below(&sizes, 21), Some(0.75));
        assert_eq!(bytes_below(&sizes, 20), Some(0.1));
        assert_eq!(below(&BTreeMap::new(), 20), None);
    }
}
