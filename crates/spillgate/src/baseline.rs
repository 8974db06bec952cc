//! The accepted run that later ones are held against: `<reports>/baseline`.

use std::path::Path;

use spill_record::{Blessing, RunFolder, SCHEMA, Stage};
use spill_report::Baseline;
use spill_verdict::exit;

use crate::{folder, host, out};

/// The folder's name among the run folders.
const NAME: &str = "baseline";
/// Derived files that the accepted run keeps, to be read without the program.
const KEPT: [&str; 2] = ["verdict.json", "summary.csv"];

/// The accepted run beside `run`; `None` where there is none, or none that can be read.
pub(crate) fn beside(run: &Path) -> Option<Baseline> {
    let run = std::fs::canonicalize(run).ok()?;
    let path = run.parent()?.join(NAME);
    let read = || -> anyhow::Result<Option<Baseline>> {
        let Some(blessing) = RunFolder::read_blessing(&path)? else {
            return Ok(None);
        };
        let (set, verdict) = folder::judged(&path)?;
        Ok(Some(Baseline {
            set,
            verdict,
            blessing,
        }))
    };
    // The accepted run explains a report; it never stands in the way of one.
    read().unwrap_or_else(|error| {
        out::note(format_args!(
            "note: the report says nothing about changes: {error}"
        ));
        None
    })
}

/// Refuses a stage whose verdict is no last word.
pub(crate) fn check_stage(stage: Stage) -> anyhow::Result<()> {
    match stage {
        Stage::Full => Ok(()),
        Stage::Quick => anyhow::bail!(
            "a quick acceptance cannot become the accepted run (leave out --stage quick, or --bless)"
        ),
    }
}

/// Makes `run` the accepted one where its verdict is an answer: the default stays (exit 0), or it
/// must change (exit 3) and `reason` says why that is the state to start from.
pub(crate) fn bless(reports: &Path, run: &Path, reason: &str, code: u8) -> anyhow::Result<()> {
    if !matches!(code, exit::ACCEPTED | exit::REJECTED) {
        out::note(format_args!(
            "not blessed: the verdict is no answer to start from (exit code {code}; 0 and 3 are)"
        ));
        return Ok(());
    }
    let baseline = reports.join(NAME);
    let (blessed_at, _) = host::now();
    let (commit, dirty) = host::commit();
    let manifest = RunFolder::read(run)?.manifest;
    let blessing = Blessing {
        schema: SCHEMA,
        acceptance_id: manifest.acceptance_id,
        reason: reason.to_owned(),
        blessed_at,
        commit,
        dirty,
        exit_code: code,
        records_digest: String::new(),
    };
    RunFolder::bless(run, &baseline, &blessing)?;
    for name in KEPT {
        RunFolder::write_derived(&baseline, name, &std::fs::read(run.join(name))?)?;
    }
    out::note(format_args!(
        "blessed: {} is the accepted run now (commit it)",
        baseline.display()
    ));
    Ok(())
}
