use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::canvas::{Frame, Ink, SERIES, shorten, wrap};

/// Width and height of a chart, in its own units.
const SIZE: (u32, u32) = (720, 240);
/// Inputs that a chart shows; the table behind it has all of them.
const INPUTS: usize = 8;

/// One bar: its height, and the range of the runs behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) height: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// What a chart shows: bars by input, one for each configuration in the order of the plan.
pub(crate) struct Chart<'a> {
    /// Unique within the page; letters and hyphens.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) description: String,
    pub(crate) groups: Vec<(String, Vec<Option<Bar>>)>,
    /// How a value on the axis and over a bar is written.
    pub(crate) label: fn(f64) -> String,
}

/// The chart as an SVG element with title and description, coloured by classes.
pub(crate) fn draw(chart: &Chart<'_>) -> String {
    let mut body = String::new();
    {
        let root = SVGBackend::with_string(&mut body, SIZE).into_drawing_area();
        draw_on(&root, chart).expect("a string takes every drawing");
        root.present().expect("a string takes every drawing");
    }
    let frame = Frame {
        id: chart.id,
        title: chart.title,
        description: &chart.description,
        size: SIZE,
    };
    wrap(&frame, &body)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawError = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

fn draw_on(root: &Area<'_>, chart: &Chart<'_>) -> Result<(), DrawError> {
    let (text, line) = (Ink::Text.stand_in(), Ink::Line.stand_in());
    let groups = &chart.groups[..chart.groups.len().min(INPUTS)];
    let bars = groups.iter().flat_map(|(_, bars)| bars).flatten();
    let top = bars.map(|bar| bar.most.max(bar.height)).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.15 } else { 1.0 };
    let width = groups.len().max(1) as f64;
    let mut plot = ChartBuilder::on(root)
        .margin_top(6)
        .margin_right(6)
        .x_label_area_size(26)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..width, 0.0..top)?;
    plot.configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_labels(5)
        .y_max_light_lines(0)
        .bold_line_style(line)
        .axis_style(line)
        .y_label_formatter(&|value| (chart.label)(*value))
        .y_label_style(("sans-serif", 14).into_font().color(&text))
        .draw()?;
    let area = plot.plotting_area();
    for (index, (name, bars)) in groups.iter().enumerate() {
        draw_group(area, index, bars, chart.label)?;
        let center = area.map_coordinate(&(index as f64 + 0.5, 0.0));
        let style = ("sans-serif", 15).into_font().color(&text).pos(
            plotters::style::text_anchor::Pos::new(
                plotters::style::text_anchor::HPos::Center,
                plotters::style::text_anchor::VPos::Top,
            ),
        );
        root.draw_text(&shorten(name, 24), &style, (center.0, center.1 + 6))?;
    }
    Ok(())
}

fn draw_group(
    area: &DrawingArea<SVGBackend<'_>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    index: usize,
    bars: &[Option<Bar>],
    label: fn(f64) -> String,
) -> Result<(), DrawError> {
    let text = Ink::Text.stand_in();
    let slot = 0.84 / bars.len().max(1) as f64;
    for (series, bar) in (0u8..).zip(bars) {
        let Some(bar) = bar else { continue };
        let left = index as f64 + 0.08 + slot * f64::from(series);
        let (right, middle) = (left + slot * 0.86, left + slot * 0.43);
        let colour = Ink::Series(series % SERIES).stand_in();
        area.draw(&Rectangle::new(
            [(left, 0.0), (right, bar.height)],
            colour.filled(),
        ))?;
        if bar.most > bar.least {
            let whisker = [(middle, bar.least), (middle, bar.most)];
            area.draw(&PathElement::new(
                whisker,
                Ink::Whisker.stand_in().stroke_width(2),
            ))?;
        }
        let style = ("sans-serif", 12).into_font().color(&text).pos(
            plotters::style::text_anchor::Pos::new(
                if bar.most > bar.height {
                    plotters::style::text_anchor::HPos::Right
                } else {
                    plotters::style::text_anchor::HPos::Center
                },
                plotters::style::text_anchor::VPos::Bottom,
            ),
        );
        // At the bar's own height; left of the whisker where that goes on above it.
        let beside = if bar.most > bar.height {
            slot * 0.04
        } else {
            0.0
        };
        let at = (middle - beside, bar.height);
        area.draw(&Text::new(label(bar.height), at, style))?;
    }
    Ok(())
}
