//! Any agent as the subject: a small one in Python, of which only the servers tell.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Row, Said, accept, folder, repository, rows, scenario_with, spillgate};
use crate::sidecars::sidecar;

/// The subject file of `tests/data/agent.py`; `how` and `answer` are told to it.
pub(crate) fn subject(folder: &Path, how: &str, answer: &str) -> String {
    let agent = repository().join("crates/spillgate/tests/data/agent.py");
    let text = format!(
        r#"
[subject]
name = "small-agent"
dialect = "chat"
command = ["python3", "{}", "{{llm_url}}", "{{mcp_url}}", "{{model}}", "{{key}}", "{{prompt}}", "{how}"]
answer = {answer}
state = [".agent"]
install = "Python 3"
run_timeout_ms = 20000

[subject.env]
OUTPUT = "{{output}}"
PYTHONDONTWRITEBYTECODE = "1"

[[subject.files]]
path = ".agent/settings.json"
content = '{{"mcp":"{{mcp_url}}","prompt":{{prompt:json}},"limit":{{env:LIMIT}}}}'

[[configurations]]
name = "off"
role = "control"
enabled = false
env = {{ LIMIT = "0" }}

[[configurations]]
name = "default"
role = "candidate"
shipped = true
env = {{ LIMIT = "7" }}
"#,
        agent.display()
    );
    let path = folder.join("small-agent.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

pub(crate) const STDOUT: &str = r#"{ from = "stdout" }"#;

/// Reviews the small input with the agent, once under each configuration.
fn review(folder: &Path, how: &str, answer: &str) -> (Said, Vec<Row>) {
    let subject = subject(folder, how, answer);
    let said = accept(
        folder,
        "review",
        "small",
        &["--reps", "1", "--subject", &subject],
    );
    let file = folder.join("reports/latest/runs.csv");
    assert!(file.exists(), "{}", said.stderr);
    (said, rows(&file))
}

fn check_answered(how: &str, answer: &str) -> Vec<Row> {
    let folder = folder();
    let (said, runs) = review(folder.path(), how, answer);
    assert_eq!(runs.len(), 2, "{}", said.stderr);
    for run in &runs {
        assert_eq!(run["end_reason"], "answered", "{how}: {}", run["error"]);
        assert_eq!(run["quality"], "1", "{how}");
    }
    runs
}

#[test]
fn a_foreign_agent_is_counted_at_the_servers_and_what_it_does_not_tell_is_missing() {
    let folder = folder();
    let (_, runs) = review(folder.path(), "stdout", STDOUT);
    let built_in = self::folder();
    accept(built_in.path(), "review", "small", &["--reps", "1"]);
    let other = rows(&built_in.path().join("reports/latest/runs.csv"));
    let other = other.iter().find(|run| run["configuration"] == "off");
    let other = other.expect("the control ran");
    for run in &runs {
        assert_eq!(run["subject"], "small-agent");
        for column in ["iterations", "llm_calls", "tool_calls", "facts_found"] {
            assert_eq!(run[column], other[column], "{column}");
        }
        assert_ne!(run["input_tokens"], "0");
        assert_eq!(run["hit_iteration_limit"], "false");
        assert_eq!((&*run["files_written"], &*run["kept_files"]), ("0", "0"));
        assert_eq!(
            run["leak_check"],
            "inotify+search, no step result to compare"
        );
        assert_eq!(
            run["memory_check"],
            "samples of the process tree, a lower bound"
        );
        let sampled: u64 = run["sampled_memory_bytes"].parse().expect("a size");
        assert!(sampled > 0);
        for untold in [
            "duration_ms",
            "llm_retries",
            "store_peak_bytes",
            "body_bytes",
            "peak_rss_bytes",
            "effective_settings",
            "policy",
            "threshold_bytes",
        ] {
            assert_eq!(run[untold], "", "{untold}");
        }
    }
}

#[test]
fn a_sidecar_stands_before_another_agent_too() {
    let folder = folder();
    let file = subject(folder.path(), "stdout", STDOUT);
    let text = fs::read_to_string(&file).unwrap();
    let sidecars = ["llm", "tools"].map(|server| sidecar(server, server, "sound", ""));
    fs::write(&file, text + &sidecars.concat()).unwrap();
    let more = ["--reps", "1", "--subject", &*file];
    let said = accept(folder.path(), "review", "small", &more);
    let latest = folder.path().join("reports/latest");
    for run in rows(&latest.join("runs.csv")) {
        assert_eq!(
            run["end_reason"], "answered",
            "{}{}",
            run["error"], said.stderr
        );
        assert_eq!((&*run["quality"], &*run["leak_findings"]), ("1", "0"));
    }
    let records = fs::read_to_string(latest.join("runs.jsonl")).unwrap();
    let counts = records.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["sidecars"].as_array().map_or(0, Vec::len)
    });
    assert_eq!(counts.sum::<usize>(), 2);
}

#[test]
fn an_answer_is_found_where_the_subject_file_says() {
    check_answered("json", r#"{ from = "stdout", pointer = "/result/text" }"#);
    check_answered("lines", r#"{ from = "last-line", pointer = "/item/text" }"#);
    check_answered("nowhere", r#"{ from = "model" }"#);
    let runs = check_answered("file", r#"{ from = "file", path = "{output}/answer.md" }"#);
    assert!(runs.iter().all(|run| run["files_written"] == "0"));
}

#[test]
fn an_answer_that_is_not_there_is_a_failed_run() {
    let folder = folder();
    let answer = r#"{ from = "file", path = "{output}/answer.md" }"#;
    let (_, runs) = review(folder.path(), "nowhere", answer);
    for run in &runs {
        assert_eq!(run["outcome"], "failed");
        assert_eq!(run["end_reason"], "empty_answer");
        assert!(
            run["error"].contains("{output}/answer.md"),
            "{}",
            run["error"]
        );
    }
}

#[test]
fn what_an_agent_keeps_in_its_own_folder_is_no_leak_and_anywhere_else_it_is() {
    let kept = check_answered("stdout,keeps", STDOUT);
    for run in &kept {
        assert_eq!((&*run["kept_files"], &*run["leak_findings"]), ("1", "0"));
        assert_eq!(run["files_written"], "0");
    }
    let folder = folder();
    let (said, leaked) = review(folder.path(), "stdout,leaks", STDOUT);
    assert_eq!(said.code, Some(6), "{}", said.stderr);
    for run in &leaked {
        assert_eq!((&*run["kept_files"], &*run["leak_findings"]), ("0", "1"));
    }
    let (said, logged) = review(folder.path(), "stdout,logs", STDOUT);
    assert_eq!(said.code, Some(6), "{}", said.stderr);
    assert!(logged.iter().all(|run| run["leak_findings"] == "1"));
}

#[test]
fn an_agent_that_dies_or_fails_is_a_crash_with_its_status() {
    let folder = folder();
    for (how, words) in [("dies", "signal 9"), ("stdout,fails", "exit code 2")] {
        let (_, runs) = review(folder.path(), how, STDOUT);
        for run in &runs {
            assert_eq!(run["end_reason"], "crashed", "{how}");
            assert!(run["error"].contains(words), "{}", run["error"]);
        }
    }
}

#[test]
fn an_agent_that_hangs_is_killed_with_all_it_started() {
    let folder = folder();
    let file = subject(folder.path(), "hangs", STDOUT);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("= 20000", "= 3000")).unwrap();
    accept(
        folder.path(),
        "review",
        "small",
        &["--reps", "1", "--subject", &file],
    );
    for run in rows(&folder.path().join("reports/latest/runs.csv")) {
        assert_eq!(run["end_reason"], "timeout", "{}", run["error"]);
    }
    assert_eq!(sleepers(), 0);
}

/// Processes of `sleep 397`, which only the hanging agent starts.
fn sleepers() -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let command = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        (command == b"sleep\x00397\x00").then_some(())
    });
    processes.count()
}

fn check_refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let said = spillgate(folder, arguments);
    assert_eq!(said.code, Some(2), "{}{}", said.stdout, said.stderr);
    for part in words {
        assert!(said.stderr.contains(part), "{}", said.stderr);
    }
    assert!(!folder.join("reports").exists());
}

#[test]
fn a_subject_that_cannot_run_is_refused_before_the_first_run() {
    let folder = folder();
    let folder = folder.path();
    let file = subject(folder, "stdout", STDOUT);
    let text = fs::read_to_string(&file).unwrap();
    let with = |part: &str, other: &str| {
        assert!(text.contains(part));
        fs::write(&file, text.replacen(part, other, 1)).unwrap();
    };
    let subject = ["accept", "--subject", &*file];
    with("\"python3\"", "\"no-such-agent\"");
    check_refused(
        folder,
        &subject,
        &["no-such-agent is not in PATH", "install it: Python 3"],
    );
    with("\"python3\"", "\"./no-such-agent\"");
    check_refused(folder, &subject, &["is no executable"]);
    with("{model}", "{modle}");
    check_refused(folder, &subject, &["unknown placeholder `{modle}`", ":5:"]);
    check_refused(
        folder,
        &["accept", "--subject", "no-such-subject"],
        &["codex, claude-code, opencode, gemini-cli"],
    );
    check_refused(
        folder,
        &["accept", "--subject", "none.toml"],
        &["none.toml: cannot be read"],
    );
}

#[test]
fn a_scenario_names_its_own_subject() {
    let folder = folder();
    let file = subject(folder.path(), "stdout", STDOUT);
    let scenario = scenario_with(folder.path(), "review", "small");
    let text = fs::read_to_string(&scenario).unwrap();
    let (head, _) = text.split_once("[[configurations]]").unwrap();
    let own = fs::read_to_string(&file).unwrap();
    fs::write(&scenario, format!("{head}{own}")).unwrap();
    let scenario = scenario.to_string_lossy().into_owned();
    let arguments = ["accept", "--quiet", "--reps", "1", "--scenario", &*scenario];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    check_refused(
        folder.path(),
        &with(&["--subject", "built-in"]),
        &["names the subject small-agent"],
    );
    check_refused(
        folder.path(),
        &["sweep", "--scenario", &scenario],
        &["names the subject small-agent"],
    );
    let said = spillgate(folder.path(), &arguments);
    let manifest = folder.path().join("reports/latest/manifest.json");
    let manifest = fs::read(manifest).unwrap_or_else(|_| panic!("{}", said.stderr));
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["subject"], "small-agent");
    assert_eq!(manifest["plan"]["configurations"][0]["policy"], "own");
}

/// A folder that looks like a cgroup, with these controllers for its children.
fn like_a_cgroup(folder: &Path, controllers: &str) -> String {
    let group = folder.join("group");
    fs::create_dir_all(&group).unwrap();
    fs::write(group.join("cgroup.subtree_control"), controllers).unwrap();
    group.to_string_lossy().into_owned()
}

#[test]
fn a_cgroup_that_cannot_measure_is_refused_or_replaced_by_samples() {
    let folder = folder();
    let path = folder.path();
    let refused = |group: &str, words: &str| {
        let said = spillgate(path, &["accept", "--quiet", "--cgroup", group]);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(words), "{}", said.stderr);
    };
    refused("nowhere", "is no cgroup of version 2");
    refused(&like_a_cgroup(path, "cpu pids\n"), "+memory");
    assert!(!path.join("reports").exists());

    // A group made here has no `memory.peak`.
    let group = like_a_cgroup(path, "cpu memory\n");
    let subject = subject(path, "stdout", STDOUT);
    let said = accept(
        path,
        "review",
        "small",
        &["--reps", "1", "--subject", &subject, "--cgroup", &group],
    );
    for run in rows(&path.join("reports/latest/runs.csv")) {
        assert_eq!(run["end_reason"], "answered", "{}", said.stderr);
        assert!(run["memory_check"].contains("lower bound"));
    }
    let left: Vec<_> = fs::read_dir(&group).unwrap().collect();
    assert_eq!(left.len(), 1, "only what was there");
}

#[test]
fn the_plan_for_a_subject_is_listed_without_having_it() {
    let folder = folder();
    let listed = |subject: &str| {
        spillgate(
            folder.path(),
            &["list", "--stage", "quick", "--subject", subject],
        )
    };
    let said = listed("codex");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("· raised"), "{}", said.stdout);
    assert!(!said.stdout.contains("· 32KiB"), "{}", said.stdout);
    let own = spillgate(folder.path(), &["list", "--stage", "quick"]);
    assert_eq!(listed("built-in").stdout, own.stdout);
    let wrong = listed("codexx");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("claude-code"), "{}", wrong.stderr);
}

/// A subject that is a script for a shell.
fn shell(folder: &Path, script: &str) -> String {
    let text = format!(
        r#"
[subject]
name = "shell"
dialect = "chat"
command = ["/bin/sh", "-c", """{script}"""]
answer = {STDOUT}
install = "a shell"
run_timeout_ms = 1000

[[configurations]]
name = "off"
role = "control"
enabled = false

[[configurations]]
name = "default"
role = "candidate"
shipped = true
"#
    );
    let path = folder.join("shell.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn another_agent_does_not_take_the_built_in_subjects_name() {
    let folder = folder();
    let file = shell(folder.path(), "echo hi");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"shell\"", "\"built-in\"")).unwrap();
    let said = spillgate(folder.path(), &["accept", "--subject", &file]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(
        said.stderr.contains("cannot be named built-in"),
        "{}",
        said.stderr
    );
}

/// Each leaves nothing alive. One that ends its launcher loses its run to the harness, and the verdict says how; one that
/// stops it is a subject whose time is over.
#[test]
fn a_subject_that_takes_its_launcher_away_does_not_outlive_its_run() {
    let check = |script: &str, code: i32, words: &str| {
        let folder = folder();
        let subject = shell(folder.path(), script);
        let arguments = ["--reps", "1", "--subject", &subject];
        let said = accept(folder.path(), "review", "small", &arguments);
        assert_eq!(said.code, Some(code), "{script}: {}", said.stderr);
        assert!(said.stdout.contains(words), "{script}: {}", said.stdout);
        let duration = script.split("sleep ").nth(1).unwrap();
        let duration = duration.split(';').next().unwrap();
        assert_eq!(sleeping(duration), [""; 0], "{script}");
    };
    let lost = "the first was lost as launch_failed";
    check("kill -9 $PPID; sleep 6011.5; echo hi", 5, lost);
    check("setsid -f sleep 6012.5; kill -9 $PPID; echo hi", 5, lost);
    check("sleep 6013.5 & kill -STOP $PPID; echo hi", 4, "timeout");
}

/// Processes that sleep so long.
fn sleeping(duration: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap();
    let lines = processes.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.trim() == format!("sleep {duration}"))
        .collect()
}
