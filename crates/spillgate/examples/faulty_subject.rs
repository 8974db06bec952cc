//! A subject with one planted fault, for tests of the gate: the built-in subject in a wrapper.
//!
//! `faulty_subject FAULT --job FILE` (or `--print-settings`) runs `$SPILLGATE_BIN step` and spoils
//! one thing, under candidates only: the control stays sound. It prints a step result that agrees
//! with the servers' journal.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program prints"
)]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("faulty_subject: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u8> {
    let mut arguments = env::args().skip(1);
    let fault = arguments.next().ok_or("name a fault")?;
    let rest: Vec<String> = arguments.collect();
    let control = env::var("CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED").as_deref() == Ok("false");
    if let [flag, job] = &rest[..]
        && flag == "--job"
        && !control
    {
        return spoiled(&fault, Path::new(job));
    }
    if fault == "other-default" && !control {
        let settings = json!({"enabled": true, "threshold_bytes": 32_768, "budget_bytes": 1});
        println!("{}", json!({"settings": settings, "warnings": []}));
        return Ok(0);
    }
    let status = step().args(&rest).status()?;
    Ok(u8::try_from(status.code().unwrap_or(1))?)
}

fn spoiled(fault: &str, job: &Path) -> Result<u8> {
    match fault {
        "loses-the-tail" => {
            let mut result = sound(job)?;
            let answer = result["finalAnswer"].as_str().unwrap_or_default();
            let lines: Vec<&str> = answer.lines().collect();
            result["finalAnswer"] = json!(lines[..lines.len() * 4 / 5].join("\n"));
            println!("{result}");
        }
        "costs-15-percent" => {
            let padded = changed_job(job, |job| {
                let system = job["system"].as_str().unwrap_or_default();
                // About 800 tokens in each of the small change's prompts of about 5,000.
                job["system"] = json!(format!("{system}{}", " and again".repeat(800)));
            })?;
            println!("{}", sound(&padded)?);
        }
        "plants-a-file" => {
            fs::write(home()?.join("notes.txt"), "a note to self")?;
            println!("{}", sound(job)?);
        }
        "plants-a-log-line" => {
            let result = sound(job)?;
            let content = result["toolsCalled"][1]["result"]
                .as_str()
                .unwrap_or_default();
            let half: String = content.chars().take(200).collect();
            eprintln!("DEBUG preview so far: {half:?}");
            println!("{result}");
        }
        "hits-the-limit" => {
            let short = changed_job(job, |job| job["iterationLimit"] = json!(2))?;
            println!("{}", sound(&short)?);
        }
        "leaves-a-child" => {
            // In a session of its own, so outside the process group, with our streams open.
            Command::new("setsid").args(["sleep", "20"]).spawn()?;
            println!("{}", sound(job)?);
        }
        "crashes" => return Ok(1),
        "hangs" => loop {
            std::thread::park();
        },
        "lies" => {
            let mut result = sound(job)?;
            result["llmCalls"] = json!(1);
            println!("{result}");
        }
        "babbles" => println!("all done, nothing to report"),
        other => return Err(format!("there is no fault {other}").into()),
    }
    Ok(0)
}

/// The built-in subject's own step result.
fn sound(job: &Path) -> Result<Value> {
    let output = step().arg("--job").arg(job).output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn step() -> Command {
    let mut command = Command::new(env::var_os("SPILLGATE_BIN").unwrap_or_default());
    command.arg("step");
    command
}

/// A changed copy of the job beside it, outside the watched folders.
fn changed_job(job: &Path, change: impl FnOnce(&mut Value)) -> Result<PathBuf> {
    let mut value = serde_json::from_slice(&fs::read(job)?)?;
    change(&mut value);
    let copy = job.with_extension("changed.json");
    fs::write(&copy, value.to_string())?;
    Ok(copy)
}

fn home() -> Result<PathBuf> {
    Ok(env::var_os("HOME").ok_or("HOME is not set")?.into())
}
