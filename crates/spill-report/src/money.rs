use std::collections::BTreeSet;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use spill_record::{Cost, ModelPrices, Money, RunSet};
use spill_verdict::plain;

use crate::cells::{Cell, Spread, cells};
use crate::figures::{NOTHING, of_control};
use crate::pairs::place;

/// What a run of a cell costs; `None` is what was not obtained.
pub(crate) struct CellMoney {
    pub(crate) currency: String,
    pub(crate) total: Option<Spread>,
    /// Uncached input, cache reads, cache writes, output.
    pub(crate) buckets: [Option<Spread>; 4],
}

/// Costs by bucket, in the order of [`CellMoney::buckets`].
pub(crate) const BUCKETS: [fn(Cost) -> Money; 4] = [
    |cost| cost.uncached_input,
    |cost| cost.cache_read,
    |cost| cost.cache_write,
    |cost| cost.output,
];

/// What the runs of a cell cost; `None` where the price table does not have its model.
pub(crate) fn of_cell(cell: &Cell<'_>) -> Option<CellMoney> {
    Some(CellMoney {
        currency: cell.prices?.currency().to_owned(),
        total: cell.money(Cost::total),
        buckets: BUCKETS.map(|pick| cell.money(pick)),
    })
}

/// An amount with two decimals, or as many as it takes for four digits that tell.
pub(crate) fn amount_of_money(value: f64) -> String {
    let decimals = (2..=9)
        .find(|decimals| value * 10_f64.powi(*decimals) >= 1_000.0)
        .unwrap_or(9);
    if value == 0.0 {
        return "0".to_owned();
    }
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(9))
}

/// Median of a spread of money.
pub(crate) fn middle_of_money(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || NOTHING.to_owned(),
        |spread| amount_of_money(spread.median),
    )
}

/// What one million tokens of a model cost, in words.
pub(crate) fn price_words(model: &str, prices: &ModelPrices) -> String {
    let [uncached, read, written, output] = prices.by_bucket();
    format!(
        "{}: {uncached} {currency} uncached input, {read} cache reads, {written} cache writes, {output} output",
        plain(model),
        currency = prices.currency(),
    )
}

/// What a million tokens of each of the plan's models cost, in words; a model without prices says so.
pub(crate) fn prices_words(set: &RunSet) -> Vec<String> {
    let Some(prices) = &set.prices else {
        return Vec::new();
    };
    let models: BTreeSet<&str> = set.manifest.plan.models.iter().map(|m| &*m.model).collect();
    let words = models.into_iter().map(|model| match prices.of(model) {
        Some(found) => price_words(model, found),
        None => format!("{}: no price in the table", plain(model)),
    });
    words.collect()
}

/// Columns of the table.
pub(crate) const COLUMNS: [&str; 8] = [
    "input",
    "configuration",
    "cost",
    "of control",
    "uncached",
    "cache read",
    "cache write",
    "output",
];

/// A row per input and configuration; nothing without a price table.
pub(crate) fn rows(set: &RunSet) -> Vec<[String; 8]> {
    if set.prices.is_none() {
        return Vec::new();
    }
    let cells = cells(set);
    let mut rows = Vec::new();
    for group in cells.chunks(set.manifest.plan.configurations.len().max(1)) {
        let control = group.iter().find(|cell| cell.is_control());
        rows.extend(group.iter().map(|cell| row(cell, control)));
    }
    rows
}

fn row(cell: &Cell<'_>, control: Option<&Cell<'_>>) -> [String; 8] {
    let nothing = || NOTHING.to_owned();
    let money = of_cell(cell);
    let total = money.as_ref().map_or_else(nothing, |money| {
        let median = middle_of_money(money.total);
        match money.total {
            Some(_) => format!("{median} {}", money.currency),
            None => median,
        }
    });
    let buckets = money.map_or_else(Default::default, |money| money.buckets);
    let [uncached, read, written, output] = buckets.map(middle_of_money);
    [
        place(&cell.input.scenario, &cell.input.input),
        plain(&cell.configuration.name),
        total,
        against(cell, control),
        uncached,
        read,
        written,
        output,
    ]
}

/// The cell's median cost over its control's, over the repetitions that finished under both.
pub(crate) fn against(cell: &Cell<'_>, control: Option<&Cell<'_>>) -> String {
    let control = control.filter(|control| !std::ptr::eq(*control, cell));
    match control.and_then(|control| cell.money_ratio_to(control)) {
        Some(ratio) => of_control(ratio),
        None => "–".to_owned(),
    }
}

/// What a run costs by input and configuration, as plain text at most 80 columns wide, without a
/// line feed at the end; `None` without a price table.
///
/// Cache writes are left out: the report and `summary.md` have them.
#[must_use]
pub fn terminal_money(set: &RunSet) -> Option<String> {
    /// Columns of the terminal that the table fits.
    const WIDTH: u16 = 80;
    let mut rows = rows(set);
    if rows.is_empty() {
        return None;
    }
    let mut columns = [
        "input".to_owned(),
        "config".to_owned(),
        "cost".to_owned(),
        "of control".to_owned(),
        "uncached".to_owned(),
        "cached".to_owned(),
        "output".to_owned(),
    ];
    // One currency stands in the head, so that names have more room.
    if let Some(currency) = only_currency(set) {
        columns[2] = format!("cost, {currency}");
        for row in &mut rows {
            let bare = row[2].strip_suffix(currency).map(str::trim_end);
            if let Some(bare) = bare.map(str::to_owned) {
                row[2] = bare;
            }
        }
    }
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(columns)
        .add_rows(rows.into_iter().map(without_cache_writes));
    for column in table.column_iter_mut() {
        // The names of the built-in plan then fit on one line.
        column.set_padding((0, 1));
        if column.index > 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    Some(format!(
        "What a run costs, in the median:\n{}",
        lines.join("\n")
    ))
}

/// The currency of every model of the plan that has a price, where it is one.
fn only_currency(set: &RunSet) -> Option<&str> {
    let prices = set.prices.as_ref()?;
    let models = set.manifest.plan.models.iter();
    let currencies: BTreeSet<&str> = models
        .filter_map(|model| Some(prices.of(&model.model)?.currency()))
        .collect();
    let mut currencies = currencies.into_iter();
    currencies.next().filter(|_| currencies.next().is_none())
}

fn without_cache_writes([a, b, c, d, e, f, _, g]: [String; 8]) -> [String; 7] {
    [a, b, c, d, e, f, g]
}

#[cfg(test)]
mod tests {
    use super::amount_of_money;

    #[test]
    fn small_amounts_keep_their_digits() {
        let check = |value, text: &str| assert_eq!(amount_of_money(value), text);
        check(0.0, "0");
        check(1_234.5, "1234.50");
        check(12.345_6, "12.35");
        check(1.234_56, "1.235");
        check(0.012_345, "0.01235");
        check(0.000_000_3, "0.000000300");
    }
}
