use spill_record::{Class, RulesRecord};
use spill_verdict::{figure, grouped};

use crate::canvas::{Frame, Ink, Sheet, Side, sheet, shorten, units};
use crate::cells::Spread;
use crate::figures::NOTHING;
use crate::pairs::Versus;
use crate::table::Table;

/// Rows that the drawing has; the table has all.
const ROWS: usize = 16;
/// Characters that a row's label has at most, and its input's name where there are several.
const LABEL: usize = 22;
const INPUT: usize = 10;
const WIDTH: u32 = 396;
const LEFT: i32 = 126;
const RIGHT: i32 = 268;
const HEAD: i32 = 16;
const STEP: i32 = 16;
const FOOT: i32 = 16;

/// The paired ratios of one input under one candidate.
struct Line {
    label: String,
    place: String,
    candidate: String,
    series: u8,
    spread: Option<Spread>,
    limit: Option<f64>,
    relation: &'static str,
}

/// Paired ratios of input tokens: drawing and table.
pub(crate) struct Forest {
    pub(crate) chart: String,
    /// Rows that the table has and the drawing has not.
    pub(crate) left_out: usize,
    pub(crate) table: Table,
}

/// The forest plot of all inputs and candidates.
pub(crate) fn forest(all: &[Versus<'_>], rules: &RulesRecord) -> Forest {
    let is_one_input = all
        .iter()
        .all(|versus| std::ptr::eq(versus.input, all[0].input));
    let lines: Vec<Line> = all
        .iter()
        .map(|versus| line(versus, is_one_input, rules))
        .collect();
    Forest {
        chart: draw(&lines, rules),
        left_out: lines.len().saturating_sub(ROWS),
        table: table(&lines),
    }
}

/// What a row is about: candidates of one input are told apart by their own names alone.
fn label(versus: &Versus<'_>, is_one_input: bool) -> String {
    if is_one_input {
        return shorten(&versus.candidate, LABEL);
    }
    let input = shorten(&versus.input.input, INPUT);
    let room = LABEL - 1 - input.chars().count();
    format!("{input} {}", shorten(&versus.candidate, room))
}

fn line(versus: &Versus<'_>, is_one_input: bool, rules: &RulesRecord) -> Line {
    let (limit, relation) = match versus.input.class {
        Class::Small | Class::Medium => (Some(rules.input_tokens_ratio_limit), "≤"),
        Class::Large => (Some(rules.large_input_tokens_ratio_limit), "<"),
        Class::Document => (None, ""),
    };
    Line {
        label: label(versus, is_one_input),
        place: versus.place(),
        candidate: versus.candidate.clone(),
        series: versus.series,
        spread: versus.token_ratios(),
        limit,
        relation,
    }
}

fn table(lines: &[Line]) -> Table {
    let rows = lines.iter().map(|line| {
        let limit = line.limit.map_or_else(
            || "exempt".to_owned(),
            |limit| format!("{} {}", line.relation, figure(limit)),
        );
        let [n, median, range] = match line.spread {
            Some(s) => [
                grouped(s.n),
                figure(s.median),
                format!("{} – {}", figure(s.least), figure(s.most)),
            ],
            None => ["0".to_owned(), NOTHING.to_owned(), NOTHING.to_owned()],
        };
        vec![
            line.place.clone(),
            line.candidate.clone(),
            n,
            median,
            range,
            limit,
        ]
    });
    Table::new(
        "forest-table",
        "Ratios within pairs: input tokens of the candidate over those of the control",
        &["input", "candidate"],
        &["pairs", "median", "least – most", "limit of the class"],
        rows.collect(),
    )
}

/// Where ratios are on the drawing: a logarithmic axis that holds every value and both limits.
struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    fn over(lines: &[Line], rules: &RulesRecord) -> Self {
        let values = lines.iter().filter_map(|line| line.spread);
        let values = values.flat_map(|s| [s.least, s.most]);
        let limits = [
            rules.input_tokens_ratio_limit,
            rules.large_input_tokens_ratio_limit,
            1.0,
        ];
        let all: Vec<f64> = values
            .chain(limits)
            .filter(|value| value.is_finite() && *value > 0.0)
            .map(f64::ln)
            .collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let pad = ((most - least) * 0.08).max(0.08);
        Self {
            least: least - pad,
            most: most + pad,
        }
    }

    fn at(&self, ratio: f64) -> i32 {
        let ln = ratio.max(1e-9).ln();
        let share = ((ln - self.least) / (self.most - self.least)).clamp(0.0, 1.0);
        LEFT + units(share * f64::from(RIGHT - LEFT))
    }

    fn holds(&self, ratio: f64) -> bool {
        (self.least..=self.most).contains(&ratio.ln())
    }
}

fn draw(lines: &[Line], rules: &RulesRecord) -> String {
    let shown = &lines[..lines.len().min(ROWS)];
    let axis = Axis::over(shown, rules);
    let rows = i32::try_from(shown.len()).expect("there are few rows");
    let bottom = HEAD + rows * STEP;
    let height = u32::try_from(bottom + FOOT).expect("a height is positive");
    let limit = rules.input_tokens_ratio_limit;
    let description = format!(
        "Input tokens of the candidate over those of the control within each pair, on a logarithmic \
         axis: a dot at the median, a line from the least to the most, the number of pairs. Dashed: \
         the limits {} (small and medium) and {} (large). The table at rule 3 has the same figures.",
        figure(limit),
        figure(rules.large_input_tokens_ratio_limit)
    );
    let frame = Frame {
        id: "chart-forest",
        title: "Ratios of input tokens within pairs",
        description: &description,
        size: (WIDTH, height),
    };
    sheet(&frame, |sheet| {
        grid(sheet, &axis, rules, bottom);
        for (index, line) in (0..).zip(shown) {
            draw_line(sheet, &axis, line, HEAD + index * STEP + STEP / 2);
        }
    })
}

fn grid(sheet: &Sheet<'_>, axis: &Axis, rules: &RulesRecord, bottom: i32) {
    let head =
        |x: i32, text: &str, side| sheet.text((x, HEAD / 2 - 1), text, 10.0, Ink::Soft, side);
    head(0, "input, candidate", Side::RightOf);
    head(RIGHT + 8, "median [range], n", Side::RightOf);
    sheet.line((LEFT, bottom), (RIGHT, bottom), Ink::Line, 1);
    let (small, large) = (
        rules.input_tokens_ratio_limit,
        rules.large_input_tokens_ratio_limit,
    );
    let mut taken: Vec<i32> = Vec::new();
    for (limit, side, beside) in [(large, Side::LeftOf, -1), (small, Side::RightOf, 1)] {
        let x = axis.at(limit);
        sheet.line((x, HEAD), (x, bottom), Ink::Limit, 1);
        sheet.text(
            (x + beside, bottom + 8),
            &figure(limit),
            10.0,
            Ink::Text,
            side,
        );
        taken.push(x);
    }
    let ticks = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
    ];
    for tick in ticks.into_iter().filter(|tick| axis.holds(*tick)) {
        let x = axis.at(tick);
        if taken.iter().all(|other| (x - other).abs() > 24) {
            taken.push(x);
            sheet.line((x, bottom), (x, bottom + 3), Ink::Line, 1);
            sheet.text(
                (x, bottom + 8),
                &figure(tick),
                10.0,
                Ink::Soft,
                Side::Middle,
            );
        }
    }
}

fn draw_line(sheet: &Sheet<'_>, axis: &Axis, line: &Line, y: i32) {
    sheet.text((0, y), &line.label, 11.0, Ink::Text, Side::RightOf);
    let Some(spread) = line.spread else {
        sheet.text((RIGHT + 8, y), NOTHING, 11.0, Ink::Soft, Side::RightOf);
        return;
    };
    let ink = Ink::Series(line.series);
    sheet.line(
        (axis.at(spread.least), y),
        (axis.at(spread.most), y),
        ink,
        2,
    );
    sheet.dot((axis.at(spread.median), y), 4, ink);
    if let Some(limit) = line.limit {
        let x = axis.at(limit);
        sheet.line((x, y - 6), (x, y + 6), Ink::Whisker, 2);
    }
    let range = if spread.least == spread.most {
        String::new()
    } else {
        format!(" [{}–{}]", round(spread.least), round(spread.most))
    };
    let text = format!("{}{range}, n {}", round(spread.median), grouped(spread.n));
    sheet.text((RIGHT + 8, y), &text, 11.0, Ink::Text, Side::RightOf);
}

/// Two decimals, or as many as it takes not to read as 1.
fn round(ratio: f64) -> String {
    let short = (ratio * 100.0).round() / 100.0;
    if short == 1.0 {
        figure(ratio)
    } else {
        figure(short)
    }
}
