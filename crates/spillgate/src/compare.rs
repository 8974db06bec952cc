//! `compare`: two run folders side by side.

use std::path::{Path, PathBuf};

use serde_json::json;
use spill_report::Differences;

use crate::cli::CompareArgs;
use crate::output_file::OutputFile;
use crate::remote::Folders;
use crate::{Failure, folder, out};

const VERB: &str = "compare";

pub(crate) fn run(args: &CompareArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage(VERB, error);
    let page = OutputFile::at("the comparison", &args.out).map_err(usage)?;
    check_is_page(&args.out).map_err(usage)?;
    let read = |named: &PathBuf| {
        let folders = Folders::one(named)?;
        folder::judged(folders.path()).map_err(|error| folders.error(error))
    };
    let (a, b) = (read(&args.a).map_err(usage)?, read(&args.b).map_err(usage)?);
    let (a, b) = ((&a.0, &a.1), (&b.0, &b.1));
    page.write(&spill_report::compare(a, b)).map_err(usage)?;
    let differences = spill_report::differences(a, b);
    if args.json {
        out::json(VERB, &as_json(&differences))?;
    } else {
        print(&differences);
        out::line(format_args!("comparison: {}", args.out.display()));
    }
    Ok(0)
}

/// What stands in the page's place must be a page: a mistyped name must not cost records.
fn check_is_page(path: &Path) -> anyhow::Result<()> {
    let mut start = [0; 9];
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    let is_free = match read {
        Ok(()) => start.eq_ignore_ascii_case(b"<!doctype"),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    anyhow::ensure!(
        is_free,
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

fn as_json(differences: &Differences) -> serde_json::Value {
    let changed: Vec<_> = differences
        .changed
        .iter()
        .map(|d| json!({"what": d.what, "a": d.a, "b": d.b}))
        .collect();
    json!({
        "same_plan": differences.same_plan,
        "changed": changed,
        "unchanged": differences.unchanged,
    })
}
