//! `compare`: run folders side by side. Two of one subject by what differs, several subjects by their figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use spill_record::{RunFolder, RunSet, harmless_json};
use spill_report::{Differences, LargestResults, NotComparable, SubjectRuns};
use spill_verdict::Verdict;

use crate::cli::CompareArgs;
use crate::output_file::OutputFile;
use crate::remote::Folders;
use crate::{Failure, folder, out};

const VERB: &str = "compare";

/// A folder that was named, and what is in it.
struct Read {
    named: PathBuf,
    folders: Folders,
    set: RunSet,
    verdict: Verdict,
}

pub(crate) fn run(args: &CompareArgs) -> Result<u8, Failure> {
    compare(args).map_err(|error| Failure::usage(VERB, error))?;
    Ok(0)
}

fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let page = OutputFile::at("the comparison", &args.out)?;
    check_is_ours(&args.out, b"<!doctype", "page", "--out")?;
    let sheet = args.csv.as_deref();
    let sheet = sheet
        .map(|path| OutputFile::at("the table", path))
        .transpose()?;
    if let Some(path) = &args.csv {
        anyhow::ensure!(
            std::path::absolute(path)? != std::path::absolute(&args.out)?,
            "--csv and --out both name {} (name two files)",
            path.display()
        );
        check_is_ours(path, b"scenario,", "table of this verb", "--csv")?;
    }
    let read: Vec<Read> = args.folders.iter().map(read).collect::<Result<_, _>>()?;
    let subjects: BTreeSet<&str> = read.iter().map(|one| &*one.set.manifest.subject).collect();
    match (&*read, subjects.len()) {
        ([a, b], 1) => {
            anyhow::ensure!(
                sheet.is_none(),
                "--csv is the table of several subjects, and both folders are of {} (leave it out; --json prints what differs)",
                a.set.manifest.subject
            );
            two(args, &page, a, b)
        }
        ([], _) | (_, 0 | 1) => anyhow::bail!(
            "{} run folders of one subject (name two, to see what differs between them; more are shown side by side when their subjects differ)",
            read.len()
        ),
        (read, _) => several(args, &page, sheet.as_ref(), read),
    }
}

fn read(named: &PathBuf) -> anyhow::Result<Read> {
    let folders = Folders::one(named)?;
    let judged = folder::judged(folders.path()).map_err(|error| folders.error(error))?;
    let (set, verdict) = judged;
    Ok(Read {
        named: named.clone(),
        folders,
        set,
        verdict,
    })
}

/// Two folders of one subject: what differs.
fn two(args: &CompareArgs, page: &OutputFile<'_>, a: &Read, b: &Read) -> anyhow::Result<()> {
    let (a, b) = ((&a.set, &a.verdict), (&b.set, &b.verdict));
    page.write(&spill_report::compare(a, b))?;
    let differences = spill_report::differences(a, b);
    if args.json {
        out::line(harmless_json(&serde_json::to_string_pretty(&as_json(
            &differences,
        ))?));
    } else {
        print(&differences);
        out::line(format_args!("comparison: {}", args.out.display()));
    }
    Ok(())
}

/// Several subjects: what each made of the same inputs.
fn several(
    args: &CompareArgs,
    page: &OutputFile<'_>,
    sheet: Option<&OutputFile<'_>>,
    read: &[Read],
) -> anyhow::Result<()> {
    let largest: Vec<LargestResults> = read.iter().map(largest).collect::<Result<_, _>>()?;
    let runs: Vec<SubjectRuns<'_>> = read
        .iter()
        .zip(&largest)
        .map(|(one, largest)| SubjectRuns {
            set: &one.set,
            largest,
        })
        .collect();
    let rendered = spill_report::subjects(&runs).map_err(|error| refused(&error, read))?;
    page.write(&rendered.html)?;
    if let Some(sheet) = sheet {
        sheet.write(&rendered.csv)?;
    }
    if args.json {
        out::line(harmless_json(rendered.json.trim_end()));
    } else {
        out::line(&rendered.table);
        out::line(format_args!("comparison: {}", args.out.display()));
    }
    Ok(())
}

fn largest(read: &Read) -> anyhow::Result<LargestResults> {
    let mut largest = LargestResults::default();
    RunFolder::each_call_of(read.folders.path(), |_| true, |call| largest.take(&call))
        .map_err(|error| read.folders.error(error))?;
    Ok(largest)
}

fn refused(error: &NotComparable, read: &[Read]) -> anyhow::Error {
    let name = |index: usize| read[index].named.display();
    anyhow::anyhow!(
        "{} and {} cannot be compared: {} (run `spillgate accept` with one input, one seed and one number of repetitions for each --subject)",
        name(error.folders.0),
        name(error.folders.1),
        error.words
    )
}

/// What stands in a file's place must be of its kind: a mistyped name must not cost records.
fn check_is_ours(path: &Path, start: &[u8; 9], kind: &str, flag: &str) -> anyhow::Result<()> {
    let mut found = [0; 9];
    let read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut found));
    let is_free = match read {
        Ok(()) => found.eq_ignore_ascii_case(start),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    anyhow::ensure!(
        is_free,
        "{} is there and no {kind} (name another file with {flag}, or remove it)",
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
