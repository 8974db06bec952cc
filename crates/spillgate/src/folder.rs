//! `judge` and `report`, and the end of `accept`: everything that is rebuilt from a run folder.

use std::path::Path;

use spill_record::RunFolder;
use spill_report::Rendered;
use spill_verdict::Verdict;

use crate::cli::FolderArgs;
use crate::{Failure, github, out};

/// There only when a run leaked.
const LEAKS: &str = "leaks.sarif";

pub(crate) fn judge(args: &FolderArgs) -> Result<u8, Failure> {
    let (verdict, code) = finish("judge", &args.dir)?;
    print_verdict("judge", &verdict, args.json)?;
    Ok(code)
}

pub(crate) fn report(args: &FolderArgs) -> Result<u8, Failure> {
    let (verdict, _) = rebuild("report", &args.dir)?;
    if args.json {
        print_verdict("report", &verdict, true)?;
    } else {
        out::line(args.dir.join("report.html").display());
    }
    Ok(0)
}

/// Judges a folder's records, writes every derived file, and tells the CI system that runs this.
pub(crate) fn finish(verb: &'static str, folder: &Path) -> Result<(Verdict, u8), Failure> {
    let (verdict, rendered) = rebuild(verb, folder)?;
    github::tell(&verdict, &rendered.summary_md, &folder.join("report.html"));
    let code = verdict.exit_code();
    Ok((verdict, code))
}

/// Judges a folder's records and writes every derived file.
fn rebuild(verb: &'static str, folder: &Path) -> Result<(Verdict, Rendered), Failure> {
    let usage = |error| Failure::usage(verb, error);
    let set = RunFolder::read(folder).map_err(|error| usage(anyhow::Error::from(error)))?;
    for torn in &set.torn {
        out::note(format_args!(
            "note: {} ends in a torn line (line {}, {} bytes), which is left out",
            torn.file, torn.line, torn.bytes
        ));
    }
    let verdict = spill_verdict::judge(&set);
    let rendered = spill_report::render(&set, &verdict);
    RunFolder::write_runs_csv(folder, &set).map_err(|error| usage(error.into()))?;
    let files = [
        ("verdict.json", &rendered.verdict_json),
        ("summary.csv", &rendered.summary_csv),
        ("rules.csv", &rendered.rules_csv),
        ("report.html", &rendered.report_html),
        ("junit.xml", &rendered.junit_xml),
        ("summary.md", &rendered.summary_md),
    ];
    for (name, text) in files {
        RunFolder::write_derived(folder, name, text.as_bytes())
            .map_err(|error| usage(error.into()))?;
    }
    write_or_remove(folder, LEAKS, rendered.leaks_sarif.as_deref()).map_err(usage)?;
    Ok((verdict, rendered))
}

/// Writes a file that is there only when there is something to say.
fn write_or_remove(folder: &Path, name: &str, text: Option<&str>) -> anyhow::Result<()> {
    let path = folder.join(name);
    match text {
        Some(text) => RunFolder::write_derived(folder, name, text.as_bytes())?,
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                anyhow::bail!(
                    "the outdated {} cannot be removed: {error} (remove it, or make the folder writable)",
                    path.display()
                );
            }
            Ok(()) | Err(_) => {}
        },
    }
    Ok(())
}

pub(crate) fn print_verdict(
    verb: &'static str,
    verdict: &Verdict,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(verdict)
            .map_err(|error| Failure::internal(verb, error))?;
        out::line(text);
    } else {
        out::line(verdict.decision_sentence());
        out::line(spill_verdict::terminal_table(verdict));
    }
    Ok(())
}
