//! `accept` and `list`: from a plan to a verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use spill_record::{MEASURED_COLUMNS, Manifest, Mode, Prices, RunFolder, SCHEMA, Shard, Versions};
use spill_report::{EVENT_SCHEMA, Event};
use spill_runner::{
    FinishedRun, Harness, Options, RunError, Subject, effective_settings, pairs_of,
};
use spill_scenario::Plan;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{AcceptArgs, ListArgs};
use crate::output_file::{METRICS_FILE, OutputFile};
use crate::progress::{Progress, Told};
use crate::temp::Temp;
use crate::work::{self, Work};
use crate::{Failure, baseline, folder, host, out, prices, serve, sources, subject};

const VERB: &str = "accept";

pub(crate) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage("list", error);
    let asked = subject::asked(args.subject.as_deref()).map_err(usage)?;
    let plan = sources::plan_under(&args.plan, &asked).map_err(usage)?;
    print_notes(&plan);
    if args.json {
        out::json("list", &plan.record)?;
        return Ok(0);
    }
    out::line(format_args!(
        "plan {}: {} runs",
        plan.plan_hash,
        plan.record.runs.len()
    ));
    for input in &plan.record.inputs {
        out::line(format_args!(
            "{} / {}: class {}, largest result {} bytes, {} facts",
            input.scenario,
            input.input,
            input.class.as_str(),
            input.largest_result_bytes,
            input.facts.len()
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
    let plan = sources::plan_under(&args.plan, &asked).map_err(usage)?;
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
    if let Some(listen) = args.serve {
        serve::beside(&args.out, listen)?;
    }
    let temp = Temp::create()
        .context("no temporary folder can be made (set TMPDIR to a writable one)")
        .map_err(|error| Failure::usage(VERB, error))?;
    let options = Options {
        spillgate: host::this_program().map_err(|error| Failure::internal(VERB, error))?,
        subject,
        jobs: args
            .jobs
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        temp: temp.path().to_owned(),
        cgroup: args
            .cgroup
            .as_deref()
            .map(cgroup)
            .transpose()
            .map_err(usage)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let folder = runtime.block_on(measure(args, plan, prices.as_ref(), &options))?;
    drop(temp);
    if let Some(shard) = work::shard_of(&folder).map_err(|error| Failure::usage(VERB, error))? {
        return work::end_shard(&folder, shard, args.json)
            .map_err(|error| Failure::usage(VERB, error));
    }
    let judged = folder::finish(VERB, &folder)?;
    // A folder that was gone on with can lie elsewhere.
    let reports = match &args.resume {
        None => &args.out,
        Some(_) => folder.parent().unwrap_or(&args.out),
    };
    RunFolder::mark_latest(reports, &folder).map_err(|error| Failure::usage(VERB, error))?;
    if let Some(metrics) = metrics {
        metrics
            .write(&spill_dash::folder_metrics(&folder))
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    if args.json {
        out::line(judged.event(&folder).line());
    } else {
        judged.print(VERB, false)?;
        out::line(format_args!(
            "report: {}",
            folder.join("report.html").display()
        ));
    }
    if let Some(reason) = &args.bless {
        baseline::bless(&args.out, &folder, reason, judged.code())
            .map_err(|error| Failure::usage(VERB, error))?;
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

/// Asks the subject for its settings, runs the plan, and returns the folder with all records.
async fn measure(
    args: &AcceptArgs,
    mut plan: Plan,
    prices: Option<&Prices>,
    options: &Options,
) -> Result<PathBuf, Failure> {
    let settings = effective_settings(&plan.record.configurations, options)
        .await
        .map_err(|error| Failure::usage(VERB, error))?;
    for (configuration, settings) in plan.record.configurations.iter_mut().zip(settings) {
        configuration.effective_settings = settings;
    }
    let plan = Arc::new(plan);
    let harness = Harness::start(plan.clone(), options.clone())
        .await
        .map_err(failure)?;
    let Work {
        mut folder,
        runs,
        extra,
    } = match &args.resume {
        None => work::begin(args, &plan, options, harness.tokenizer()),
        Some(path) => work::go_on(args, path, &plan, options, harness.tokenizer()),
    }
    .map_err(|error| Failure::usage(VERB, error))?;
    if let Some(prices) = prices {
        RunFolder::write_prices(folder.path(), prices)
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let stop = stop_on_signals().map_err(|error| Failure::internal(VERB, error))?;

    let told = match (args.quiet, args.json) {
        (true, _) => Told::Nothing,
        (false, true) => Told::Events,
        (false, false) => Told::Words,
    };
    if told == Told::Events {
        out::line(started(&plan, folder.path(), runs.len() as u64).line());
    }
    let mut progress = Progress::new(told, folder.path(), runs.len());
    let mut record = |finished: FinishedRun| {
        folder.append(&finished.record, &finished.calls)?;
        progress.finished(&finished.record);
        Ok(())
    };
    harness
        .execute(pairs_of(runs), stop.clone(), &mut record)
        .await
        .map_err(failure)?;
    progress.close(*stop.borrow());

    // Extra pairs for the profiles that the population did not draw.
    let mut record = |finished: FinishedRun| Ok(folder.append_sensitivity(&finished.record)?);
    harness
        .execute(pairs_of(extra), stop.clone(), &mut record)
        .await
        .map_err(failure)?;
    measure_executions(args, &harness, folder.path(), stop).await?;
    Ok(folder.path().to_owned())
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
    folder: &Path,
    stop: watch::Receiver<bool>,
) -> Result<(), Failure> {
    if args.executions.is_empty() || *stop.borrow() {
        return Ok(());
    }
    let records = harness
        .executions(&args.executions, args.memory_limit, stop.clone())
        .await
        .map_err(failure)?;
    if *stop.borrow() {
        return Ok(());
    }
    RunFolder::write_executions(folder, &records).map_err(|error| Failure::usage(VERB, error))
}

/// The first event of an acceptance.
fn started(plan: &Plan, folder: &Path, planned: u64) -> Event {
    Event::Started {
        schema: EVENT_SCHEMA,
        folder: folder.display().to_string(),
        plan_hash: plan.plan_hash.clone(),
        stage: plan.options.stage,
        planned,
    }
}

/// A place that cannot be written is not a fault of the program.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::Sink(error) => Failure::usage(VERB, anyhow::Error::from_boxed(error)),
        RunError::Servers(_) | RunError::Worker(_) => Failure::internal(VERB, error),
    }
}

/// Turns true at the first interrupt or termination signal.
pub(crate) fn stop_on_signals() -> std::io::Result<watch::Receiver<bool>> {
    let (sender, stop) = watch::channel(false);
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
    Ok(stop)
}

pub(crate) fn manifest(
    plan: &Plan,
    options: &Options,
    tokenizer: &str,
    shard: Option<Shard>,
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
        mode: Mode::Simulated,
        subject: options.subject.name(),
        base_seed: plan.options.base_seed,
        versions: Versions {
            spillgate: env!("CARGO_PKG_VERSION").to_owned(),
            tokenizer: tokenizer.to_owned(),
        },
        commit,
        dirty,
        host: host::host(),
        measured_columns: MEASURED_COLUMNS.map(str::to_owned).to_vec(),
        plan: plan.record.clone(),
        shard,
        manifest_digest: String::new(),
    }
    .sealed()
}
