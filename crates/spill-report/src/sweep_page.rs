//! The curves of a sweep, as a page, a table and JSON.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table as TextTable};
use csv::Writer;
use serde::Serialize;
use spill_record::{RunSet, csv_text as text};
use spill_verdict::{
    Sweep, SweepCurve, SweepPoint, amount, figure, grouped, of_control, percent, plain,
    recommendation_line,
};

use crate::background::provenance_of;
use crate::calls::Calls;
use crate::canvas::{At, Frame, Ink, Side, sheet, units};
use crate::html::html;
use crate::inline_share::inline_share;
use crate::table::Table;

/// Columns of a terminal that the table fits.
const WIDTH: u16 = 80;
/// Curves that the chart shows; the tables have all of them.
const CURVES: usize = 6;
const SIZE: (u32, u32) = (720, 260);
const LEFT: f64 = 56.0;
const RIGHT: f64 = 660.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 226.0;

/// What is derived from a sweep's folder.
#[derive(Clone, Debug)]
pub struct SweepRendered {
    /// `sweep.html`.
    pub html: String,
    /// `sweep.csv`: a row for each setting on each input.
    pub csv: String,
    /// `sweep.json`.
    pub json: String,
    /// The control and the settings that stored something, for a terminal of 80 columns.
    pub table: String,
}

#[derive(Serialize)]
struct Page {
    title: String,
    subtitle: String,
    lines: Vec<String>,
    chart: String,
    series: Vec<String>,
    left_out: usize,
    tables: Vec<Table>,
    inline: Option<Inline>,
    provenance: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct Inline {
    chart: String,
    table: Table,
}

/// Renders a sweep; equal records give equal bytes.
#[must_use]
pub fn sweep(set: &RunSet, sweep: &Sweep, calls: &Calls) -> SweepRendered {
    let mut json =
        serde_json::to_string_pretty(sweep).expect("a sweep has string keys and numbers");
    json.push('\n');
    SweepRendered {
        html: html("sweep.html", page(set, sweep, calls)),
        csv: csv(sweep),
        json,
        table: terminal(sweep),
    }
}

fn page(set: &RunSet, sweep: &Sweep, calls: &Calls) -> Page {
    let shown = &sweep.curves[..sweep.curves.len().min(CURVES)];
    Page {
        title: "Spillgate sweep".to_owned(),
        subtitle: format!(
            "{} · {} recorded runs, {} without a record",
            plain(&set.manifest.acceptance_id),
            grouped(set.runs.len() as u64),
            grouped(sweep.missing)
        ),
        lines: sweep.curves.iter().map(recommendation_line).collect(),
        chart: draw(shown),
        series: shown.iter().map(place).collect(),
        left_out: sweep.curves.len() - shown.len(),
        tables: sweep.curves.iter().enumerate().map(table).collect(),
        inline: inline_share(calls).map(|part| Inline {
            chart: part.chart,
            table: part.table,
        }),
        provenance: provenance_of(set),
    }
}

fn place(curve: &SweepCurve) -> String {
    format!("{}/{}", plain(&curve.scenario), plain(&curve.input))
}

const NUMBERS: [&str; 8] = [
    "runs",
    "input tokens, median",
    "of control",
    "iterations, median",
    "success",
    "quality",
    "stored",
    "read amplification",
];

fn table((number, curve): (usize, &SweepCurve)) -> Table {
    let rows = curve.points.iter().map(|point| {
        let mut row = vec![plain(&point.configuration), mark(curve, point).to_owned()];
        row.extend(numbers(curve, point));
        row
    });
    Table::new(
        format!("curve-{number}"),
        format!("{}: every setting", place(curve)),
        &["setting", "front"],
        &NUMBERS,
        rows.collect(),
    )
}

fn mark(curve: &SweepCurve, point: &SweepPoint) -> &'static str {
    let taken = curve
        .recommended
        .as_ref()
        .is_some_and(|one| one.configuration == point.configuration);
    match (taken, point.on_front) {
        (true, _) => "recommended",
        (false, true) => "on the front",
        (false, false) => "",
    }
}

fn numbers(curve: &SweepCurve, point: &SweepPoint) -> [String; 8] {
    let or_nothing = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let runs = if point.same_as_control > 0 {
        format!(
            "{} ({} as off)",
            grouped(point.runs),
            grouped(point.same_as_control)
        )
    } else {
        grouped(point.runs)
    };
    [
        runs,
        or_nothing(point.input_tokens.map(amount)),
        or_nothing(of_control(curve, point).map(figure)),
        or_nothing(point.iterations.map(amount)),
        or_nothing(point.success_rate.map(percent)),
        or_nothing(point.quality.map(percent)),
        or_nothing(point.results_persisted.map(grouped)),
        or_nothing(point.read_amplification.map(figure)),
    ]
}

fn csv(sweep: &Sweep) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    writer
        .write_record([
            "scenario",
            "input",
            "class",
            "configuration",
            "threshold_bytes",
            "preview_share",
            "runs",
            "same_as_control",
            "success_rate",
            "median_input_tokens",
            "input_tokens_of_control",
            "median_iterations",
            "mean_quality",
            "results_persisted",
            "read_amplification",
            "on_front",
            "recommended",
        ])
        .expect("writing to memory does not fail");
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    for curve in &sweep.curves {
        for point in &curve.points {
            let row = [
                text(&curve.scenario),
                text(&curve.input),
                curve.class.as_str().to_owned(),
                text(&point.configuration),
                whole(point.threshold_bytes),
                number(point.preview_share),
                point.runs.to_string(),
                point.same_as_control.to_string(),
                number(point.success_rate),
                number(point.input_tokens),
                number(of_control(curve, point)),
                number(point.iterations),
                number(point.quality),
                whole(point.results_persisted),
                number(point.read_amplification),
                point.on_front.to_string(),
                (mark(curve, point) == "recommended").to_string(),
            ];
            writer
                .write_record(row)
                .expect("every row has one cell for each column");
        }
    }
    let bytes = writer
        .into_inner()
        .expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every cell is UTF-8")
}

fn terminal(sweep: &Sweep) -> String {
    let mut table = TextTable::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header([
            "input", "setting", "tokens", "of off", "iter.", "success", "quality",
        ]);
    for curve in &sweep.curves {
        // What stored nothing is the control once more.
        let control = curve.points.first().map(|point| &point.configuration);
        let tells = |point: &&SweepPoint| {
            Some(&point.configuration) == control || point.results_persisted != Some(0)
        };
        for point in curve.points.iter().filter(tells) {
            let [_, tokens, of_off, iterations, success, quality, _, _] = numbers(curve, point);
            table.add_row([
                place(curve),
                plain(&point.configuration),
                tokens,
                of_off,
                iterations,
                success,
                quality,
            ]);
        }
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Input tokens over the control's, by threshold on a logarithmic axis.
fn draw(curves: &[SweepCurve]) -> String {
    let frame = Frame {
        id: "chart-sweep",
        title: "Input tokens over the control's, by threshold",
        description: "A line for each input: median input tokens of a run over those with nothing \
                      stored, at each threshold. The dashed line is the control, at 1. The tables below \
                      have the same figures.",
        size: SIZE,
    };
    let lines: Vec<Vec<(f64, f64)>> = curves.iter().map(points).collect();
    let all = || lines.iter().flatten();
    let least = all().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let most = all().map(|(x, _)| *x).fold(0.0, f64::max);
    let top = all().map(|(_, y)| *y).fold(1.0, f64::max) * 1.1;
    let span = if most > least {
        most.ln() - least.ln()
    } else {
        1.0
    };
    let across = |x: f64| {
        let share = if most > least {
            (x.ln() - least.ln()) / span
        } else {
            0.5
        };
        units(LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT))
    };
    let up = |y: f64| units(BOTTOM - y / top * (BOTTOM - TOP));
    sheet(&frame, |sheet| {
        for part in 0..=4 {
            let y = top * f64::from(part) / 4.0;
            sheet.line((units(LEFT), up(y)), (units(RIGHT), up(y)), Ink::Line, 1);
            let at = (units(LEFT) - 6, up(y));
            sheet.text(at, &format!("{y:.2}"), 11.0, Ink::Text, Side::LeftOf);
        }
        sheet.line(
            (units(LEFT), up(1.0)),
            (units(RIGHT), up(1.0)),
            Ink::Limit,
            1,
        );
        let beside = (units(RIGHT) + 6, up(1.0));
        sheet.text(beside, "control", 11.0, Ink::Text, Side::RightOf);
        let mut thresholds: Vec<u64> = curves
            .iter()
            .flat_map(|curve| &curve.points)
            .filter_map(|point| point.threshold_bytes)
            .collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        for bytes in &thresholds {
            let x = across(*bytes as f64);
            sheet.line((x, units(BOTTOM)), (x, units(BOTTOM) + 5), Ink::Text, 1);
        }
        // Labels stand apart from each other.
        let every = thresholds.len().div_ceil(10).max(1);
        for bytes in thresholds.iter().step_by(every) {
            let at = (across(*bytes as f64), units(BOTTOM) + 8);
            sheet.text(at, &kibibytes(*bytes), 11.0, Ink::Text, Side::Under);
        }
        for (series, line) in (0u8..).zip(&lines) {
            let path: Vec<At> = line.iter().map(|(x, y)| (across(*x), up(*y))).collect();
            for at in &path {
                sheet.dot(*at, 3, Ink::Series(series));
            }
            if path.len() > 1 {
                sheet.path(path, Ink::Series(series), 2);
            }
        }
    })
}

/// A curve's points at their thresholds; of several preview shares the first.
fn points(curve: &SweepCurve) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for point in &curve.points {
        let (Some(bytes), Some(ratio)) = (point.threshold_bytes, of_control(curve, point)) else {
            continue;
        };
        let x = bytes as f64;
        if points.last().is_none_or(|(last, _)| *last < x) {
            points.push((x, ratio));
        }
    }
    points
}

fn kibibytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1_048_576) {
        format!("{} MiB", bytes >> 20)
    } else if bytes.is_multiple_of(1_024) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} B")
    }
}
