//! Renders the report of 10,008 made-up runs from a folder, and prints what that costs.
//!
//! ```text
//! cargo run --release -p spill-report --example large_report
//! ```

#![expect(dead_code, reason = "the builders serve the tests as well")]
#![expect(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]

#[path = "../../spill-verdict/tests/it/builder.rs"]
mod builder;
#[path = "../tests/it/calls.rs"]
mod calls;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use builder::{Case, exhaust, fail};
use calls::{NAMES, calls_of};
use spill_record::{CallRecord, PromptTokens, RunFolder, RunRecord, Stage};
use spill_report::{Calls, Context, render};
use spill_verdict::judge;

const READ: &str = "--read";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    if arguments.get(1).map(String::as_str) == Some(READ) {
        return measure(Path::new(arguments.get(2).ok_or("no folder was named")?));
    }
    // A process of its own reads, so that what it took to write is not counted.
    let reports = env::temp_dir().join(format!("spill-large-report-{}", std::process::id()));
    let folder = write(&reports)?;
    let status = std::process::Command::new(env::current_exe()?)
        .arg(READ)
        .arg(&folder)
        .status()?;
    fs::remove_dir_all(&reports)?;
    if status.success() {
        Ok(())
    } else {
        Err("the reader failed".into())
    }
}

fn write(reports: &Path) -> Result<std::path::PathBuf, Box<dyn Error>> {
    let case = Case::with_repetitions(Stage::Full, 834)
        .cell("128KiB", "large", exhaust)
        .cell("off", "document", fail);
    let mut folder = RunFolder::create(reports, &case.set.manifest.clone().sealed())?;
    for run in &case.set.runs {
        folder.append(run, &as_many_as_the_run_says(run))?;
    }
    Ok(folder.path().to_owned())
}

/// Calls whose number and tokens are those of the run's record.
fn as_many_as_the_run_says(run: &RunRecord) -> Vec<CallRecord> {
    let mut calls = calls_of(run, &NAMES);
    let last = calls[calls.len() - 1].clone();
    let wanted = run.llm_calls.unwrap_or(0);
    for number in calls.len() as u64..wanted {
        calls.push(CallRecord {
            call: number,
            iteration: number + 1,
            new_results: Vec::new(),
            ..last.clone()
        });
    }
    for call in &mut calls {
        call.tokens = Some(PromptTokens::default());
    }
    calls[0].tokens = Some(PromptTokens {
        uncached_input_tokens: run.input_tokens.unwrap_or(0),
        ..PromptTokens::default()
    });
    calls
}

fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    let set = RunFolder::read(folder)?;
    let read_ms = cpu_ms()?;
    let verdict = judge(&set);
    let mut calls = Calls::of(&set, &verdict);
    let wanted = calls.wanted();
    RunFolder::each_call_of(folder, |id| wanted.contains(id), |call| calls.take(call))?;
    let context = Context {
        calls: Some(&calls),
        baseline: None,
    };
    let rendered = render(&set, &verdict, context);
    println!("runs: {}", set.runs.len());
    println!(
        "calls.jsonl: {} bytes",
        fs::metadata(folder.join("calls.jsonl"))?.len()
    );
    println!("report.html: {} bytes", rendered.report_html.len());
    println!(
        "processor time: {} ms, of it {read_ms} ms for reading and checking the records",
        cpu_ms()?
    );
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("peak memory: {}", peak.unwrap_or("unknown"));
    Ok(())
}

/// Processor time of this process so far, user and system, in ticks of 10 ms.
fn cpu_ms() -> Result<u64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<u64>, _> = ticks.map(str::parse).collect();
    Ok(ticks?.iter().sum::<u64>() * 10)
}
