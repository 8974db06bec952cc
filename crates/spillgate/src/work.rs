//! What of a plan an acceptance has to run: all of it, one shard, or what a folder lacks.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, ensure};
use spill_record::{
    FolderError, FolderKind, LiveFolder, Manifest, Outcome, PlannedRun, RunFolder, RunRecord, Shard,
};
use spill_report::{EVENT_SCHEMA, Event};
use spill_runner::Options;
use spill_scenario::{Plan, sensitivity_runs};
use spill_verdict::{counted, exit, plain};

use crate::accept::manifest;
use crate::cli::AcceptArgs;
use crate::live::Live;
use crate::out;

/// Runs whose reason is printed one by one; more of them are counted.
const NAMED: usize = 50;
/// How often another name is tried when a folder of the same millisecond and plan stands already.
const NAME_TRIES: u32 = 20;

/// A folder that is open for writing, and the runs that it lacks.
pub(crate) struct Work {
    pub(crate) folder: RunFolder,
    /// Planned runs in the order in which they are made.
    pub(crate) runs: Vec<PlannedRun>,
    /// Extra runs that show each pure profile.
    pub(crate) extra: Vec<PlannedRun>,
}

/// Begins an acceptance in a folder of its own.
pub(crate) fn begin(
    args: &AcceptArgs,
    reports: &Path,
    plan: &Plan,
    live: Option<&Live>,
    options: &Options,
    tokenizer: &str,
) -> anyhow::Result<Work> {
    let mut tries = 0;
    let folder = loop {
        let manifest = manifest(
            plan,
            live.map(Live::record),
            options,
            tokenizer,
            args.shard,
            FolderKind::Acceptance,
        );
        match RunFolder::create(reports, &manifest) {
            Err(FolderError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists && tries < NAME_TRIES =>
            {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            result => break result?,
        }
    };
    let (runs, extra) = runs_of(plan, args.shard);
    Ok(Work {
        folder,
        runs,
        extra,
    })
}

/// Goes on with a folder that lacks runs, or has some that the harness failed.
pub(crate) fn go_on(
    args: &AcceptArgs,
    path: &Path,
    plan: &Plan,
    live: Option<&Live>,
    options: &Options,
    tokenizer: &str,
) -> anyhow::Result<Work> {
    let (folder, held) = RunFolder::reopen(path)?;
    let known = &held.set.manifest;
    same_acceptance(
        path,
        known,
        &manifest(
            plan,
            live.map(Live::record),
            options,
            tokenizer,
            known.shard,
            FolderKind::Acceptance,
        ),
    )?;
    if let Some(asked) = args.shard.filter(|asked| Some(*asked) != known.shard) {
        let is = known.shard.map_or_else(
            || "a whole plan".to_owned(),
            |shard| format!("shard {shard}"),
        );
        anyhow::bail!(
            "{} is {is} and not shard {asked} (leave --shard out, or name the shard's own folder)",
            path.display()
        );
    }
    let kept = &held.set;
    let kept: HashSet<&str> = kept.runs.iter().chain(&kept.sensitivity).map(id).collect();
    let failed: HashMap<&str, &RunRecord> = held.retried.iter().map(|run| (id(run), run)).collect();
    let (mut runs, mut extra) = runs_of(plan, known.shard);
    runs.retain(|run| !kept.contains(&*run.run_id));
    extra.retain(|run| !kept.contains(&*run.run_id));
    if !args.quiet {
        say_why(kept.len(), runs.iter().chain(&extra), &failed);
    }
    Ok(Work {
        folder,
        runs,
        extra,
    })
}

fn id(run: &RunRecord) -> &str {
    &run.run_id
}

/// The planned and the extra runs of a shard, or of the whole plan, in the order they are made.
fn runs_of(plan: &Plan, shard: Option<Shard>) -> (Vec<PlannedRun>, Vec<PlannedRun>) {
    let ours = |run: &PlannedRun| shard.is_none_or(|shard| shard.holds(&run.pair_id));
    let order = plan.execution_order.iter();
    let runs = order.map(|&index| &plan.record.runs[index]);
    let extra = sensitivity_runs(plan).into_iter();
    (
        runs.filter(|run| ours(run)).cloned().collect(),
        extra.filter(ours).collect(),
    )
}

/// Records of two plans, subjects or versions do not go into one folder.
pub(crate) fn same_acceptance(path: &Path, known: &Manifest, now: &Manifest) -> anyhow::Result<()> {
    let settings = |manifest: &Manifest| {
        let all = manifest.plan.configurations.iter();
        all.map(|one| one.effective_settings.clone())
            .collect::<Vec<_>>()
    };
    let kind = |manifest: &Manifest| match manifest.kind {
        FolderKind::Acceptance => "accept",
        FolderKind::Sweep => "sweep",
    };
    ensure!(
        known.kind == now.kind,
        "{} was made by `spillgate {}` and cannot be gone on with by `spillgate {}`",
        path.display(),
        kind(known),
        kind(now)
    );
    let text = |value: &str| plain(value);
    ensure!(
        known.mode == now.mode && known.endpoint == now.endpoint,
        "{} cannot be gone on with: the model was {} and is now {} (give the flags of the first call, or run into a new folder)",
        path.display(),
        answering(known),
        answering(now)
    );
    for (what, was, is) in [
        ("the plan", &known.plan_hash, &now.plan_hash),
        ("the subject", &known.subject, &now.subject),
        (
            "the version",
            &known.versions.spillgate,
            &now.versions.spillgate,
        ),
        (
            "the tokenizer",
            &known.versions.tokenizer,
            &now.versions.tokenizer,
        ),
    ] {
        ensure!(
            was == is,
            "{} cannot be gone on with: {what} was {} and is now {} (give the flags of the first call, or run into a new folder)",
            path.display(),
            text(was),
            text(is)
        );
    }
    ensure!(
        settings(known) == settings(now),
        "{} cannot be gone on with: the subject now uses other settings than its manifest holds (run into a new folder)",
        path.display()
    );
    Ok(())
}

/// Who answers the LLM calls of an acceptance.
fn answering(manifest: &Manifest) -> String {
    match &manifest.endpoint {
        None => "simulated".to_owned(),
        Some(endpoint) => format!("at {} ({})", plain(&endpoint.host), endpoint.api.as_str()),
    }
}

/// Prints why each run is made.
fn say_why<'a>(
    kept: usize,
    runs: impl Iterator<Item = &'a PlannedRun>,
    failed: &HashMap<&str, &RunRecord>,
) {
    let runs: Vec<&PlannedRun> = runs.collect();
    out::note(format_args!(
        "{} stay, {} to make",
        counted(kept as u64, "recorded run"),
        counted(runs.len() as u64, "run")
    ));
    for run in runs.iter().take(NAMED) {
        let why = match failed.get(&*run.run_id) {
            None => "has no record".to_owned(),
            Some(record) => format!("the harness failed it: {}", record.end_reason.as_str()),
        };
        out::note(format_args!(
            "  {} {}/{}, repetition {}, {}: {why}",
            plain(&run.run_id),
            plain(&run.scenario),
            plain(&run.input),
            run.repetition,
            plain(&run.configuration)
        ));
    }
    if let Some(more) = runs.len().checked_sub(NAMED).filter(|more| *more > 0) {
        out::note(format_args!("  and {more} more"));
    }
}

/// The shard that a folder is of, by its manifest alone.
pub(crate) fn shard_of(folder: &Path) -> anyhow::Result<Option<Shard>> {
    let folder = LiveFolder::open(folder).context("the manifest cannot be read back")?;
    Ok(folder.set().manifest.shard)
}

/// What a shard's folder holds; nothing of it is judged.
pub(crate) struct ShardState {
    shard: Shard,
    planned: u64,
    recorded: u64,
    infrastructure: u64,
}

impl ShardState {
    pub(crate) fn of(folder: &Path, shard: Shard) -> anyhow::Result<Self> {
        let set = RunFolder::read(folder)?;
        let planned = set.manifest.plan.runs.iter();
        let planned = planned.filter(|run| shard.holds(&run.pair_id)).count() as u64;
        let infrastructure = set.runs.iter().filter(|run| match run.outcome {
            Outcome::Infrastructure => true,
            Outcome::Succeeded | Outcome::Failed => false,
        });
        Ok(Self {
            shard,
            planned,
            recorded: set.runs.len() as u64,
            infrastructure: infrastructure.count() as u64,
        })
    }

    /// Incomplete when a run is missing.
    pub(crate) fn code(&self) -> u8 {
        if self.recorded == self.planned && self.infrastructure == 0 {
            exit::ACCEPTED
        } else {
            exit::INCOMPLETE
        }
    }

    /// Prints it, of the folder that people call `folder`.
    pub(crate) fn tell(&self, folder: &str, json: bool) {
        let Self {
            shard,
            planned,
            recorded,
            infrastructure,
        } = *self;
        if json {
            let event = Event::Shard {
                schema: EVENT_SCHEMA,
                shard: shard.to_string(),
                folder: folder.to_owned(),
                planned,
                recorded,
                infrastructure,
            };
            out::line(event.line());
        } else {
            out::line(format_args!(
                "shard {shard}: {recorded} of {} recorded, {infrastructure} lost to the harness",
                counted(planned, "run")
            ));
            out::line(format_args!("folder: {folder}"));
            out::line("judge the whole with `spillgate merge` once every shard is there");
        }
    }
}
