//! `compare`: two run folders side by side.

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use spill_report::Differences;

use crate::cli::CompareArgs;
use crate::{Failure, folder, out};

const VERB: &str = "compare";

pub(crate) fn run(args: &CompareArgs) -> Result<u8, Failure> {
    check_out(&args.out).map_err(|error| Failure::usage(VERB, error))?;
    let read = |path: &Path| folder::judged(path).map_err(|error| Failure::usage(VERB, error));
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let (a, b) = ((&a.0, &a.1), (&b.0, &b.1));
    let page = spill_report::compare(a, b);
    std::fs::write(&args.out, page)
        .with_context(|| {
            format!(
                "{} cannot be written (name a file in a writable folder with --out)",
                args.out.display()
            )
        })
        .map_err(|error| Failure::usage(VERB, error))?;
    let differences = spill_report::differences(a, b);
    if args.json {
        out::line(as_json(&differences));
    } else {
        print(&differences);
        out::line(format_args!("comparison: {}", args.out.display()));
    }
    Ok(0)
}

/// What stands in the page's place must be a page: a mistyped name must not cost records.
fn check_out(path: &Path) -> anyhow::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    let is_page = || -> std::io::Result<bool> {
        let mut start = [0; 9];
        std::io::Read::read_exact(&mut std::fs::File::open(path)?, &mut start)?;
        Ok(start.eq_ignore_ascii_case(b"<!doctype"))
    };
    anyhow::ensure!(
        found.is_file() && is_page().unwrap_or(false),
        "{} is there and no page (name another file with --out, or remove it)",
        path.display()
    );
    Ok(())
}

fn print(differences: &Differences) {
    if !differences.same_plan {
        out::line("The two were made by different plans.");
    }
    for difference in &differences.changed {
        out::line(format_args!(
            "{}: {} -> {}",
            difference.what, difference.a, difference.b
        ));
    }
    out::line(format_args!(
        "{} changed, {} the same",
        differences.changed.len(),
        differences.unchanged
    ));
}

fn as_json(differences: &Differences) -> String {
    let changed: Vec<_> = differences
        .changed
        .iter()
        .map(|d| json!({"what": d.what, "a": d.a, "b": d.b}))
        .collect();
    let text = json!({
        "same_plan": differences.same_plan,
        "changed": changed,
        "unchanged": differences.unchanged,
    });
    format!("{text:#}")
}
