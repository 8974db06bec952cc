//! Runs a sweep, a setting at a time, and leaves out what a setting cannot change.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use spill_record::{
    ConfigurationRole, FolderKind, Outcome, PlannedRun, RunFolder, RunRecord, RunSet,
};
use spill_runner::{FinishedRun, Harness, Options, pairs_of};
use spill_scenario::Plan;
use spill_verdict::{counted, grouped};

use crate::cli::SweepArgs;
use crate::setup::Setup;
use crate::work::same_acceptance;
use crate::{Failure, accept, out};

/// Runs all settings, and returns the folder with their records.
pub(super) async fn measure(
    args: &SweepArgs,
    out: &Path,
    plan: Plan,
    setup: &Setup,
) -> Result<PathBuf, Failure> {
    let (plan, harness) = setup.start(plan).await?;
    let made = run_stages(args, out, &plan, &harness, &setup.options).await;
    made.map_err(|error| Failure::usage(super::VERB, error))
}

/// Runs the control, then each threshold from the lowest on those pairs in which the one before it
/// still stored something.
async fn run_stages(
    args: &SweepArgs,
    out: &Path,
    plan: &Plan,
    harness: &Harness,
    options: &Options,
) -> anyhow::Result<PathBuf> {
    let manifest = accept::manifest(
        plan,
        None,
        options,
        harness.tokenizer(),
        None,
        FolderKind::Sweep,
    );
    let (mut folder, mut known) = match &args.resume {
        None => (
            RunFolder::create(out, &manifest)?,
            RunSet {
                manifest: manifest.clone(),
                runs: Vec::new(),
                sensitivity: Vec::new(),
                executions: Vec::new(),
                torn: Vec::new(),
                prices: None,
                spending: None,
            },
        ),
        Some(path) => {
            let (folder, held) = RunFolder::reopen(path)?;
            same_acceptance(path, &held.set.manifest, &manifest)?;
            (folder, held.set)
        }
    };
    let stop = accept::stop_on_signals()?;
    let (mut made, mut spared) = (0_u64, 0_u64);
    let order = in_stages(plan);
    for (number, stage) in order.iter().enumerate() {
        let recorded: HashSet<&str> = known.runs.iter().map(|run| &*run.run_id).collect();
        let lacking: Vec<&PlannedRun> = stage
            .runs
            .iter()
            .filter(|run| !recorded.contains(&*run.run_id))
            .copied()
            .collect();
        let (control, lower) = stages_before(&order, number);
        let same = settled(&known.runs, control, &lower);
        let mut fresh = Vec::new();
        let mut to_make = Vec::new();
        for run in lacking {
            match same.get(&*run.pair_id) {
                Some(control) => {
                    let record = copy_of(control, run, plan);
                    folder.append(&record, &[])?;
                    spared += 1;
                    fresh.push(record);
                }
                None => to_make.push(run.clone()),
            }
        }
        made += to_make.len() as u64;
        if !args.quiet && !to_make.is_empty() {
            out::note(format_args!(
                "{}: {} to make",
                stage.name,
                counted(to_make.len() as u64, "run")
            ));
        }
        let mut record = |finished: FinishedRun| {
            folder.append(&finished.record, &finished.calls)?;
            fresh.push(finished.record);
            Ok(())
        };
        harness
            .execute(pairs_of(to_make), stop.clone(), &mut record)
            .await?;
        known.runs.extend(fresh);
        if *stop.borrow() {
            out::note("interrupted: the folder holds the runs that had finished");
            break;
        }
    }
    if !args.quiet {
        out::note(format_args!(
            "{} made, {} known without one",
            counted(made, "run"),
            grouped(spared)
        ));
    }
    Ok(folder.path().to_owned())
}

/// The runs of one configuration, in the plan's order of execution.
struct Stage<'a> {
    name: &'a str,
    /// Settings that differ in the threshold alone have one group; `None` for the control.
    group: Option<String>,
    runs: Vec<&'a PlannedRun>,
}

fn in_stages(plan: &Plan) -> Vec<Stage<'_>> {
    plan.record
        .configurations
        .iter()
        .map(|one| Stage {
            name: &one.name,
            group: match one.role {
                ConfigurationRole::Control => None,
                ConfigurationRole::Candidate => Some(format!("{:?}", one.preview_share)),
            },
            runs: plan
                .execution_order
                .iter()
                .map(|&index| &plan.record.runs[index])
                .filter(|run| run.configuration == one.name)
                .collect(),
        })
        .collect()
}

/// The configuration of the control, and those of lower thresholds that differ from stage `number` in
/// nothing else.
fn stages_before<'a>(stages: &[Stage<'a>], number: usize) -> (&'a str, Vec<&'a str>) {
    let control = stages.iter().find(|stage| stage.group.is_none());
    let lower = stages[..number]
        .iter()
        .filter(|stage| stage.group.is_some() && stage.group == stages[number].group)
        .map(|stage| stage.name)
        .collect();
    (control.map_or("", |stage| stage.name), lower)
}

/// By pair, the control's run where a lower threshold stored nothing: what is stored at a threshold is
/// stored at every lower one, and a run that stores nothing sends the control's requests.
fn settled<'a>(
    runs: &'a [RunRecord],
    control: &str,
    lower: &[&str],
) -> HashMap<&'a str, &'a RunRecord> {
    let finished = |run: &&RunRecord| match run.outcome {
        Outcome::Succeeded | Outcome::Failed => true,
        Outcome::Infrastructure => false,
    };
    let nothing: HashSet<&str> = runs
        .iter()
        .filter(finished)
        .filter(|run| lower.contains(&&*run.configuration) && run.results_persisted == Some(0))
        .map(|run| &*run.pair_id)
        .collect();
    runs.iter()
        .filter(finished)
        .filter(|run| run.configuration == control && nothing.contains(&*run.pair_id))
        .map(|run| (&*run.pair_id, run))
        .collect()
}

/// The control's record as the one of `run`, without what was measured.
fn copy_of(control: &RunRecord, run: &PlannedRun, plan: &Plan) -> RunRecord {
    let configuration = plan
        .record
        .configurations
        .iter()
        .find(|one| one.name == run.configuration)
        .expect("a planned run names a configuration of its plan");
    RunRecord {
        run_id: run.run_id.clone(),
        configuration: run.configuration.clone(),
        policy: configuration.policy.clone(),
        store: configuration.store.clone(),
        threshold_bytes: configuration.threshold_bytes,
        preview_share: configuration.preview_share,
        effective_settings: configuration.effective_settings.clone(),
        same_as: Some(control.run_id.clone()),
        ..control.unmeasured()
    }
}
