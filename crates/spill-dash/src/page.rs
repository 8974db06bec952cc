//! The dashboard's pages, from templates.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;
use spill_record::{RunRecord, RunSet};
use spill_verdict::{figure, grouped, plain};

use crate::board::{Board, Card};

pub(crate) const STYLE: &str = include_str!("templates/dash.css");
pub(crate) const SCRIPT: &str = include_str!("templates/dash.js");

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("the default delimiters do not clash"));
    environment.add_filter("grouped", grouped);
    environment.add_filter("figure", figure);
    environment.add_filter("seconds", seconds);
    for (name, text) in [
        ("board.html", include_str!("templates/board.html")),
        ("page.html", include_str!("templates/page.html")),
        ("login.html", include_str!("templates/login.html")),
        ("runs.html", include_str!("templates/runs.html")),
    ] {
        environment
            .add_template(name, text)
            .expect("the templates are part of the program and parse");
    }
    environment
});

/// The part of the page that changes.
pub(crate) fn fragment(board: &Board) -> String {
    let view = View::of(board);
    render("board.html", &view)
}

/// The whole page around `fragment`.
pub(crate) fn page(fragment: &str) -> String {
    TEMPLATES
        .get_template("page.html")
        .and_then(|template| {
            template.render(
                context! { board => minijinja::Value::from_safe_string(fragment.to_owned()) },
            )
        })
        .expect("the template names only what it is given")
}

/// The page that asks for the token.
pub(crate) fn login() -> String {
    render("login.html", &())
}

/// All runs of an acceptance.
pub(crate) fn runs(id: &str, set: &RunSet) -> String {
    let view = Runs {
        id,
        runs: set.runs.iter().map(run_line).collect(),
    };
    render("runs.html", &view)
}

#[derive(Serialize)]
struct Runs<'a> {
    id: &'a str,
    runs: Vec<RunLine>,
}

#[derive(Serialize)]
struct RunLine {
    run_id: String,
    place: String,
    configuration: String,
    repetition: u32,
    outcome: &'static str,
    end_reason: &'static str,
    input_tokens: Option<u64>,
    iterations: Option<u64>,
}

fn run_line(run: &RunRecord) -> RunLine {
    RunLine {
        run_id: plain(&run.run_id),
        place: format!("{}/{}", plain(&run.scenario), plain(&run.input)),
        configuration: plain(&run.configuration),
        repetition: run.repetition,
        outcome: run.outcome.as_str(),
        end_reason: run.end_reason.as_str(),
        input_tokens: run.input_tokens,
        iterations: run.iterations,
    }
}

fn render<T: Serialize>(name: &str, view: &T) -> String {
    TEMPLATES
        .get_template(name)
        .and_then(|template| template.render(context! { view => Serde(view) }))
        .expect("the template names only what the view has")
}

#[derive(Serialize)]
struct View<'a> {
    running: Vec<&'a Card>,
    cards: &'a [Card],
    trends: Vec<Trend>,
}

impl<'a> View<'a> {
    fn of(board: &'a Board) -> Self {
        Self {
            running: board
                .cards
                .iter()
                .filter(|card| card.state == crate::CardState::Running)
                .collect(),
            cards: &board.cards,
            trends: trends(&board.cards),
        }
    }
}

/// One figure over the finished acceptances, oldest first.
#[derive(Serialize)]
struct Trend {
    title: String,
    limit: Option<f64>,
    latest: f64,
    points: Vec<Point>,
    chart: String,
}

#[derive(Serialize)]
struct Point {
    id: String,
    started_at: String,
    observed: f64,
    state: &'static str,
    words: &'static str,
}

/// Acceptances that a trend shows.
const TREND_POINTS: usize = 60;

/// The number that decides each rule for each candidate, over the finished acceptances.
fn trends(cards: &[Card]) -> Vec<Trend> {
    let finished: Vec<&Card> = cards
        .iter()
        .filter(|card| card.decision.is_some())
        .take(TREND_POINTS)
        .collect();
    let Some(newest) = finished.first() else {
        return Vec::new();
    };
    let mut trends = Vec::new();
    for rule in &newest.rules {
        for (column, candidate) in newest.candidates.iter().enumerate() {
            let points: Vec<Point> = finished
                .iter()
                .rev()
                .filter_map(|card| point(card, rule.number, candidate))
                .collect();
            let Some(latest) = points.last().map(|point| point.observed) else {
                continue;
            };
            let limit = rule.cells.get(column).and_then(|cell| cell.limit);
            let title = format!("Rule {}: {} · {candidate}", rule.number, rule.title);
            let values: Vec<f64> = points.iter().map(|point| point.observed).collect();
            trends.push(Trend {
                chart: crate::chart::draw(
                    &format!("trend-{}-{column}", rule.number),
                    &title,
                    &values,
                    limit,
                ),
                title,
                limit,
                latest,
                points,
            });
        }
    }
    trends
}

fn point(card: &Card, rule: u8, candidate: &str) -> Option<Point> {
    let column = card.candidates.iter().position(|name| name == candidate)?;
    let rule = card.rules.iter().find(|other| other.number == rule)?;
    let cell = rule.cells.get(column)?;
    Some(Point {
        id: card.id.clone(),
        started_at: card.started_at.clone(),
        observed: cell.observed?,
        state: cell.state,
        words: cell.words,
    })
}

/// A time to wait, for people.
fn seconds(value: f64) -> String {
    let whole = value.ceil().max(0.0);
    if whole < 120.0 {
        format!("{whole:.0} s")
    } else {
        format!("{:.0} min", (whole / 60.0).ceil())
    }
}
