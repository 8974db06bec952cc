//! `accept` and `list`: from a plan to a verdict.

use std::path::{Path, PathBuf};

use anyhow::Context;
use spill_record::{
    EndpointRecord, FolderKind, MEASURED_COLUMNS, Manifest, Mode, Prices, RunFolder, SCHEMA, Shard,
    Versions,
};
use spill_report::{EVENT_SCHEMA, Event};
use spill_runner::{FinishedRun, Harness, Options, Subject, pairs_of};
use spill_scenario::Plan;
use spill_verdict::{counted, exit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{AcceptArgs, ListArgs};
use crate::live::{Live, Wanted};
use crate::output_file::{METRICS_FILE, OutputFile};
use crate::progress::{Progress, Told};
use crate::remote::Publishing;
use crate::setup::Setup;
use crate::site::{self, Site};
use crate::work::{self, ShardState, Work};
use crate::{Failure, baseline, folder, host, live, out, prices, serve, sources, subject};

const VERB: &str = "accept";

pub(crate) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage("list", error);
    let asked = subject::asked(args.subject.as_deref()).map_err(usage)?;
    live::endpoint(&args.live).map_err(usage)?;
    let plan = sources::plan(&args.plan, &args.live, &asked).map_err(usage)?;
    print_notes(&plan);
    if args.json {
        out::json("list", &plan.record)?;
        return Ok(0);
    }
    out::line(format_args!(
        "plan {}: {}",
        plan.plan_hash,
        counted(plan.record.runs.len() as u64, "run")
    ));
    match plan.mode {
        Mode::Simulated => {}
        Mode::Live => live::outlook(&plan).iter().for_each(out::line),
    }
    for input in &plan.record.inputs {
        out::line(format_args!(
            "{} / {}: class {}, largest result {} bytes, {}",
            input.scenario,
            input.input,
            input.class.as_str(),
            input.largest_result_bytes,
            counted(input.facts.len() as u64, "fact")
        ));
    }
    for run in &plan.record.runs {
        out::line(format_args!(
            "{}  {} / {} · repetition {} · {} · {}",
            run.run_id, run.scenario, run.input, run.repetition, run.profile, run.configuration
        ));
    }
    Ok(0)
}

pub(crate) fn run(args: &AcceptArgs) -> Result<u8, Failure> {
    let outcome = accept(args);
    if let (Err(failure), true) = (&outcome, args.json) {
        let failed = Event::Failed {
            schema: EVENT_SCHEMA,
            exit_code: failure.code(),
            message: failure.words(),
        };
        out::line(failed.line());
    }
    outcome
}

fn accept(args: &AcceptArgs) -> Result<u8, Failure> {
    if args.bless.is_some() {
        baseline::check_stage(args.plan.stage.into())
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let usage = |error| Failure::usage(VERB, error);
    let asked = subject::asked(args.subject.as_deref()).map_err(usage)?;
    let endpoint = live::endpoint(&args.live).map_err(usage)?;
    let plan = sources::plan(&args.plan, &args.live, &asked).map_err(usage)?;
    if !args.quiet {
        print_notes(&plan);
    }
    let subject = subject::of_plan(asked, &plan).map_err(usage)?;
    can_run_executions(args, &subject).map_err(usage)?;
    let prices = args.prices.as_deref();
    let prices = prices
        .map(|path| prices::read(path, &plan.record.models))
        .transpose()
        .map_err(|error| Failure::usage(VERB, error))?;
    let metrics = args.metrics_file.as_deref();
    let metrics = metrics
        .map(|path| OutputFile::at(METRICS_FILE, path))
        .transpose()
        .map_err(|error| Failure::usage(VERB, error))?;
    let mut setup = Setup::new(VERB, subject, args.jobs)?;
    let wanted = endpoint
        .map(|endpoint| Wanted::of(args, endpoint, &setup.options.subject, &plan))
        .transpose()
        .map_err(usage)?;
    setup.options.cgroup = args
        .cgroup
        .as_deref()
        .map(cgroup)
        .transpose()
        .map_err(usage)?;
    let site = site(args, &plan, &setup.options).map_err(usage)?;
    let live = wanted
        .map(|wanted| wanted.open(args, &plan, prices.as_ref(), site.resume.as_deref()))
        .transpose();
    if let (Err(_), Some(away)) = (&live, &site.away) {
        away.end(true);
    }
    let live = live.map_err(usage)?;
    setup.options.upstream = live.as_ref().map(Live::upstream);
    if let Some(listen) = args.serve {
        serve::beside(&site.reports, listen)?;
    }
    let measured = setup.runtime.block_on(measure(
        args,
        &site,
        plan,
        prices.as_ref(),
        &setup,
        live.as_ref(),
    ));
    let outcome = measured.and_then(|made| conclude(args, &site, made, metrics, &setup));
    if let Some(away) = &site.away {
        away.end(outcome.is_ok());
    }
    outcome
}

/// Where the run folder is made.
fn site(args: &AcceptArgs, plan: &Plan, options: &Options) -> anyhow::Result<Site> {
    let asked = site::Asked {
        out: &args.out,
        resume: args.resume.as_deref(),
        work_dir: args.work_dir.as_deref(),
    };
    let subject = options.subject.name();
    let site = Site::of(&asked, |manifest| {
        manifest.plan_hash == plan.plan_hash
            && manifest.shard == args.shard
            && manifest.subject == subject
            && manifest.versions.spillgate == env!("CARGO_PKG_VERSION")
    })?;
    if let (Some(away), Some(_)) = (&site.away, &args.bless) {
        away.end(true);
        anyhow::bail!(
            "--bless makes DIR/baseline of a folder and {} is a URL (accept into a folder, or leave --bless out)",
            away.place().url()
        );
    }
    Ok(site)
}

/// A run folder with all records, and what publishes it.
struct Made {
    folder: PathBuf,
    publishing: Option<Publishing>,
}

impl Made {
    /// What people call the folder.
    fn shown(&self) -> String {
        match &self.publishing {
            None => self.folder.display().to_string(),
            Some(publishing) => publishing.url().to_owned(),
        }
    }

    /// Publishes what is left, where the folder is published.
    fn publish(&mut self, code: u8, setup: &Setup) -> Result<(), Failure> {
        let Some(publishing) = self.publishing.take() else {
            return Ok(());
        };
        let ended = publishing.end(code != exit::INCOMPLETE);
        setup
            .runtime
            .block_on(ended)
            .map_err(|error| Failure::usage(VERB, error))
    }
}

/// Judges the folder, or tells what a shard's holds, and publishes it where it is to be.
fn conclude(
    args: &AcceptArgs,
    site: &Site,
    mut made: Made,
    metrics: Option<OutputFile<'_>>,
    setup: &Setup,
) -> Result<u8, Failure> {
    let usage = |error| Failure::usage(VERB, error);
    let folder = made.folder.clone();
    let shown = made.shown();
    if let Some(shard) = work::shard_of(&folder).map_err(usage)? {
        let state = ShardState::of(&folder, shard).map_err(usage)?;
        made.publish(state.code(), setup)?;
        state.tell(&shown, args.json);
        return Ok(state.code());
    }
    let judged = folder::finish(VERB, &folder, &shown)?;
    if site.away.is_none() {
        RunFolder::mark_latest(&site.reports, &folder).map_err(|error| usage(error.into()))?;
    }
    if let Some(metrics) = metrics {
        metrics
            .write(&spill_dash::folder_metrics(&folder))
            .map_err(usage)?;
    }
    made.publish(judged.code(), setup)?;
    if args.json {
        out::line(judged.event(&shown).line());
    } else {
        judged.print(VERB, false)?;
        out::line(format_args!("report: {shown}/report.html"));
    }
    if let Some(reason) = &args.bless {
        baseline::bless(&args.out, &folder, reason, judged.code()).map_err(usage)?;
    }
    Ok(judged.code())
}

/// Checks that a cgroup has what a measurement needs.
fn cgroup(path: &Path) -> anyhow::Result<PathBuf> {
    let given = std::fs::read_to_string(path.join("cgroup.subtree_control")).with_context(|| {
        format!(
            "--cgroup: {} is no cgroup of version 2 (name a folder below /sys/fs/cgroup where that is mounted)",
            path.display()
        )
    })?;
    anyhow::ensure!(
        given.split_whitespace().any(|name| name == "memory"),
        "--cgroup: {} gives its children no memory controller (write +memory into its cgroup.subtree_control)",
        path.display()
    );
    std::path::absolute(path).context("--cgroup cannot be made absolute")
}

/// Says what of real input was left out; the manifest and the report say it as well.
fn print_notes(plan: &Plan) {
    for note in plan.record.inputs.iter().flat_map(|input| &input.notes) {
        out::note(format_args!("note: {note}"));
    }
}

/// Runs the plan, and returns the folder with all records.
async fn measure(
    args: &AcceptArgs,
    site: &Site,
    plan: Plan,
    prices: Option<&Prices>,
    setup: &Setup,
    live: Option<&Live>,
) -> Result<Made, Failure> {
    if let Some(live) = live {
        live.check()
            .await
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let options = &setup.options;
    let (plan, harness) = setup.start(plan).await?;
    let Work {
        mut folder,
        runs,
        extra,
    } = match &site.resume {
        None => work::begin(
            args,
            &site.reports,
            &plan,
            live,
            options,
            harness.tokenizer(),
        ),
        Some(path) => work::go_on(args, path, &plan, live, options, harness.tokenizer()),
    }
    .map_err(|error| Failure::usage(VERB, error))?;
    if let Some(prices) = prices {
        RunFolder::write_prices(folder.path(), prices)
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let publishing = match &site.away {
        None => None,
        Some(away) => {
            let begun = away.begin(folder.path()).await;
            Some(begun.map_err(|error| Failure::usage(VERB, error))?)
        }
    };
    let made = Made {
        folder: folder.path().to_owned(),
        publishing,
    };
    let stopper = stopper().map_err(|error| Failure::internal(VERB, error))?;
    let stop = stopper.subscribe();
    let guard = live.map(|live| live.guard(stopper, folder.path()));
    let mut guard = guard
        .transpose()
        .map_err(|error| Failure::usage(VERB, error))?;

    let told = match (args.quiet, args.json) {
        (true, _) => Told::Nothing,
        (false, true) => Told::Events,
        (false, false) => Told::Words,
    };
    if told == Told::Events {
        out::line(started(&plan, made.shown(), runs.len() as u64).line());
    }
    let mut progress = Progress::new(told, folder.path(), runs.len());
    let mut record = |finished: FinishedRun| {
        folder.append(&finished.record, &finished.calls)?;
        if let Some(guard) = &mut guard {
            guard.saw(&finished.record)?;
        }
        progress.finished(&finished.record);
        Ok(())
    };
    harness
        .execute(pairs_of(runs), stop.clone(), &mut record)
        .await
        .map_err(|error| setup.failure(error))?;
    progress.close(*stop.borrow());
    if let Some(guard) = guard {
        guard
            .end(args.quiet)
            .map_err(|error| Failure::usage(VERB, error))?;
    }

    // Extra pairs for the profiles that the population did not draw.
    let mut record = |finished: FinishedRun| Ok(folder.append_sensitivity(&finished.record)?);
    harness
        .execute(pairs_of(extra), stop.clone(), &mut record)
        .await
        .map_err(|error| setup.failure(error))?;
    measure_executions(args, &harness, setup, folder.path(), stop).await?;
    Ok(made)
}

/// Only the built-in subject is known to run many executions in one process.
fn can_run_executions(args: &AcceptArgs, subject: &Subject) -> anyhow::Result<()> {
    let built_in = match subject {
        Subject::BuiltIn => true,
        Subject::Command { .. } | Subject::Foreign(_) => false,
    };
    anyhow::ensure!(
        args.executions.is_empty() || built_in,
        "--executions measures the built-in subject, and this acceptance is of {} (leave it out)",
        subject.name()
    );
    Ok(())
}

/// Measures what many executions take of one host, where that was asked for.
async fn measure_executions(
    args: &AcceptArgs,
    harness: &Harness,
    setup: &Setup,
    folder: &Path,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    if args.executions.is_empty() || *stop.borrow() {
        return Ok(());
    }
    let records = harness
        .executions(&args.executions, args.memory_limit, stop.clone())
        .await
        .map_err(|error| setup.failure(error))?;
    if *stop.borrow() {
        return Ok(());
    }
    RunFolder::write_executions(folder, &records).map_err(|error| Failure::usage(VERB, error))
}

/// The first event of an acceptance.
fn started(plan: &Plan, folder: String, planned: u64) -> Event {
    Event::Started {
        schema: EVENT_SCHEMA,
        folder,
        plan_hash: plan.plan_hash.clone(),
        stage: plan.options.stage,
        planned,
    }
}

/// Turns true at the first interrupt or termination signal.
pub(crate) fn stop_on_signals() -> std::io::Result<watch::Receiver<bool>> {
    Ok(stopper()?.subscribe())
}

/// What turns true at the first such signal, or when somebody else sees a reason.
fn stopper() -> std::io::Result<watch::Sender<bool>> {
    let sender = watch::Sender::new(false);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                sender.send_replace(true);
            }
        });
    }
    Ok(sender)
}

pub(crate) fn manifest(
    plan: &Plan,
    endpoint: Option<EndpointRecord>,
    options: &Options,
    tokenizer: &str,
    shard: Option<Shard>,
    kind: FolderKind,
) -> Manifest {
    let (started_at, name) = host::now();
    let (commit, dirty) = host::commit();
    Manifest {
        schema: SCHEMA,
        acceptance_id: match shard {
            None => format!("{name}-{}", plan.plan_hash),
            Some(Shard { number, of }) => {
                format!("{name}-{}-shard-{number}-of-{of}", plan.plan_hash)
            }
        },
        started_at,
        plan_hash: plan.plan_hash.clone(),
        stage: plan.options.stage,
        mode: plan.mode,
        endpoint,
        kind,
        subject: options.subject.name(),
        base_seed: plan.options.base_seed,
        versions: Versions {
            spillgate: env!("CARGO_PKG_VERSION").to_owned(),
            tokenizer: tokenizer.to_owned(),
        },
        commit,
        dirty,
        host: host::host(),
        measured_columns: measured_columns(plan.mode),
        plan: plan.record.clone(),
        shard,
        manifest_digest: String::new(),
    }
    .sealed()
}

/// Columns that differ between two runs of one seed.
fn measured_columns(mode: Mode) -> Vec<String> {
    let mut columns = MEASURED_COLUMNS.map(str::to_owned).to_vec();
    match mode {
        Mode::Simulated => {}
        // The time that the endpoint took.
        Mode::Live => columns.push("model_time_ms".to_owned()),
    }
    columns
}
