//! Writes reports of made-up runs to a folder, to look at.
//!
//! ```text
//! cargo run -p spill-report --example sample_report -- /tmp/sample
//! ```

#![expect(dead_code, reason = "the builder serves the tests as well")]

#[path = "../../spill-verdict/tests/it/builder.rs"]
mod builder;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use builder::{Case, exhaust, lose, score};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(
        env::args()
            .nth(1)
            .unwrap_or_else(|| "target/sample".to_owned()),
    );
    write(&folder.join("keep"), Case::full())?;
    let disable = Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "document", 2, |run| score(run, 7, 0))
        .one("off", "small", 1, lose);
    write(&folder.join("disable"), disable)?;
    let incomplete = Case::full().without(|run| run.input == "large" && run.repetition > 2);
    write(&folder.join("incomplete"), incomplete)
}

fn write(folder: &Path, case: Case) -> io::Result<()> {
    let verdict = spill_verdict::judge(&case.set);
    let rendered = spill_report::render(&case.set, &verdict, spill_report::Context::default());
    fs::create_dir_all(folder)?;
    fs::write(folder.join("report.html"), rendered.report_html)?;
    fs::write(folder.join("summary.csv"), rendered.summary_csv)?;
    fs::write(folder.join("rules.csv"), rendered.rules_csv)?;
    fs::write(folder.join("verdict.json"), rendered.verdict_json)
}
