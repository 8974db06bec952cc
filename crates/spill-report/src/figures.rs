use serde::Serialize;
use spill_record::{ConfigurationRole, Cost, Mode, RunRecord, RunSet};
use spill_verdict::{amount, figure, grouped, percent, plain, share};

use crate::cells::{Cell, Spread, end_facts, facts, large_facts};
use crate::chart::{Bar, Chart, draw};
use crate::durations::{DEFINITION, Durations, PERCENTILES};
use crate::money::{
    against as against_money, amount_of_money, middle_of_money, of_cell, prices_words,
};
use crate::pairs::place;

/// What stands where a figure was not obtained.
pub(crate) const NOTHING: &str = "n/a";

/// What stands where a figure belongs that no run of this mode measures.
const NOT_MEASURED: &str = "not measured";

/// One measure: a table by input and configuration, with or without a chart over it.
#[derive(Serialize)]
pub(crate) struct Figure {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) measured: bool,
    /// SVG, escaped already.
    pub(crate) chart: Option<String>,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
}

/// One cell's line in a table.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) input: String,
    pub(crate) configuration: String,
    /// Place of the configuration in the plan, for its colour.
    pub(crate) series: usize,
    /// Whether the row begins a new input.
    pub(crate) first: bool,
    pub(crate) cells: Vec<String>,
}

/// The report's view of a cell: the cell and its input's control.
struct Line<'a> {
    cell: &'a Cell<'a>,
    control: Option<&'a Cell<'a>>,
    series: usize,
}

/// All measures, in the order that the report shows them.
pub(crate) fn figures(set: &RunSet, cells: &[Cell<'_>]) -> Vec<Figure> {
    let lines = lines(cells, set.manifest.plan.configurations.len());
    let mode = set.manifest.mode;
    let mut figures = vec![tokens(&lines, mode)];
    figures.extend(costs(&lines, set));
    figures.extend([
        iterations(&lines),
        memory(&lines),
        durations(&lines),
        success(&lines, mode),
        quality(&lines),
        storing(&lines),
    ]);
    if lines.iter().any(|line| line.cell.model_times().n() > 0) {
        let place = figures.iter().position(|figure| figure.id == "durations");
        figures.insert(place.unwrap_or(0), model_times(&lines, mode));
    }
    figures
}

fn lines<'a>(cells: &'a [Cell<'a>], configurations: usize) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for group in cells.chunks(configurations.max(1)) {
        let control = group
            .iter()
            .find(|c| c.configuration.role == ConfigurationRole::Control);
        for (series, cell) in group.iter().enumerate() {
            lines.push(Line {
                cell,
                control,
                series,
            });
        }
    }
    lines
}

fn rows(lines: &[Line<'_>], cells: impl Fn(&Line<'_>) -> Vec<String>) -> Vec<Row> {
    lines
        .iter()
        .map(|line| Row {
            input: input_name(line.cell),
            configuration: plain(&line.cell.configuration.name),
            series: line.series,
            first: line.series == 0,
            cells: cells(line),
        })
        .collect()
}

fn input_name(cell: &Cell<'_>) -> String {
    place(&cell.input.scenario, &cell.input.input)
}

fn chart(
    lines: &[Line<'_>],
    id: &'static str,
    title: &'static str,
    what: &str,
    label: fn(f64) -> String,
    pick: impl Fn(&Cell<'_>) -> Option<Spread>,
) -> String {
    let mut groups: Vec<(String, Vec<Option<Bar>>)> = Vec::new();
    for line in lines {
        let bar = pick(line.cell).map(|spread| Bar {
            height: spread.median,
            least: spread.least,
            most: spread.most,
        });
        match groups.last_mut() {
            Some((_, bars)) if line.series > 0 => bars.push(bar),
            Some(_) | None => groups.push((input_name(line.cell), vec![bar])),
        }
    }
    let names: Vec<String> = lines
        .iter()
        .take_while({
            let mut started = false;
            move |line| !(line.series == 0 && std::mem::replace(&mut started, true))
        })
        .map(|line| plain(&line.cell.configuration.name))
        .collect();
    let description = format!(
        "Bars by input for {}: {what}; the line over a bar spans the least and the most of its runs. \
         The table below has the same figures.",
        names.join(", ")
    );
    draw(&Chart {
        id,
        title,
        description,
        groups,
        label,
    })
}

/// Input tokens that were neither read from nor written to a cache.
fn uncached(run: &RunRecord) -> Option<u64> {
    run.tokens().map(|tokens| tokens.uncached_input_tokens)
}

/// Said of a simulated run and of no other.
fn if_simulated(mode: Mode, words: &str) -> &str {
    match mode {
        Mode::Simulated => words,
        Mode::Live => "",
    }
}

const NO_CACHE_WRITES: &str = "The simulated model bills no cache writes apart. ";

fn tokens(lines: &[Line<'_>], mode: Mode) -> Figure {
    let pick = |r: &RunRecord| r.input_tokens;
    Figure {
        id: "tokens",
        title: "Tokens",
        note: format!(
            "Of one run, over all its LLM calls; medians over finished runs, in four buckets: input \
             that was neither read from nor written to a cache, cache reads, cache writes, output. \
             {}Cache reads are told apart by \
             whether the read tool had joined the tool list, which happens at most once in a run. \
             A median of an even count is the mean of the two middle values.",
            if_simulated(mode, NO_CACHE_WRITES)
        ),
        measured: false,
        chart: Some(chart(
            lines,
            "chart-tokens",
            "Input tokens",
            "median input tokens of a run",
            short,
            |cell| cell.spread(pick),
        )),
        columns: vec![
            "n",
            "input, median",
            "least – most",
            "of control",
            "uncached",
            "cache read",
            "cache write",
            "output",
            "cache read before read tool",
            "cache read with it",
        ],
        rows: rows(lines, |line| {
            let spread = line.cell.spread(pick);
            vec![
                count(spread),
                middle(spread),
                range(spread, amount),
                against(line, pick),
                middle(line.cell.spread(uncached)),
                middle(line.cell.spread(|r| r.cached_input_tokens)),
                line.cell
                    .spread(|r| r.cache_write_tokens)
                    .map_or_else(|| NOT_MEASURED.to_owned(), |s| amount(s.median)),
                middle(line.cell.spread(|r| r.output_tokens)),
                middle(line.cell.spread(|r| r.cached_before_read_tool_tokens)),
                middle(line.cell.spread(|r| r.cached_after_read_tool_tokens)),
            ]
        }),
    }
}

/// What the tokens cost, where the folder has a price table.
fn costs(lines: &[Line<'_>], set: &RunSet) -> Option<Figure> {
    let prices = prices_words(set);
    if prices.is_empty() {
        return None;
    }
    let note = format!(
        "Of one run, over all its LLM calls, by this folder's price table; medians over finished runs, \
         so that the parts need not add up to the whole. Prices of one million tokens: {}. \
         {}No rule reads a price.",
        prices.join("; "),
        if_simulated(set.manifest.mode, NO_CACHE_WRITES)
    );
    let mut currencies: Vec<&str> = lines
        .iter()
        .filter_map(|line| Some(line.cell.prices?.currency()))
        .collect();
    currencies.dedup();
    let chart = (currencies.len() == 1).then(|| {
        let what = format!("median cost of a run in {}", currencies[0]);
        chart(
            lines,
            "chart-costs",
            "Cost",
            &what,
            amount_of_money,
            |cell| cell.money(Cost::total),
        )
    });
    Some(Figure {
        id: "costs",
        title: "Cost",
        note,
        measured: false,
        chart,
        columns: vec![
            "n",
            "currency",
            "median",
            "least – most",
            "of control",
            "uncached input",
            "cache read",
            "cache write",
            "output",
        ],
        rows: rows(lines, |line| {
            let money = of_cell(line.cell);
            let total = money.as_ref().and_then(|money| money.total);
            let currency = money.as_ref().map(|money| money.currency.clone());
            let mut cells = vec![
                count(total),
                currency.unwrap_or_else(nothing),
                middle_of_money(total),
                range(total, amount_of_money),
                against_money(line.cell, line.control),
            ];
            let buckets = money.map_or_else(Default::default, |money| money.buckets);
            cells.extend(buckets.map(middle_of_money));
            cells
        }),
    })
}

fn iterations(lines: &[Line<'_>]) -> Figure {
    let pick = |r: &RunRecord| r.iterations;
    Figure {
        id: "iterations",
        title: "Iterations",
        note:
            "One iteration is one LLM call and the tool calls it asks for; medians over finished \
               runs. The last column counts the runs that used up their iterations."
                .to_owned(),
        measured: false,
        chart: Some(chart(
            lines,
            "chart-iterations",
            "Iterations",
            "median iterations of a run",
            figure,
            |cell| cell.spread(pick),
        )),
        columns: vec![
            "n",
            "median",
            "least – most",
            "LLM calls, median",
            "tool calls, median",
            "hit the limit",
        ],
        rows: rows(lines, |line| {
            let spread = line.cell.spread(pick);
            vec![
                count(spread),
                middle(spread),
                range(spread, amount),
                middle(line.cell.spread(|r| r.llm_calls)),
                middle(line.cell.spread(|r| r.tool_calls)),
                grouped(line.cell.limit_hits()),
            ]
        }),
    }
}

fn memory(lines: &[Line<'_>]) -> Figure {
    let pick = memory_of;
    let sampled = lines.iter().any(|line| {
        let mut records = line.cell.records().iter();
        records.any(|run| run.sampled_memory_bytes.is_some())
    });
    let how = if sampled {
        " Nothing tells the peak of its tree of processes here: these are the largest of its samples, and lower bounds."
    } else {
        ""
    };
    Figure {
        id: "memory",
        title: "Peak memory",
        note: format!("Peak resident memory of the subject; median over finished runs.{how}"),
        measured: true,
        chart: Some(chart(
            lines,
            "chart-memory",
            "Peak memory",
            "median peak resident memory",
            |value| format!("{value:.1} MiB"),
            |cell| cell.spread(pick).map(in_mebibytes),
        )),
        columns: vec!["n", "median", "least – most", "of control"],
        rows: rows(lines, |line| {
            let spread = line.cell.spread(pick);
            let median = spread.map_or_else(nothing, |spread| mebibytes(spread.median));
            vec![
                count(spread),
                median,
                range(spread, mebibytes),
                against(line, pick),
            ]
        }),
    }
}

fn durations(lines: &[Line<'_>]) -> Figure {
    Figure {
        id: "durations",
        title: "Step duration",
        note: DEFINITION.to_owned(),
        measured: true,
        chart: None,
        columns: vec!["n", "least", "p50", "p90", "p95", "p99", "most"],
        rows: percentiles(lines, |cell| cell.durations()),
    }
}

fn model_times(lines: &[Line<'_>], mode: Mode) -> Figure {
    let what = match mode {
        Mode::Simulated => {
            "What the model's answers of a step take together on the virtual clock of the scenario's \
             latency model: an assumption, not a measurement."
        }
        Mode::Live => {
            "What the endpoint took for the requests of a step together, those that were tried again \
             too; waits between attempts are not in it."
        }
    };
    Figure {
        id: "model-times",
        title: "Model time of a step",
        note: format!("{what} {DEFINITION}"),
        measured: match mode {
            Mode::Simulated => false,
            Mode::Live => true,
        },
        chart: None,
        columns: vec!["n", "least", "p50", "p90", "p95", "p99", "most"],
        rows: percentiles(lines, |cell| cell.model_times()),
    }
}

fn percentiles(lines: &[Line<'_>], pick: impl Fn(&Cell<'_>) -> Durations) -> Vec<Row> {
    rows(lines, |line| {
        let durations = pick(line.cell);
        let range = durations.range_ms();
        let mut cells = vec![grouped(durations.n())];
        cells.push(range.map_or_else(nothing, |(least, _)| millis(least)));
        cells.extend(PERCENTILES.map(|p| {
            durations
                .percentile_ms(p)
                .map_or_else(|| "–".to_owned(), millis)
        }));
        cells.push(range.map_or_else(nothing, |(_, most)| millis(most)));
        cells
    })
}

fn success(lines: &[Line<'_>], mode: Mode) -> Figure {
    Figure {
        id: "success",
        title: "Success",
        note: format!(
            "A run succeeded when its step completed with a non-empty answer, whatever its \
             quality. The rate is over finished runs; beside it, with those that the harness lost \
             counted as failures. {}",
            match mode {
                Mode::Simulated => {
                    "Intervals belong to live mode: a simulated run is a function of its seed."
                }
                Mode::Live => "Rule 1 has the interval of the difference.",
            }
        ),
        measured: false,
        chart: None,
        columns: vec![
            "planned",
            "finished",
            "succeeded",
            "failed",
            "harness",
            "missing",
            "success rate",
            "at least",
            "95 % interval",
        ],
        rows: rows(lines, |line| {
            let cell = line.cell;
            let mut cells: Vec<String> = [
                cell.planned,
                cell.finished(),
                cell.succeeded(),
                cell.failed(),
                cell.infrastructure(),
                cell.missing(),
            ]
            .map(grouped)
            .to_vec();
            cells.push(cell.success_rate().map_or_else(nothing, percent));
            cells.push(cell.success_rate_at_least().map_or_else(nothing, percent));
            cells.push(NOT_MEASURED.to_owned());
            cells
        }),
    }
}

fn quality(lines: &[Line<'_>]) -> Figure {
    Figure {
        id: "quality",
        title: "Quality",
        note:
            "Share of the expected facts that the final answer contains; means over finished runs. \
               The end is the last tenth of what carries a fact."
                .to_owned(),
        measured: false,
        chart: Some(chart(
            lines,
            "chart-quality",
            "Quality",
            "mean share of facts found",
            share_label,
            |cell| cell.coverage(facts),
        )),
        columns: vec![
            "n",
            "quality",
            "least – most",
            "end",
            "large results",
            "unfounded findings",
        ],
        rows: rows(lines, |line| {
            let spread = line.cell.coverage(facts);
            let mean = |pick| {
                line.cell
                    .coverage(pick)
                    .map_or_else(nothing, |s: Spread| percent(s.median))
            };
            vec![
                count(spread),
                mean(facts),
                range(spread, percent),
                mean(end_facts),
                mean(large_facts),
                line.cell
                    .total(|r| r.unfounded_findings)
                    .map_or_else(nothing, grouped),
            ]
        }),
    }
}

fn storing(lines: &[Line<'_>]) -> Figure {
    Figure {
        id: "storing",
        title: "Stored and read back",
        note: "Sums over the finished runs of a cell; read amplification is the bytes that reads \
               returned over the distinct ones among them, 1 where nothing was read twice. The store's fullest moment and the status \
               report's size are medians of a run. The state folder is what a configuration \
               declares for its store: its files are not counted as written."
            .to_owned(),
        measured: false,
        chart: None,
        columns: vec![
            "stored",
            "read back",
            "reads",
            "with range",
            "read bytes",
            "read again",
            "amplification",
            "store peak",
            "state folder, files",
            "bytes",
            "status report",
        ],
        rows: rows(lines, |line| {
            let cell = line.cell;
            let mut cells: Vec<String> = [
                cell.total(|r| r.results_persisted),
                cell.total(|r| r.results_read_back),
                cell.total(|r| r.reads),
                cell.total(|r| r.reads_with_range),
                cell.total(|r| r.read_bytes),
                cell.total(|r| r.reread_bytes),
            ]
            .map(|total| total.map_or_else(nothing, grouped))
            .to_vec();
            let again = cell.total(|r| r.reread_bytes);
            cells.push(amplification(cell.total(|r| r.read_bytes), again));
            cells.push(middle(cell.spread(|r| r.store_peak_bytes)));
            let state_files = |r: &RunRecord| r.state_bytes.map(|_| r.state_files.len() as u64);
            cells.push(cell.total(state_files).map_or_else(nothing, grouped));
            cells.push(cell.total(|r| r.state_bytes).map_or_else(nothing, grouped));
            cells.push(middle(cell.spread(|r| r.body_bytes)));
            cells
        }),
    }
}

/// Bytes returned for each distinct byte; nothing where nothing was read.
fn amplification(read: Option<u64>, again: Option<u64>) -> String {
    let distinct = read
        .zip(again)
        .and_then(|(read, again)| read.checked_sub(again));
    match (read, distinct) {
        (Some(0), _) => "–".to_owned(),
        (Some(read), Some(distinct)) => share(read, distinct).map_or_else(nothing, figure),
        (None, _) | (_, None) => nothing(),
    }
}

fn nothing() -> String {
    NOTHING.to_owned()
}

fn count(spread: Option<Spread>) -> String {
    grouped(spread.map_or(0, |spread| spread.n))
}

fn middle(spread: Option<Spread>) -> String {
    spread.map_or_else(nothing, |spread| amount(spread.median))
}

fn range(spread: Option<Spread>, write: fn(f64) -> String) -> String {
    spread.map_or_else(nothing, |spread| {
        format!("{} – {}", write(spread.least), write(spread.most))
    })
}

/// The cell's median over its control's, over the repetitions that finished under both.
fn against(line: &Line<'_>, pick: fn(&RunRecord) -> Option<u64>) -> String {
    let control = line
        .control
        .filter(|control| !std::ptr::eq(*control, line.cell));
    match control.and_then(|control| line.cell.ratio_to(control, pick)) {
        Some(ratio) => of_control(ratio),
        None => "–".to_owned(),
    }
}

/// A percentage with one decimal, or as many as it takes not to read as 100 %.
pub(crate) fn of_control(ratio: f64) -> String {
    let tenths = (ratio * 1_000.0).round() / 10.0;
    if tenths == 100.0 {
        percent(ratio)
    } else {
        format!("{} %", figure(tenths))
    }
}

/// A count on an axis, such as `250k`.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", trimmed(v / 1e6)),
        v if v >= 1e3 => format!("{}k", trimmed(v / 1e3)),
        v => trimmed(v),
    }
}

fn trimmed(value: f64) -> String {
    let text = if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The peak of a run's memory, or what it is at least.
pub(crate) fn memory_of(run: &RunRecord) -> Option<u64> {
    run.peak_rss_bytes.or(run.sampled_memory_bytes)
}

/// The same in words, which tell a lower bound from a peak; without the unit.
pub(crate) fn memory_words(run: &RunRecord) -> Option<String> {
    let mark = if run.peak_rss_bytes.is_some() {
        ""
    } else {
        "≥ "
    };
    memory_of(run).map(|bytes| format!("{mark}{:.1}", bytes as f64 / 1_048_576.0))
}

pub(crate) fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / 1_048_576.0)
}

/// The spread in MiB, so that an axis has round values.
fn in_mebibytes(spread: Spread) -> Spread {
    let scale = |bytes: f64| bytes / 1_048_576.0;
    Spread {
        median: scale(spread.median),
        least: scale(spread.least),
        most: scale(spread.most),
        n: spread.n,
    }
}

fn share_label(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn millis(value: f64) -> String {
    format!("{value:.1} ms")
}

#[cfg(test)]
mod tests {
    use super::{of_control, short};

    #[test]
    fn counts_are_written_for_people() {
        assert_eq!(short(950.0), "950");
        assert_eq!(short(1_500.0), "1.5k");
        assert_eq!(short(250_000.0), "250k");
        assert_eq!(short(1_040_000.0), "1.04M");
        assert_eq!(short(0.0), "0");
        assert_eq!(of_control(0.5), "50 %");
        assert_eq!(of_control(1.142_857), "114.3 %");
        assert_eq!(of_control(0.9996), "99.96 %");
        assert_eq!(of_control(1.0), "100 %");
    }
}
