//! A figure over runs, as an SVG line with its limit.

use plotters::prelude::*;

const SIZE: (u32, u32) = (360, 90);
/// Stand-ins that are replaced by classes, so that the style sheet colours the chart.
const SERIES: RGBColor = RGBColor(250, 0, 1);
const LIMIT: RGBColor = RGBColor(250, 0, 2);

/// `values` from left to right, the limit as a line across. The table beside it has the same figures.
pub(crate) fn draw(id: &str, title: &str, values: &[f64], limit: Option<f64>) -> String {
    let mut body = String::new();
    {
        let root = SVGBackend::with_string(&mut body, SIZE).into_drawing_area();
        draw_on(&root, values, limit).expect("a string takes every drawing");
        root.present().expect("a string takes every drawing");
    }
    let inner = body.find('>').map_or("", |end| &body[end + 1..]);
    let mut inner = inner.replace(['\n', '\r'], "");
    for (colour, class) in [(SERIES, "series"), (LIMIT, "limit")] {
        let hex = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        inner = inner
            .replace(
                &format!("fill=\"{hex}\" stroke=\"none\""),
                &format!("class=\"f-{class}\""),
            )
            .replace(
                &format!("stroke=\"{hex}\""),
                &format!("class=\"s-{class}\""),
            );
    }
    let limit = limit.map_or_else(String::new, |limit| {
        format!(" The line across is the limit, {limit}.")
    });
    format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title>\
         <desc id=\"{id}-d\">{} finished acceptances, oldest at the left.{limit} The table has the same figures.</desc>{inner}",
        SIZE.0,
        SIZE.1,
        escape(title),
        values.len(),
    )
}

type DrawError = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

fn draw_on(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    values: &[f64],
    limit: Option<f64>,
) -> Result<(), DrawError> {
    let all = || values.iter().copied().chain(limit);
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    let room = ((high - low) * 0.15).max(high.abs().max(1.0) * 0.02);
    let last = values.len().saturating_sub(1).max(1) as f64;
    let mut plot = ChartBuilder::on(root)
        .margin(6)
        .build_cartesian_2d(-0.02 * last..last * 1.02, low - room..high + room)?;
    if let Some(limit) = limit {
        let across = [(-0.02 * last, limit), (last * 1.02, limit)];
        plot.draw_series(LineSeries::new(across, LIMIT.stroke_width(1)))?;
    }
    let points = || {
        values
            .iter()
            .enumerate()
            .map(|(at, value)| (at as f64, *value))
    };
    plot.draw_series(LineSeries::new(points(), SERIES.stroke_width(2)))?;
    plot.draw_series(points().map(|at| Circle::new(at, 3, SERIES.filled())))?;
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
