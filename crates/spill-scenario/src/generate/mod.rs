//! The deterministic generator of inputs.
//!
//! Sizes and counts, fixed before anything was measured:
//!
//! | input | files | sizes before canaries | facts |
//! |---|---|---|---|
//! | `review-small` | 3 (1 new) | 7 to 12 KiB, every result below 32 KiB | 9: 7 in diffs, 2 only in files |
//! | `review-medium` | 6 (1 new) | four of 44 to 100 KiB, one new of 52 KiB (file and diff), one of 8 KiB; none above 128 KiB | 29: 16 in diffs, 13 only in files |
//! | `review-large` | 4 (1 new) | 260, 170 and, new, 135 KiB (file and diff), one of 12 KiB | 19: 12 in diffs, 7 only in files |
//! | `handbook` | 1 document | 100 KiB | 53: 27 headings, 26 key sentences |
//! | `records` | 3: rows, a log, an export | 1,500 rows in 256,000 bytes, 96 KiB, 64 KiB | 19: 7 that a list and a start show, 12 in rows and lines |
//!
//! A fact *only in a file* stands in the item next to a changed one, some hundred bytes outside
//! the diff's context: reading the diff alone does not find it, reading around the hunk does.
//! Every input has facts in the first tenth, in the middle and in the last tenth of what carries
//! them.

mod block;
mod change;
mod defect;
mod document;
mod python_code;
mod records;
mod rng;
mod rust_code;
mod words;

use block::Language::{Python, Rust};
use change::{Change, FileSpec, Site, generate_file};
use rng::Rng;
use words::UniqueNames;

use crate::canary::weave;
use crate::input::{
    ChangedFile, Document, Fact, InputData, LIST_OF_TABLES, Recipe, Table, TableFormat, place_of,
};
use crate::served::list_bytes;

/// A generated input: data, facts, and the files as they were before the change.
pub(crate) struct Generated {
    pub(crate) data: InputData,
    pub(crate) facts: Vec<Fact>,
    /// Paths and texts before the change, new files left out.
    #[cfg(test)]
    pub(crate) before: Vec<(String, String)>,
}

/// Names that a scenario can ask for, in the order of the table above.
pub(crate) const GENERATORS: &[&str] = &[
    "review-small",
    "review-medium",
    "review-large",
    "handbook",
    "records",
];

/// The seeds of the built-in inputs.
#[cfg(test)]
pub(crate) const SMALL_SEED: u64 = 11;

/// Bytes of the handbook before canaries.
const HANDBOOK_BYTES: usize = 100 * 1024;

const KIB: usize = 1024;

const fn site(at: usize, in_hunk: bool, nearby: bool) -> Site {
    Site {
        at,
        in_hunk,
        nearby,
    }
}

/// One change with a defect beside it.
const ONE_SITE: &[Site] = &[site(500, false, true)];
/// Two changes with one defect each in the diff, and one beside the second.
const FEW_SITES: &[Site] = &[site(60, true, false), site(940, true, true)];
/// Twelve changes: defects in the diff at the first, a middle and the last one; defects beside the
/// first, a middle and the last one.
const MANY_SITES: &[Site] = &[
    site(20, true, false),
    site(50, false, true),
    site(150, false, false),
    site(240, false, false),
    site(330, false, true),
    site(420, false, false),
    site(510, true, false),
    site(600, false, false),
    site(690, false, false),
    site(780, false, false),
    site(880, false, false),
    site(960, true, true),
];
const NEW_FILE: &[usize] = &[0, 500, 960];
const NEW_LARGE_FILE: &[usize] = &[30, 350, 650, 965];

fn review_specs(name: &str) -> Option<Vec<FileSpec>> {
    let modified = |path, language, bytes, sites| FileSpec {
        path,
        language,
        bytes,
        change: Change::Modified { sites },
    };
    let added = |path, language, bytes, defects_at| FileSpec {
        path,
        language,
        bytes,
        change: Change::Added { defects_at },
    };
    Some(match name {
        "review-small" => vec![
            modified("jobs/refund_sync.py", Python, 7 * KIB, FEW_SITES),
            modified("src/ledger/settlement.rs", Rust, 9 * KIB, FEW_SITES),
            added("src/ledger/window.rs", Rust, 12 * KIB, NEW_FILE),
        ],
        "review-medium" => vec![
            modified("jobs/catalog_import.py", Python, 62 * KIB, MANY_SITES),
            modified("jobs/nightly_report.py", Python, 100 * KIB, MANY_SITES),
            added("jobs/vendor_feed.py", Python, 52 * KIB, NEW_LARGE_FILE),
            modified("src/api/limits.rs", Rust, 8 * KIB, ONE_SITE),
            modified("src/api/routes.rs", Rust, 44 * KIB, MANY_SITES),
            modified("src/store/journal.rs", Rust, 84 * KIB, MANY_SITES),
        ],
        "review-large" => vec![
            modified("jobs/reconcile.py", Python, 170 * KIB, MANY_SITES),
            modified("jobs/schedule.py", Python, 12 * KIB, FEW_SITES),
            added("src/engine/planner.rs", Rust, 135 * KIB, NEW_LARGE_FILE),
            modified("src/engine/scheduler.rs", Rust, 260 * KIB, MANY_SITES),
        ],
        _ => return None,
    })
}

/// Generates the input of that name from a seed; `None` for a name that is not in [`GENERATORS`].
pub(crate) fn generate(name: &str, seed: u64) -> Option<Generated> {
    if name == "handbook" {
        return Some(handbook(seed));
    }
    if name == "records" {
        return Some(records(seed));
    }
    let mut rng = Rng::new(seed, name);
    let mut unique = UniqueNames::default();
    let mut number = 0;
    let mut generated = Generated {
        data: InputData::empty(Recipe::Review),
        facts: Vec::new(),
        #[cfg(test)]
        before: Vec::new(),
    };
    for spec in review_specs(name)? {
        let file = generate_file(&spec, &mut rng, &mut unique, &mut number);
        for fact in &file.facts {
            let text = if fact.carrier == file.path {
                &file.after
            } else {
                &file.diff
            };
            generated.facts.push(Fact {
                id: format!("{:02}-{}", generated.facts.len() + 1, fact.rule),
                expect: fact.expect.clone(),
                carrier: fact.carrier.clone(),
                carrier_bytes: served_bytes(text),
                place: Some(fact.place),
            });
        }
        #[cfg(test)]
        generated
            .before
            .extend(file.before.map(|text| (file.path.to_owned(), text)));
        let status = match spec.change {
            Change::Added { .. } => "added",
            Change::Modified { .. } => "modified",
        };
        generated.data.files.push(ChangedFile {
            path: file.path.to_owned(),
            status: status.to_owned(),
            diff: file.diff,
            content: file.after,
        });
    }
    Some(generated)
}

fn handbook(seed: u64) -> Generated {
    const NAME: &str = "operations-handbook.md";
    let document = document::generate_document(&mut Rng::new(seed, "handbook"), HANDBOOK_BYTES);
    let carrier_bytes = served_bytes(&document.text);
    let facts = document
        .facts
        .iter()
        .enumerate()
        .map(|(index, (kind, expect, offset))| Fact {
            id: format!("{:02}-{kind}", index + 1),
            expect: expect.clone(),
            carrier: NAME.to_owned(),
            carrier_bytes,
            place: Some(place_of(*offset, document.text.len())),
        })
        .collect();
    Generated {
        data: InputData {
            documents: vec![Document {
                name: NAME.to_owned(),
                title: document::TITLE.to_owned(),
                text: document.text,
            }],
            ..InputData::empty(Recipe::Document)
        },
        facts,
        #[cfg(test)]
        before: Vec::new(),
    }
}

fn records(seed: u64) -> Generated {
    let tables = records::generate_tables(seed);
    let mut data = InputData::empty(Recipe::Records);
    data.tables = tables.iter().map(|one| one.table.clone()).collect();
    let list_bytes = list_bytes(&data);
    let mut facts = Vec::new();
    let mut push = |stem: &str, expect: &str, carrier: &str, carrier_bytes, place| {
        facts.push(Fact {
            id: format!("{:02}-{stem}", facts.len() + 1),
            expect: expect.to_owned(),
            carrier: carrier.to_owned(),
            carrier_bytes,
            place,
        });
    };
    for table in &data.tables {
        let expect = format!("{}: rows: {}", table.name, table.rows);
        push("rows", &expect, LIST_OF_TABLES, list_bytes, None);
    }
    for one in &tables {
        let bytes = served_table_bytes(&one.table);
        for (stem, expect, at) in &one.facts {
            let place = place_of(*at, one.table.text.len());
            push(stem, expect, &one.table.name, bytes, Some(place));
        }
    }
    Generated {
        data,
        facts,
        #[cfg(test)]
        before: Vec::new(),
    }
}

/// Bytes of a table as served; the same for every canary seed.
pub(crate) fn served_table_bytes(table: &Table) -> u64 {
    match table.format {
        TableFormat::Rows | TableFormat::Csv => table.text.len() as u64,
        TableFormat::Log => served_bytes(&table.text),
    }
}

/// Bytes of a text once canaries are woven in; the same for every canary seed.
pub(crate) fn served_bytes(text: &str) -> u64 {
    weave(text, 0).len() as u64
}

#[cfg(test)]
mod tests;
