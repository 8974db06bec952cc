//! What stands on the page of a replay.

use serde::Serialize;
use spill_record::{ReplayFigures, ReplayRecord, ReplaySums, ReplayTotals};
use spill_verdict::{
    Advice, AdviceKind, GateState, ReplayJudgement, counted, grouped, percent, plain,
    threshold_words, variant_words,
};

use super::assumptions::assumptions;
use super::curve::{self, MOST_SERIES, Series, kept, saved, series};
use super::sessions::{ReplayProblems, ReplaySessions, Shown};
use crate::figures::NOTHING;
use crate::table::Table;

/// Tools in the table.
const TOOLS: usize = 25;

#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    subtitle: String,
    decision: &'static str,
    headline: String,
    sentence: String,
    exit_code: u8,
    alerts: Vec<String>,
    counts: Vec<(&'static str, String)>,
    gates: Vec<(Badge, String)>,
    advice: Table,
    savings_chart: String,
    savings_legend: Vec<String>,
    basis: String,
    thresholds: Table,
    kept_chart: String,
    kept: Table,
    classes: Vec<Table>,
    tools: Table,
    focus: String,
    best: Table,
    worst: Table,
    problems: Option<Table>,
    more_problems: u64,
    left_out: Vec<String>,
    assumptions: Vec<String>,
    recorded: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct Badge {
    class: &'static str,
    icon: &'static str,
    words: &'static str,
}

impl Badge {
    fn of(state: GateState) -> Self {
        let (icon, words) = match state {
            GateState::Holds => ("✓", "holds"),
            GateState::Broken => ("✗", "broken"),
            GateState::NotProven => ("?", "not proven"),
        };
        Self {
            class: state.as_str(),
            icon,
            words,
        }
    }
}

pub(super) fn page(
    record: &ReplayRecord,
    totals: &ReplayTotals,
    judgement: &ReplayJudgement,
    sessions: &ReplaySessions,
    problems: &ReplayProblems,
) -> Page {
    let all = &totals.all;
    let lines = series(record);
    let basis = sessions.read_back();
    let cell = sessions.cell();
    let first = lines.first();
    let shown = lines.iter().take(MOST_SERIES);
    Page {
        title: "Spillgate replay".to_owned(),
        subtitle: plain(&record.replay_id),
        decision: decision(judgement),
        headline: headline(judgement, record, all, basis),
        sentence: sentence(judgement, all),
        exit_code: judgement.exit_code,
        alerts: alerts(record, all),
        counts: counts(record, all),
        gates: judgement
            .gates
            .iter()
            .map(|gate| (Badge::of(gate.state), plain(&gate.figure_line())))
            .collect(),
        advice: advice_table(&judgement.advice),
        savings_chart: curve::savings(record, all, &lines, basis),
        savings_legend: shown.map(|series| series.name.clone()).collect(),
        basis: record.read_backs.get(basis).cloned().unwrap_or_default(),
        thresholds: thresholds("thresholds", "All transcripts", record, all),
        kept_chart: first.map_or(String::new(), |series| curve::inline(record, all, series)),
        kept: kept_table(record, all, first),
        classes: classes(record, totals),
        tools: tools(record, all, cell),
        focus: record
            .cells
            .get(cell)
            .map_or(String::new(), |cell| variant_words(cell, None)),
        best: sessions_table(
            "best",
            "Transcripts that save most",
            record,
            sessions.best(),
        ),
        worst: sessions_table(
            "worst",
            "Transcripts that cost more",
            record,
            sessions.worst(),
        ),
        problems: problems_table(problems),
        more_problems: problems.more(),
        left_out: record
            .left_out
            .iter()
            .map(|(kind, count)| format!("{} {}", grouped(*count), plain(kind)))
            .collect(),
        assumptions: assumptions(record, all),
        recorded: recorded(all),
    }
}

fn decision(judgement: &ReplayJudgement) -> &'static str {
    let has = |state| judgement.gates.iter().any(|gate| gate.state == state);
    if has(GateState::Broken) {
        "change"
    } else if has(GateState::NotProven) || judgement.exit_code != 0 {
        "none"
    } else if judgement.gates.is_empty() {
        ""
    } else {
        "keep"
    }
}

fn headline(
    judgement: &ReplayJudgement,
    record: &ReplayRecord,
    all: &ReplaySums,
    basis: usize,
) -> String {
    let Some(first) = judgement
        .advice
        .first()
        .filter(|_| all.as_recorded.calls > 0)
    else {
        return "No LLM call was found in these files".to_owned();
    };
    match first.kind {
        AdviceKind::Threshold { bytes, cell } => format!(
            "{} at {} would have saved {} of the input tokens",
            first.policy,
            threshold_words(bytes),
            saved(record, all, cell, basis).map_or(NOTHING.to_owned(), short),
        ),
        AdviceKind::Off => "No threshold would have saved input tokens".to_owned(),
        AdviceKind::NothingToReplace => {
            "No result reaches any of the thresholds: they would have changed nothing".to_owned()
        }
    }
}

fn sentence(judgement: &ReplayJudgement, all: &ReplaySums) -> String {
    match judgement.advice.first() {
        Some(first) if all.as_recorded.calls > 0 => {
            let n = counted(first.sessions, "transcript");
            let few = if first.is_indication {
                " Too few transcripts for more than an indication."
            } else {
                ""
            };
            format!("Over {n}, {}.{few}", first.reason)
        }
        _ => "Nothing is known, and nothing is recommended.".to_owned(),
    }
}

fn alerts(record: &ReplayRecord, all: &ReplaySums) -> Vec<String> {
    let mut alerts = Vec::new();
    if record.files.lost > 0 {
        alerts.push(format!(
            "{} of {} lost as a whole (unreadable, damaged, over a limit or no JSON): the figures are incomplete.",
            counted(record.files.lost, "file"),
            grouped(record.files.read)
        ));
    }
    if all.incomplete_results > 0 {
        alerts.push(format!(
            "{} of {} in {} were cut or stored by the agent that recorded them: \"off\" is not \"no limit\" there.",
            grouped(all.incomplete_results),
            counted(all.results, "result"),
            counted(all.incomplete_sessions, "transcript")
        ));
    }
    let problems: u64 = record.problems.values().sum();
    if problems > 0 {
        alerts.push(format!(
            "{} could not be understood; each is named by file and line below and in problems.csv.",
            counted(problems, "thing")
        ));
    }
    alerts
}

fn counts(record: &ReplayRecord, all: &ReplaySums) -> Vec<(&'static str, String)> {
    let base = &all.as_recorded;
    let cached = spill_verdict::share(base.cached_input_tokens, base.input_tokens);
    let mut counts = vec![
        ("files", grouped(record.files.read)),
        ("with transcripts", grouped(record.files.with_transcripts)),
        ("transcripts", grouped(all.sessions)),
        ("calls", grouped(base.calls)),
        ("results sent", grouped(all.sent_results)),
        ("input tokens", grouped(base.input_tokens)),
        ("of them cached", cached.map_or(NOTHING.to_owned(), short)),
        ("largest input, tokens", grouped(base.peak_context_tokens)),
    ];
    if let (Some(window), Some(over)) = (record.window_tokens, base.calls_over_window) {
        counts.push(("window, tokens", grouped(window)));
        counts.push(("calls over it", grouped(over)));
    }
    counts
}

fn recorded(all: &ReplaySums) -> Vec<(&'static str, String)> {
    let known = |tokens: Option<u64>| tokens.map_or("not recorded".to_owned(), grouped);
    let of = &all.recorded;
    vec![
        ("calls with recorded tokens", grouped(of.calls)),
        ("input tokens", known(of.input_tokens)),
        ("uncached", known(of.uncached_input_tokens)),
        ("cache read", known(of.cache_read_tokens)),
        ("cache write", known(of.cache_write_tokens)),
        ("output", known(of.output_tokens)),
        ("counted for these calls", known(of.counted_input_tokens)),
    ]
}

/// A share with one decimal.
fn short(share: f64) -> String {
    let text = format!("{:.1} %", share * 100.0);
    if text == "-0.0 %" {
        "0.0 %".to_owned()
    } else {
        text
    }
}

fn advice_table(advice: &[Advice]) -> Table {
    let rows = advice.iter().map(|one| {
        let size = one.replacement_bytes.map(threshold_words);
        let strength = match (one.kind, one.is_indication) {
            (AdviceKind::NothingToReplace, _) => "",
            (_, true) => " (an indication)",
            (_, false) => "",
        };
        vec![
            one.class.map_or("all", |class| class.as_str()).to_owned(),
            one.policy.clone(),
            size.unwrap_or_else(|| "own".to_owned()),
            format!("{}{strength}", one.words()),
            one.reason.clone(),
            grouped(one.sessions),
        ]
    });
    Table::new(
        "advice",
        "Recommended threshold by class of work",
        &[
            "class of work",
            "policy",
            "replacements",
            "threshold",
            "why",
        ],
        &["transcripts"],
        rows.collect(),
    )
}

fn thresholds(id: &'static str, caption: &str, record: &ReplayRecord, sums: &ReplaySums) -> Table {
    let money = record.currency.as_ref();
    let mut numbers = vec![
        "replaced",
        "used later",
        "extra calls",
        "input tokens",
        "saved",
        "cached",
        "uncached, saved",
        "largest input",
    ];
    if record.window_tokens.is_some() {
        numbers.push("calls over the window");
    }
    let cost = money.map(|currency| format!("cost, {}", plain(currency)));
    numbers.extend(cost.as_deref());
    let base = &sums.as_recorded;
    let mut rows = vec![row(
        record,
        sums,
        ["off".to_owned(), String::new(), String::new()],
        None,
        base,
    )];
    for (index, cell) in record.cells.iter().enumerate() {
        for (number, read_back) in record.read_backs.iter().enumerate() {
            let name = match cell.replacement_bytes {
                None => cell.policy.clone(),
                Some(bytes) => format!("{}, {} each", cell.policy, threshold_words(bytes)),
            };
            let names = [
                name,
                threshold_words(cell.threshold_bytes),
                read_back.clone(),
            ];
            if let Some(under) = sums.outcomes.get(record.outcome_index(index, number)) {
                rows.push(row(record, sums, names, Some(index), under));
            }
        }
    }
    Table::new(
        id,
        format!(
            "{caption}: {}, {}",
            counted(sums.sessions, "transcript"),
            counted(base.calls, "call")
        ),
        &["policy", "threshold", "read-back"],
        &numbers,
        rows,
    )
}

fn row(
    record: &ReplayRecord,
    sums: &ReplaySums,
    names: [String; 3],
    cell: Option<usize>,
    under: &ReplayFigures,
) -> Vec<String> {
    let base = &sums.as_recorded;
    let part = |before: u64, after: u64| {
        if before == 0 {
            NOTHING.to_owned()
        } else {
            short((before as f64 - after as f64) / before as f64)
        }
    };
    let cell = cell.and_then(|cell| sums.cells.get(cell));
    let uncached = |figures: &ReplayFigures| figures.input_tokens - figures.cached_input_tokens;
    let cached = spill_verdict::share(under.cached_input_tokens, under.input_tokens);
    let mut row = names.to_vec();
    row.extend([
        cell.map_or("0".to_owned(), |cell| grouped(cell.replaced_results)),
        cell.map_or("0".to_owned(), |cell| grouped(cell.used_results)),
        grouped(under.extra_calls),
        grouped(under.input_tokens),
        part(base.input_tokens, under.input_tokens),
        cached.map_or(NOTHING.to_owned(), short),
        part(uncached(base), uncached(under)),
        grouped(under.peak_context_tokens),
    ]);
    if record.window_tokens.is_some() {
        row.push(under.calls_over_window.map_or(NOTHING.to_owned(), grouped));
    }
    if record.currency.is_some() {
        let cost = under.input_cost.map(|cost| format!("{cost:.4}"));
        row.push(cost.unwrap_or_else(|| NOTHING.to_owned()));
    }
    row
}

fn classes(record: &ReplayRecord, totals: &ReplayTotals) -> Vec<Table> {
    let ids = ["class-a", "class-b", "class-c", "class-d"];
    let classes = totals.classes.iter().zip(ids);
    classes
        .map(|((class, sums), id)| {
            let caption = class.map_or("Transcripts without results".to_owned(), |class| {
                format!("Class {}", class.as_str())
            });
            thresholds(id, &caption, record, sums)
        })
        .collect()
}

fn kept_table(record: &ReplayRecord, sums: &ReplaySums, first: Option<&Series>) -> Table {
    let cells = first.map_or(&[][..], |series| &series.cells);
    let rows = cells.iter().map(|index| {
        let share = kept(sums, *index);
        let words = |part: Option<f64>| part.map_or(NOTHING.to_owned(), percent);
        let cell = sums.cells.get(*index).copied().unwrap_or_default();
        vec![
            threshold_words(record.cells[*index].threshold_bytes),
            words(share.map(|share| share.0)),
            words(share.map(|share| share.1)),
            grouped(cell.replaced_results),
            grouped(cell.replaced_bytes),
            grouped(cell.replacement_bytes),
            grouped(cell.kept_results),
        ]
    });
    let name = first.map_or("", |series| &series.name);
    Table::new(
        "kept",
        format!(
            "Share of the {} that stay in the prompt ({name})",
            counted(sums.sent_results, "sent result")
        ),
        &["threshold"],
        &[
            "of results",
            "of their bytes",
            "replaced",
            "their bytes",
            "bytes in their place",
            "over it, and stay",
        ],
        rows.collect(),
    )
}

fn tools(record: &ReplayRecord, all: &ReplaySums, cell: usize) -> Table {
    let mut tools: Vec<_> = all.tools.iter().collect();
    tools.sort_by_key(|(name, sums)| (std::cmp::Reverse(sums.sent_tokens), *name));
    let total: u64 = all.tools.values().map(|sums| sums.sent_tokens).sum();
    let rows = tools.into_iter().take(TOOLS).map(|(name, sums)| {
        let (replaced, _, saved) = sums.cells.get(cell).copied().unwrap_or_default();
        let part = spill_verdict::share(sums.sent_tokens, total);
        let name = name.as_ref().map(|name| plain(name));
        vec![
            name.unwrap_or_else(|| "name not recorded".to_owned()),
            grouped(sums.results),
            grouped(sums.result_bytes),
            grouped(sums.sent_tokens),
            part.map_or(NOTHING.to_owned(), short),
            grouped(replaced),
            signed(saved),
        ]
    });
    let plan = record.cells.get(cell);
    let name = plan.map_or(String::new(), |plan| variant_words(plan, None));
    Table::new(
        "tools",
        format!("Tools by what their results send ({name})"),
        &["tool"],
        &[
            "results",
            "bytes",
            "tokens sent",
            "of all results",
            "replaced",
            "tokens saved before reads",
        ],
        rows.collect(),
    )
}

fn signed(figure: i64) -> String {
    let digits = grouped(figure.unsigned_abs());
    if figure < 0 {
        format!("-{digits}")
    } else {
        digits
    }
}

fn sessions_table(
    id: &'static str,
    caption: &str,
    record: &ReplayRecord,
    shown: &[Shown],
) -> Table {
    let rows = shown.iter().map(|one| {
        let mut row = vec![
            one.place.clone(),
            one.format.clone(),
            grouped(one.calls),
            grouped(one.input_tokens),
            grouped(one.replaced),
        ];
        row.extend(one.saved.iter().map(|saved| {
            if one.input_tokens == 0 {
                NOTHING.to_owned()
            } else {
                format!(
                    "{} ({})",
                    signed(*saved),
                    short(*saved as f64 / one.input_tokens as f64)
                )
            }
        }));
        row
    });
    let saved: Vec<String> = record
        .read_backs
        .iter()
        .map(|name| format!("saved: {name}"))
        .collect();
    let mut numbers = vec!["calls", "input tokens", "replaced"];
    numbers.extend(saved.iter().map(String::as_str));
    Table::new(
        id,
        caption,
        &["transcript", "format"],
        &numbers,
        rows.collect(),
    )
}

fn problems_table(problems: &ReplayProblems) -> Option<Table> {
    let rows = problems.first().iter().map(|problem| {
        let place = match (problem.line, problem.item) {
            (Some(line), Some(item)) => format!("line {line}, item {item}"),
            (Some(line), None) => format!("line {line}"),
            (None, Some(item)) => format!("item {item}"),
            (None, None) => String::new(),
        };
        vec![
            plain(&problem.file),
            place,
            problem.kind.clone(),
            plain(&problem.detail),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| {
        Table::new(
            "problems",
            "What could not be understood",
            &["file", "where", "kind", "what"],
            &[],
            rows,
        )
    })
}
