//! How the figures of subjects are written for people.

use spill_verdict::{amount, counted, grouped, percent, plain};

use super::figures::{Became, Place, Row};
use crate::figures::NOTHING;
use crate::pairs::place;

pub(super) fn nothing() -> String {
    NOTHING.to_owned()
}

pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(nothing, amount)
}

pub(super) fn name(at: &Place) -> String {
    place(&at.scenario, &at.input)
}

/// What the input is, and how often it was run.
pub(super) fn given(at: &Place) -> String {
    let profiles: Vec<String> = at.profiles.iter().map(|one| plain(one)).collect();
    format!(
        "Class {}; the largest result has {} bytes; {} expected; {} under each configuration, read as {}",
        at.class,
        grouped(at.largest_result_bytes),
        counted(at.facts, "fact"),
        counted(at.repetitions, "run"),
        profiles.join(", ")
    )
}

pub(super) fn configuration(row: &Row) -> String {
    let role = match (row.is_control, row.ships) {
        (true, _) => " (control)",
        (false, true) => " (ships)",
        (false, false) => "",
    };
    format!("{}{role}", plain(&row.configuration))
}

pub(super) fn succeeded(row: &Row) -> String {
    format!("{} of {}", grouped(row.succeeded), grouped(row.planned))
}

/// In MiB with so many decimals; a lower bound is marked.
pub(super) fn memory(row: &Row, decimals: usize) -> String {
    let mark = match row.peak_memory_is_lower_bound {
        Some(true) => "≥ ",
        Some(false) | None => "",
    };
    let bytes = row.peak_memory_bytes;
    bytes.map_or_else(nothing, |bytes| {
        format!("{mark}{:.decimals$}", bytes / 1_048_576.0)
    })
}

pub(super) fn quality(row: &Row) -> String {
    row.quality.map_or_else(nothing, percent)
}

pub(super) fn seconds(row: &Row) -> String {
    let process = row.process_ms;
    process.map_or_else(nothing, |ms| format!("{:.1}", ms / 1_000.0))
}

pub(super) fn sum(value: Option<u64>) -> String {
    value.map_or_else(nothing, grouped)
}

/// Places with content, and files outside the agent's own folders and the declared outputs, together.
pub(super) fn leaks(row: &Row) -> String {
    grouped(
        row.leak_findings
            .saturating_add(row.files_written.unwrap_or(0)),
    )
}

/// How the runs that did not succeed ended, a line each, in the words of their records.
pub(super) fn ends(row: &Row) -> Vec<String> {
    let ends = row.ends.iter().map(|end| {
        let said = end.error.as_deref().map(plain);
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        format!(
            "{} ended as {}{said}",
            counted(end.runs, "run"),
            end.end_reason
        )
    });
    let mut lines: Vec<String> = ends.collect();
    if row.missing > 0 {
        let missing = counted(row.missing, "planned run");
        lines.push(format!("{missing} left no record that counts"));
    }
    lines
}

/// In which ways the largest result came into the prompt.
pub(super) fn ways(became: &Became) -> String {
    let one_way = became.ways.len() == 1;
    let ways = became.ways.iter().map(|(way, runs)| {
        let words = match way.as_str() {
            "stored" => "stored, a part shown",
            "cut" => "cut, the rest out of reach",
            "absent" => "in no request",
            other => other,
        };
        if one_way {
            words.to_owned()
        } else {
            format!("{words} ({runs} of {})", became.runs)
        }
    });
    ways.collect::<Vec<_>>().join("; ")
}

/// The part of what was served that stood in the prompt.
pub(super) fn part_shown(became: &Became) -> Option<f64> {
    let (shown, served) = (became.shown_bytes?, became.served_bytes?);
    // Delimiters are no part of what was served.
    (served > 0.0).then(|| (shown / served).min(1.0))
}

/// The same as one sentence.
pub(super) fn became(row: &Row) -> String {
    let Some(became) = &row.largest else {
        return "not measured: no calls".to_owned();
    };
    let mut words = ways(became);
    match (became.shown_bytes, became.served_bytes) {
        (Some(shown), Some(served)) if shown < served => {
            words = format!("{words}: {} of {} bytes", amount(shown), amount(served));
        }
        (Some(_), Some(served)) => words = format!("{words}: {} bytes", amount(served)),
        (None, _) | (_, None) => {}
    }
    if became.times.is_some_and(|times| times > 1.0) {
        words = format!("{words}, came {} times", count(became.times));
    }
    if became.reads.is_some_and(|reads| reads > 0.0) {
        let bytes = count(became.read_bytes);
        words = format!(
            "{words}; read back: {bytes} bytes in {}",
            count(became.reads)
        );
    }
    if became.failed_reads.is_some_and(|reads| reads > 0.0) {
        words = format!("{words}; failed reads: {}", count(became.failed_reads));
    }
    words
}
