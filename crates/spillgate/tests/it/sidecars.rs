//! What stands between subject and servers: relays of our own, sound and with one fault each.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::processes::{eventually, processes_of, send};
use crate::program::{Row, SPILLGATE, Said, folder, program, rows, scenario_with, spillgate};

/// The configuration that has them.
const RELAYED: &str = "32KiB";

/// A sidecar of the last configuration of the file.
pub(crate) fn sidecar(name: &str, before: &str, fault: &str, more: &str) -> String {
    format!(
        "\n[[configurations.sidecar]]\nname = \"{name}\"\nbefore = \"{before}\"\n\
         command = [\"{SPILLGATE}\", \"planted\", \"relay\", \"{{listen_port}}\", \"{{upstream_url}}\", \"{fault}\"]\n{more}\n"
    )
}

/// The small review, its last configuration with `sidecars`.
fn scenario(folder: &Path, sidecars: &str) -> String {
    let file = scenario_with(folder, "review", "small");
    let text = fs::read_to_string(&file).unwrap();
    let (head, rest) = text.split_at(text.find("name = \"32KiB\"").unwrap());
    let end = rest.find("\n[").map_or(rest.len(), |at| at + 1);
    let text = format!("{head}{}{sidecars}{}", &rest[..end], &rest[end..]);
    fs::write(&file, text).unwrap();
    file.to_string_lossy().into_owned()
}

/// Runs it.
fn run(folder: &Path, sidecars: &str) -> (Said, Vec<Row>, Vec<Value>) {
    let file = scenario(folder, sidecars);
    let said = spillgate(
        folder,
        &["accept", "--quiet", "--reps", "1", "--scenario", &file],
    );
    let latest = folder.join("reports/latest");
    assert!(latest.exists(), "{}", said.stderr);
    let records = fs::read_to_string(latest.join("runs.jsonl")).unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .collect();
    assert_eq!(relays(), 0, "no relay outlives its run");
    (said, rows(&latest.join("runs.csv")), records)
}

/// Processes of relays that this process's acceptances started.
fn relays() -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process = entry.ok()?.path();
        let command = fs::read(process.join("cmdline")).ok()?;
        let folder = fs::read_link(process.join("cwd")).ok()?;
        let is_relay = String::from_utf8_lossy(&command).contains("planted\0relay");
        (is_relay && !folder.exists()).then_some(())
    });
    processes.count()
}

fn of<'a>(records: &'a [Value], configuration: &str) -> &'a Value {
    let mut records = records.iter();
    let found = records.find(|one| one["configuration"] == configuration);
    found.expect("the configuration ran")
}

#[test]
fn a_relay_changes_no_counted_figure_and_is_measured() {
    let plain = folder();
    let (_, _, without) = run(plain.path(), "");
    let relayed = folder();
    let both = sidecar("models", "llm", "sound", "")
        + &sidecar("again", "llm", "sound", "")
        + &sidecar("tools", "tools", "sound", "");
    let (said, _, with) = run(relayed.path(), &both);
    assert_eq!(with.len(), 3, "{}", said.stderr);
    for configuration in ["off", "128KiB", RELAYED] {
        let (one, other) = (of(&without, configuration), of(&with, configuration));
        assert_eq!(other["outcome"], "succeeded", "{}", other["error"]);
        for column in [
            "iterations",
            "llm_calls",
            "llm_retries",
            "input_tokens",
            "cached_input_tokens",
            "output_tokens",
            "tool_calls",
            "tool_result_bytes",
            "results_persisted",
            "read_bytes",
            "facts_found",
            "quality",
            "files_written",
            "leak_findings",
            "prompt_digest",
            "offered_tools_digest",
        ] {
            assert_eq!(one[column], other[column], "{configuration} {column}");
        }
    }
    assert!(of(&with, "off")["sidecars"].is_null());
    let sidecars = of(&with, RELAYED)["sidecars"].as_array().unwrap().clone();
    let names: Vec<&Value> = sidecars.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["models", "again", "tools"]);
    for one in &sidecars {
        assert!(one["peak_rss_bytes"].as_u64().unwrap() > 0);
        assert!(one["cpu_ms"].as_f64().is_some());
        assert_eq!(one["log_bytes"], 0);
        assert_eq!(one["files_written"], 0);
        assert_eq!(one["leak_findings"], serde_json::json!([]));
    }
    let page = fs::read_to_string(relayed.path().join("reports/latest/report.html")).unwrap();
    assert!(page.contains("sidecar-table"));
    let table = rows(&relayed.path().join("reports/latest/runs.csv"));
    for row in &table {
        let has_sidecars = row["configuration"] == RELAYED;
        for column in ["peak_rss_bytes", "cpu_ms", "log_bytes"] {
            let cell = &row[&format!("sidecar_{column}")];
            assert_eq!(cell.is_empty(), !has_sidecars, "{column}: {cell}");
        }
    }
    let page = fs::read_to_string(plain.path().join("reports/latest/report.html")).unwrap();
    assert!(!page.contains("sidecar-table"));
}

fn check_leak(fault: &str, place: &str) {
    let folder = folder();
    let (said, runs, records) = run(folder.path(), &sidecar("zip", "tools", fault, ""));
    assert_eq!(
        said.code,
        Some(6),
        "{fault}: {}{}",
        said.stdout,
        said.stderr
    );
    for run in &runs {
        let leaks = run["leak_findings"] != "0";
        assert_eq!(leaks, run["configuration"] == RELAYED, "{fault}");
    }
    let finding = of(&records, RELAYED)["leak_findings"][0].as_str().unwrap();
    assert!(
        finding.ends_with(&format!("{place} of the sidecar zip")),
        "{finding}"
    );
}

#[test]
fn content_that_a_sidecar_leaves_is_a_leak() {
    check_leak("logs", "in standard error");
    check_leak("prints", "in standard output");
    check_leak("writes", "in a file below work");
}

#[test]
fn what_a_sidecar_keeps_in_its_declared_folder_is_its_state() {
    let folder = folder();
    let keeper = "env = { RELAY_FOLDER = \"{state}\" }";
    let (_, runs, records) = run(folder.path(), &sidecar("zip", "tools", "writes", keeper));
    assert!(
        runs.iter()
            .all(|run| run["leak_findings"] == "0" && run["files_written"] == "0")
    );
    let one = &of(&records, RELAYED)["sidecars"][0];
    assert_eq!(one["state_files"], 1);
    assert!(one["state_bytes"].as_u64().unwrap() > 0);
    assert!(one["log_bytes"].as_u64().is_some());
}

fn check_failed(fault: &str, more: &str, words: &[&str]) {
    let folder = folder();
    let (said, runs, _) = run(folder.path(), &sidecar("zip", "llm", fault, more));
    assert_eq!(
        said.code,
        Some(5),
        "{fault}: {}{}",
        said.stdout,
        said.stderr
    );
    for run in &runs {
        if run["configuration"] == RELAYED {
            assert_eq!(run["outcome"], "infrastructure", "{fault}");
            assert_eq!(
                run["end_reason"], "sidecar_failed",
                "{fault}: {}",
                run["error"]
            );
            assert!(
                run["error"].contains("the sidecar `zip`"),
                "{}",
                run["error"]
            );
            for word in words {
                assert!(run["error"].contains(word), "{}", run["error"]);
            }
        } else {
            assert_eq!(run["outcome"], "succeeded", "{fault}");
        }
    }
}

#[test]
fn a_sidecar_that_does_not_serve_is_the_harnesss_failure() {
    let short = "start_timeout_ms = 300";
    let limit = ["planted", "127.0.0.1:", "start_timeout_ms = 300"];
    check_failed("deaf", short, &limit);
    check_failed("ends", "", &["ended before the subject", "exit code 9"]);
    check_failed("dies", "", &["ended before the subject", "exit code 9"]);
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let folder = folder();
    let text = sidecar("zip", "llm", "sound", "").replace(SPILLGATE, "/nowhere/zip");
    let (_, runs, _) = run(folder.path(), &text);
    let failed = runs.iter().find(|run| run["configuration"] == RELAYED);
    let error = &failed.expect("a record")["error"];
    assert!(error.contains("cannot start /nowhere/zip"), "{error}");
}

#[test]
fn a_sidecar_that_does_not_end_when_it_is_asked_to_is_killed() {
    let folder = folder();
    let relay = sidecar("zip", "llm", "sound", "").replace(
        &format!("[\"{SPILLGATE}\""),
        &format!("[\"sh\", \"-c\", \"trap '' TERM; exec \\\"$0\\\" \\\"$@\\\"\", \"{SPILLGATE}\""),
    );
    let (said, runs, records) = run(folder.path(), &relay);
    assert!(
        runs.iter().all(|run| run["outcome"] == "succeeded"),
        "{}",
        said.stderr
    );
    // It was killed, and measured all the same.
    assert!(of(&records, RELAYED)["sidecars"][0]["peak_rss_bytes"].is_u64());
}

/// Ends an acceptance in the middle of a sidecar's start.
fn check_no_orphan(signal: Signal) {
    let folder = folder();
    let file = scenario(
        folder.path(),
        &sidecar("zip", "llm", "deaf", "start_timeout_ms = 600000"),
    );
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let mut child = program()
        .args(["accept", "--quiet", "--reps", "1", "--scenario", &file])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path().join("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a sidecar has started", || {
        processes_of(folder.path()).iter().any(|process| {
            let command = fs::read(Path::new(process).join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains("\0deaf")
        })
    });
    send(&child, signal);
    child.wait().unwrap();
    eventually("no sidecar is alive", || {
        processes_of(folder.path()).is_empty()
    });
}

#[test]
fn a_runner_that_ends_takes_its_sidecars_with_it() {
    check_no_orphan(Signal::SIGKILL);
    check_no_orphan(Signal::SIGTERM);
}
