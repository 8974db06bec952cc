//! What stands on the page of a replay.

use serde::Serialize;
use spill_record::{ReplayRecord, ReplaySums, ReplayTotals};
use spill_verdict::{
    AdviceKind, GateState, ReplayJudgement, classless, counted, grouped, plain, threshold_words,
    variant_words,
};

use super::assumptions::assumptions;
use super::curve::{self, MOST_SERIES, saved, series};
use super::sessions::{ReplayProblems, ReplaySessions};
use super::tables::{
    advice_table, classes, kept_table, problems_table, sessions_table, short, thresholds, tools,
};
use crate::figures::NOTHING;
use crate::table::Table;

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
    classless: Option<String>,
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
        classless: classless(totals),
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
            "{} of {} lost as a whole (unreadable, not unpacked, damaged, over a limit or no JSON): the figures are incomplete.",
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
