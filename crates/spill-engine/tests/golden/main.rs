//! The golden values of the two published systems, replayed as data.

mod dsh;
mod further;
mod nitrostack;
mod stores;
mod support;

use support::markdown;

/// The tables in the crate's documentation are these tables.
#[test]
fn the_documentation_lists_every_difference() {
    let documented = include_str!("../../DIFFERENCES.md");
    for (title, rows) in [
        ("Envelope, observed form", nitrostack::OBSERVED),
        ("Envelope, published form (default)", nitrostack::PUBLISHED),
        ("Inline cap, glued layout", dsh::GLUED),
        ("Inline cap, marked layout (default)", dsh::MARKED),
        ("Retainers", dsh::RETENTION),
        (
            "File store, against the local store of DeepSeek Harness",
            stores::LOCAL,
        ),
        (
            "Stores, against the record stores of NitroStack",
            stores::RECORDS,
        ),
    ] {
        let table = format!("## {title}: {} rows\n\n{}", rows.len(), markdown(rows));
        assert!(documented.contains(&table), "DIFFERENCES.md lacks\n{table}");
    }
}
