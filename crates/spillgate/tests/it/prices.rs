//! A price table on the command line: kept in the folder, replaced on demand, refused with its place.

use std::fs;

use crate::program::{accept, folder, rows, spillgate};

const TABLE: &str = "# As of 2026-11-01.
[models.simulated-1]
currency = \"EUR\"
uncached_input_per_million = 3
cache_read_per_million = 0.3
cache_write_per_million = 3.75
output_per_million = 15
";

#[test]
fn a_price_table_is_kept_in_the_folder_and_can_be_replaced() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("mine.toml"), TABLE).unwrap();
    let said = accept(folder.path(), "review", "small", &["--prices", "mine.toml"]);
    assert_eq!(said.code, Some(4), "{}", said.stderr);
    assert!(said.stdout.contains("What a run costs"), "{}", said.stdout);
    let latest = at("reports/latest");
    let kept = fs::read_to_string(latest.join("prices.toml")).unwrap();
    assert_eq!(kept, TABLE);
    let costs = |column: &str| -> Vec<f64> {
        let rows = rows(&latest.join("runs.csv"));
        rows.iter()
            .map(|row| row[column].parse().unwrap())
            .collect()
    };
    let before = costs("cost");
    assert!(before.iter().all(|cost| *cost > 0.0), "{before:?}");

    // The folder alone gives the same bytes, wherever the user's own file is by now.
    fs::remove_file(at("mine.toml")).unwrap();
    let read = || fs::read(latest.join("report.html")).unwrap();
    let html = read();
    spillgate(folder.path(), &["judge", "reports/latest"]);
    assert!(read() == html, "judge rebuilt other bytes");

    fs::write(at("double.toml"), TABLE.replace("= 3\n", "= 6\n")).unwrap();
    let priced = ["report", "reports/latest", "--prices", "double.toml"];
    let said = spillgate(folder.path(), &priced);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (uncached, after) = (costs("uncached_input_cost"), costs("cost"));
    for ((before, after), uncached) in before.iter().zip(&after).zip(&uncached) {
        assert!(
            (after - before - uncached / 2.0).abs() < 1e-9,
            "{before} {after}"
        );
    }
    assert!(read() != html);
    let judged = spillgate(folder.path(), &["judge", "reports/latest"]);
    assert_eq!(judged.code, Some(4), "no rule reads a price");
}

#[test]
fn a_price_table_that_cannot_be_used_is_refused_before_anything_is_run() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let refused = |arguments: &[&str], words: &str| {
        let said = spillgate(folder.path(), arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stdout);
        assert!(
            said.stderr.contains(words),
            "{arguments:?}: {}",
            said.stderr
        );
    };
    fs::write(at("other.toml"), TABLE.replace("simulated-1", "another")).unwrap();
    fs::write(at("negative.toml"), TABLE.replace("= 15", "= -15")).unwrap();
    let unpriced = "other.toml has no price of the model simulated-1 (add a table [models.\"simulated-1\"]; it has another)";
    refused(&["accept", "--prices", "other.toml"], unpriced);
    refused(
        &["accept", "--prices", "negative.toml"],
        "negative.toml, line 7, column 22: a price is from 0",
    );
    refused(
        &["accept", "--prices", "none.toml"],
        "cannot read the price table none.toml",
    );
    assert!(!at("reports").exists());

    accept(folder.path(), "review", "small", &[]);
    let latest = at("reports/latest");
    refused(
        &["report", "reports/latest", "--prices", "other.toml"],
        unpriced,
    );
    assert!(!latest.join("prices.toml").exists());
    refused(
        &["report", ".", "--prices", "other.toml"],
        "name a folder that",
    );

    // A table in the folder that somebody broke: named, with a way out that works.
    fs::write(at("good.toml"), TABLE).unwrap();
    fs::write(latest.join("prices.toml"), "broken").unwrap();
    refused(
        &["judge", "reports/latest"],
        "spillgate report --prices FILE",
    );
    let said = spillgate(
        folder.path(),
        &["report", "reports/latest", "--prices", "good.toml"],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}
