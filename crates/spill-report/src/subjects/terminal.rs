//! Several subjects side by side on a terminal.

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table};
use spill_verdict::plain;

use super::figures::{Place, Row};
use super::words;

/// Columns that the tables fit.
const WIDTH: u16 = 80;

/// Tables alone, so that no name from outside makes a line longer than they are.
pub(super) fn table(places: &[Place]) -> String {
    let inputs = places.iter().map(|place| {
        let parts = [
            Some(name(place)),
            Some(figures(place)),
            Some(became(place)),
            lost(place),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    });
    inputs.collect::<Vec<_>>().join("\n\n")
}

/// The input's name, on as many lines as it takes.
fn name(place: &Place) -> String {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .add_row([words::name(place)]);
    lines_of(&mut table)
}

fn figures(place: &Place) -> String {
    let row = |row: &Row| {
        let mut cells = who(row);
        cells.extend([
            format!("{}/{}", row.succeeded, row.planned),
            words::count(row.iterations),
            words::count(row.input_tokens),
            words::memory(row, 0),
            words::quality(row),
            words::seconds(row),
            words::sum(row.kept_files),
            words::leaks(row),
        ]);
        cells
    };
    let head = [
        "subject",
        "config",
        "ok",
        "iter.",
        "tokens in",
        "MiB",
        "quality",
        "secs",
        "kept",
        "leaks",
    ];
    drawn(&head, place.rows.iter().map(row).collect(), 2)
}

fn became(place: &Place) -> String {
    let row = |row: &Row| {
        let mut cells = who(row);
        cells.push(words::became(row));
        cells
    };
    let head = ["subject", "config", "its largest result was"];
    drawn(&head, place.rows.iter().map(row).collect(), usize::MAX)
}

/// Runs that did not succeed; `None` where there are none.
fn lost(place: &Place) -> Option<String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in &place.rows {
        rows.extend(words::ends(row).into_iter().map(|end| {
            let mut cells = who(row);
            cells.push(end);
            cells
        }));
    }
    let absent = place.not_run_with.iter();
    rows.extend(absent.map(|one| vec![plain(one), String::new(), "not run".to_owned()]));
    let head = ["subject", "config", "did not succeed"];
    (!rows.is_empty()).then(|| drawn(&head, rows, usize::MAX))
}

fn who(row: &Row) -> Vec<String> {
    vec![plain(&row.subject), plain(&row.configuration)]
}

/// A table of subjects, whose columns from `numbers` on stand to the right.
fn drawn(head: &[&str], rows: Vec<Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(head.to_vec())
        .add_rows(rows);
    for column in table.column_iter_mut() {
        if column.index >= numbers {
            // A number on two lines is another number; names have the room that is left.
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    lines_of(&mut table)
}

fn lines_of(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}
