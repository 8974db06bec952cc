//! Data of a shop: rows of a database table, a CSV export, a log aggregate.

use std::fmt::Write as _;

use super::KIB;
use super::rng::Rng;
use crate::canary::{TRACE_LEN, TRACE_PREFIX};
use crate::input::{Table, TableFormat};

/// A table and what stands in it: id stem, expected finding, byte offset.
pub(super) struct GeneratedTable {
    pub(super) table: Table,
    pub(super) facts: Vec<(&'static str, String, usize)>,
}

const ORDERS: &str = "orders";
/// Items of the rows table, and bytes of its compact JSON.
const ORDER_ROWS: usize = 1_500;
const ORDER_BYTES: usize = 256_000;
/// The one disputed order, and audited ones at the start, in the middle and at the end, in thousandths.
const DISPUTED_AT: usize = 487;
const AUDITED_AT: &[usize] = &[31, 552, 968];

const SHIPMENTS: &str = "shipments.csv";
const SHIPMENT_BYTES: usize = 64 * KIB;
const LOST_AT: &[usize] = &[455, 941];
const AUDITED_SHIPMENT_AT: usize = 618;

const PAYMENTS: &str = "payments.log";
const PAYMENT_BYTES: usize = 96 * KIB;
/// Lines with an error: in the first tenth, three between, in the last tenth.
const ERRORS_AT: &[usize] = &[42, 305, 521, 743, 957];

const STATUSES: &[&str] = &["new", "paid", "packed", "shipped", "delivered", "returned"];
const CARRIERS: &[&str] = &["northline", "parcelpoint", "skyfreight", "cityrun"];
const STATES: &[&str] = &["created", "in transit", "customs", "delivered"];
const NOTE_WORDS: &[&str] = &[
    "leave", "at", "door", "gift", "wrap", "call", "first", "second", "floor", "blue", "paper",
    "fragile", "handle", "with", "care", "ring", "twice", "desk", "pickup", "later",
];
const STEPS: &[&str] = &["settled", "captured", "voided", "reserved", "released"];
const FAULTS: &[&str] = &[
    "gateway refused batch",
    "ledger rejected entry",
    "duplicate capture of batch",
    "no answer from bank for batch",
    "signature mismatch in batch",
];

/// The three tables in the order in which they are listed.
pub(super) fn generate_tables(seed: u64) -> Vec<GeneratedTable> {
    vec![
        orders(&mut Rng::new(seed, ORDERS)),
        payments(&mut Rng::new(seed, PAYMENTS)),
        shipments(&mut Rng::new(seed, SHIPMENTS)),
    ]
}

fn orders(rng: &mut Rng) -> GeneratedTable {
    let row_at = |thousandth: usize| ORDER_ROWS * thousandth / 1000;
    let mut text = String::from("[");
    let mut facts = vec![
        (
            "columns",
            format!(
                "{ORDERS}: columns: id, customer, status, items, total_cents, placed, trace_id, note"
            ),
            1,
        ),
        ("first", format!("{ORDERS}: first: ord-00001"), 1),
    ];
    for index in 0..ORDER_ROWS {
        let at = text.len();
        let id = format!("ord-{:05}", index + 1);
        let is_disputed = index == row_at(DISPUTED_AT);
        let is_audited = AUDITED_AT.iter().any(|at| row_at(*at) == index);
        let status = if is_disputed {
            "disputed"
        } else {
            rng.pick(STATUSES)
        };
        let total = rng.between(1_000, 999_999);
        if is_disputed {
            facts.push(("disputed", format!("{ORDERS}: disputed: {id}"), at));
        }
        if is_audited {
            facts.push(("audited", format!("{ORDERS}: audited: {id}: {total}"), at));
        }
        write!(
            text,
            r#"{{"id":"{id}","customer":"c-{}","status":"{status}","items":{},"total_cents":{total},"placed":"{}","trace_id":"{}","note":""#,
            rng.between(1000, 9999),
            rng.between(1, 9),
            date(index * 90 / ORDER_ROWS),
            trace(rng),
        )
        .expect("writing to a string works");
        if is_audited {
            text.push_str("audit ");
        }
        // What follows the note takes three bytes, the array's closing bracket or a comma among them.
        let end = 1 + (ORDER_BYTES - 1) * (index + 1) / ORDER_ROWS;
        note(rng, &mut text, end - 3);
        text.push_str(if index + 1 < ORDER_ROWS {
            "\"},"
        } else {
            "\"}]"
        });
    }
    facts.sort_by_key(|(_, _, at)| *at);
    table(ORDERS, TableFormat::Rows, ORDER_ROWS, text, facts)
}

fn shipments(rng: &mut Rng) -> GeneratedTable {
    const HEADER: &str = "id,order,carrier,state,weight_grams,left,trace_id,note";
    let mut facts = vec![
        (
            "columns",
            format!("{SHIPMENTS}: columns: {}", HEADER.replace(',', ", ")),
            0,
        ),
        (
            "first",
            format!("{SHIPMENTS}: first: shp-00001"),
            HEADER.len() + 1,
        ),
    ];
    let mut text = format!("{HEADER}\n");
    let mut rows = 0;
    let mut lost = LOST_AT
        .iter()
        .map(|at| SHIPMENT_BYTES * at / 1000)
        .peekable();
    let mut audited = Some(SHIPMENT_BYTES * AUDITED_SHIPMENT_AT / 1000);
    while text.len() < SHIPMENT_BYTES - 100 {
        rows += 1;
        let at = text.len();
        let id = format!("shp-{rows:05}");
        let is_lost = lost.next_if(|due| *due <= at).is_some();
        let is_audited = audited.take_if(|due| *due <= at).is_some();
        let weight = rng.between(200, 29_999);
        if is_lost {
            facts.push(("lost", format!("{SHIPMENTS}: lost: {id}"), at));
        }
        if is_audited {
            facts.push((
                "audited",
                format!("{SHIPMENTS}: audited: {id}: {weight}"),
                at,
            ));
        }
        write!(
            text,
            "{id},ord-{:05},{},{},{weight},{},{},",
            rng.between(1, ORDER_ROWS),
            rng.pick(CARRIERS),
            if is_lost { "lost" } else { rng.pick(STATES) },
            date(rows / 8),
            trace(rng),
        )
        .expect("writing to a string works");
        if is_audited {
            text.push_str("audit ");
        }
        let end = text.len() + rng.between(6, 24);
        note(rng, &mut text, end);
        text.push('\n');
    }
    table(SHIPMENTS, TableFormat::Csv, rows, text, facts)
}

fn payments(rng: &mut Rng) -> GeneratedTable {
    let mut text = String::new();
    let mut facts = Vec::new();
    let mut rows = 0;
    let mut faults = ERRORS_AT
        .iter()
        .map(|at| PAYMENT_BYTES * at / 1000)
        .zip(FAULTS)
        .peekable();
    while text.len() < PAYMENT_BYTES - 90 {
        let at = text.len();
        let time = format!(
            "{}T{:02}:{:02}:{:02}Z",
            date(rows / 40),
            rows / 60 % 24,
            rows % 60,
            rng.below(60)
        );
        rows += 1;
        let worker = rng.between(1, 12);
        let batch = rng.between(1000, 9999);
        match faults.next_if(|(due, _)| *due <= at) {
            Some((_, fault)) => {
                let said = format!("worker-{worker} {fault} {batch}");
                facts.push(("error", format!("{PAYMENTS}: error: {said}"), at));
                writeln!(text, "{time} ERROR {said}")
            }
            None => writeln!(
                text,
                "{time} {} worker-{worker} {} batch {batch} of {} payments in {} ms",
                if rng.below(9) == 0 { "WARN " } else { "INFO " },
                rng.pick(STEPS),
                rng.between(1, 400),
                rng.between(8, 900),
            ),
        }
        .expect("writing to a string works");
    }
    table(PAYMENTS, TableFormat::Log, rows, text, facts)
}

fn table(
    name: &str,
    format: TableFormat,
    rows: usize,
    text: String,
    facts: Vec<(&'static str, String, usize)>,
) -> GeneratedTable {
    let table = Table {
        name: name.to_owned(),
        format,
        rows: u64::try_from(rows).expect("a usize fits"),
        text,
    };
    GeneratedTable { table, facts }
}

/// A day of the three months from 1 March 2026.
fn date(day: usize) -> String {
    let (month, day) = match day {
        0..31 => (3, day),
        31..61 => (4, day - 31),
        _ => (5, (day - 61) % 31),
    };
    format!("2026-{month:02}-{:02}", day + 1)
}

/// A value of the column that canaries are planted in.
fn trace(rng: &mut Rng) -> String {
    let digits = (TRACE_PREFIX.len()..TRACE_LEN)
        .map(|_| char::from_digit(u32::try_from(rng.below(16)).expect("it is a digit"), 16));
    let digits: String = digits.map(|digit| digit.expect("below 16")).collect();
    format!("{TRACE_PREFIX}{digits}")
}

/// Words up to the byte `end` of the text.
fn note(rng: &mut Rng, text: &mut String, end: usize) {
    while text.len() < end {
        text.push_str(rng.pick(NOTE_WORDS));
        text.push(' ');
    }
    text.truncate(end);
}
