//! What many executions of one step take of one host.

use serde::Serialize;
use serde_json::Value;
use spill_record::{DEFAULT_MEMORY_LIMIT_BYTES, ExecutionsRecord, RunSet};
use spill_verdict::{control_of, grouped, plain};

use crate::figures::{NOTHING, mebibytes};
use crate::table::Table;

/// Executions that the arithmetic is for where nothing was measured.
const EXAMPLE: u64 = 32;

/// The part of the page.
#[derive(Serialize)]
pub(crate) struct OnOneHost {
    measured: bool,
    /// What ran, for the words above the table.
    place: String,
    limit: String,
    table: Table,
}

/// Builds the part; `None` when neither a measurement nor a budget is known.
pub(crate) fn on_one_host(set: &RunSet) -> Option<OnOneHost> {
    match set.executions.first() {
        Some(first) => Some(OnOneHost {
            measured: true,
            place: format!("{} / {}", plain(&first.scenario), plain(&first.input)),
            limit: mebibytes(first.memory_limit_bytes as f64),
            table: measured(set),
        }),
        None => arithmetic(set).map(|table| OnOneHost {
            measured: false,
            place: String::new(),
            limit: mebibytes(DEFAULT_MEMORY_LIMIT_BYTES as f64),
            table,
        }),
    }
}

fn measured(set: &RunSet) -> Table {
    let rows = set.executions.iter().map(|one| {
        let ratio = control_of(set, one).and_then(|control| {
            let (of, over) = (one.peak_bytes?, control.peak_bytes?);
            (over > 0).then(|| format!("{:.2}", of as f64 / over as f64))
        });
        vec![
            plain(&one.configuration),
            standing(one).to_owned(),
            grouped(one.executions),
            grouped(one.answered),
            grouped(one.results_persisted),
            size(one.before_bytes),
            size(one.peak_bytes),
            ratio.unwrap_or_else(|| NOTHING.to_owned()),
            size(one.after_bytes),
            allocated(one),
            size(one.budgets_bytes()),
            size(Some(one.memory_limit_bytes)),
        ]
    });
    Table::new(
        "host-table",
        "One process, by executions at once and configuration",
        &["configuration", "against the limit"],
        &[
            "executions",
            "answered",
            "results stored",
            "before",
            "peak",
            "peak over the control's",
            "after the last",
            "allocated at the peak → after",
            "executions × budget",
            "memory limit",
        ],
        rows.collect(),
    )
}

/// What the limit says of a measurement.
fn standing(one: &ExecutionsRecord) -> &'static str {
    let above = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > one.memory_limit_bytes);
    match (
        one.peak_bytes,
        above(one.peak_bytes),
        above(one.budgets_bytes()),
    ) {
        (_, true, _) => "the peak exceeds it",
        (_, false, true) => "the budgets exceed it",
        (Some(_), false, false) => "holds",
        (None, false, false) => "not measured",
    }
}

fn allocated(one: &ExecutionsRecord) -> String {
    format!(
        "{} → {}",
        size(one.peak_anonymous_bytes()),
        size(one.after_anonymous_bytes)
    )
}

/// What the budgets allow, from the settings alone.
fn arithmetic(set: &RunSet) -> Option<Table> {
    let rows: Vec<Vec<String>> = set
        .manifest
        .plan
        .configurations
        .iter()
        .filter(|configuration| configuration.enabled)
        .filter_map(|configuration| {
            let settings = configuration.effective_settings.as_ref()?;
            let budget = settings.get("budget_bytes").and_then(Value::as_u64)?;
            let together = budget.saturating_mul(EXAMPLE);
            let fits = DEFAULT_MEMORY_LIMIT_BYTES.checked_div(budget)?;
            Some(vec![
                plain(&configuration.name),
                if together > DEFAULT_MEMORY_LIMIT_BYTES {
                    "the budgets exceed it".to_owned()
                } else {
                    "holds".to_owned()
                },
                grouped(EXAMPLE),
                size(Some(budget)),
                size(Some(together)),
                size(Some(DEFAULT_MEMORY_LIMIT_BYTES)),
                grouped(fits),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| {
        Table::new(
            "host-table",
            "What executions at once may store, by their budget",
            &["configuration", "against the limit"],
            &[
                "executions",
                "budget of one",
                "executions × budget",
                "memory limit",
                "full budgets that fit",
            ],
            rows,
        )
    })
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| NOTHING.to_owned(), |bytes| mebibytes(bytes as f64))
}
