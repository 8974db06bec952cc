//! `planted`: the built-in subject in a wrapper that plants one fault, for tests of the gate.
//!
//! It takes `step`'s arguments and environment, runs `step`, and spoils one thing: the fault that
//! [`FAULT_VAR`] names, which a configuration sets. Without the variable it is sound. It prints a
//! step result that agrees with the servers' journal.

mod relay;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use crate::cli::PlantedArgs;
use crate::{Failure, host, out};

const VERB: &str = "planted";
/// Names the fault.
pub(crate) const FAULT_VAR: &str = "SPILLGATE_PLANTED_FAULT";
/// A file that the first run to make it plants the fault; without the variable every run does.
pub(crate) const ONCE_VAR: &str = "SPILLGATE_PLANTED_ONCE";

/// Markup, a formula, what drives a terminal, rows of a table.
const TONGUES: &str =
    "=cmd|</script><script>alert(1)</script>\"'\u{202e}\u{0}\u{1b}]0;x\u{7}\u{9b}31m\n| a | b\n";

pub(crate) fn run(args: &PlantedArgs) -> Result<u8, Failure> {
    wrapped(&args.arguments).map_err(|error| Failure::usage(VERB, error))
}

fn wrapped(arguments: &[OsString]) -> anyhow::Result<u8> {
    if let [verb, relayed @ ..] = arguments
        && verb == "relay"
    {
        return relay::run(relayed);
    }
    let fault = env::var(FAULT_VAR).ok();
    match (fault.as_deref(), arguments) {
        (Some(fault), [flag, job]) if flag == "--job" && is_ours_to_plant()? => {
            spoiled(fault, Path::new(job))
        }
        (Some("other-default"), _) => {
            let settings = json!({"enabled": true, "threshold_bytes": 32_768, "budget_bytes": 1});
            out::line(json!({"settings": settings, "warnings": []}));
            Ok(0)
        }
        (Some(_) | None, _) => {
            let status = step()?.args(arguments).status()?;
            Ok(u8::try_from(status.code().unwrap_or(1))?)
        }
    }
}

/// Whether this run is the one that plants the fault.
fn is_ours_to_plant() -> io::Result<bool> {
    let Some(once) = env::var_os(ONCE_VAR) else {
        return Ok(true);
    };
    match fs::File::create_new(once) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn spoiled(fault: &str, job: &Path) -> anyhow::Result<u8> {
    match fault {
        "loses-the-tail" => {
            let mut result = sound(job)?;
            let answer = result["finalAnswer"].as_str().unwrap_or_default();
            let lines: Vec<&str> = answer.lines().collect();
            result["finalAnswer"] = json!(lines[..lines.len() * 4 / 5].join("\n"));
            print(&result);
        }
        "costs-15-percent" => {
            let padded = changed_job(job, |job| {
                let system = job["system"].as_str().unwrap_or_default();
                // About 800 tokens in each of the small change's prompts of about 5,000.
                job["system"] = json!(format!("{system}{}", " and again".repeat(800)));
            })?;
            print(&sound(&padded)?);
        }
        "plants-a-file" => {
            fs::write(home()?.join("notes.txt"), "a note to self")?;
            print(&sound(job)?);
        }
        "plants-a-log-line" => {
            let result = sound(job)?;
            let content = result["toolsCalled"][1]["result"]
                .as_str()
                .unwrap_or_default();
            let half: String = content.chars().take(200).collect();
            out::note(format_args!("DEBUG preview so far: {half:?}"));
            print(&result);
        }
        "hits-the-limit" => {
            let short = changed_job(job, |job| job["iterationLimit"] = json!(2))?;
            print(&sound(&short)?);
        }
        "leaves-a-child" => {
            // In a session of its own, so outside the process group, with our streams open.
            Command::new("setsid").args(["sleep", "20"]).spawn()?;
            print(&sound(job)?);
        }
        "crashes" => return Ok(1),
        "hangs" => loop {
            std::thread::park();
        },
        "lies" => {
            let mut result = sound(job)?;
            result["llmCalls"] = json!(1);
            print(&result);
        }
        "speaks-in-tongues" => {
            let mut result = sound(job)?;
            result["error"] = json!(TONGUES.repeat(1 + (1 << 20) / TONGUES.len()));
            result["endReason"] = json!("model_error");
            result["finalAnswer"] = json!(TONGUES);
            result["spill"]["persistedByTool"] = json!({TONGUES: result["spill"]["persisted"]});
            print(&result);
        }
        "babbles" => out::line("all done, nothing to report"),
        other => anyhow::bail!("there is no fault {other:?} ({FAULT_VAR} names it)"),
    }
    Ok(0)
}

/// Prints a step result; what of it would drive a terminal is written as an escape.
fn print(result: &Value) {
    out::line(spill_record::harmless_json(&result.to_string()));
}

/// The built-in subject's own step result.
fn sound(job: &Path) -> anyhow::Result<Value> {
    let output = step()?.arg("--job").arg(job).output()?;
    serde_json::from_slice(&output.stdout).context("the step printed no result")
}

fn step() -> anyhow::Result<Command> {
    let mut command = Command::new(host::this_program()?);
    command.arg("step").env_remove(FAULT_VAR);
    Ok(command)
}

/// A changed copy of the job beside it, outside the watched folders.
fn changed_job(job: &Path, change: impl FnOnce(&mut Value)) -> anyhow::Result<PathBuf> {
    let mut value = serde_json::from_slice(&fs::read(job)?)?;
    change(&mut value);
    let copy = job.with_extension("changed.json");
    fs::write(&copy, value.to_string())?;
    Ok(copy)
}

fn home() -> anyhow::Result<PathBuf> {
    Ok(env::var_os("HOME").context("HOME is not set")?.into())
}
