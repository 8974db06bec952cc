//! A replay in plain text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use spill_record::{CellPlan, ReplayRecord, ReplaySums, ReplayTotals};

use super::advice::{Advice, AdviceKind};
use super::gate::GateVerdict;
use super::summary::ReplayJudgement;
use crate::words::{counted, grouped, percent, plain};

/// Columns of the terminal that everything fits.
const WIDTH: u16 = 80;

/// A threshold as the command line takes it.
#[must_use]
pub fn threshold_words(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// A cell, and an assumption where one is given, in words.
#[must_use]
pub fn variant_words(cell: &CellPlan, read_back: Option<&str>) -> String {
    let mut words = format!(
        "{} at {}",
        cell.policy,
        threshold_words(cell.threshold_bytes)
    );
    if let Some(bytes) = cell.replacement_bytes {
        words.push_str(&format!(", replacements of {}", threshold_words(bytes)));
    }
    if let Some(read_back) = read_back {
        words.push_str(&format!(", read-back {read_back}"));
    }
    words
}

/// A replay as plain text, at most 80 columns wide, without a line feed at the end: what was read, what each threshold saves
/// under each assumption, and what that speaks for.
#[must_use]
pub fn replay_text(
    record: &ReplayRecord,
    totals: &ReplayTotals,
    judgement: &ReplayJudgement,
) -> String {
    let all = &totals.all;
    let mut lines = head(record, all);
    if all.as_recorded.calls > 0 {
        let table = table(record, all);
        lines.extend(table.lines().map(|line| line.trim_end().to_owned()));
        lines.extend(judgement.advice.iter().map(advice_line));
        lines.extend(classless(totals));
        lines.extend(caveats(record, all));
    }
    lines.extend(not_understood(record));
    lines.extend(judgement.gates.iter().map(GateVerdict::line));
    let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line)).collect();
    lines.join("\n")
}

fn head(record: &ReplayRecord, all: &ReplaySums) -> Vec<String> {
    let base = &all.as_recorded;
    let formats: Vec<String> = all
        .formats
        .iter()
        .map(|(format, count)| format!("{format} {}", grouped(*count)))
        .collect();
    if all.sessions == 0 {
        let mut lines = vec![format!(
            "No transcript in {}.",
            counted(record.files.read, "file")
        )];
        lines.extend(without_calls(record));
        return lines;
    }
    if base.calls == 0 {
        let transcripts = counted(all.sessions, "transcript");
        let mut lines = vec![format!("{transcripts} ({}).", formats.join(", "))];
        lines.extend(without_calls(record));
        return lines;
    }
    let cached = share(base.cached_input_tokens, base.input_tokens);
    vec![
        format!(
            "{} ({}).",
            counted(all.sessions, "transcript"),
            formats.join(", ")
        ),
        format!(
            "As recorded: {}, {} sent, {} ({} cached by the model of a cache).",
            counted(base.calls, "call"),
            counted(all.sent_results, "result"),
            counted(base.input_tokens, "input token"),
            cached.map_or("none".to_owned(), percent),
        ),
    ]
}

/// Why files that are of a known format gave nothing to replay.
fn without_calls(record: &ReplayRecord) -> Option<String> {
    let files = *record.problems.get("no-calls")?;
    Some(format!(
        "{} of a known format {} no LLM call: there is nothing to replay.",
        counted(files, "file"),
        if files == 1 { "holds" } else { "hold" }
    ))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A row for each cell: what it replaces, and the input tokens that it saves under each assumption.
fn table(record: &ReplayRecord, all: &ReplaySums) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    let assumptions = record
        .read_backs
        .iter()
        .map(|name| format!("saved: {name}"));
    let heads = ["threshold", "replaced"].map(str::to_owned).into_iter();
    table.set_header(heads.chain(assumptions));
    for (index, cell) in record.cells.iter().enumerate() {
        let mut name = threshold_words(cell.threshold_bytes);
        if record.cells.iter().any(|other| other.policy != cell.policy) {
            name = format!("{} {name}", cell.policy);
        }
        if let Some(bytes) = cell.replacement_bytes {
            name = format!("{name} by {}", threshold_words(bytes));
        }
        let replaced = all.cells.get(index).map_or(0, |cell| cell.replaced_results);
        let saved = (0..record.read_backs.len()).map(|read_back| {
            let under = all.outcomes.get(record.outcome_index(index, read_back));
            let before = all.as_recorded.input_tokens;
            under
                .filter(|_| before > 0)
                .map_or("-".to_owned(), |under| {
                    let saved = before as f64 - under.input_tokens as f64;
                    percent_short(saved / before as f64)
                })
        });
        table.add_row([name, grouped(replaced)].into_iter().chain(saved));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A share with one decimal.
fn percent_short(share: f64) -> String {
    let text = format!("{:.1} %", share * 100.0);
    text.strip_prefix("-0.0")
        .map_or(text.clone(), |rest| format!("0.0{rest}"))
}

fn advice_line(one: &Advice) -> String {
    let class = one.class.map_or("all", |class| class.as_str());
    let size = one.replacement_bytes;
    let size = size.map_or(String::new(), |bytes| {
        format!(" by {}", threshold_words(bytes))
    });
    let verb = match (one.kind, one.is_indication) {
        (AdviceKind::Threshold { .. } | AdviceKind::Off, false) => " recommended",
        (AdviceKind::Threshold { .. } | AdviceKind::Off, true) => " indicated",
        (AdviceKind::NothingToReplace, _) => "",
    };
    format!(
        "{class} ({}), {}{size}: {}{verb}",
        counted(one.sessions, "transcript"),
        one.policy,
        one.words(),
    )
}

/// Why the classes do not add up to all, where they do not.
#[must_use]
pub fn classless(totals: &ReplayTotals) -> Option<String> {
    let without = totals.classes.get(&None)?.sessions;
    let (is, its) = if without == 1 {
        ("is", "it has")
    } else {
        ("are", "they have")
    };
    Some(format!(
        "{} {is} of no class and in all alone: {its} no tool result.",
        counted(without, "transcript"),
    ))
}

fn caveats(record: &ReplayRecord, all: &ReplaySums) -> Vec<String> {
    let mut lines = Vec::new();
    if all.incomplete_results > 0 {
        lines.push(format!(
            "{} of {} were cut or stored by the agent that recorded them: off is not \"no limit\" there.",
            grouped(all.incomplete_results),
            counted(all.results, "result"),
        ));
    }
    if record.prices.is_some() && all.unpriced_sessions > 0 {
        lines.push(format!(
            "{} have no price for their model: money is of the others.",
            counted(all.unpriced_sessions, "transcript")
        ));
    }
    lines
}

fn not_understood(record: &ReplayRecord) -> Vec<String> {
    let total: u64 = record.problems.values().sum();
    let mut lines = Vec::new();
    if total > 0 {
        let kinds: Vec<String> = record
            .problems
            .iter()
            .map(|(kind, count)| format!("{} {}", grouped(*count), plain(kind)))
            .collect();
        lines.push(format!(
            "Not understood: {} (problems.csv names file and line).",
            kinds.join(", ")
        ));
    }
    if record.files.lost > 0 {
        lines.push(format!(
            "Lost as a whole: {} of {}.",
            counted(record.files.lost, "file"),
            grouped(record.files.read)
        ));
    }
    lines
}

/// A sentence in lines that fit; a table's line fits already.
fn wrapped(line: &str) -> Vec<String> {
    let width = usize::from(WIDTH);
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("there is one");
        let room = width.saturating_sub(last.chars().count());
        if last.is_empty() || word.chars().count() < room {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, percent_short, wrapped};

    #[test]
    fn lines_take_as_many_words_as_fit() {
        let width = usize::from(WIDTH);
        let fits = "x".repeat(width);
        assert_eq!(wrapped(&fits).join("\n"), fits);
        for first in 60..100 {
            let text = format!("{} and two more words", "x".repeat(first));
            let lines = wrapped(&text);
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
            let again: Vec<Vec<String>> = lines.iter().map(|line| words(line)).collect();
            assert_eq!(again.concat().join(" "), text);
            for pair in lines.windows(2) {
                let next = pair[1].split_whitespace().next().expect("a word");
                assert!(pair[0].len() + 1 + next.len() > width, "{lines:?}");
                assert!(pair[1].starts_with("  ") && pair[1].len() <= width);
            }
            assert!(lines[0].len() <= width.max(first), "{lines:?}");
        }
    }

    #[test]
    fn a_share_that_rounds_to_nothing_has_no_sign() {
        assert_eq!(percent_short(-0.000_4), "0.0 %");
        assert_eq!(percent_short(-0.000_6), "-0.1 %");
        assert_eq!(percent_short(0.123_4), "12.3 %");
    }
}
