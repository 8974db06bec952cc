use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use spill_verdict::plain;

/// Colours that the style sheet has for configurations.
pub(crate) const SERIES: u8 = 6;
/// Colours that it has for the origins of a context.
pub(crate) const ORIGINS: u8 = 5;

/// What a mark is coloured by: stand-ins in the drawing become classes, so that the style sheet
/// decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Soft,
    Line,
    Whisker,
    /// A limit: dashed by the style sheet.
    Limit,
    Series(u8),
    /// The surface between two lines of a series.
    Band(u8),
    Origin(u8),
}

impl Ink {
    pub(crate) fn stand_in(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(250, 0, 1),
            Self::Line => RGBColor(250, 0, 2),
            Self::Whisker => RGBColor(250, 0, 3),
            Self::Soft => RGBColor(250, 0, 4),
            Self::Limit => RGBColor(250, 0, 5),
            Self::Series(series) => RGBColor(251, 0, series % SERIES),
            Self::Band(series) => RGBColor(253, 0, series % SERIES),
            Self::Origin(origin) => RGBColor(252, 0, origin % ORIGINS),
        }
    }

    fn class(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Line => "line".to_owned(),
            Self::Whisker => "whisker".to_owned(),
            Self::Soft => "soft".to_owned(),
            Self::Limit => "limit".to_owned(),
            Self::Series(series) => format!("c{}", series % SERIES),
            Self::Band(series) => format!("b{}", series % SERIES),
            Self::Origin(origin) => format!("o{}", origin % ORIGINS),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        [
            Self::Text,
            Self::Line,
            Self::Whisker,
            Self::Soft,
            Self::Limit,
        ]
        .into_iter()
        .chain((0..SERIES).map(Self::Series))
        .chain((0..SERIES).map(Self::Band))
        .chain((0..ORIGINS).map(Self::Origin))
    }
}

/// What every chart has besides its drawing.
pub(crate) struct Frame<'a> {
    /// Unique within the page; letters, digits and hyphens.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
    /// Width and height, in the drawing's own units.
    pub(crate) size: (u32, u32),
}

/// On which side of its place a text stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    RightOf,
    LeftOf,
    Under,
    Middle,
}

/// A drawing in whole units, from the upper left.
pub(crate) struct Sheet<'a>(DrawingArea<SVGBackend<'a>, Shift>);

pub(crate) type At = (i32, i32);

impl Sheet<'_> {
    pub(crate) fn line(&self, from: At, to: At, ink: Ink, width: u32) {
        let style = ink.stand_in().stroke_width(width);
        self.0
            .draw(&PathElement::new([from, to], style))
            .expect(DRAWS);
    }

    pub(crate) fn path(&self, points: Vec<At>, ink: Ink, width: u32) {
        let style = ink.stand_in().stroke_width(width);
        self.0.draw(&PathElement::new(points, style)).expect(DRAWS);
    }

    /// Fills the surface inside of `points`.
    pub(crate) fn surface(&self, points: Vec<At>, ink: Ink) {
        let style = ink.stand_in().filled();
        self.0.draw(&Polygon::new(points, style)).expect(DRAWS);
    }

    pub(crate) fn block(&self, from: At, to: At, ink: Ink) {
        let block = Rectangle::new([from, to], ink.stand_in().filled());
        self.0.draw(&block).expect(DRAWS);
    }

    pub(crate) fn dot(&self, at: At, radius: i32, ink: Ink) {
        let dot = Circle::new(at, radius, ink.stand_in().filled());
        self.0.draw(&dot).expect(DRAWS);
    }

    /// Writes `text`, which may come from outside, in a size of the drawing's units.
    pub(crate) fn text(&self, at: At, text: &str, size: f64, ink: Ink, side: Side) {
        let pos = match side {
            Side::RightOf => Pos::new(HPos::Left, VPos::Center),
            Side::LeftOf => Pos::new(HPos::Right, VPos::Center),

            Side::Under => Pos::new(HPos::Center, VPos::Top),
            Side::Middle => Pos::new(HPos::Center, VPos::Center),
        };
        // The drawing library writes a font's size divided by this.
        let style = ("sans-serif", size * 1.24).into_font();
        let style = style.color(&ink.stand_in()).pos(pos);
        self.0.draw_text(text, &style, at).expect(DRAWS);
    }
}

const DRAWS: &str = "a string takes every drawing";

/// The chart as an SVG element with title and description, coloured by classes.
pub(crate) fn sheet(frame: &Frame<'_>, draw: impl FnOnce(&Sheet<'_>)) -> String {
    let mut body = String::new();
    {
        let sheet = Sheet(SVGBackend::with_string(&mut body, frame.size).into_drawing_area());
        draw(&sheet);
        sheet.0.present().expect(DRAWS);
    }
    wrap(frame, &body)
}

/// Replaces the drawing's own opening tag by one with a name and a description, and stand-in
/// colours by classes.
pub(crate) fn wrap(frame: &Frame<'_>, body: &str) -> String {
    let inner = body.find('>').map_or("", |end| &body[end + 1..]);
    let mut inner = inner
        .replace(['\n', '\r'], "")
        .replace(" opacity=\"1\"", "")
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" stroke-width=\"1\"", "");
    for ink in Ink::all() {
        let colour = ink.stand_in();
        let hex = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        if inner.contains(&hex) {
            let class = ink.class();
            inner = inner
                .replace(&format!("fill=\"{hex}\""), &format!("class=\"f-{class}\""))
                .replace(
                    &format!("stroke=\"{hex}\""),
                    &format!("class=\"s-{class}\""),
                );
        }
    }
    let Frame {
        id,
        title,
        description,
        size: (width, height),
    } = frame;
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{}</title>\
         <desc id=\"{id}-desc\">{}</desc>{inner}",
        escape(title),
        escape(description)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A name from outside that fits beside a chart.
pub(crate) fn shorten(name: &str, longest: usize) -> String {
    let name = plain(name);
    if name.chars().count() <= longest {
        return name;
    }
    name.chars().take(longest - 1).chain(['…']).collect()
}

/// The whole number of units nearest to `value`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "drawings are some hundred units wide, and the cast saturates"
)]
pub(crate) fn units(value: f64) -> i32 {
    value.round() as i32
}
