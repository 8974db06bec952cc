use std::collections::BTreeMap;

use spill_record::{RulesRecord, RunRecord};
use spill_verdict::{Rule, figure, grouped};

use crate::canvas::{At, Frame, Ink, Sheet, Side, sheet, shorten, units};
use crate::measure::{Measure, Scale, concerns};
use crate::pairs::Versus;
use crate::table::Table;

/// Candidates that a plot has a panel for.
const PANELS: usize = 4;
/// Dots of a panel; beyond that, those that lie close together become one.
const DOTS: usize = 250;
const PANEL: (i32, i32) = (360, 230);
const LEFT: i32 = 66;
const RIGHT: i32 = 348;
const TOP: i32 = 24;
const BOTTOM: i32 = 188;

/// The pairs of one candidate: the control's value and the candidate's.
struct Arm {
    series: u8,
    name: String,
    values: Vec<(f64, f64)>,
}

/// All pairs of a rule: each a dot, the control's run across, the candidate's up.
pub(crate) struct Dots {
    pub(crate) chart: Option<String>,
    pub(crate) table: Table,
}

/// Draws and counts the pairs that `rule` looks at.
pub(crate) fn dots(rule: Rule, all: &[Versus<'_>], rules: &RulesRecord) -> Dots {
    let (chart, table_id, limit) = match rule {
        Rule::SuccessRate => ("chart-pairs-1", "pairs-1", None),
        Rule::IterationLimit => ("chart-pairs-2", "pairs-2", None),
        Rule::InputTokens => (
            "chart-pairs-3",
            "pairs-3",
            Some(rules.input_tokens_ratio_limit),
        ),
        Rule::Quality => ("chart-pairs-4", "pairs-4", None),
        Rule::NothingLeaks => ("chart-pairs-5", "pairs-5", None),
    };
    let measure = Measure::of(rule);
    let all: Vec<&Versus<'_>> = all.iter().filter(|versus| concerns(rule, versus)).collect();
    let mut panels: BTreeMap<u8, Arm> = BTreeMap::new();
    for versus in &all {
        let arm = panels.entry(versus.series).or_insert_with(|| Arm {
            series: versus.series,
            name: versus.candidate.clone(),
            values: Vec::new(),
        });
        let pairs = versus.pairs.iter();
        arm.values
            .extend(pairs.filter_map(|pair| both(&measure, pair)));
    }
    let mut panels: Vec<Arm> = panels.into_values().collect();
    panels.retain(|arm| !arm.values.is_empty());
    panels.truncate(PANELS);
    let table = table(&measure, &all, table_id);
    Dots {
        chart: (!panels.is_empty()).then(|| draw(&measure, &panels, chart, limit)),
        table,
    }
}

fn both(measure: &Measure, (off, on): &(&RunRecord, &RunRecord)) -> Option<(f64, f64)> {
    Some(((measure.of)(off)?, (measure.of)(on)?))
}

fn table(measure: &Measure, all: &[&Versus<'_>], id: &'static str) -> Table {
    let rows = all.iter().map(|versus| {
        let values: Vec<(f64, f64)> = versus
            .pairs
            .iter()
            .filter_map(|pair| both(measure, pair))
            .collect();
        let off: Vec<f64> = values.iter().map(|(off, _)| *off).collect();
        let on: Vec<f64> = values.iter().map(|(_, on)| *on).collect();
        let count = |keep: fn(&(f64, f64)) -> bool| {
            grouped(values.iter().filter(|pair| keep(pair)).count() as u64)
        };
        vec![
            versus.place(),
            versus.candidate.clone(),
            grouped(values.len() as u64),
            (measure.sum)(&off),
            (measure.sum)(&on),
            count(|(off, on)| on > off),
            count(|(off, on)| on == off),
            count(|(off, on)| on < off),
        ]
    });
    Table::new(
        id,
        format!("Pairs by input: {}", measure.name),
        &["input", "candidate"],
        &["pairs", "control", "candidate", "higher", "equal", "lower"],
        rows.collect(),
    )
}

/// From a value to its place between two ends of an axis.
struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
}

impl Axis {
    fn over(scale: Scale, panels: &[Arm]) -> Self {
        let values = panels.iter().flat_map(|arm| &arm.values);
        let values = values.flat_map(|(off, on)| [*off, *on]);
        let values: Vec<f64> = match scale {
            Scale::Logarithmic => values.map(|value| value.max(1.0).log10()).collect(),
            Scale::Linear | Scale::Words(_) => values.collect(),
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match scale {
            Scale::Logarithmic => Self {
                scale,
                least: least - 0.1,
                most: most + 0.1,
            },
            Scale::Linear => Self {
                scale,
                least: 0.0,
                most: if most > 0.0 { most * 1.08 } else { 1.0 },
            },
            Scale::Words(_) => Self {
                scale,
                least: -0.6,
                most: 1.6,
            },
        }
    }

    /// Share of the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Logarithmic => value.max(1.0).log10(),
            Scale::Linear | Scale::Words(_) => value,
        };
        ((value - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Words(words) => vec![(0.0, words[0].to_owned()), (1.0, words[1].to_owned())],
            Scale::Linear => {
                let step = step(self.most / 4.0);
                (0..=5u8)
                    .map(|index| f64::from(index) * step)
                    .filter(|value| *value <= self.most)
                    .map(|value| (value, figure(value)))
                    .collect()
            }
            Scale::Logarithmic => {
                let decades = 0..12i32;
                let all: Vec<f64> = decades
                    .flat_map(|decade| [1.0, 2.0, 5.0].map(|lead| lead * 10f64.powi(decade)))
                    .filter(|value| (self.least..=self.most).contains(&value.log10()))
                    .collect();
                let every = all.len().div_ceil(5).max(1);
                let some = all.into_iter().step_by(every);
                some.map(|value| (value, short(value))).collect()
            }
        }
    }
}

/// The round step nearest below `about`, at least a tenth of it.
fn step(about: f64) -> f64 {
    let power = 10f64.powf(about.log10().floor());
    let lead = [5.0, 2.5, 2.0, 1.0]
        .into_iter()
        .find(|lead| lead * power <= about);
    lead.unwrap_or(1.0) * power
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", figure(v / 1e6)),
        v if v >= 1e3 => format!("{}k", figure(v / 1e3)),
        v => figure(v),
    }
}

fn draw(measure: &Measure, panels: &[Arm], id: &str, limit: Option<f64>) -> String {
    let axis = Axis::over(measure.scale, panels);
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(2);
    let total: usize = panels.iter().map(|arm| arm.values.len()).sum();
    let line = match (measure.scale, limit) {
        (Scale::Words(_), _) => String::new(),
        (Scale::Linear | Scale::Logarithmic, None) => {
            " The line is where both are equal.".to_owned()
        }
        (Scale::Linear | Scale::Logarithmic, Some(limit)) => format!(
            " The line is where both are equal, dashed where the candidate's is {} times the control's.",
            figure(limit)
        ),
    };
    let description = format!(
        "All {} pairs by {}, a panel for each candidate: each pair a dot, the control's run across and \
         the candidate's up; pairs that coincide are one larger dot.{line} The table below counts the \
         pairs by input.",
        grouped(total as u64),
        measure.name,
    );
    let size = |count: usize, side: i32| {
        u32::try_from(side).expect("a side is positive") * u32::try_from(count).expect("few panels")
    };
    let frame = Frame {
        id,
        title: &format!("All pairs: {}", measure.name),
        description: &description,
        size: (size(columns, PANEL.0), size(rows, PANEL.1)),
    };
    sheet(&frame, |sheet| {
        for (index, arm) in (0i32..).zip(panels) {
            let origin = (index % 2 * PANEL.0, index / 2 * PANEL.1);
            let panel = Panel {
                sheet,
                axis: &axis,
                origin,
            };
            panel.frame(&arm.name, limit);
            panel.dots(&arm.values, arm.series);
        }
    })
}

struct Panel<'a, 'b> {
    sheet: &'a Sheet<'b>,
    axis: &'a Axis,
    origin: At,
}

impl Panel<'_, '_> {
    fn at(&self, off: f64, on: f64) -> At {
        self.place(self.axis.share(off), self.axis.share(on))
    }

    fn place(&self, across: f64, up: f64) -> At {
        (
            self.origin.0 + LEFT + units(across * f64::from(RIGHT - LEFT)),
            self.origin.1 + BOTTOM - units(up * f64::from(BOTTOM - TOP)),
        )
    }

    fn frame(&self, name: &str, limit: Option<f64>) {
        let (x, y) = self.origin;
        let title = format!("{} (up) against the control (across)", shorten(name, 24));
        self.sheet
            .text((x + LEFT, y + 11), &title, 12.0, Ink::Text, Side::RightOf);
        self.sheet
            .line(self.place(0.0, 0.0), self.place(1.0, 0.0), Ink::Line, 1);
        self.sheet
            .line(self.place(0.0, 0.0), self.place(0.0, 1.0), Ink::Line, 1);
        for (value, words) in self.axis.ticks() {
            let (right, _) = self.at(value, 0.0);
            self.sheet.text(
                (right, y + BOTTOM + 6),
                &words,
                11.0,
                Ink::Soft,
                Side::Under,
            );
            let (_, up) = self.at(0.0, value);
            self.sheet
                .text((x + LEFT - 6, up), &words, 11.0, Ink::Soft, Side::LeftOf);
        }
        match self.axis.scale {
            Scale::Words(_) => {}
            Scale::Linear | Scale::Logarithmic => {
                self.sheet
                    .line(self.place(0.0, 0.0), self.place(1.0, 1.0), Ink::Line, 1);
            }
        }
        if let (Some(limit), Scale::Logarithmic) = (limit, self.axis.scale) {
            let rise = limit.log10() / (self.axis.most - self.axis.least);
            let (from, to) = if rise >= 0.0 {
                (self.place(0.0, rise), self.place(1.0 - rise, 1.0))
            } else {
                (self.place(-rise, 0.0), self.place(1.0, 1.0 + rise))
            };
            self.sheet.line(from, to, Ink::Limit, 1);
        }
    }

    fn dots(&self, values: &[(f64, f64)], series: u8) {
        let mut grid = 1;
        let mut dots = self.binned(values, grid);
        while dots.len() > DOTS {
            grid *= 2;
            dots = self.binned(values, grid);
        }
        let crowded = |x: i32, y: i32| {
            let near = |other: &At| (1..34).contains(&(other.0 - x)) && (other.1 - y).abs() < 14;
            dots.keys().any(near)
        };
        for ((x, y), count) in &dots {
            let area = (*count as f64).sqrt();
            let radius = units(3.0 + area * 0.8).min(14);
            self.sheet.dot((*x, *y), radius, Ink::Series(series));
            if dots.len() <= 12 && *count > 1 && !crowded(*x, *y) {
                let words = format!("×{}", grouped(*count));
                self.sheet.text(
                    (*x + radius + 3, *y - 5),
                    &words,
                    11.0,
                    Ink::Text,
                    Side::RightOf,
                );
            }
        }
    }

    /// How many pairs fall on each place of a grid of so many units.
    fn binned(&self, values: &[(f64, f64)], grid: i32) -> BTreeMap<At, u64> {
        let mut dots = BTreeMap::new();
        for (off, on) in values {
            let (x, y) = self.at(*off, *on);
            let snapped = (x / grid * grid, y / grid * grid);
            *dots.entry(snapped).or_insert(0) += 1;
        }
        dots
    }
}

#[cfg(test)]
mod tests {
    use super::{Arm, Axis, Scale, short, step};

    fn ticks(scale: Scale, values: &[(f64, f64)]) -> String {
        let arm = Arm {
            series: 1,
            name: "c".to_owned(),
            values: values.to_vec(),
        };
        let words = Axis::over(scale, &[arm]).ticks();
        let words: Vec<String> = words.into_iter().map(|(_, words)| words).collect();
        words.join(" ")
    }

    #[test]
    fn axes_have_round_values() {
        assert_eq!(step(15.0), 10.0);
        assert_eq!(step(0.27), 0.25);
        assert_eq!(short(1_500_000.0), "1.5M");
        assert_eq!(ticks(Scale::Linear, &[(3.0, 58.0)]), "0 10 20 30 40 50");
        assert_eq!(ticks(Scale::Linear, &[(0.0, 0.0)]), "0 0.25 0.5 0.75 1");
        assert_eq!(ticks(Scale::Logarithmic, &[(26e3, 2e6)]), "50k 200k 1M");
        assert_eq!(ticks(Scale::Words(["no", "yes"]), &[(0.0, 1.0)]), "no yes");
    }

    #[test]
    fn a_single_value_has_an_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for value in [0.0, 1.0, 7.0, 1e12] {
                let arm = Arm {
                    series: 1,
                    name: "c".to_owned(),
                    values: vec![(value, value)],
                };
                let share = Axis::over(scale, &[arm]).share(value);
                assert!((0.0..=1.0).contains(&share), "{value} lies at {share}");
            }
        }
    }
}
