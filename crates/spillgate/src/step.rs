//! `step`, the built-in subject, and `launch`, which starts subjects.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use spill_agent::{
    AbortHandle, SpillSettings, StepJob, StepResult, abort_pair, is_own_log, log_setting_warnings,
    run_job,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{LaunchArgs, StepArgs};
use crate::output_file::{METRICS_FILE, OutputFile};
use crate::{Failure, out};

const VERB: &str = "step";
/// Names how much `step` logs: `off`, `error`, `warn`, `info`, `debug` or `trace`.
const LOG_VAR: &str = "SPILLGATE_LOG";
/// A job is a prompt and some limits; a file of this size is none.
const MAX_JOB_BYTES: u64 = 64 << 20;

pub(crate) fn run(args: &StepArgs) -> Result<u8, Failure> {
    let (settings, warnings) = SpillSettings::from_lookup(|name| {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    })
    .map_err(|error| Failure::usage(VERB, error))?;
    if args.print_settings {
        let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        warnings.extend(settings.unusable_store());
        let settings = spill_agent::EffectiveSettings::from(&settings);
        let answer = serde_json::json!({ "settings": settings, "warnings": warnings });
        out::line(spill_record::harmless_json(&answer.to_string()));
        return Ok(0);
    }
    let metrics = args.metrics_file.as_deref();
    let metrics = metrics
        .map(|path| OutputFile::at(METRICS_FILE, path))
        .transpose()
        .map_err(|error| Failure::usage(VERB, error))?;
    let path = args.job.as_deref().unwrap_or(Path::new(""));
    let job = read_job(path).map_err(|error| Failure::usage(VERB, error))?;
    start_log();
    log_setting_warnings(&warnings);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let result = runtime.block_on(async {
        let (handle, signal) = abort_pair();
        abort_on_signals(&handle).context("signals cannot be listened to")?;
        Ok::<_, anyhow::Error>(run_job(&job, settings, &signal).await?)
    });
    let result = result.map_err(|error| Failure::usage(VERB, error))?;
    print_result(&result).map_err(|error| Failure::internal(VERB, error))?;
    if let Some(metrics) = metrics {
        let spill = &result.spill;
        let text = spill_dash::textfile(
            &spill.persisted_by_tool,
            spill.reads,
            spill.reads_with_range,
        );
        metrics
            .write(&text)
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    // Work on files that do not answer must not hold up the end.
    runtime.shutdown_background();
    Ok(0)
}

fn read_job(path: &Path) -> anyhow::Result<StepJob> {
    let unreadable = || {
        format!(
            "cannot read the job {} (give --job a JSON file)",
            path.display()
        )
    };
    let file = std::fs::File::open(path).with_context(unreadable)?;
    let mut text = String::new();
    file.take(MAX_JOB_BYTES)
        .read_to_string(&mut text)
        .with_context(unreadable)?;
    anyhow::ensure!(
        text.len() as u64 != MAX_JOB_BYTES,
        "the job {} is not smaller than {MAX_JOB_BYTES} bytes (shorten its prompt)",
        path.display()
    );
    StepJob::from_json(&text).with_context(|| format!("cannot use {}", path.display()))
}

/// Logs to standard error; only our own lines, since dependencies log message content.
///
/// Without targets, so that few bytes in a row are the same in every run: 64 of them that also stand
/// in the text under review are taken for a leak.
fn start_log() {
    let level = std::env::var(LOG_VAR)
        .ok()
        .and_then(|level| level.parse().ok())
        .unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_filter(level.and(filter_fn(is_own_log)));
    tracing_subscriber::registry().with(lines).init();
}

fn abort_on_signals(handle: &AbortHandle) -> std::io::Result<()> {
    for (kind, name) in [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
    ] {
        let mut signals = signal(kind)?;
        let handle = handle.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                handle.abort(format!("received {name}"));
            }
        });
    }
    Ok(())
}

/// Prints the step result piece by piece: a second copy of all results would count as memory.
fn print_result(result: &StepResult) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    serde_json::to_writer(&mut out, result)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

pub(crate) fn launch(args: &LaunchArgs) -> Result<u8, Failure> {
    let writable = (!args.writable.is_empty()).then_some(&*args.writable);
    spill_runner::launch(&args.report, writable, &args.command)
        .map_err(|error| Failure::internal("launch", error))?;
    Ok(0)
}
