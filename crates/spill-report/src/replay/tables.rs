//! The tables on the page of a replay.

use spill_record::{ReplayFigures, ReplayRecord, ReplaySums, ReplayTotals};
use spill_verdict::{
    Advice, AdviceKind, counted, grouped, percent, plain, threshold_words, variant_words,
};

use super::curve::{Series, kept};
use super::sessions::{ReplayProblems, Shown};
use crate::figures::NOTHING;
use crate::table::Table;

/// Tools in the table.
const TOOLS: usize = 25;

/// A share with one decimal.
pub(super) fn short(share: f64) -> String {
    let text = format!("{:.1} %", share * 100.0);
    if text == "-0.0 %" {
        "0.0 %".to_owned()
    } else {
        text
    }
}

pub(super) fn advice_table(advice: &[Advice]) -> Table {
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

pub(super) fn thresholds(
    id: &'static str,
    caption: &str,
    record: &ReplayRecord,
    sums: &ReplaySums,
) -> Table {
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

pub(super) fn classes(record: &ReplayRecord, totals: &ReplayTotals) -> Vec<Table> {
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

pub(super) fn kept_table(
    record: &ReplayRecord,
    sums: &ReplaySums,
    first: Option<&Series>,
) -> Table {
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

pub(super) fn tools(record: &ReplayRecord, all: &ReplaySums, cell: usize) -> Table {
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

pub(super) fn sessions_table(
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

pub(super) fn problems_table(problems: &ReplayProblems) -> Option<Table> {
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
