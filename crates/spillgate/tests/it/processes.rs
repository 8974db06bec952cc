//! Processes that end in unplanned ways, and what is left of them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{Mock, folder, program, scenario_with, spillgate};

/// Long enough for anything here on a busy machine; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// Starts a long acceptance with its own temporary folder and waits for its first records.
fn long_acceptance(folder: &Path) -> (Child, PathBuf) {
    let scenario = scenario_with(folder, "review", "medium");
    fs::create_dir(folder.join("tmp")).unwrap();
    let child = program()
        .args(["accept", "--quiet", "--reps", "200", "--scenario"])
        .arg(scenario)
        .current_dir(folder)
        .env("TMPDIR", folder.join("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let run_folder = || {
        fs::read_dir(folder.join("reports"))
            .ok()?
            .next()?
            .ok()
            .map(|entry| entry.path())
    };
    eventually("the first records stand in the folder", || {
        run_folder().is_some_and(|folder| {
            fs::metadata(folder.join("runs.jsonl")).is_ok_and(|file| file.len() > 2_000)
        })
    });
    (child, run_folder().unwrap())
}

/// Processes whose environment names `folder`: launchers and subjects of an acceptance in it.
pub(crate) fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.join("tmp");
    let needle = needle.to_string_lossy();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|process| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&*needle)
        })
        .map(|process| process.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_killed_runner_leaves_no_subject_and_a_folder_that_judges_as_incomplete() {
    let folder = folder();
    let (mut child, run_folder) = long_acceptance(folder.path());
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    eventually("no subject is alive", || {
        processes_of(folder.path()).is_empty()
    });
    let said = spillgate(folder.path(), &["judge", &run_folder.to_string_lossy()]);
    assert_eq!(said.code, Some(5), "{}{}", said.stdout, said.stderr);
    assert!(run_folder.join("report.html").exists());
}

#[test]
fn an_interrupted_acceptance_ends_as_incomplete_with_no_child_alive() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = folder();
        let (mut child, run_folder) = long_acceptance(folder.path());
        send(&child, signal);
        let status = child.wait().unwrap();
        assert_eq!(processes_of(folder.path()), [""; 0]);
        assert_eq!(status.code(), Some(5));
        assert!(run_folder.join("verdict.json").exists());
        assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    }
}

fn step(folder: &Path, job: &Path) -> Child {
    fs::create_dir_all(folder.join("home")).unwrap();
    program()
        .arg("step")
        .arg("--job")
        .arg(job)
        .env_clear()
        .env("HOME", folder.join("home"))
        .env("TMPDIR", folder.join("home"))
        .env("SPILLGATE_LOG", "trace")
        .current_dir(folder.join("home"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads the log until a line with `words`; the rest of it is read to the end beside.
fn wait_for_log(child: &mut Child, words: &str) {
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(
            log.read_line(&mut line).unwrap(),
            0,
            "the log ended without {words}"
        );
        if line.contains(words) {
            break;
        }
    }
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
}

#[test]
fn a_step_killed_after_it_stored_a_result_leaves_no_file() {
    let folder = folder();
    let mock = Mock::start(&["--input", "large"]);
    let job = mock.job(folder.path(), 60_000);
    let mut child = step(folder.path(), &job);
    wait_for_log(&mut child, "stored");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(folder.path().join("home")).unwrap().count(), 0);
}

/// A model that takes the call and never answers.
#[test]
fn sigterm_aborts_a_step_and_the_result_keeps_the_reason() {
    let folder = folder();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut mock = Mock::start(&["--input", "small"]);
    mock.llm = format!("http://{}/v1", silent.local_addr().unwrap());
    let job = mock.job(folder.path(), 60_000);
    let mut child = step(folder.path(), &job);
    wait_for_log(&mut child, "LLM call started");
    send(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["status"], "aborted");
    assert_eq!(result["abortReason"], "received SIGTERM");
}

#[test]
fn a_step_whose_servers_are_gone_ends_with_a_result() {
    let folder = folder();
    let job = {
        let mock = Mock::start(&["--input", "small"]);
        mock.job(folder.path(), 3_000)
    };
    let output = step(folder.path(), &job).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["endReason"], "tool_error", "{result}");
}
