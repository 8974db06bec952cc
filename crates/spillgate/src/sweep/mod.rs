//! `sweep`: thresholds, and what else can be set, against cost and quality.

mod plan;
mod stages;

use std::path::Path;

use spill_record::{FolderKind, LiveFolder, RunFolder};
use spill_report::{Calls, SweepRendered};
use spill_runner::Subject;
use spill_verdict::{Sweep, counted, exit, recommendation_line, stored_nothing_line};

use crate::cli::SweepArgs;
use crate::remote::path_only;
use crate::setup::Setup;
use crate::{Failure, out};

const VERB: &str = "sweep";

pub(crate) fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage(VERB, error);
    let plan = plan::plan(args).map_err(usage)?;
    let out = path_only("--out of a sweep", &args.out).map_err(usage)?;
    let setup = Setup::new(VERB, Subject::BuiltIn, args.jobs)?;
    let folder = setup
        .runtime
        .block_on(stages::measure(args, &out, plan, &setup))?;
    let swept = rebuild(&folder).map_err(usage)?;
    swept.print(args.json, &folder.display().to_string());
    Ok(swept.code())
}

/// Whether a folder is a sweep's, by its manifest. One that cannot be read is said to be none: whoever reads it says why.
pub(crate) fn is_sweep(folder: &Path) -> bool {
    LiveFolder::open(folder).is_ok_and(|folder| match folder.set().manifest.kind {
        FolderKind::Sweep => true,
        FolderKind::Acceptance => false,
    })
}

/// A sweep's folder, to be told.
pub(crate) struct Swept {
    sweep: Sweep,
    rendered: SweepRendered,
}

/// Derives the curves from the folder's records, and writes every derived file.
pub(crate) fn rebuild(folder: &Path) -> anyhow::Result<Swept> {
    let set = RunFolder::read(folder)?;
    let sweep = spill_verdict::sweep(&set);
    let mut calls = Calls::of_control(&set);
    let wanted = calls.wanted();
    RunFolder::each_call_of(folder, |id| wanted.contains(id), |call| calls.take(call))?;
    let rendered = spill_report::sweep(&set, &sweep, &calls);
    RunFolder::write_runs_csv(folder, &set)?;
    for (name, text) in [
        ("sweep.json", &rendered.json),
        ("sweep.csv", &rendered.csv),
        ("sweep.html", &rendered.html),
    ] {
        RunFolder::write_derived(folder, name, text.as_bytes())?;
    }
    Ok(Swept { sweep, rendered })
}

impl Swept {
    /// Incomplete when a run is missing.
    pub(crate) fn code(&self) -> u8 {
        if self.sweep.missing > 0 {
            exit::INCOMPLETE
        } else {
            exit::ACCEPTED
        }
    }

    /// Tells what the curves recommend, of the folder that people call `folder`.
    pub(crate) fn print(&self, json: bool, folder: &str) {
        if json {
            out::line(self.rendered.json.trim_end());
        } else {
            for curve in &self.sweep.curves {
                out::line(recommendation_line(curve));
            }
            out::line(&self.rendered.table);
            for curve in &self.sweep.curves {
                if let Some(line) = stored_nothing_line(curve) {
                    out::line(line);
                }
            }
            out::line(format_args!("report: {folder}/sweep.html"));
        }
        if self.sweep.missing > 0 {
            out::note(format_args!(
                "{} without a record: go on with `spillgate sweep --resume {folder}`",
                counted(self.sweep.missing, "run")
            ));
        }
    }
}
