//! `scenario from-trace`: one recorded transcript becomes a scenario.

mod convert;
mod find;
mod unproven;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use spill_record::RunFolder;
use spill_scenario::load;
use spill_verdict::counted;

use crate::cli::{FromTraceArgs, ScenarioArgs, ScenarioVerb};
use crate::{Failure, out};

const VERB: &str = "scenario from-trace";
const SCENARIO_FILE: &str = "scenario.toml";
const CALLS_FILE: &str = "calls.jsonl";

pub(crate) fn run(args: &ScenarioArgs) -> Result<u8, Failure> {
    match &args.verb {
        ScenarioVerb::FromTrace(args) => {
            from_trace(args).map_err(|error| Failure::usage(VERB, error))
        }
    }
}

fn from_trace(args: &FromTraceArgs) -> anyhow::Result<u8> {
    let found = find::transcript(&args.file, args.session.as_deref())?;
    let name = convert::name_of(&args.file, args.session.as_deref());
    let recording = convert::recording(&found, &name, CALLS_FILE)
        .with_context(|| args.file.display().to_string())?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("recorded-{name}")));
    write(&folder, &recording)?;
    let path = folder.join(SCENARIO_FILE);
    for note in &recording.scenario.notes {
        out::note(format_args!("note: {note}"));
    }
    out::line(format_args!(
        "{}: {}, {}",
        path.display(),
        counted(recording.calls.len() as u64, "call"),
        counted(recording.scenario.facts.len() as u64, "fact")
    ));
    let how = if recording.proves_nothing {
        "run it, once a threshold is lower"
    } else {
        "run it"
    };
    out::line(format_args!(
        "{how}: spillgate accept --scenario {}",
        path.display()
    ));
    Ok(spill_verdict::exit::ACCEPTED)
}

/// Writes both files into a folder that is new or empty, the scenario last: it is there when all is.
fn write(folder: &Path, recording: &convert::Recording) -> anyhow::Result<()> {
    make_empty(folder)?;
    let mut lines = String::new();
    for call in &recording.calls {
        lines.push_str(&call.to_line());
    }
    RunFolder::write_derived(folder, CALLS_FILE, lines.as_bytes())?;
    let path = folder.join(SCENARIO_FILE);
    RunFolder::write_derived(
        folder,
        SCENARIO_FILE,
        recording.scenario.to_toml().as_bytes(),
    )?;
    let usable = load(&path);
    if usable.is_err() {
        // A scenario that `accept` refuses must not be taken for one.
        drop(fs::remove_file(&path));
        drop(fs::remove_file(folder.join(CALLS_FILE)));
        drop(fs::remove_dir(folder));
    }
    usable.context("the recording gives no usable scenario (choose another with --session)")?;
    Ok(())
}

fn make_empty(folder: &Path) -> anyhow::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(folder).with_context(|| {
                format!(
                    "the folder {} cannot be made (name another with --out)",
                    folder.display()
                )
            })?;
            None
        }
        Err(error) => bail!(
            "{} cannot be used as a folder: {error} (name another with --out)",
            folder.display()
        ),
    };
    ensure!(
        entries.is_none(),
        "the folder {} is not empty, and nothing is overwritten (name another with --out)",
        folder.display()
    );
    Ok(())
}
