//! `accept` and `list`: from a plan to a verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use spill_record::{
    FolderError, MEASURED_COLUMNS, Manifest, Mode, Prices, RunFolder, SCHEMA, Versions,
};
use spill_runner::{
    FinishedRun, Harness, Options, RunError, Subject, effective_settings, pairs_of,
};
use spill_scenario::{Plan, sensitivity_runs};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::{AcceptArgs, ListArgs};
use crate::output_file::{METRICS_FILE, OutputFile};
use crate::progress::Progress;
use crate::temp::Temp;
use crate::{Failure, baseline, folder, host, out, prices, serve, sources};

const VERB: &str = "accept";

pub(crate) fn list(args: &ListArgs) -> Result<u8, Failure> {
    let plan = sources::plan(&args.plan).map_err(|error| Failure::usage("list", error))?;
    print_notes(&plan);
    if args.json {
        let text = serde_json::to_string_pretty(&plan.record)
            .map_err(|error| Failure::internal("list", error))?;
        out::line(text);
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
    if args.bless.is_some() {
        baseline::check_stage(args.plan.stage.into())
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let plan = sources::plan(&args.plan).map_err(|error| Failure::usage(VERB, error))?;
    if !args.quiet {
        print_notes(&plan);
    }
    let subject = subject(args.subject.as_deref()).map_err(|error| Failure::usage(VERB, error))?;
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
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let folder = runtime.block_on(measure(args, plan, prices.as_ref(), &options))?;
    drop(temp);
    let judged = folder::finish(VERB, &folder)?;
    RunFolder::mark_latest(&args.out, &folder).map_err(|error| Failure::usage(VERB, error))?;
    if let Some(metrics) = metrics {
        metrics
            .write(&spill_dash::folder_metrics(&folder))
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    judged.print(VERB, args.json)?;
    if !args.json {
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

/// Says what of real input was left out; the manifest and the report say it as well.
fn print_notes(plan: &Plan) {
    for note in plan.record.inputs.iter().flat_map(|input| &input.notes) {
        out::note(format_args!("note: {note}"));
    }
}

fn subject(path: Option<&Path>) -> anyhow::Result<Subject> {
    let Some(path) = path else {
        return Ok(Subject::BuiltIn);
    };
    let found = std::fs::canonicalize(path).with_context(|| {
        format!(
            "the subject {} cannot be used (--subject takes the path of an executable)",
            path.display()
        )
    })?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&found)?.permissions());
    if !found.is_file() || mode & 0o111 == 0 {
        anyhow::bail!(
            "the subject {} is not an executable file (chmod +x it, or name another)",
            path.display()
        );
    }
    Ok(Subject::Executable(found))
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
        configuration.effective_settings = Some(settings);
    }
    let plan = Arc::new(plan);
    let harness = Harness::start(plan.clone(), options.clone())
        .await
        .map_err(failure)?;
    let mut folder = new_folder(args, &plan, options, harness.tokenizer())
        .map_err(|error| Failure::usage(VERB, error))?;
    if let Some(prices) = prices {
        RunFolder::write_prices(folder.path(), prices)
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    let stop = stop_on_signals().map_err(|error| Failure::internal(VERB, error))?;

    let runs = plan
        .execution_order
        .iter()
        .map(|&index| plan.record.runs[index].clone());
    let progress = Progress::new(args.quiet || args.json, plan.record.runs.len());
    let mut record = |finished: FinishedRun| {
        folder.append(&finished.record, &finished.calls)?;
        progress.finished(&finished.record);
        Ok(())
    };
    harness
        .execute(pairs_of(runs), stop.clone(), &mut record)
        .await
        .map_err(failure)?;
    progress.close();
    if *stop.borrow() {
        out::note("interrupted: the folder holds the runs that had finished");
    }

    // Extra pairs for the profiles that the population did not draw.
    let mut record = |finished: FinishedRun| Ok(folder.append_sensitivity(&finished.record)?);
    harness
        .execute(pairs_of(sensitivity_runs(&plan)), stop, &mut record)
        .await
        .map_err(failure)?;
    Ok(folder.path().to_owned())
}

/// A place that cannot be written is not a fault of the program.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::Sink(error) => Failure::usage(VERB, anyhow::Error::from_boxed(error)),
        RunError::Servers(_) | RunError::Worker(_) => Failure::internal(VERB, error),
    }
}

/// Turns true at the first interrupt or termination signal.
fn stop_on_signals() -> std::io::Result<watch::Receiver<bool>> {
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

/// How often another name is tried when a folder of the same millisecond and plan stands already.
const NAME_TRIES: u32 = 20;

fn new_folder(
    args: &AcceptArgs,
    plan: &Plan,
    options: &Options,
    tokenizer: &str,
) -> Result<RunFolder, FolderError> {
    let mut tries = 0;
    loop {
        match RunFolder::create(&args.out, &manifest(plan, options, tokenizer)) {
            Err(FolderError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists && tries < NAME_TRIES =>
            {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            result => return result,
        }
    }
}

fn manifest(plan: &Plan, options: &Options, tokenizer: &str) -> Manifest {
    let (started_at, name) = host::now();
    let (commit, dirty) = host::commit();
    Manifest {
        schema: SCHEMA,
        acceptance_id: format!("{name}-{}", plan.plan_hash),
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
        manifest_digest: String::new(),
    }
    .sealed()
}
