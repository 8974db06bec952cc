//! `step`, the built-in subject, and `launch`, which starts subjects.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use spill_agent::{
    AbortHandle, AbortSignal, EndReason, SpillSettings, StepJob, StepResult, abort_pair,
    is_own_log, log_setting_warnings, run_executions, run_job,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::allocator::give_back_what_is_freed;
use crate::cli::StepArgs;
use crate::output_file::{METRICS_FILE, OutputFile};
use crate::own_memory::OwnMemory;
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
    if args.executions.is_some()
        && let Err(error) = give_back_what_is_freed()
    {
        out::note(format_args!(
            "note: this program cannot be started again ({error}): memory may not fall after the last execution"
        ));
    }
    start_log();
    log_setting_warnings(&warnings);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let counted = match args.executions {
        None => runtime.block_on(one(&job, settings)),
        Some(count) => {
            let told = if args.totals {
                Told::Totals
            } else {
                Told::Each
            };
            runtime.block_on(executions(&job, settings, count, told))
        }
    }?;
    if let Some(metrics) = metrics {
        metrics
            .write(&counted.text())
            .map_err(|error| Failure::usage(VERB, error))?;
    }
    // The process ends here, and what is left goes with it. Work on files that do not answer must not hold that up,
    // and ending connections and tasks one by one takes longer than the rest of the end.
    std::mem::forget(runtime);
    Ok(0)
}

/// Runs one execution and prints its step result.
async fn one(job: &StepJob, settings: SpillSettings) -> Result<Counted, Failure> {
    let signal = abort_on_signals().map_err(|error| Failure::usage(VERB, error))?;
    let result = run_job(job, settings, &signal).await;
    let result = result.map_err(|error| Failure::usage(VERB, error))?;
    print_line(&result)?;
    let mut counted = Counted::default();
    counted.add(&result);
    Ok(counted)
}

/// A line of `--executions`: the step result of one of them.
#[derive(Serialize)]
struct ExecutionLine<'a> {
    execution: u32,
    result: &'a StepResult,
}

/// Its last line.
#[derive(Serialize)]
struct LastLine {
    executions: u32,
    answered: u32,
    persisted: u64,
    memory: OwnMemory,
}

/// What of several executions is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Each result, and the last line.
    Each,
    /// The last line.
    Totals,
}

/// Runs executions at once, prints each as it ends, and at last what they took of memory.
async fn executions(
    job: &StepJob,
    settings: SpillSettings,
    count: NonZeroU32,
    told: Told,
) -> Result<Counted, Failure> {
    let signal = abort_on_signals().map_err(|error| Failure::usage(VERB, error))?;
    let mut counted = Counted::default();
    let mut printed = Ok(());
    let before = OwnMemory::before();
    run_executions(job, settings, count, &signal, |execution, result| {
        counted.add(&result);
        let line = ExecutionLine {
            execution,
            result: &result,
        };
        if told == Told::Each && printed.is_ok() {
            printed = print_line(&line);
        }
    })
    .await
    .map_err(|error| Failure::usage(VERB, error))?;
    let last = LastLine {
        executions: count.get(),
        answered: counted.answered,
        persisted: counted.persisted_by_tool.values().sum(),
        memory: before.after(),
    };
    printed.and_then(|()| print_line(&last))?;
    Ok(counted)
}

/// What executions did, together.
#[derive(Default)]
struct Counted {
    answered: u32,
    persisted_by_tool: BTreeMap<String, u64>,
    reads: u64,
    reads_with_range: u64,
}

impl Counted {
    fn add(&mut self, result: &StepResult) {
        self.answered += u32::from(result.end_reason == EndReason::Answered);
        for (tool, count) in &result.spill.persisted_by_tool {
            *self.persisted_by_tool.entry(tool.clone()).or_default() += count;
        }
        self.reads += result.spill.reads;
        self.reads_with_range += result.spill.reads_with_range;
    }

    fn text(&self) -> String {
        spill_dash::textfile(&self.persisted_by_tool, self.reads, self.reads_with_range)
    }
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

/// Aborts what is running at the first signal that asks for it.
fn abort_on_signals() -> anyhow::Result<AbortSignal> {
    let (handle, abort) = abort_pair();
    listen(&handle).context("signals cannot be listened to")?;
    Ok(abort)
}

fn listen(handle: &AbortHandle) -> std::io::Result<()> {
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

/// Prints a line. A reader that is gone is no failure.
fn print_line(line: &impl Serialize) -> Result<(), Failure> {
    match written(line) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let error = anyhow::Error::from(error);
            let words = "standard output cannot be written (give it a place with room)";
            Err(Failure::usage(VERB, error.context(words)))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a line piece by piece: a second copy of all results would count as memory.
fn written(line: &impl Serialize) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    out.flush()
}

pub(crate) fn launch() -> Result<u8, Failure> {
    spill_runner::launch().map_err(|error| Failure::internal("launch", error))?;
    Ok(0)
}
